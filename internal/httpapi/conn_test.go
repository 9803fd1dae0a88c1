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
	"strings"
	"sync/atomic"
	"testing"
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
		}), route("GET", "/ok", ok),
	})
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

// TestPanicBehindAnAnswer has the work after an answer panic: it ends that
// connection and nothing else.
func TestPanicBehindAnAnswer(t *testing.T) {
	address := start(t, httpapi.DefaultConfig(), route("GET", "/ok", ok), route("GET", "/bad", func(x *httpapi.Exchange) {
		x.AfterWrite(func() { panic("behind the answer") })
		x.OK()
	}))
	c := dial(t, address)
	if got := c.ask(request("GET", "/bad")); got.body != "ok" {
		t.Errorf("%q", got.body)
	}
	c.closed()
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
	// The listener closes at the same time as the idle connections.
	for late := time.Now().Add(patience); ; {
		nc, err := net.Dial("tcp", ln)
		if err != nil {
			break
		}
		_ = nc.Close()
		if time.Now().After(late) {
			t.Fatal("connections are still accepted")
		}
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

// serve runs server until stop, and reports when all connections have ended.
func serve(t *testing.T, server *httpapi.Server) (address string, ctx context.Context, stop func(), served chan error) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop = context.WithCancel(t.Context())
	served = make(chan error, 1)
	go func() { served <- httpapitest.Serve(ctx, server, ln) }()
	return ln.Addr().String(), ctx, stop, served
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
