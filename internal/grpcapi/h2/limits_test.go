package h2

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"

	"github.com/rollcall-registry/rollcall/api/grpcv2"
	"github.com/rollcall-registry/rollcall/internal/grpcapi/transport"
	"github.com/rollcall-registry/rollcall/internal/grpcapi/transport/transporttest"
)

// echo is a handler that answers calls with their bodies, and streams with as many
// messages as it has.
type echo struct {
	accepted, closed, opened, ended, calls atomic.Int64
	// hold, if set, keeps blocking calls from being answered.
	hold chan struct{}

	mu      sync.Mutex
	streams []*echoStream
}

type echoStream struct {
	transport.Stream
	of   *echo
	mu   sync.Mutex
	left int    // messages to send
	tail []byte // of each
	got  []string
}

// Accept and the methods below implement the interfaces of package transport.
func (e *echo) Accept(transport.Conn) transport.Session { e.accepted.Add(1); return e }

func (e *echo) Blocks(p *grpcv2.Payload) bool { return p.Type == "Blocking" }

func (e *echo) Answer(ctx context.Context, p *grpcv2.Payload, m *transport.Message) {
	e.calls.Add(1)
	if e.Blocks(p) && e.hold != nil {
		select {
		case <-e.hold:
		case <-ctx.Done():
		}
	}
	m.Type, m.Buf = "Echo", append(m.Buf, p.Body...)
}

func (e *echo) Open(st transport.Stream) transport.Frames {
	e.opened.Add(1)
	s := &echoStream{Stream: st, of: e}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.streams = append(e.streams, s)
	return s
}

func (e *echo) Closed(bool) { e.closed.Add(1) }

func (s *echoStream) Received(p *grpcv2.Payload) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.got = append(s.got, string(p.Body))
}

func (s *echoStream) Next(m *transport.Message) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.left == 0 {
		return false
	}
	s.left--
	m.Type, m.Tail = "Push", s.tail
	return true
}

func (s *echoStream) Ended() { s.of.ended.Add(1) }

// push has a stream send n messages.
func (e *echo) push(stream, n int, tail []byte) {
	e.mu.Lock()
	s := e.streams[stream]
	e.mu.Unlock()
	s.mu.Lock()
	s.left, s.tail = s.left+n, tail
	s.mu.Unlock()
	s.Wake()
}

// serve serves an echo, and returns it with its address.
func serve(t *testing.T, change func(*Config)) (*echo, *Server, string) {
	t.Helper()
	cfg := DefaultConfig()
	if change != nil {
		change(&cfg)
	}
	e := &echo{}
	s := New(cfg, e, slog.New(slog.DiscardHandler))
	return e, s, transporttest.Serve(t, s).Address
}

// A flood is ended with ENHANCE_YOUR_CALM, however slow its sender reads.
func TestFloods(t *testing.T) {
	_, _, address := serve(t, nil)
	for name, one := range map[string]func(r *transporttest.Raw, n int){
		"PING":              func(r *transporttest.Raw, _ int) { _ = r.WritePing(false, [8]byte{}) },
		"acknowledged PING": func(r *transporttest.Raw, _ int) { _ = r.WritePing(true, [8]byte{}) },
		"SETTINGS":          func(r *transporttest.Raw, _ int) { _ = r.WriteSettings() },
		"SETTINGS of windows": func(r *transporttest.Raw, n int) {
			_ = r.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: uint32(n)})
		},
		"PRIORITY": func(r *transporttest.Raw, n int) {
			_ = r.WritePriority(uint32(n)*2+1, http2.PriorityParam{StreamDep: 2})
		},
		"unknown frames": func(r *transporttest.Raw, _ int) { _ = r.WriteRawFrame(0xbb, 0, 0, nil) },
		"GOAWAY":         func(r *transporttest.Raw, _ int) { _ = r.WriteGoAway(0, http2.ErrCodeNo, nil) },
		"WINDOW_UPDATE":  func(r *transporttest.Raw, _ int) { _ = r.WriteWindowUpdate(0, 1) },
		"WINDOW_UPDATE of a stream": func(r *transporttest.Raw, n int) {
			if n == 0 {
				r.Open(1, transporttest.Request(transporttest.StreamPath))
			}
			_ = r.WriteWindowUpdate(1, 1)
		},
		"empty DATA": func(r *transporttest.Raw, n int) {
			if n == 0 {
				r.Open(1, transporttest.Request(transporttest.StreamPath))
			}
			_ = r.WriteData(1, false, nil)
		},
		"padding": func(r *transporttest.Raw, n int) {
			if n == 0 {
				r.Open(1, transporttest.Request(transporttest.StreamPath))
			}
			_ = r.WriteDataPadded(1, false, nil, make([]byte, 100))
		},
		"bytes of a message": func(r *transporttest.Raw, n int) {
			if n == 0 {
				r.Open(1, transporttest.Request(transporttest.StreamPath))
				_ = r.WriteData(1, false, []byte{0, 0, 1, 0, 0})
			}
			_ = r.WriteData(1, false, []byte{'x'})
		},
		"DATA of a closed stream": func(r *transporttest.Raw, n int) {
			if n == 0 {
				r.Open(1, transporttest.Request(transporttest.StreamPath))
				_ = r.WriteRSTStream(1, http2.ErrCodeCancel)
			}
			_ = r.WriteData(1, false, []byte("x"))
		},
		"streams that are reset": func(r *transporttest.Raw, n int) {
			r.Open(uint32(n)*2+1, transporttest.Request(transporttest.StreamPath))
			_ = r.WriteRSTStream(uint32(n)*2+1, http2.ErrCodeCancel)
		},
		"CONTINUATION": func(r *transporttest.Raw, n int) {
			if n == 0 {
				_ = r.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: r.Block(transporttest.Request(transporttest.StreamPath))})
			}
			_ = r.WriteContinuation(1, false, nil)
		},
		"CONTINUATION with fields": func(r *transporttest.Raw, n int) {
			if n == 0 {
				_ = r.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: r.Block(transporttest.Request(transporttest.StreamPath))})
			}
			_ = r.WriteContinuation(1, false, bytes.Repeat([]byte("\x00\x01a\x01b"), 100))
		},
		"streams that are refused": func(r *transporttest.Raw, n int) {
			r.OpenAndEnd(uint32(n)*2+1, transporttest.Request("/nothing"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := transporttest.DialRaw(t, address)
			r.Fence()
			go func() {
				// More than the allowance and what comes back with time.
				for n := range allowanceMax + 20*allowancePerSecond {
					one(r, n)
				}
				r.HalfClose()
			}()
			r.WaitEnd(t)
			if len(r.GoAway) == 0 || r.GoAway[len(r.GoAway)-1] != http2.ErrCodeEnhanceYourCalm {
				t.Errorf("got GOAWAY %v, %v", r.GoAway, r.Ended)
			}
		})
	}
}

// What SDKs and the libraries below them do beside their calls is no flood.
func TestBusyClientsAreNoFlood(t *testing.T) {
	_, _, address := serve(t, nil)
	r := transporttest.DialRaw(t, address)
	for n := range uint32(1500) {
		id := 2*n + 1
		r.Call(id, "{}")
		if got := r.Wait(id).String(); got != "HTTP 200, status 0, 1 messages" {
			t.Fatalf("call %d: %s, %v", n, got, r.Ended)
		}
		_ = r.WriteWindowUpdate(0, 100)
		_ = r.WritePing(false, [8]byte{})
		_ = r.WriteSettings()
	}
}

// The memory of large messages is bounded in all, and comes back.
func TestMessageMemory(t *testing.T) {
	_, s, address := serve(t, func(c *Config) { c.MaxMessageBytes, c.MaxMessageMemory = 1<<20, 1<<20 })
	whole := transporttest.Message("T", strings.Repeat("x", 600<<10))
	send := func(r *transporttest.Raw, id uint32, m []byte, end bool) {
		for len(m) > 16<<10 {
			_ = r.WriteData(id, false, m[:16<<10])
			m = m[16<<10:]
			if len(m)%(32<<10) < 16<<10 && !r.Fence() {
				return
			}
		}
		_ = r.WriteData(id, end, m)
	}
	first, second := transporttest.DialRaw(t, address), transporttest.DialRaw(t, address)
	for _, r := range []*transporttest.Raw{first, second} {
		_ = r.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 20})
		_ = r.WriteWindowUpdate(0, 1<<20)
	}
	first.Open(1, transporttest.Request(transporttest.UnaryPath))
	send(first, 1, whole[:len(whole)-1], false)
	first.Fence()
	if got := s.large.Load(); got < 512<<10 || got > 1<<20 {
		t.Errorf("%d bytes are counted", got)
	}
	second.Open(1, transporttest.Request(transporttest.UnaryPath))
	send(second, 1, whole, true)
	if got := second.Wait(1).Status; got != "8" {
		t.Errorf("a second large message: status %s", got)
	}
	_ = first.WriteData(1, true, whole[len(whole)-1:])
	if got := first.Wait(1); got.Status != "0" || len(got.Data) < 600<<10 {
		t.Errorf("the first: %s, %d bytes", got, len(got.Data))
	}
	second.Open(3, transporttest.Request(transporttest.UnaryPath))
	send(second, 3, whole, true)
	if got := second.Wait(3).Status; got != "0" {
		t.Errorf("when there is room again: status %s", got)
	}
	if got := s.large.Load(); got != 0 {
		t.Errorf("%d bytes are counted when all is over", got)
	}
	for what, over := range map[string]func(*transporttest.Raw){
		"reset":  func(r *transporttest.Raw) { _ = r.WriteRSTStream(1, http2.ErrCodeCancel); r.Fence() },
		"closed": func(r *transporttest.Raw) { r.Close() },
	} {
		r := transporttest.DialRaw(t, address)
		r.Open(1, transporttest.Request(transporttest.UnaryPath))
		send(r, 1, whole[:300<<10], false)
		over(r)
		wait(t, what, func() bool { return s.large.Load() == 0 })
	}
}

// wait waits for a condition.
func wait(t *testing.T, what string, ok func() bool) {
	t.Helper()
	const patience = time.Minute // a busy machine is slow, and the race detector slower
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %v", what, patience)
		}
	}
}

// Calls that block hold up neither others of their connection nor pings, and their
// number is bounded even when they were given up.
func TestBlockingCalls(t *testing.T) {
	e := &echo{hold: make(chan struct{})}
	cfg := DefaultConfig()
	cfg.MaxStreams = 8
	s := New(cfg, e, slog.New(slog.DiscardHandler))
	r := transporttest.DialRaw(t, transporttest.Serve(t, s).Address)
	block := func(id uint32) {
		r.Open(id, transporttest.Request(transporttest.UnaryPath))
		_ = r.WriteData(id, true, transporttest.Message("Blocking", "{}"))
	}
	for id := uint32(1); id <= 13; id += 2 {
		block(id)
	}
	r.Call(15, "{}")
	if got := r.Wait(15).Status; got != "0" || !r.Fence() {
		t.Fatalf("status %s, %v", got, r.Ended)
	}
	block(17)
	block(19)
	if got := r.Wait(19).Reset; got != "REFUSED_STREAM" {
		t.Errorf("one call too many: reset %q", got)
	}
	wait(t, "eight calls", func() bool { return e.calls.Load() == 9 })
	for id := uint32(1); id <= 13; id += 2 {
		_ = r.WriteRSTStream(id, http2.ErrCodeCancel)
	}
	wait(t, "the end of those that were given up", func() bool { return len(s.blocked) == 1 })
	close(e.hold)
	if got := r.Wait(17); got.Status != "0" {
		t.Errorf("got %s", got)
	}
}

// A call that blocks gets DEADLINE_EXCEEDED when its time is over, and so does a
// stream.
func TestDeadlines(t *testing.T) {
	e := &echo{hold: make(chan struct{})}
	r := transporttest.DialRaw(t, transporttest.Serve(t, New(DefaultConfig(), e, slog.New(slog.DiscardHandler))).Address)
	r.Open(1, transporttest.Request(transporttest.UnaryPath, "grpc-timeout", "30m"))
	_ = r.WriteData(1, true, transporttest.Message("Blocking", "{}"))
	r.Open(3, transporttest.Request(transporttest.StreamPath, "grpc-timeout", "30m"))
	for _, id := range []uint32{1, 3} {
		if got := r.Wait(id).Status; got != "4" {
			t.Errorf("stream %d: status %q, %v", id, got, r.Ended)
		}
	}
	wait(t, "the end of the stream", func() bool { return e.ended.Load() == 1 })
}

// Idle connections hold no buffer, and no goroutine but their own.
func TestIdleConnectionsHoldNothing(t *testing.T) {
	e, s, address := serve(t, nil)
	r := transporttest.DialRaw(t, address)
	r.Open(1, transporttest.Request(transporttest.StreamPath))
	r.Call(3, "{}")
	r.Wait(3)
	e.push(0, 5, []byte("x"))
	r.Until(func() bool { return r.Answer(1).Frames == 5 })
	c := s.all()[0]
	wait(t, "an idle connection", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return !c.turn && c.out == nil && c.line == nil
	})
	wait(t, "no reader", func() bool {
		c.mu.Lock() // the turn was given up before the reader, under the lock
		defer c.mu.Unlock()
		return len(c.streams) == 1 && c.streams[0].part == nil && c.streams[0].msg == nil
	})
}

// bubble is a server within a bubble of package synctest, in which time passes when
// all wait.
type bubble struct {
	*echo
	*Server
	stop func()
}

func inBubble(t *testing.T, f func(*testing.T, *bubble)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		e := &echo{}
		s := New(DefaultConfig(), e, slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug})))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			if err := s.Run(ctx); err != nil {
				t.Error(err)
			}
		}()
		b := &bubble{e, s, func() { cancel(); <-done }}
		f(t, b)
		b.stop()
	})
}

// dial returns both ends of a new connection.
func (b *bubble) dial() net.Conn {
	ours, theirs := pipe()
	b.ServeConn(context.Background(), theirs, nil)
	return ours
}

// closedAfter reports whether the connections are all closed after so long.
func (b *bubble) closedAfter(d time.Duration) bool {
	time.Sleep(d)
	synctest.Wait()
	return b.closed.Load() == b.accepted.Load()
}

func TestHandshakeTakesTooLong(t *testing.T) {
	for _, said := range []string{"", "PRI", http2.ClientPreface, http2.ClientPreface + "\x00\x00\x06\x04\x00\x00\x00\x00\x00\x00\x03"} {
		inBubble(t, func(t *testing.T, b *bubble) {
			nc := b.dial()
			go drop(nc)
			_, _ = nc.Write([]byte(said))
			if b.closedAfter(8 * time.Second) {
				t.Errorf("%q: closed too early", said)
			}
			if !b.closedAfter(5 * time.Second) {
				t.Errorf("%q: not closed", said)
			}
		})
	}
}

// drop reads and forgets.
func drop(nc net.Conn) {
	buf := make([]byte, 4096)
	for {
		if _, err := nc.Read(buf); err != nil {
			return
		}
	}
}

func TestFrameTakesTooLong(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		nc := b.dial()
		go drop(nc)
		_, _ = nc.Write([]byte(http2.ClientPreface + "\x00\x00\x00\x04\x00\x00\x00\x00\x00"))
		if b.closedAfter(time.Minute) {
			t.Fatal("an idle client was closed")
		}
		for _, c := range []byte("\x00\x00\x08\x06\x00\x00\x00\x00\x00") { // bytes do not help
			_, _ = nc.Write([]byte{c})
			time.Sleep(time.Second)
		}
		if !b.closedAfter(4 * time.Second) {
			t.Error("a frame that does not end is waited for")
		}
	})
}

// A client that answers pings stays, however silent it is; one that does not goes.
func TestKeepalive(t *testing.T) {
	for _, answers := range []bool{true, false} {
		inBubble(t, func(t *testing.T, b *bubble) {
			nc := b.dial()
			r := transporttest.NewRaw(t, nc)
			r.Preface() // before anything that the server says is answered
			read := make(chan struct{})
			go func() {
				defer close(read)
				if answers {
					r.Until(func() bool { return false })
				} else {
					drop(nc)
				}
			}()
			if closed := b.closedAfter(15 * time.Minute); closed == answers {
				t.Errorf("answers %v: closed %v", answers, closed)
			}
			_ = nc.Close()
			<-read
		})
	}
}

// A client that does not read is closed after a while: one whose socket is full,
// and one that opens no window for an answer.
func TestUnreadAnswers(t *testing.T) {
	for name, begin := range map[string]func(*transporttest.Raw, net.Conn){
		"full": func(r *transporttest.Raw, _ net.Conn) {
			r.Preface()
			r.Fence()
			for range 2 * halfBytes / 17 {
				_ = r.WritePing(false, [8]byte{})
			}
		},
		"no window": func(r *transporttest.Raw, nc net.Conn) {
			go drop(nc)
			r.Preface(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
			r.Call(1, "{}")
		},
	} {
		inBubble(t, func(t *testing.T, b *bubble) {
			nc := b.dial()
			begin(transporttest.NewRaw(t, nc), nc)
			if b.closedAfter(25 * time.Second) {
				t.Errorf("%s: closed too early", name)
			}
			if !b.closedAfter(10 * time.Second) {
				t.Errorf("%s: not closed", name)
			}
		})
	}
}

// What a client holds of the memory of large messages it holds for a minute.
func TestMessageTakesTooLong(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		nc := b.dial()
		r := transporttest.NewRaw(t, nc)
		go drop(nc)
		r.Preface()
		r.Open(1, transporttest.Request(transporttest.UnaryPath))
		m := transporttest.Message("T", strings.Repeat("x", 1<<20))
		for n := range 6 {
			_ = r.WriteData(1, false, m[n<<14:(n+1)<<14])
		}
		if b.closedAfter(50 * time.Second) {
			t.Error("closed too early")
		}
		if !b.closedAfter(15*time.Second) || b.large.Load() != 0 {
			t.Errorf("not closed, or %d bytes are counted", b.large.Load())
		}
	})
}
