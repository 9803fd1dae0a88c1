package h2

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/rollcall-registry/rollcall/internal/grpcapi/transport"
	"github.com/rollcall-registry/rollcall/internal/grpcapi/transport/transporttest"
)

// veiled serves connections that show no socket, as those within TLS.
type veiled struct{ *Server }

type veil struct{ net.Conn }

func (v veil) CloseWrite() error { return v.Conn.(*net.TCPConn).CloseWrite() }

func (v veiled) ServeConn(ctx context.Context, nc net.Conn, prefix []byte) {
	v.Server.ServeConn(ctx, veil{nc}, prefix)
}

func TestTransportWithoutSockets(t *testing.T) {
	transporttest.Run(t, func(t *testing.T, h transport.Handler, limits transporttest.Limits) transporttest.Server {
		return transporttest.Serve(t, veiled{New(configOf(limits), h, slog.New(slog.DiscardHandler))})
	})
}

// A server that stops lets clients finish: it says so first, and ends when they
// know it and nothing is left to be answered.
func TestDrain(t *testing.T) {
	e := &echo{hold: make(chan struct{})}
	server := transporttest.Serve(t, New(DefaultConfig(), e, slog.New(slog.DiscardHandler)))
	r := transporttest.DialRaw(t, server.Address)
	r.Open(1, transporttest.Request(transporttest.StreamPath))
	r.Open(3, transporttest.Request("/grpc.health.v1.Health/Watch"))
	_ = r.WriteData(3, true, make([]byte, 5))
	r.Until(func() bool { return r.Answer(3).Frames == 1 })
	r.Open(5, transporttest.Request(transporttest.UnaryPath))
	_ = r.WriteData(5, true, transporttest.Message("Blocking", "{}"))
	wait(t, "the call", func() bool { return e.calls.Load() == 1 })
	stopped := make(chan struct{})
	go func() { server.Stop(); close(stopped) }()
	if !r.Until(func() bool { return len(r.GoAway) == 1 }) || r.LastID != 1<<31-1 {
		t.Fatalf("the first GOAWAY %v, %d, %v", r.GoAway, r.LastID, r.Ended)
	}
	if got := r.Wait(1); got.Status != "14" || !strings.Contains(got.Message, "stopping") {
		t.Errorf("the stream: %s %s", got, got.Message)
	}
	if got := r.Wait(3); got.Status != "14" || got.Data[len(got.Data)-1] != byte(notServing) {
		t.Errorf("the watch: %s, %v", got, got.Data)
	}
	close(e.hold)
	if got := r.Wait(5); got.Status != "0" {
		t.Errorf("the call: %s, %v", got, r.Ended)
	}
	r.WaitEnd(t)
	if len(r.GoAway) != 2 || r.LastID != 5 || r.GoAway[1] != http2.ErrCodeNo {
		t.Errorf("GOAWAY %v, %d", r.GoAway, r.LastID)
	}
	r.Close()
	<-stopped
	if e.ended.Load() != 1 || e.closed.Load() != 1 {
		t.Errorf("%d streams ended, %d connections closed", e.ended.Load(), e.closed.Load())
	}
}

// Clients that do not read hold up no others, and what waits for them is bounded.
func TestSlowReaders(t *testing.T) {
	e, s, address := serve(t, nil)
	const slow, messages = 4, 200 // more than sockets hold
	tail := bytes.Repeat([]byte("x"), 64<<10)
	var clients []*transporttest.Raw
	for range slow {
		r := transporttest.DialRaw(t, address)
		_ = r.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 30})
		_ = r.WriteWindowUpdate(0, 1<<30)
		r.Open(1, transporttest.Request(transporttest.StreamPath))
		r.Fence()
		clients = append(clients, r)
	}
	before := heap()
	for n := range slow {
		e.push(n, messages, tail)
	}
	quick := transporttest.DialRaw(t, address)
	quick.Call(1, "{}")
	if got := quick.Wait(1).Status; got != "0" {
		t.Errorf("another client's call: status %q", got)
	}
	full := func() (n int) {
		for _, c := range s.all() {
			c.mu.Lock()
			if c.turn {
				n++
			}
			c.mu.Unlock()
		}
		return n
	}
	wait(t, "all sockets are full", func() bool { return full() == slow })
	for _, r := range clients { // whose pings cannot be answered
		for range 1000 {
			_ = r.WritePing(false, [8]byte{})
		}
	}
	if got := (heap() - before) / slow; got > 256<<10 {
		t.Errorf("%d bytes for each", got)
	}
	for _, r := range clients {
		r.Until(func() bool { return len(r.Answer(1).Data) > messages*len(tail) })
		if r.Ended != nil {
			t.Fatalf("after reading again: %v, %d bytes", r.Ended, len(r.Answer(1).Data))
		}
	}
}

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// A connection too many hears why in its first call, and costs no more than a
// moment.
func TestRefusedConnections(t *testing.T) {
	e, s, address := serve(t, func(c *Config) { c.MaxConns = 1 })
	transporttest.DialRaw(t, address).Fence()
	r := transporttest.DialRaw(t, address)
	r.Open(1, transporttest.Request(transporttest.StreamPath))
	if got := r.Wait(1); got.Status != "14" || !strings.Contains(got.Message, "at most 1") {
		t.Errorf("got %s, %s", got, got.Message)
	}
	r.WaitEnd(t)
	if len(r.GoAway) != 1 || r.GoAway[0] != http2.ErrCodeEnhanceYourCalm {
		t.Errorf("GOAWAY %v", r.GoAway)
	}
	silent := transporttest.DialRaw(t, address)
	silent.WaitEnd(t)
	if served, refused := s.Connections(); served != 1 || refused != 2 || e.accepted.Load() != 1 {
		t.Errorf("%d served, %d refused, %d accepted", served, refused, e.accepted.Load())
	}
	wait(t, "the count of refused ones", func() bool {
		return s.admission.Refusing() == 0
	})
}

func TestConfig(t *testing.T) {
	if err := DefaultConfig().Validate(); err != nil {
		t.Error(err)
	}
	err := Config{MaxConns: -1, MaxConnsPerIP: -1, MaxMessageBytes: 1, MaxMessageMemory: 1, MaxStreams: 1, Keepalive: time.Second}.Validate()
	for _, key := range []string{"max-connections:", "max-connections-per-address:", "max-message:", "max-message-memory:", "max-streams:", "keepalive:"} {
		if err == nil || !strings.Contains(err.Error(), "grpc."+key) {
			t.Errorf("%s is not mentioned: %v", key, err)
		}
	}
}

func TestParseTimeout(t *testing.T) {
	for _, tt := range []struct {
		text string
		want time.Duration
		ok   bool
	}{
		{"1H", time.Hour, true},
		{"2M", 2 * time.Minute, true},
		{"3S", 3 * time.Second, true},
		{"4m", 4 * time.Millisecond, true},
		{"5u", 5 * time.Microsecond, true},
		{"6n", 6, true},
		{"00000000n", 0, true},
		{"99999999H", 1<<63 - 1, true},
		{"", 0, false},
		{"1", 0, false},
		{"S", 0, false},
		{"1s", 0, false},
		{"1.5S", 0, false},
		{"-1S", 0, false},
		{"+1S", 0, false},
		{"123456789S", 0, false},
	} {
		if got, ok := parseTimeout(tt.text); got != tt.want || ok != tt.ok {
			t.Errorf("%q: got %v, %v", tt.text, got, ok)
		}
	}
}
