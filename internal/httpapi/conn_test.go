package httpapi_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollcall-registry/rollcall/internal/httpapi"
	"github.com/rollcall-registry/rollcall/internal/httpapi/httpapitest"
)

func startRouter(t *testing.T, router *httpapi.Router) (address string) {
	t.Helper()
	server, err := httpapi.New(httpapi.DefaultConfig(), router, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return httpapitest.Start(t, server)
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
		for _, contentType := range []string{"application/json", "multipart/form-data; boundary=X"} {
			got := dial(t, address).ask(withBody(method, "/echo?a=1", "b=2", "Content-Type: "+contentType))
			if want := "a=1\n"; got.body != want {
				t.Errorf("%s %s: %q, want %q", method, contentType, got.body, want)
			}
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
		{"empty lines only", strings.Repeat("\r\n", 20), 400},
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

func TestKeepAlive(t *testing.T) {
	address := start(t, httpapi.DefaultConfig(),
		route("GET", "/ok", ok),
		route("GET", "/status", func(x *httpapi.Exchange) {
			n, _ := x.Params().Int("n", 200)
			x.Text(n, "text")
		}),
		route("GET", "/last", func(x *httpapi.Exchange) { x.OK(); x.CloseAfter() }))
	tests := []struct {
		raw    string
		goesOn bool
	}{
		{request("GET", "/ok"), true},
		{request("GET", "/ok", "Connection: Keep-Alive"), true},
		{request("GET", "/ok", "Connection: close"), false},
		{request("GET", "/ok", "Connection: Close"), false},
		{request("GET", "/ok", "Connection: keep-alive, close"), false},
		{"GET /ok HTTP/1.0\r\n\r\n", false},
		{"GET /ok HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", true},
		{request("GET", "/last"), false},
		{request("GET", "/status?n=403"), true},
		{request("GET", "/nothing"), true}, // 404
		{request("GET", "/status?n=400"), false},
		{request("GET", "/status?n=500"), false},
		{request("GET", "/nacos/v1/ns/nothing"), false}, // 501
		{request("GET", "/status?n=503"), false},
		{request("GET", "/ok", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA", "Connection: Upgrade, HTTP2-Settings"), true},
	}
	for _, tt := range tests {
		c := dial(t, address)
		if got := c.ask(tt.raw); got.Close == tt.goesOn {
			t.Errorf("%q: announced close %v", tt.raw, got.Close)
		}
		if !tt.goesOn {
			c.closed()
		} else if got := c.ask(request("GET", "/ok")); got.body != "ok" {
			t.Errorf("%q: next answer %q", tt.raw, got.body)
		}
	}
}

func TestHead(t *testing.T) {
	address := start(t, httpapi.DefaultConfig(), route("GET", "/text", func(x *httpapi.Exchange) { x.Text(200, "12345") }))
	c := dial(t, address)
	for range 2 { // a body would be taken for the next answer
		got := c.ask(request("HEAD", "/text"))
		if got.StatusCode != 200 || got.ContentLength != 5 || got.body != "" {
			t.Errorf("%d, length %d, %q", got.StatusCode, got.ContentLength, got.body)
		}
	}
}

func TestTextTypes(t *testing.T) {
	address := start(t, httpapi.DefaultConfig(), route("GET", "/ok", ok))
	for accept, wanted := range map[string]string{
		"":                                "text/plain;charset=UTF-8",
		"*/*":                             "text/plain;charset=UTF-8",
		"text/plain":                      "text/plain;charset=UTF-8",
		"application/json":                "application/json",
		"application/json, text/plain":    "application/json",
		"application/jsonx":               "text/plain;charset=UTF-8",
		"text/html, image/gif, */*; q=.2": "text/plain;charset=UTF-8",
		"image/png":                       "text/plain;charset=UTF-8",
		"application/xml":                 "text/plain;charset=UTF-8",
		"application/json;charset=utf-8":  "application/json",
	} {
		want(t, dial(t, address).ask(request("GET", "/ok", "Accept: "+accept)), "Content-Type", wanted)
	}
}

func TestGzip(t *testing.T) {
	text := strings.Repeat(`{"ip":"10.0.0.7"},`, 10_000)
	address := start(t, httpapi.DefaultConfig(),
		route("GET", "/large", func(x *httpapi.Exchange) { x.JSON(200, []byte(text)) }),
		route("GET", "/small", func(x *httpapi.Exchange) { x.JSON(200, []byte(text[:1000])) }))
	tests := []struct {
		target, accept string
		compressed     bool
	}{
		{"/large", "gzip,deflate,sdch", true},
		{"/large", "deflate, GZIP;q=0.5", true},
		{"/large", "gzip;q=0", false},
		{"/large", "gzip; q=0.0", false},
		{"/large", "deflate", false},
		{"/large", "", false},
		{"/small", "gzip", false},
	}
	c := dial(t, address)
	for _, tt := range tests {
		got := c.ask(request("GET", tt.target, "Accept-Encoding: "+tt.accept))
		if compressed := got.Header.Get("Content-Encoding") == "gzip"; compressed != tt.compressed {
			t.Errorf("%s %q: compressed %v", tt.target, tt.accept, compressed)
		}
		body := got.body
		if tt.compressed {
			r, err := gzip.NewReader(strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			plain, err := io.ReadAll(r)
			if err != nil {
				t.Fatal(err)
			}
			body = string(plain)
		}
		if !strings.HasPrefix(text, body) || len(body) < 1000 {
			t.Errorf("%s %q: the body differs", tt.target, tt.accept)
		}
	}
}

func TestPanicIsAnswered(t *testing.T) {
	var logged bytes.Buffer
	router, err := httpapi.NewRouter("", httpapi.Hooks{}, httpapitest.Groups(), []httpapi.Route{
		route("GET", "/panic", func(x *httpapi.Exchange) {
			x.SetHeader("X-Half", "done")
			panic("a secret of the server")
		}), route("GET", "/ok", ok)})
	if err != nil {
		t.Fatal(err)
	}
	server, err := httpapi.New(httpapi.DefaultConfig(), router, slog.New(slog.NewTextHandler(&logged, nil)))
	if err != nil {
		t.Fatal(err)
	}
	address := httpapitest.Start(t, server)
	got := dial(t, address).ask(request("GET", "/panic"))
	_, id, _ := strings.Cut(strings.TrimSuffix(got.body, ";"), "id ")
	if got.StatusCode != 500 || !strings.HasPrefix(got.body, "caused: internal error") || id == "" {
		t.Errorf("%d %q", got.StatusCode, got.body)
	}
	if strings.Contains(got.body, "secret") || strings.Contains(got.body, ".go") || got.Header.Get("X-Half") != "" {
		t.Errorf("the answer tells too much: %q %v", got.body, got.Header)
	}
	if log := logged.String(); !strings.Contains(log, id) || !strings.Contains(log, "a secret of the server") {
		t.Errorf("the log lacks id %q or cause: %s", id, log)
	}
	if got := dial(t, address).ask(request("GET", "/ok")); got.body != "ok" {
		t.Errorf("afterwards: %q", got.body)
	}
}

func TestHeaderInjection(t *testing.T) {
	address := start(t, httpapi.DefaultConfig(), route("GET", "/to", func(x *httpapi.Exchange) {
		to, _ := x.Params().Get("to")
		x.Redirect(to)
	}))
	got := dial(t, address).ask(request("GET", "/to?to=/a%0d%0aSet-Cookie:%20x=y"))
	if got.StatusCode != 302 || got.Header.Get("Location") != "/a  Set-Cookie: x=y" || got.Header.Get("Set-Cookie") != "" {
		t.Errorf("%d %v", got.StatusCode, got.Header)
	}
}

func TestAfterWrite(t *testing.T) {
	released, order := make(chan struct{}), make(chan string, 4)
	address := start(t, httpapi.DefaultConfig(), route("GET", "/ok", func(x *httpapi.Exchange) {
		x.AfterWrite(func() { <-released; order <- "first" })
		x.AfterWrite(func() { order <- "second" })
		x.OK()
	}))
	c := dial(t, address)
	if got := c.ask(request("GET", "/ok")); got.body != "ok" { // before released
		t.Errorf("%q", got.body)
	}
	close(released)
	if a, b := <-order, <-order; a != "first" || b != "second" {
		t.Errorf("order %s, %s", a, b)
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

func TestDrain(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	server := httpapitest.Server(t, httpapi.DefaultConfig(), httpapi.Hooks{},
		route("GET", "/ok", ok),
		route("GET", "/slow", func(x *httpapi.Exchange) {
			close(entered)
			<-x.Draining()
			<-leave
			x.OK()
		}))
	ln, ctx, stop, served := serve(t, server)
	idle, busy := dial(t, ln), dial(t, ln)
	if got := idle.ask(request("GET", "/ok")); got.body != "ok" {
		t.Fatal(got.body)
	}
	busy.send(request("GET", "/slow") + request("GET", "/ok"))
	<-entered
	stop()
	idle.closed()
	if nc, err := net.Dial("tcp", ln); err == nil {
		_ = nc.Close()
		t.Error("connections are still accepted")
	}
	close(leave)
	got := busy.receive("GET")
	if got.body != "ok" || !got.Close {
		t.Errorf("the running request: %q, close %v", got.body, got.Close)
	}
	busy.closed()
	if err := <-served; err != nil {
		t.Error(err)
	}
	if ctx.Err() == nil {
		t.Error("served to the end before stop")
	}
}

func TestDrainTimeout(t *testing.T) {
	cfg := httpapi.DefaultConfig()
	cfg.DrainTimeout = 50 * time.Millisecond
	entered := make(chan struct{})
	server := httpapitest.Server(t, cfg, httpapi.Hooks{}, route("GET", "/stuck", func(x *httpapi.Exchange) {
		close(entered)
		<-x.Context().Done()
		x.OK()
	}))
	ln, _, stop, served := serve(t, server)
	c := dial(t, ln)
	c.send(request("GET", "/stuck"))
	<-entered
	stop()
	if err := <-served; err != nil {
		t.Error(err)
	}
	if _, err := io.ReadAll(c.r); err != nil && !errors.Is(err, io.EOF) {
		t.Logf("the client saw %v", err)
	}
}

// serve runs server until stop, and reports what Serve returned.
func serve(t *testing.T, server *httpapi.Server) (address string, ctx context.Context, stop func(), served chan error) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop = context.WithCancel(t.Context())
	served = make(chan error, 1)
	go func() { served <- server.Serve(ctx, ln) }()
	return ln.Addr().String(), ctx, stop, served
}

func TestServeReturnsListenerFailure(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = ln.Close()
	server := httpapitest.Server(t, httpapi.DefaultConfig(), httpapi.Hooks{})
	if err := server.Serve(t.Context(), ln); !errors.Is(err, net.ErrClosed) {
		t.Errorf("got %v, want %v", err, net.ErrClosed)
	}
}

func TestConnectionLimits(t *testing.T) {
	tests := []struct {
		name    string
		change  func(*httpapi.Config)
		status  int
		message string
	}{
		{"total", func(c *httpapi.Config) { c.MaxConns = 2 }, 503, "too many connections: the server serves at most 2"},
		{"one address", func(c *httpapi.Config) { c.MaxConnsPerIP = 2 }, 429, "too many connections from this address: at most 2"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cfg := httpapi.DefaultConfig()
			tt.change(&cfg)
			address := start(t, cfg, route("GET", "/ok", ok))
			first, second := dial(t, address), dial(t, address)
			for _, c := range []*client{first, second} {
				if got := c.ask(request("GET", "/ok")); got.body != "ok" {
					t.Fatal(got.body)
				}
			}
			third := dial(t, address)
			if got := third.receive("GET"); got.StatusCode != tt.status || got.body != tt.message || !got.Close {
				t.Errorf("%d %q", got.StatusCode, got.body)
			}
			_ = first.Close()
			for deadline := time.Now().Add(patience); ; { // until the server has noticed
				c := dial(t, address)
				if got := c.ask(request("GET", "/ok")); got.body == "ok" {
					break
				}
				_ = c.Close()
				if time.Now().After(deadline) {
					t.Fatal("the place of a closed connection stays taken")
				}
			}
		})
	}
}

func TestServeConnWithPrefix(t *testing.T) {
	server := httpapitest.Server(t, httpapi.DefaultConfig(), httpapi.Hooks{}, route("POST", "/echo", echo))
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ln.Close() }()
	served := make(chan struct{})
	go func() {
		defer close(served)
		nc, err := ln.Accept()
		if err != nil {
			t.Error(err)
			return
		}
		prefix := make([]byte, 7)
		if _, err := io.ReadFull(nc, prefix); err != nil {
			t.Error(err)
		}
		server.ServeConn(t.Context(), nc, prefix)
	}()
	c := dial(t, ln.Addr().String())
	for range 3 {
		if got := c.ask(withBody("POST", "/echo", "a=1")); got.body != "a=1\n" {
			t.Errorf("%q", got.body)
		}
	}
	_ = c.Close()
	<-served
}

func TestPeerAllocatesNothing(t *testing.T) {
	var valid atomic.Bool
	address := start(t, httpapi.DefaultConfig(), route("GET", "/peer", func(x *httpapi.Exchange) {
		allocs := testing.AllocsPerRun(10, func() { valid.Store(x.Peer().Addr().Is4() && x.Client() == x.Peer().Addr()) })
		x.Text(200, fmt.Sprint(allocs, " ", x.Peer()))
	}))
	c := dial(t, address)
	if got := c.ask(request("GET", "/peer")); got.body != "0 "+c.LocalAddr().String() || !valid.Load() {
		t.Errorf("%q, want 0 allocations and %v", got.body, c.LocalAddr())
	}
}
