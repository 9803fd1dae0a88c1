package h2

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/rollcall-registry/rollcall/internal/grpcapi/transport/transporttest"
)

// benchServe serves an echo on loopback until the benchmark or test ends, and returns a
// connection to it on which everything was said that comes before calls.
func benchServe(b testing.TB, e *echo) net.Conn {
	b.Helper()
	s := New(DefaultConfig(), e, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(b.Context())
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		_ = s.Run(ctx)
	}()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	nc, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	served, err := ln.Accept()
	if err != nil {
		b.Fatal(err)
	}
	s.ServeConn(ctx, served, nil)
	b.Cleanup(func() {
		_, _, _ = nc.Close(), ln.Close(), cancel
		cancel()
		<-stopped
	})
	var out bytes.Buffer
	out.WriteString(http2.ClientPreface)
	fr := http2.NewFramer(&out, nil)
	_ = fr.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1<<31 - 1})
	_ = fr.WriteWindowUpdate(0, 1<<31-1-defaultWindow)
	if _, err := nc.Write(out.Bytes()); err != nil {
		b.Fatal(err)
	}
	return nc
}

// calls makes the bytes of calls whose headers are in the table after the first.
type calls struct {
	out     bytes.Buffer
	fr      *http2.Framer
	block   bytes.Buffer
	encoder *hpack.Encoder
	id      uint32
	message []byte
}

func newCalls(message []byte) *calls {
	c := &calls{id: 1, message: message}
	c.fr, c.encoder = http2.NewFramer(&c.out, nil), hpack.NewEncoder(&c.block)
	return c
}

func (c *calls) next() []byte {
	c.out.Reset()
	c.block.Reset()
	for _, f := range transporttest.Request(transporttest.UnaryPath, "user-agent", "bench") {
		_ = c.encoder.WriteField(f)
	}
	_ = c.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: c.id, BlockFragment: c.block.Bytes(), EndHeaders: true})
	_ = c.fr.WriteData(c.id, true, c.message)
	c.id += 2
	return c.out.Bytes()
}

// BenchmarkCall is a call and its answer over loopback, one after the other. The
// client's allocations count, too.
func BenchmarkCall(b *testing.B) {
	nc := benchServe(b, &echo{})
	c := newCalls(transporttest.Message("T", "{}"))
	fr := http2.NewFramer(io.Discard, nc)
	fr.SetReuseFrames()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := nc.Write(c.next()); err != nil {
			b.Fatal(err)
		}
		for over := false; !over; {
			f, err := fr.ReadFrame()
			if err != nil {
				b.Fatal(err)
			}
			h, ok := f.(*http2.HeadersFrame)
			over = ok && h.StreamEnded()
		}
	}
}

// BenchmarkFrames is a call without a socket: what reading, answering and writing
// cost by themselves.
func BenchmarkFrames(b *testing.B) {
	s := New(DefaultConfig(), &echo{}, slog.New(slog.DiscardHandler))
	r := &replay{piece: 4 << 10}
	c := newConn(s, r, nil)
	c.session = &echo{}
	all := newCalls(transporttest.Message("T", "{}"))
	c.takeReader()
	b.ReportAllocs()
	for b.Loop() {
		c.window = maxWindow
		r.said, r.heard = append(r.said[:0], all.next()...), r.heard[:0]
		c.takeTurn()
		if _, err := c.reader.buf.Peek(1); err != nil {
			b.Fatal(err)
		}
		if err := c.readFrames(); err != nil {
			b.Fatal(err)
		}
		if err := c.flush(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkPush is a message that comes of itself, until the client has it.
func BenchmarkPush(b *testing.B) {
	e := &echo{}
	nc := benchServe(b, e)
	c := newCalls(nil)
	_ = c.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: c.stream(), EndHeaders: true})
	if _, err := nc.Write(c.out.Bytes()); err != nil {
		b.Fatal(err)
	}
	fr := http2.NewFramer(io.Discard, nc)
	fr.SetReuseFrames()
	for e.opened.Load() == 0 {
		if _, err := fr.ReadFrame(); err != nil {
			b.Fatal(err)
		}
	}
	tail := bytes.Repeat([]byte("x"), 600)
	b.ReportAllocs()
	for b.Loop() {
		e.push(0, 1, tail)
		for got := false; !got; {
			f, err := fr.ReadFrame()
			if err != nil {
				b.Fatal(err)
			}
			_, got = f.(*http2.DataFrame)
		}
	}
}

func (c *calls) stream() []byte {
	c.block.Reset()
	for _, f := range transporttest.Request(transporttest.StreamPath) {
		_ = c.encoder.WriteField(f)
	}
	return c.block.Bytes()
}
