package h2

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/rollcall-registry/rollcall/api/grpcv2"
	"github.com/rollcall-registry/rollcall/internal/grpcapi/transport"
	"github.com/rollcall-registry/rollcall/internal/grpcapi/transport/transporttest"
)

// replay is a connection whose client says some bytes, a few at a time, and then
// ends it. What the server says is kept.
type replay struct {
	end
	mu    sync.Mutex
	said  []byte
	piece int
	heard []byte
}

func (r *replay) Read(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.said) == 0 {
		return 0, io.EOF
	}
	n := copy(p, r.said[:min(len(r.said), r.piece)])
	r.said = r.said[n:]
	return n, nil
}

func (r *replay) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.heard = append(r.heard, p...)
	return len(p), nil
}

func (r *replay) Close() error      { return nil }
func (r *replay) CloseWrite() error { return nil }

// ledger is a handler that counts what it is owed.
type ledger struct {
	transport.Handler
	conn                         transport.Conn
	accepted, closed             atomic.Int64
	opened, ended, given, taken  atomic.Int64
	receivedAfterEnd, nextAtOnce atomic.Bool
}

type ledgerStream struct {
	transport.Stream
	of      *ledger
	waiting atomic.Int64
	inNext  atomic.Bool
	over    atomic.Bool
}

func (l *ledger) Accept(c transport.Conn) transport.Session {
	l.accepted.Add(1)
	l.conn = c
	return l
}

func (l *ledger) Closed(bool)                   { l.closed.Add(1) }
func (l *ledger) Blocks(p *grpcv2.Payload) bool { return p.Type == "Blocking" }

func (l *ledger) Answer(_ context.Context, p *grpcv2.Payload, m *transport.Message) {
	m.Type, m.Buf = "Echo", append(m.Buf, p.Body...)
	l.owe(m)
	if p.Type == "Close" {
		l.conn.Close(transport.Status{Code: transport.Unavailable, Message: "100 % \x00 ü"})
	}
}

// owe makes the transport owe a word that the message was written.
func (l *ledger) owe(m *transport.Message) {
	l.given.Add(1)
	m.Written = func() { l.taken.Add(1) }
}

func (l *ledger) Open(st transport.Stream) transport.Frames {
	l.opened.Add(1)
	s := &ledgerStream{Stream: st, of: l}
	s.waiting.Store(1)
	st.Wake()
	return s
}

func (s *ledgerStream) Received(p *grpcv2.Payload) {
	if s.over.Load() {
		s.of.receivedAfterEnd.Store(true)
	}
	s.waiting.Add(int64(len(p.Body)))
	s.Wake()
}

func (s *ledgerStream) Next(m *transport.Message) bool {
	if !s.inNext.CompareAndSwap(false, true) || s.over.Load() {
		s.of.nextAtOnce.Store(true)
	}
	defer s.inNext.Store(false)
	if s.waiting.Load() == 0 {
		return false
	}
	s.waiting.Add(-1)
	m.Type, m.Tail = "Push", []byte("tail")
	s.of.owe(m)
	return true
}

func (s *ledgerStream) Ended() {
	s.over.Store(true)
	s.of.ended.Add(1)
}

// FuzzConnection has a client say anything at all. The server must come to an end
// with it, owe nobody anything, hold nothing, and have said only what a client can
// read.
func FuzzConnection(f *testing.F) {
	for _, seed := range seeds() {
		f.Add(seed, byte(255))
		f.Add(seed, byte(3))
	}
	f.Fuzz(func(t *testing.T, said []byte, piece byte) {
		l := &ledger{}
		s := New(DefaultConfig(), l, slog.New(slog.DiscardHandler))
		s.times.linger = 0
		s.writers.start(1)
		r := &replay{said: append([]byte(http2.ClientPreface), said...), piece: int(piece) + 1}
		r.in, r.out = newHalf(), newHalf()
		s.ServeConn(context.Background(), r, nil)
		s.running.Wait()
		s.helpers.Wait()
		s.writers.stop()
		if l.accepted.Load() != 1 || l.closed.Load() != 1 {
			t.Errorf("accepted %d times, closed %d times", l.accepted.Load(), l.closed.Load())
		}
		if l.opened.Load() != l.ended.Load() || l.given.Load() != l.taken.Load() {
			t.Errorf("%d streams, %d ended; %d messages, %d written", l.opened.Load(), l.ended.Load(), l.given.Load(), l.taken.Load())
		}
		if l.receivedAfterEnd.Load() || l.nextAtOnce.Load() {
			t.Error("a stream's end was used after it ended, or by two at once")
		}
		if s.large.Load() != 0 || len(s.blocked) != 0 || len(s.conns) != 0 {
			t.Errorf("%d bytes, %d calls and %d connections are counted at the end", s.large.Load(), len(s.blocked), len(s.conns))
		}
		checkSaid(t, r.heard)
	})
}

// checkSaid checks that a client can read what the server said.
func checkSaid(t *testing.T, said []byte) {
	t.Helper()
	fr := http2.NewFramer(io.Discard, bytes.NewReader(said))
	fr.SetMaxReadFrameSize(maxFrame)
	fr.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	for {
		if _, err := fr.ReadFrame(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatalf("the client cannot read what was said: %v", err)
		}
	}
}

// seeds are some conversations.
func seeds() (list [][]byte) {
	for _, say := range []func(*http2.Framer, func(...string) []byte){
		func(*http2.Framer, func(...string) []byte) {},
		func(fr *http2.Framer, block func(...string) []byte) {
			for n, kind := range []string{"T", "Blocking", "Close"} {
				id := uint32(2*n + 1)
				_ = fr.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block(transporttest.UnaryPath), EndHeaders: true})
				_ = fr.WriteData(id, true, transporttest.Message(kind, "{}"))
			}
		},
		func(fr *http2.Framer, block func(...string) []byte) {
			_ = fr.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block(transporttest.StreamPath), EndHeaders: true})
			_ = fr.WriteData(1, false, transporttest.Message("T", "{\"a\":1}"))
			_ = fr.WriteWindowUpdate(1, 1000)
			_ = fr.WriteData(1, true, nil)
			_ = fr.WriteRSTStream(1, http2.ErrCodeCancel)
			_ = fr.WritePing(false, [8]byte{1})
		},
		func(fr *http2.Framer, block func(...string) []byte) {
			b := block(transporttest.StreamPath, "grpc-timeout", "1S", "content-length", "9")
			_ = fr.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: b[:4], PadLength: 7})
			_ = fr.WriteContinuation(1, true, b[4:])
			_ = fr.WriteDataPadded(1, false, transporttest.Message("T", "{}"), make([]byte, 9))
			_ = fr.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 3}, http2.Setting{ID: http2.SettingHeaderTableSize})
			_ = fr.WriteHeaders(http2.HeadersFrameParam{StreamID: 3, BlockFragment: block("/grpc.health.v1.Health/Watch"), EndHeaders: true})
			_ = fr.WriteData(3, true, make([]byte, 5))
			_ = fr.WritePriority(5, http2.PriorityParam{StreamDep: 3})
			_ = fr.WriteGoAway(0, http2.ErrCodeNo, []byte("bye"))
		},
	} {
		var out, head bytes.Buffer
		fr, enc := http2.NewFramer(&out, nil), hpack.NewEncoder(&head)
		_ = fr.WriteSettings()
		say(fr, func(args ...string) []byte {
			head.Reset()
			for _, f := range transporttest.Request(args[0], args[1:]...) {
				_ = enc.WriteField(f)
			}
			return bytes.Clone(head.Bytes())
		})
		list = append(list, out.Bytes())
	}
	return list
}

// FuzzMessages cuts a stream of messages anywhere: what comes out does not depend
// on where.
func FuzzMessages(f *testing.F) {
	f.Add([]byte{0, 0, 0, 0, 2, 'a', 'b', 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 'c'}, byte(1))
	f.Add([]byte{1, 0, 0, 0, 0}, byte(3))
	f.Add(append([]byte{0, 0, 0, 255, 255}, make([]byte, 1<<16)...), byte(200))
	f.Fuzz(func(t *testing.T, said []byte, piece byte) {
		cfg := DefaultConfig()
		cfg.MaxMessageBytes = 1 << 17
		collect := func(piece int) (got [][]byte, failed bool) {
			c := newConn(New(cfg, nil, slog.New(slog.DiscardHandler)), &end{}, nil)
			st := &stream{conn: c}
			defer func() {
				st.release()
				if c.reserved != 0 || c.server.large.Load() != 0 {
					t.Errorf("%d bytes are counted at the end", c.reserved)
				}
			}()
			for rest := said; len(rest) > 0; {
				p := rest[:min(len(rest), piece)]
				rest = rest[len(p):]
				for len(p) > 0 {
					m, left, fault := st.next(p)
					if fault != nil {
						return got, true
					}
					if p = left; m != nil {
						got = append(got, bytes.Clone(m))
						st.release()
					}
				}
			}
			return got, false
		}
		whole, failed := collect(max(len(said), 1))
		pieces, failedToo := collect(int(piece) + 1)
		if failed != failedToo || !equal(whole, pieces) {
			t.Errorf("%d messages, failed %v; in pieces %d, %v", len(whole), failed, len(pieces), failedToo)
		}
	})
}

func equal(a, b [][]byte) bool {
	if len(a) != len(b) {
		return false
	}
	for n := range a {
		if !bytes.Equal(a[n], b[n]) {
			return false
		}
	}
	return true
}

// FuzzStatus holds what ends an answer to what a client reads.
func FuzzStatus(f *testing.F) {
	f.Add(uint32(14), "the server is stopping", 200)
	f.Add(uint32(0), "100 % \x00 ü \xff", 415)
	f.Fuzz(func(t *testing.T, code uint32, text string, status int) {
		block := appendStatus(appendAnswerHead([]byte{tableSizeZero}, status%1000), transport.Status{Code: code, Message: text})
		fields, err := hpack.NewDecoder(4096, nil).DecodeFull(block)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range fields {
			for _, c := range []byte(f.Value) {
				if c < ' ' || c > '~' {
					t.Fatalf("%s: %q", f.Name, f.Value)
				}
			}
		}
		if _, ok := parseTimeout(text); ok && len(text) > 9 {
			t.Errorf("%q is a timeout", text)
		}
	})
}
