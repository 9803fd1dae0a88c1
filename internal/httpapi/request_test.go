package httpapi_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollcall-registry/rollcall/internal/httpapi"
	"github.com/rollcall-registry/rollcall/internal/httpapi/httpapitest"
)

// A request is for one host, and what cannot begin a request is refused at once.
func TestRefusedAtOnce(t *testing.T) {
	address := start(t, httpapi.DefaultConfig(), route("GET", "/ok", ok))
	for name, sent := range map[string]string{
		"two hosts":           request("GET", "/ok", "Host: other"),
		"two hosts, alike":    request("GET", "/ok", "hOST: h"),
		"an empty host more":  request("GET", "/ok", "Host:"),
		"TLS":                 "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
		"NULs":                "\x00\x00\x00\x00",
		"UTF-8":               "\xc3\xa4",
		"a blank":             " GET /ok HTTP/1.1",
		"a line end, a blank": "\r\n ",
	} {
		t.Run(name, func(t *testing.T) {
			c := dial(t, address)
			if got := c.ask(sent); got.StatusCode != 400 || !got.Close {
				t.Errorf("got %d %q", got.StatusCode, got.body)
			}
			c.closed()
		})
	}
	if got := dial(t, address).ask(request("GET", "/ok", "Hosts: a", "X-Host: b")); got.StatusCode != 200 {
		t.Errorf("other headers: %d %q", got.StatusCode, got.body)
	}
}

func TestParametersOfEveryPlace(t *testing.T) {
	routes := []httpapi.Route{{
		Methods: []string{"GET", "POST", "PUT", "PATCH", "DELETE"}, Path: "/echo", Handler: echo,
		Resource: httpapi.Open, Action: httpapi.Read,
	}}
	address := start(t, httpapi.DefaultConfig(), routes...)
	const form = "Content-Type: application/x-www-form-urlencoded"
	for _, method := range []string{"POST", "PUT", "PATCH", "DELETE"} {
		for _, headers := range [][]string{
			nil, {form}, {form + "; charset=UTF-8"}, {form + ";charset=utf8"}, {strings.ToLower(form)}, {"CONTENT-TYPE: Application/X-www-form-urlencoded"},
		} {
			got := dial(t, address).ask(withBody(method, "/echo?a=1&b=%20x", "a=2&c=%E4%B8%AD", headers...))
			if want := "a=1\nb= x\na=2\nc=中\n"; got.body != want {
				t.Errorf("%s %v: %q, want %q", method, headers, got.body, want)
			}
		}
		got := dial(t, address).ask(withBody(method, "/echo?a=1", "b=2", "Content-Type: application/json"))
		if want := "a=1\n"; got.body != want {
			t.Errorf("%s of JSON: %q, want %q", method, got.body, want)
		}
	}
	if got := dial(t, address).ask(withBody("GET", "/echo?a=1", "b=2", form)); got.body != "a=1\n" {
		t.Errorf("the body of a GET counts: %q", got.body)
	}
}

func TestMalformedRequests(t *testing.T) {
	address := start(t, httpapi.DefaultConfig(), route("POST", "/echo", echo))
	tests := []struct {
		name, raw string
		status    int
	}{
		{"garbage", "\x16\x03\x01\x02\x00\x01\x00\r\n\r\n", 400},
		{"no version", "GET /\r\n\r\n", 400},
		{"blank in the target", "PUT /echo?m={\"a\": 1} HTTP/1.1\r\nHost: h\r\n\r\n", 400},
		{"two blanks", "GET  / HTTP/1.1\r\nHost: h\r\n\r\n", 400},
		{"HTTP/2 preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505},
		{"PROXY header", "PROXY TCP4 192.0.2.7 127.0.0.1 4711 80\r\n" + request("GET", "/echo"), 400},
		{"empty lines only", strings.Repeat("\r\n", 20), 400},
		{"bare line feeds", "GET / HTTP/1.1\nHost: h\n\n", 400},
		{"one bare line feed", "GET / HTTP/1.1\r\nHost: h\nX-A: b\r\n\r\n", 400},
		{"head ended by bare line feeds", "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 3\n\na=1\r\n\r\n", 400},
		{"no host", "GET / HTTP/1.1\r\n\r\n", 400},
		{"line without a colon", "GET / HTTP/1.1\r\nHost: h\r\nnonsense\r\n\r\n", 400},
		{"blank before the colon", "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length : 3\r\n\r\na=1", 400},
		{"folded line", "GET / HTTP/1.1\r\nHost: h\r\nX-A: a\r\n b\r\n\r\n", 400},
		{"NUL in a header", "GET / HTTP/1.1\r\nHost: h\r\nX-A: a\x00b\r\n\r\n", 400},
		{"two lengths", request("POST", "/echo", "Content-Length: 3", "Content-Length: 4") + "a=1", 400},
		{"length and chunks", request("POST", "/echo", "Content-Length: 3", "Transfer-Encoding: chunked") + "0\r\n\r\n", 400},
		{"chunks and length", request("POST", "/echo", "Transfer-Encoding: chunked", "Content-Length: 3") + "0\r\n\r\n", 400},
		{"unknown coding", request("POST", "/echo", "Transfer-Encoding: gzip, chunked") + "0\r\n\r\n", 400},
		{"negative length", request("POST", "/echo", "Content-Length: -3"), 400},
		{"length no number", request("POST", "/echo", "Content-Length: 3x"), 400},
		{"bad chunk size", request("POST", "/echo", "Transfer-Encoding: chunked") + "zz\r\n", 400},
		{"chunk too short", request("POST", "/echo", "Transfer-Encoding: chunked") + "3\r\na=11\r\n0\r\n\r\n", 400},
		{"unknown expectation", request("POST", "/echo", "Expect: tea", "Content-Length: 3") + "a=1", 417},
	}
	for _, tt := range tests {
		c := dial(t, address)
		c.send(tt.raw)
		got := c.receive("GET")
		if got.StatusCode != tt.status {
			t.Errorf("%s: %d %q, want %d", tt.name, got.StatusCode, got.body, tt.status)
		}
		if !got.Close {
			t.Errorf("%s: the connection goes on", tt.name)
		}
	}
	if got := dial(t, address).ask(withBody("POST", "/echo", "a=1")); got.body != "a=1\n" {
		t.Errorf("afterwards: %q", got.body)
	}
}

func TestPipelining(t *testing.T) {
	address := start(t, httpapi.DefaultConfig(), route("POST", "/echo", echo), route("GET", "/large", func(x *httpapi.Exchange) {
		x.JSON(200, bytes.Repeat([]byte("y"), 100_000))
	}))
	c := dial(t, address)
	var all strings.Builder
	for i := range 50 {
		all.WriteString(withBody("POST", "/echo?q="+fmt.Sprint(i), "b=1"))
		all.WriteString(request("GET", "/large"))
	}
	// The last request is cut, so that answers must come before it is complete.
	raw := all.String() + withBody("POST", "/echo?last=1", "b=2")
	cut := len(raw) - 2
	go func() { _, _ = io.WriteString(c, raw[:cut]) }()
	for i := range 50 {
		if got := c.receive("POST"); got.body != fmt.Sprintf("q=%d\nb=1\n", i) {
			t.Fatalf("answer %d: %q", i, got.body)
		}
		if got := c.receive("GET"); len(got.body) != 100_000 {
			t.Fatalf("answer %d: %d bytes", i, len(got.body))
		}
	}
	c.send(raw[cut:])
	if got := c.receive("POST"); got.body != "last=1\nb=2\n" {
		t.Errorf("last answer: %q", got.body)
	}
}

func TestChunkedBodies(t *testing.T) {
	address := start(t, httpapi.DefaultConfig(), route("POST", "/echo", echo))
	c := dial(t, address)
	for _, chunks := range []string{
		"3\r\na=1\r\n0\r\n\r\n",
		"1\r\na\r\n1;ext=1\r\n=\r\n1\r\n1\r\n0\r\n\r\n",
		"3\r\na=1\r\n0\r\nTrailer-A: x\r\nContent-Length: 99\r\n\r\n",
	} {
		if got := c.ask(request("POST", "/echo", "Transfer-Encoding: chunked") + chunks); got.body != "a=1\n" {
			t.Errorf("%q: %d %q", chunks, got.StatusCode, got.body)
		}
	}
	// Byte by byte, on the same connection.
	go func() {
		for _, b := range []byte(request("POST", "/echo", "Transfer-Encoding: chunked") + "3\r\na=1\r\n0\r\n\r\n") {
			_, _ = c.Write([]byte{b})
		}
	}()
	if got := c.receive("POST"); got.body != "a=1\n" {
		t.Errorf("byte by byte: %q", got.body)
	}
}

func TestExpectContinue(t *testing.T) {
	address := start(t, httpapi.DefaultConfig(), route("POST", "/echo", echo))
	c := dial(t, address)
	c.send(request("POST", "/echo", "Expect: 100-Continue", "Content-Length: 3"))
	line, err := c.r.ReadString('\n')
	if err != nil || line != "HTTP/1.1 100 Continue\r\n" {
		t.Fatalf("%q, %v", line, err)
	}
	if _, err := c.r.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	c.send("a=1")
	if got := c.receive("POST"); got.body != "a=1\n" {
		t.Errorf("%d %q", got.StatusCode, got.body)
	}
	// A body that is refused is not asked for.
	c.send(request("POST", "/echo", "Expect: 100-continue", "Content-Length: 99999999"))
	if got := c.receive("POST"); got.StatusCode != 413 {
		t.Errorf("%d, want 413", got.StatusCode)
	}
}

func TestSizeLimits(t *testing.T) {
	cfg := httpapi.DefaultConfig()
	address := start(t, cfg, route("POST", "/echo", func(x *httpapi.Exchange) {
		x.Text(200, fmt.Sprint(len(x.Query()), " ", len(x.Body())))
	}))
	head := request("POST", "/echo?", "Content-Length: 0")
	tests := []struct {
		name, raw string
		status    int
	}{
		{"7 KB query", request("POST", "/echo?"+strings.Repeat("q", 7<<10), "Content-Length: 0"), 200},
		{"head of the limit", request("POST", "/echo?"+strings.Repeat("q", cfg.MaxHeaderBytes-len(head)), "Content-Length: 0"), 200},
		{"head of one more", request("POST", "/echo?"+strings.Repeat("q", cfg.MaxHeaderBytes-len(head)+1), "Content-Length: 0"), 431},
		{"512 KB query", request("POST", "/echo?"+strings.Repeat("q", 512<<10), "Content-Length: 0"), 431},
		{"2 MB query", request("POST", "/echo?"+strings.Repeat("q", 2<<20), "Content-Length: 0"), 431},
		{"200 headers", request("POST", "/echo", append(slices.Repeat([]string{"X-A: b"}, 200), "Content-Length: 0")...), 200},
		{"2000 headers", request("POST", "/echo", append(slices.Repeat([]string{"X-A: b"}, 2000), "Content-Length: 0")...), 431},
		{"63 KB header", request("POST", "/echo", "X-A: "+strings.Repeat("b", 63<<10), "Content-Length: 0"), 200},
		{"body of the limit", withBody("POST", "/echo", strings.Repeat("b", cfg.MaxBodyBytes)), 200},
		{"body of one more", withBody("POST", "/echo", strings.Repeat("b", cfg.MaxBodyBytes+1)), 413},
		{"10 MB body", withBody("POST", "/echo", strings.Repeat("b", 10<<20)), 413},
		{"10 MB in chunks", request("POST", "/echo", "Transfer-Encoding: chunked") +
			strings.Repeat("10000\r\n"+strings.Repeat("b", 0x10000)+"\r\n", 160) + "0\r\n\r\n", 413},
		{"endless trailer", request("POST", "/echo", "Transfer-Encoding: chunked") + "0\r\n" + strings.Repeat("X-A: b\r\n", 20_000), 431},
	}
	for _, tt := range tests {
		c := dial(t, address)
		go func() { _, _ = io.WriteString(c, tt.raw) }() // the server need not read it all
		if got := c.receive("POST"); got.StatusCode != tt.status {
			t.Errorf("%s: %d %q, want %d", tt.name, got.StatusCode, got.body, tt.status)
		}
	}
}

// TestRefusedBodyIsReadable has an ordinary client send a body that is refused
// before it is read: the client must see the answer and not a reset connection.
func TestRefusedBodyIsReadable(t *testing.T) {
	address := start(t, httpapi.DefaultConfig(), route("POST", "/echo", echo))
	resp, err := http.Post("http://"+address+"/nacos/echo", "application/octet-stream", bytes.NewReader(make([]byte, 10<<20)))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("status %d", resp.StatusCode)
	}
}

func TestHalfClosed(t *testing.T) {
	address := start(t, httpapi.DefaultConfig(), route("POST", "/echo", echo))
	c := dial(t, address)
	c.send(withBody("POST", "/echo", "a=1"))
	closeWrite(c)
	if got := c.receive("POST"); got.body != "a=1\n" {
		t.Errorf("after a whole request: %q", got.body)
	}
	c.closed()

	for _, part := range []string{"POST /echo HT", request("POST", "/echo", "Content-Length: 10") + "a=1"} {
		c = dial(t, address)
		c.send(part)
		closeWrite(c)
		if got := c.receive("POST"); got.StatusCode != 400 {
			t.Errorf("%q: %d, want 400", part, got.StatusCode)
		}
		c.closed()
	}

	c = dial(t, address)
	closeWrite(c)
	c.closed()
}

func closeWrite(c *client) {
	c.t.Helper()
	if err := c.Conn.(*net.TCPConn).CloseWrite(); err != nil {
		c.t.Fatal(err)
	}
}

// TestSlowSenders has many clients send a head, or a body, byte by byte: they are
// cut off, hold little memory meanwhile, and others do not notice.
func TestSlowSenders(t *testing.T) {
	cfg := httpapi.DefaultConfig()
	cfg.HeaderTimeout, cfg.BodyTimeout = 300*time.Millisecond, 300*time.Millisecond
	address := start(t, cfg, route("POST", "/echo", echo))
	var slow sync.WaitGroup
	for i := range 200 {
		c := dial(t, address)
		prefix := ""
		if i%2 == 0 {
			prefix = request("POST", "/echo", "Content-Length: 8000000") // announced, never sent
		}
		slow.Go(func() {
			_, err := io.WriteString(c, prefix)
			for err == nil {
				select {
				case <-t.Context().Done():
					return
				case <-time.After(20 * time.Millisecond):
					_, err = c.Write([]byte("P"))
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { slow.Wait(); close(done) }()
	fast := dial(t, address)
	for running := true; running; {
		begin := time.Now()
		if got := fast.ask(withBody("POST", "/echo", "a=1")); got.body != "a=1\n" {
			t.Fatalf("%d %q", got.StatusCode, got.body)
		}
		if took := time.Since(begin); took > 5*time.Second {
			t.Errorf("an ordinary request took %v", took)
		}
		select {
		case <-done:
			running = false
		default:
		}
	}
}

func TestTimeoutAnswers(t *testing.T) {
	cfg := httpapi.DefaultConfig()
	cfg.HeaderTimeout, cfg.BodyTimeout, cfg.IdleTimeout = 3*time.Second, 4*time.Second, 60*time.Second
	tests := []struct {
		name, sent string
		status     int // 0: closed without an answer
		after      time.Duration
	}{
		{"nothing", "", 0, cfg.IdleTimeout},
		{"half a head", "GET / HT", 408, cfg.HeaderTimeout},
		{"half a body", request("POST", "/echo", "Content-Length: 9") + "a=1", 408, cfg.HeaderTimeout + cfg.BodyTimeout},
		{"half a chunk", request("POST", "/echo", "Transfer-Encoding: chunked") + "9\r\na=1", 408, cfg.HeaderTimeout + cfg.BodyTimeout},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := httpapitest.Server(t, cfg, httpapi.Hooks{}, route("POST", "/echo", echo))
				near, far := net.Pipe()
				served := make(chan struct{})
				begin := time.Now()
				go func() { server.ServeConn(t.Context(), near, nil); close(served) }()
				if _, err := io.WriteString(far, tt.sent); err != nil {
					t.Fatal(err)
				}
				got, err := io.ReadAll(far)
				if err != nil {
					t.Fatal(err)
				}
				if took := time.Since(begin); took != tt.after {
					t.Errorf("ended after %v, want %v", took, tt.after)
				}
				if wanted := fmt.Sprintf("HTTP/1.1 %d ", tt.status); tt.status != 0 && !strings.HasPrefix(string(got), wanted) || tt.status == 0 && len(got) > 0 {
					t.Errorf("answer %q, want status %d", got, tt.status)
				}
				<-served
			})
		})
	}
}

// TestIdleTimeout checks it on a socket, whose deadline is renewed lazily.
func TestIdleTimeout(t *testing.T) {
	cfg := httpapi.DefaultConfig()
	cfg.IdleTimeout = 400 * time.Millisecond
	address := start(t, cfg, route("GET", "/ok", ok))
	c := dial(t, address)
	begin := time.Now()
	for time.Since(begin) < 3*cfg.IdleTimeout { // a busy connection outlives it
		if got := c.ask(request("GET", "/ok")); got.body != "ok" {
			t.Fatal(got.body)
		}
	}
	begin = time.Now()
	c.closed()
	if took := time.Since(begin); took < cfg.IdleTimeout/2-50*time.Millisecond {
		t.Errorf("closed after %v of silence", took)
	}
}
