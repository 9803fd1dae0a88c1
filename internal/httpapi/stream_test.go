package httpapi_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/rollcall-registry/rollcall/internal/httpapi"
)

// Sizes in these tests: the server takes 1 KiB, the route with its own limit 4.
const (
	serverLimit = 1 << 10
	routeLimit  = 4 << 10
)

// upload answers the length of a streamed body, or why it cannot be read.
func upload(x *httpapi.Exchange) {
	body, err := io.ReadAll(x.BodyReader())
	if status, text, ok := httpapi.BodyFault(err); ok {
		x.Text(status, text)
		return
	}
	x.Text(200, fmt.Sprintf("%d bytes, %d kept", len(body), len(x.Body())))
}

// startUploads serves POST /up, whose bodies are streamed, and POST /echo.
func startUploads(t *testing.T, change func(*httpapi.Config), handler httpapi.Handler) (address string) {
	t.Helper()
	cfg := httpapi.DefaultConfig()
	cfg.MaxBodyBytes = serverLimit
	if change != nil {
		change(&cfg)
	}
	up := route("POST", "/up", handler)
	up.MaxBodyBytes = routeLimit
	return start(t, cfg, up, route("POST", "/echo", echo))
}

func chunks(sizes ...int) string {
	var b strings.Builder
	for _, n := range sizes {
		fmt.Fprintf(&b, "%x\r\n%s\r\n", n, strings.Repeat("c", n))
	}
	return b.String() + "0\r\nTrailer: dropped\r\n\r\n"
}

func TestStreamedBody(t *testing.T) {
	t.Parallel()
	address := startUploads(t, nil, upload)
	chunked := func(body string) string {
		return request("POST", "/up", "Transfer-Encoding: chunked") + body
	}
	for _, tt := range []struct {
		name, request string
		status        int
		body          string
	}{
		{"above the server's limit", withBody("POST", "/up", strings.Repeat("b", routeLimit)), 200, "4096 bytes, 0 kept"},
		{"no body", request("POST", "/up"), 200, "0 bytes, 0 kept"},
		{"chunked", chunked(chunks(1, 3000, 1095)), 200, "4096 bytes, 0 kept"},
		{"too large as announced", request("POST", "/up", "Content-Length: 4097"), 413, ""},
		{"too large in chunks", chunked(chunks(4096, 1)), 413, "the request body is larger than the server takes"},
		{"bad chunk", chunked("xyz\r\n"), 400, "the chunked body is malformed"},
		{"bad expectation", request("POST", "/up", "Content-Length: 1", "Expect: miracles"), 417, ""},
		{"other routes keep the server's limit", withBody("POST", "/echo", strings.Repeat("b", serverLimit+1)), 413, ""},
		{"a form is no source of parameters", withBody("POST", "/up?a=1", "b=2", "Content-Type: application/x-www-form-urlencoded"), 200, "3 bytes, 0 kept"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := dial(t, address).ask(tt.request)
			if got.StatusCode != tt.status || tt.body != "" && got.body != tt.body {
				t.Errorf("got %d %q, want %d %q", got.StatusCode, got.body, tt.status, tt.body)
			}
		})
	}
}

// The connection goes on behind a streamed body that was read to its end.
func TestStreamedBodyIsFollowed(t *testing.T) {
	t.Parallel()
	address := startUploads(t, nil, upload)
	c := dial(t, address)
	c.send(withBody("POST", "/up", "abc") +
		request("POST", "/up", "Transfer-Encoding: chunked") + chunks(5) +
		withBody("POST", "/echo?a=1", ""))
	for _, want := range []string{"3 bytes, 0 kept", "5 bytes, 0 kept", "a=1\n"} {
		if got := c.receive("POST"); got.body != want {
			t.Errorf("got %q, want %q", got.body, want)
		}
	}
}

// A handler that does not want the body answers at once; the client can read the
// answer although it still sends, and the connection ends.
func TestStreamedBodyLeftUnread(t *testing.T) {
	t.Parallel()
	address := startUploads(t, nil, func(x *httpapi.Exchange) { x.Text(403, "no") })
	c := dial(t, address)
	got := c.ask(request("POST", "/up", "Content-Length: 4096") + strings.Repeat("b", 2000))
	if got.StatusCode != 403 || got.body != "no" || !got.Close {
		t.Errorf("got %d %q, close %v; want 403, no, and the end", got.StatusCode, got.body, got.Close)
	}
	c.send(strings.Repeat("b", 2096))
	_ = c.Close()
}

func TestStreamedBodyEndsEarly(t *testing.T) {
	t.Parallel()
	faults := make(chan int, 1)
	address := startUploads(t, nil, func(x *httpapi.Exchange) {
		_, err := io.ReadAll(x.BodyReader())
		status, _, _ := httpapi.BodyFault(fmt.Errorf("wrapped: %w", err))
		faults <- status
	})
	c := dial(t, address)
	c.send(request("POST", "/up", "Content-Length: 100") + "half")
	_ = c.Close()
	if got := <-faults; got != 400 {
		t.Errorf("status %d, want 400", got)
	}
	if _, _, ok := httpapi.BodyFault(errors.New("something else")); ok {
		t.Error("any error is taken for a fault of the body")
	}
}

func TestStreamedBodyTakesTooLong(t *testing.T) {
	t.Parallel()
	address := startUploads(t, func(cfg *httpapi.Config) {
		cfg.HeaderTimeout, cfg.BodyTimeout = 50*time.Millisecond, 50*time.Millisecond
	}, upload)
	got := dial(t, address).ask(request("POST", "/up", "Content-Length: 100") + "half")
	if got.StatusCode != 408 || got.body != "the request took too long to arrive" {
		t.Errorf("got %d %q, want 408", got.StatusCode, got.body)
	}
}

// A client that asks before it sends is told to go on when the body is wanted,
// and not before.
func TestStreamedBodyContinues(t *testing.T) {
	t.Parallel()
	address := startUploads(t, nil, func(x *httpapi.Exchange) {
		if x.Query() == "refuse" {
			x.Text(403, "no")
			return
		}
		upload(x)
	})
	headers := []string{"Content-Length: 3", "Expect: 100-continue"}
	c := dial(t, address)
	c.send(request("POST", "/up", headers...))
	if line, err := c.r.ReadString('\n'); err != nil || line != "HTTP/1.1 100 Continue\r\n" {
		t.Fatalf("got %q, %v", line, err)
	}
	if line, err := c.r.ReadString('\n'); err != nil || line != "\r\n" {
		t.Fatalf("got %q, %v", line, err)
	}
	c.send("abc")
	if got := c.receive("POST"); got.body != "3 bytes, 0 kept" {
		t.Errorf("got %q", got.body)
	}
	if got := dial(t, address).ask(request("POST", "/up?refuse", headers...)); got.StatusCode != 403 || !got.Close {
		t.Errorf("got %d, close %v; want 403 at once, and the end", got.StatusCode, got.Close)
	}
}

// writing serves GET /down, which writes n bytes, 1000 at a time, and then fails
// as told.
func writing(t *testing.T, n int, end func() error, told chan<- error) (address string) {
	t.Helper()
	cfg := httpapi.DefaultConfig()
	cfg.GzipMinBytes = 1 // streams are not compressed
	down := func(x *httpapi.Exchange) {
		err := x.Stream("text/x-bytes", func(w io.Writer) error {
			for left := n; left > 0; left -= 1000 {
				if _, err := w.Write(bytes.Repeat([]byte{'d'}, min(left, 1000))); err != nil {
					return err
				}
			}
			return end()
		})
		if err != nil && told == nil {
			x.Text(503, err.Error())
		}
		if told != nil {
			told <- err
		}
	}
	return start(t, cfg, route("GET", "/down", down), route("POST", "/echo", echo))
}

func fine() error { return nil }

func TestStreamedAnswer(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, 64<<10 - 1, 64 << 10, 64<<10 + 1, 1 << 20} {
		c := dial(t, writing(t, n, fine, nil))
		c.send(request("GET", "/down") + withBody("POST", "/echo?a=1", ""))
		got := c.receive("GET")
		chunked := len(got.TransferEncoding) > 0
		if len(got.body) != n || got.Header.Get("Content-Type") != "text/x-bytes" || got.Close || chunked != (n >= 64<<10) {
			t.Errorf("%d bytes: got %d, %v, chunked %v", n, len(got.body), got.Header, chunked)
		}
		if next := c.receive("POST"); next.body != "a=1\n" {
			t.Errorf("%d bytes: the next answer is %q", n, next.body)
		}
	}
}

func TestStreamedAnswerToOldClients(t *testing.T) {
	t.Parallel()
	const n = 200_000
	c := dial(t, writing(t, n, fine, nil))
	got := c.ask("GET /down HTTP/1.0\r\n\r\n")
	if len(got.body) != n || got.Header.Get("Transfer-Encoding") != "" || !got.Close {
		t.Errorf("got %d bytes, %v", len(got.body), got.Header)
	}
	c.closed()
}

func TestStreamedAnswerToHead(t *testing.T) {
	t.Parallel()
	c := dial(t, writing(t, 200_000, fine, nil))
	if got := c.ask(request("HEAD", "/down")); got.StatusCode != 200 || got.body != "" {
		t.Errorf("got %d with %d bytes", got.StatusCode, len(got.body))
	}
	if got := c.ask(withBody("POST", "/echo?a=1", "")); got.body != "a=1\n" {
		t.Errorf("the next answer is %q", got.body)
	}
}

func TestStreamedAnswerFails(t *testing.T) {
	t.Parallel()
	broken := func() error { return errors.New("broken") }
	got := dial(t, writing(t, 1000, broken, nil)).ask(request("GET", "/down"))
	if got.StatusCode != 503 || got.body != "broken" {
		t.Errorf("a failure before anything left: got %d %q, want 503", got.StatusCode, got.body)
	}
	for name, end := range map[string]func() error{"error": broken, "panic": func() error { panic("broken") }} {
		c := dial(t, writing(t, 200_000, end, nil))
		c.send(request("GET", "/down"))
		resp, err := http.ReadResponse(c.r, &http.Request{Method: "GET"})
		if err != nil {
			t.Fatal(err)
		}
		if n, err := io.Copy(io.Discard, resp.Body); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%s later: the body ends after %d bytes with %v, want an unexpected end", name, n, err)
		}
	}
}

func TestStreamedAnswerToNobody(t *testing.T) {
	t.Parallel()
	told := make(chan error, 1)
	c := dial(t, writing(t, 64<<20, fine, told))
	c.send(request("GET", "/down"))
	if _, err := c.r.Peek(1); err != nil {
		t.Fatal(err)
	}
	_ = c.Close()
	if err := <-told; err == nil {
		t.Error("the handler is not told that its client has gone")
	}
}
