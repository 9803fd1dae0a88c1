package portmux

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// patience is how long a test waits for what must come.
const patience = 10 * time.Second

// arrival is a connection that came to a backend, with all that the client sent.
type arrival struct{ backend, peer, data string }

// start serves a mux on a free port, whose backends read until the client has said
// its "end" and then greet it.
func start(t *testing.T, change func(*Config, *Backends)) (address string, arrivals <-chan arrival) {
	t.Helper()
	came := make(chan arrival, 10)
	backend := func(name string) Serve {
		return func(_ context.Context, nc net.Conn, prefix []byte) {
			defer nc.Close()
			data := bytes.Clone(prefix)
			for buf := make([]byte, 100); !bytes.HasSuffix(data, []byte("end")); {
				n, err := nc.Read(buf)
				data = append(data, buf[:n]...)
				if err != nil {
					break
				}
			}
			came <- arrival{name, nc.RemoteAddr().String(), string(data)}
			_, _ = io.WriteString(nc, name)
		}
	}
	cfg := Config{Timeout: patience, Idle: patience, MaxPending: 100}
	backends := Backends{HTTP: backend("HTTP"), GRPC: backend("GRPC")}
	if change != nil {
		change(&cfg, &backends)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- New(cfg, backends, slog.New(slog.DiscardHandler)).Serve(ctx, ln) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return ln.Addr().String(), came
}

func dial(t *testing.T, address string) net.Conn {
	t.Helper()
	nc, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = nc.Close() })
	if err := nc.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return nc
}

func send(t *testing.T, nc net.Conn, data string) {
	t.Helper()
	if _, err := io.WriteString(nc, data); err != nil {
		t.Fatal(err)
	}
}

func next(t *testing.T, arrivals <-chan arrival) arrival {
	t.Helper()
	select {
	case a := <-arrivals:
		return a
	case <-time.After(patience):
		t.Fatal("no connection came to a backend")
		return arrival{}
	}
}

const http2Start = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

func TestProtocolsAreTold(t *testing.T) {
	address, arrivals := start(t, nil)
	for _, tt := range []struct{ said, backend string }{
		{"GET / HTTP/1.1\r\nend", "HTTP"},
		{"POST / HTTP/1.1\r\nend", "HTTP"},
		{"PUT / HTTP/1.1\r\nend", "HTTP"},
		{"PRI / HTTP/1.1\r\nend", "HTTP"},
		{"PRI * HTTP/1.1\r\nend", "HTTP"},
		{"xend", "HTTP"},
		{"\x00end", "HTTP"},
		{http2Start + "end", "GRPC"},
	} {
		for _, piecemeal := range []bool{false, true} {
			nc := dial(t, address)
			if piecemeal {
				for _, b := range []byte(tt.said) {
					send(t, nc, string(b))
				}
			} else {
				send(t, nc, tt.said)
			}
			if got := next(t, arrivals); got.backend != tt.backend || got.data != tt.said || got.peer != nc.LocalAddr().String() {
				t.Errorf("%q: got %+v", tt.said, got)
			}
			if greeting, err := io.ReadAll(nc); err != nil || string(greeting) != tt.backend {
				t.Errorf("%q: greeted with %q, %v", tt.said, greeting, err)
			}
		}
	}
}

// The first byte that is not of the preface decides: nothing waits for more.
func TestNothingIsDelayed(t *testing.T) {
	decided := make(chan string, 1)
	address, _ := start(t, func(_ *Config, b *Backends) {
		for _, backend := range []*Serve{&b.HTTP, &b.GRPC} {
			*backend = func(_ context.Context, nc net.Conn, prefix []byte) {
				decided <- string(prefix)
				_ = nc.Close()
			}
		}
	})
	for _, said := range []string{"G", "PO", "PUT", "PRI * HTTP/2.0\r\n"} {
		send(t, dial(t, address), said)
		select {
		case got := <-decided:
			if got != said {
				t.Errorf("got %q, want %q", got, said)
			}
		case <-time.After(patience):
			t.Fatalf("%q was not enough", said)
		}
	}
}

// closed checks that the server closes a connection without a word.
func closed(t *testing.T, nc net.Conn, what string) {
	t.Helper()
	if b, err := io.ReadAll(nc); len(b) > 0 || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%s: read %q, %v; want the end", what, b, err)
	}
}

func TestDeadlines(t *testing.T) {
	address, _ := start(t, func(c *Config, _ *Backends) { c.Timeout, c.Idle = 50*time.Millisecond, 50*time.Millisecond })
	closed(t, dial(t, address), "one that says nothing")
	slow := dial(t, address)
	send(t, slow, "PRI * HT")
	closed(t, slow, "one that does not go on")
}

func TestPendingIsBounded(t *testing.T) {
	var crowded atomic.Int32
	address, arrivals := start(t, func(c *Config, _ *Backends) {
		c.MaxPending, c.Crowded = 2, func() { crowded.Add(1) }
	})
	first, second := dial(t, address), dial(t, address)
	send(t, first, "P")
	send(t, second, "P")
	var third net.Conn
	for third == nil { // the first two may not have been accepted yet
		nc := dial(t, address)
		if err := nc.SetReadDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		if _, err := nc.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			third = nc
		} else {
			_ = nc.Close()
		}
	}
	if crowded.Load() == 0 {
		t.Error("nobody is told of the third")
	}
	send(t, first, "OST end")
	if got := next(t, arrivals); got.data != "POST end" {
		t.Errorf("got %+v", got)
	}
	_ = second.Close()
}

func TestMissingBackend(t *testing.T) {
	address, arrivals := start(t, func(_ *Config, b *Backends) { b.HTTP = nil })
	nc := dial(t, address)
	send(t, nc, "GET / HTTP/1.1\r\n\r\n")
	closed(t, nc, "HTTP where there is none")
	send(t, dial(t, address), http2Start+"end")
	if got := next(t, arrivals); got.backend != "GRPC" {
		t.Errorf("got %+v", got)
	}
}

func TestProxyHeader(t *testing.T) {
	const v1 = "PROXY TCP4 192.0.2.7 192.0.2.1 4711 8848\r\n"
	v2 := "\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c\xc0\x00\x02\x07\xc0\x00\x02\x01\x12\x67\x22\x90"
	trust := func(c *Config, _ *Backends) { c.Proxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")} }
	address, arrivals := start(t, trust)
	for _, tt := range []struct{ said, backend, data string }{
		{v1 + "GET / HTTP/1.1\r\nend", "HTTP", "GET / HTTP/1.1\r\nend"},
		{v2 + "GET end", "HTTP", "GET end"},
		{v1 + http2Start + "end", "GRPC", http2Start + "end"},
	} {
		send(t, dial(t, address), tt.said)
		if got := next(t, arrivals); got.backend != tt.backend || got.data != tt.data || got.peer != "192.0.2.7:4711" {
			t.Errorf("%q: got %+v", tt.said, got)
		}
	}
	for _, said := range []string{"GET / HTTP/1.1\r\n", "PRI / HTTP/1.1\r\n", "LOCAL and so on"} {
		nc := dial(t, address)
		send(t, nc, said+"end")
		if got := next(t, arrivals); got.data != said+"end" || got.peer != nc.LocalAddr().String() {
			t.Errorf("without a header: %+v", got)
		}
	}
	bad := dial(t, address)
	send(t, bad, "PROXY TCP4 nonsense\r\nGET / HTTP/1.1\r\n\r\n")
	closed(t, bad, "a broken header")

	untrusting, arrivals := start(t, nil)
	send(t, dial(t, untrusting), v1+"end")
	if got := next(t, arrivals); !strings.HasPrefix(got.data, "PROXY") {
		t.Errorf("a header from nobody's proxy: %+v", got)
	}
}

// Stopping does not wait for those who have said nothing yet.
func TestStop(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m := New(Config{Timeout: time.Hour, Idle: time.Hour, MaxPending: 10}, Backends{}, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- m.Serve(ctx, ln) }()
	silent := dial(t, ln.Addr().String())
	begun := dial(t, ln.Addr().String())
	send(t, begun, "P")
	for len(m.pending) < 2 {
		time.Sleep(time.Millisecond)
	}
	cancel()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(patience):
		t.Fatal("it does not stop")
	}
	closed(t, silent, "one that says nothing")
	closed(t, begun, "one that has begun")
}

// brokenListener fails a few times in a way that passes, and then for good.
type brokenListener struct {
	net.Listener
	fails []error
}

func (l *brokenListener) Accept() (net.Conn, error) {
	err := l.fails[0]
	l.fails = l.fails[1:]
	return nil, err
}

func TestAcceptErrors(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	fatal := errors.New("the network is gone")
	m := New(Config{MaxPending: 1}, Backends{}, slog.New(slog.DiscardHandler))
	err = m.Serve(t.Context(), &brokenListener{ln, []error{emfile(), fatal}})
	if !errors.Is(err, fatal) {
		t.Errorf("got %v, want %v", err, fatal)
	}
}

func emfile() error { return &net.OpError{Op: "accept", Err: syscall.EMFILE} }
