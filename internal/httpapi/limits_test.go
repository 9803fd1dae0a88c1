package httpapi

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"
)

// internalServer returns a server whose only route is GET and POST /ok.
func internalServer(t *testing.T, cfg Config, handler Handler) *Server {
	t.Helper()
	router, err := NewRouter("/nacos", Hooks{}, []Group{{NoRoute: NotFound, WrongMethod: MethodNotSupported}},
		[]Route{{Methods: []string{"GET", "POST"}, Path: "/ok", Resource: Open, Action: Read, Handler: handler}})
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(cfg, router, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// serveOne serves one TCP connection, changed as told, and returns it and its
// client.
func serveOne(t *testing.T, s *Server, change ...func(*conn)) (c *conn, client net.Conn) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ln.Close() }()
	client, err = net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	nc, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	c = newConn(s, nc, peerOf(nc), nil)
	c.work, c.draining = context.Background(), nil
	for _, f := range change {
		f(c)
	}
	done := make(chan struct{})
	go func() { c.serve(); close(done) }()
	t.Cleanup(func() { _ = client.Close(); <-done })
	return c, client
}

// watchedSocket calls onWait, on the connection's goroutine, whenever a read has
// to wait.
type watchedSocket struct {
	syscall.RawConn
	onWait func()
}

func (w watchedSocket) Read(f func(fd uintptr) bool) error {
	return w.RawConn.Read(func(fd uintptr) bool {
		done := f(fd)
		if !done {
			w.onWait()
		}
		return done
	})
}

// TestIdleConnectionHoldsNoMemory looks at a connection at the moment at which it
// begins to wait, before and after a request.
func TestIdleConnectionHoldsNoMemory(t *testing.T) {
	for _, query := range []string{"", strings.Repeat("q", 40<<10)} { // the small reader, the large one
		s := internalServer(t, DefaultConfig(), func(x *Exchange) { x.OK() })
		idle := make(chan bool, 16)
		_, client := serveOne(t, s, func(c *conn) {
			if c.raw == nil {
				t.Skip("no raw sockets on this system: idle connections keep a small reader")
			}
			c.raw = watchedSocket{c.raw, func() { idle <- c.x == nil && c.reader == nil }}
		})
		answers := bufio.NewReader(client)
		for range 2 {
			if !<-idle {
				t.Error("an idle connection holds an exchange or a reader")
			}
			if _, err := io.WriteString(client, "GET /ok?"+query+" HTTP/1.1\r\nHost: h\r\n\r\n"); err != nil {
				t.Fatal(err)
			}
			resp, err := http.ReadResponse(answers, nil)
			if err != nil {
				t.Fatal(err)
			}
			if body, err := io.ReadAll(resp.Body); err != nil || string(body) != "ok" {
				t.Errorf("answer %q, %v", body, err)
			}
		}
	}
}

// TestLargeBodiesShareMemory checks that bodies beyond the common limit are
// refused, and that their memory comes back.
func TestLargeBodiesShareMemory(t *testing.T) {
	cfg := DefaultConfig()
	cfg.MaxBodyBytes, cfg.MaxBodyMemory = 1<<20, 1<<20
	hold, entered := make(chan struct{}), make(chan struct{}, 1)
	s := internalServer(t, cfg, func(x *Exchange) {
		entered <- struct{}{}
		<-hold
		x.OK()
	})
	body := "POST /ok HTTP/1.1\r\nHost: h\r\nContent-Length: 1048576\r\n\r\n" + strings.Repeat("b", 1<<20)
	_, first := serveOne(t, s)
	go func() { _, _ = io.WriteString(first, body) }()
	<-entered
	_, second := serveOne(t, s)
	go func() { _, _ = io.WriteString(second, body) }()
	expect(t, second, "HTTP/1.1 503 ")
	close(hold)
	expect(t, first, "HTTP/1.1 200 ")
	waitFor(t, "all memory given back", func() bool { return s.largeBody.Load() == 0 })
}

// waitFor polls until condition holds.
func waitFor(t *testing.T, what string, condition func() bool) {
	t.Helper()
	tick, late := time.NewTicker(time.Millisecond), time.After(10*time.Second)
	defer tick.Stop()
	for !condition() {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

func expect(t *testing.T, client net.Conn, begin string) {
	t.Helper()
	got := make([]byte, len(begin))
	if _, err := io.ReadFull(client, got); err != nil || string(got) != begin {
		t.Errorf("answer %q, %v, want %q", got, err, begin)
	}
}
