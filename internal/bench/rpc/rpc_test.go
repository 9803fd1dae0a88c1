package rpc

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"

	"github.com/rollcall-registry/rollcall/api/grpcv2"
)

// serve starts a grpc-go server whose calls are answered by handle; its stream
// answers each message twice.
func serve(t testing.TB, handle func(request []byte) ([]byte, error), options ...grpc.ServerOption) *Dialer {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	options = append(options, grpc.ForceServerCodecV2(rawCodec{}), grpc.MaxRecvMsgSize(1<<30),
		grpc.UnknownServiceHandler(func(_ any, s grpc.ServerStream) error {
			method, _ := grpc.MethodFromServerStream(s)
			for {
				var request []byte
				if err := s.RecvMsg(&request); err != nil {
					return err
				}
				if strings.HasSuffix(method, grpcv2.StreamMethod) {
					if err := errors.Join(s.SendMsg(request), s.SendMsg(request)); err != nil {
						return err
					}
					continue
				}
				answer, err := handle(request)
				if err != nil {
					return err
				}
				return s.SendMsg(answer)
			}
		}))
	server := grpc.NewServer(options...)
	go func() { _ = server.Serve(ln) }()
	t.Cleanup(server.Stop)
	return NewDialer(ln.Addr().String(), 10*time.Second, nil)
}

func echo(request []byte) ([]byte, error) { return request, nil }

func dial(t testing.TB, d *Dialer, h Handler) *Conn {
	t.Helper()
	c, err := d.Dial(t.Context(), h)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// Messages of all sizes go both ways, far beyond the windows and frames that
// grpc-go allows.
func TestCall(t *testing.T) {
	c := dial(t, serve(t, echo), Handler{})
	for round := range 3 {
		for _, size := range []int{0, 1, 1000, 16_384, 65_530, 65_535, 300_000, 5 << 20} {
			message := bytes.Repeat([]byte{byte('a' + round)}, size)
			got, err := c.Call(message)
			if err != nil || !bytes.Equal(got, message) {
				t.Fatalf("%d bytes: got %d, %v", size, len(got), err)
			}
		}
	}
	for range 1000 {
		if got, err := c.Call([]byte("x")); err != nil || string(got) != "x" {
			t.Fatalf("got %q, %v", got, err)
		}
	}
}

func TestStatus(t *testing.T) {
	c := dial(t, serve(t, func([]byte) ([]byte, error) { return nil, status.Error(codes.Unavailable, "not now") }), Handler{})
	_, err := c.Call([]byte("x"))
	var s *StatusError
	if !errors.As(err, &s) || s.Code != int(codes.Unavailable) || s.Message != "not now" {
		t.Errorf("got %v", err)
	}
	if c.Err() != nil {
		t.Errorf("the connection ended with the call: %v", c.Err())
	}
}

func TestStream(t *testing.T) {
	var heard atomic.Int64
	large := make(chan int, 10)
	c := dial(t, serve(t, echo), Handler{Message: func(_ *Conn, m []byte) {
		heard.Add(1)
		if len(m) > 10 {
			large <- len(m)
		}
	}})
	for range 500 {
		if err := c.Send([]byte("small")); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if err := c.Send(make([]byte, 400_000)); err != nil {
			t.Fatal(err)
		}
	}
	for range 4 {
		if n := <-large; n != 400_000 {
			t.Fatalf("got %d bytes", n)
		}
	}
	if heard.Load() != 1004 {
		t.Errorf("%d messages came, want 1004", heard.Load())
	}
	// Calls go on beside the stream.
	if _, err := c.Call([]byte("x")); err != nil {
		t.Error(err)
	}
}

func TestTimeout(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	d := serve(t, func(b []byte) ([]byte, error) {
		if string(b) == "slow" {
			<-release
		}
		return b, nil
	})
	d.Timeout = 50 * time.Millisecond
	c := dial(t, d, Handler{})
	if _, err := c.Call([]byte("slow")); !errors.Is(err, ErrTimeout) {
		t.Fatalf("got %v", err)
	}
	c.timeout = 10 * time.Second
	if got, err := c.Call([]byte("quick")); err != nil || string(got) != "quick" {
		t.Errorf("after a timeout: %q, %v", got, err)
	}
}

func TestEnds(t *testing.T) {
	for name, end := range map[string]func(*Conn, context.CancelFunc){
		"context": func(_ *Conn, cancel context.CancelFunc) { cancel() },
		"abort":   func(c *Conn, _ context.CancelFunc) { c.Abort() },
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			closed := make(chan error, 1)
			hold := make(chan struct{})
			d := serve(t, func(b []byte) ([]byte, error) { <-hold; return b, nil })
			defer close(hold)
			c, err := d.Dial(ctx, Handler{Closed: func(err error) { closed <- err }})
			if err != nil {
				t.Fatal(err)
			}
			failed := make(chan error, 1)
			go func() { _, err := c.Call([]byte("x")); failed <- err }()
			end(c, cancel)
			if err := <-closed; !errors.Is(err, ErrClosed) {
				t.Errorf("closed with %v", err)
			}
			if err := <-failed; !errors.Is(err, ErrClosed) {
				t.Errorf("the call ended with %v", err)
			}
			c.Close()
		})
	}
}

// A server that takes only a part of a request has the time of a call to go on. What it
// answers meanwhile counts.
func TestRequestThatIsNotTaken(t *testing.T) {
	for name, tt := range map[string]struct {
		says string // after the beginning
		goes bool   // on, the connection
		want string
	}{
		"silence": {"", false, "does not take what is sent"},
		"reset":   {"\x00\x00\x04\x03\x00\x00\x00\x00\x03\x00\x00\x00\x08", true, "reset the stream"},
	} {
		t.Run(name, func(t *testing.T) {
			ln, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = ln.Close() }()
			go func() {
				nc, err := ln.Accept()
				if err != nil {
					return
				}
				defer func() { _ = nc.Close() }()
				_, _ = io.CopyN(io.Discard, nc, defaultWindow) // so much of the request is there
				_, _ = io.WriteString(nc, tt.says)
				_, _ = io.Copy(io.Discard, nc)
			}()
			c := dial(t, NewDialer(ln.Addr().String(), 100*time.Millisecond, nil), Handler{})
			_, err = c.Call(make([]byte, 2*defaultWindow))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
			if (c.Err() == nil) != tt.goes {
				t.Errorf("the connection ended with %v", c.Err())
			}
		})
	}
}

// A server that does not read keeps nobody from closing the connection.
func TestCloseWhileWriting(t *testing.T) {
	ours, theirs := net.Pipe()
	defer func() { _ = theirs.Close() }()
	c := &Conn{nc: ours}
	c.room.L = &c.mu
	writing, wrote := make(chan struct{}), make(chan error, 1)
	go func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.out = make([]byte, 1<<10)
		close(writing)
		wrote <- c.flush()
	}()
	<-writing
	c.Abort()
	if err := <-wrote; !errors.Is(err, ErrClosed) {
		t.Errorf("got %v", err)
	}
}

// A server that breaks the protocol is left, whatever it sends.
func TestForeignBytes(t *testing.T) {
	for name, bytes := range map[string]string{
		"http/1":        "HTTP/1.1 400 Bad Request\r\n\r\n",
		"large frame":   "\xff\xff\xff\x00\x00\x00\x00\x00\x01",
		"padding":       "\x00\x00\x01\x00\x08\x00\x00\x00\x01\x05",
		"continuation":  "\x00\x00\x00\x09\x04\x00\x00\x00\x01",
		"window update": "\x00\x00\x01\x08\x00\x00\x00\x00\x00\x00",
		"goaway":        "\x00\x00\x08\x07\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02",
		"reset":         "\x00\x00\x04\x03\x00\x00\x00\x00\x01\x00\x00\x00\x02",
		"no stream":     "\x00\x00\x00\x00\x01\x00\x00\x00\x00",
		"reset of none": "\x00\x00\x04\x03\x00\x00\x00\x00\x00\x00\x00\x00\x02",
		"compressed":    "\x00\x00\x06\x00\x00\x00\x00\x00\x01\x01\x00\x00\x00\x01x",
		"nothing":       "",
	} {
		t.Run(name, func(t *testing.T) {
			if err := talk(t, []byte(bytes)); err == nil {
				t.Error("the connection goes on")
			}
		})
	}
}

// talk has a client hear bytes, and returns why its connection ended.
func talk(t testing.TB, b []byte) error {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ln.Close() }()
	go func() {
		nc, err := ln.Accept()
		if err != nil {
			return
		}
		_, _ = nc.Write(b)
		_ = nc.(*net.TCPConn).CloseWrite()
		_, _ = io.Copy(io.Discard, nc)
		_ = nc.Close()
	}()
	closed := make(chan error, 1)
	c, err := NewDialer(ln.Addr().String(), 10*time.Second, nil).Dial(t.Context(), Handler{Closed: func(err error) { closed <- err }})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	return <-closed
}

func FuzzFrames(f *testing.F) {
	f.Add([]byte("\x00\x00\x06\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x01x"))
	f.Add([]byte("\x00\x00\x00\x04\x00\x00\x00\x00\x00\x00\x00\x08\x06\x00\x00\x00\x00\x0012345678"))
	f.Add([]byte("\x00\x00\x01\x01\x05\x00\x00\x00\x03\x88"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if err := talk(t, b); err == nil {
			t.Error("it ended without a reason")
		}
	})
}

func TestCallsDoNotAllocate(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	d := NewDialer(ln.Addr().String(), 10*time.Second, nil)
	// What a client begins with: preface, two settings, a window update, the stream.
	const settings, update = frameHeader + 12, frameHeader + 4
	go parrot(ln, len(http2.ClientPreface)+settings+update+frameHeader+len(d.blocks.stream))
	c := dial(t, d, Handler{})
	message := []byte("message")
	call := func() {
		if got, err := c.Call(message); err != nil || string(got) != "answer" {
			t.Fatalf("got %q, %v", got, err)
		}
	}
	call() // fills the tables and buffers
	// Under the race detector pools forget now and then.
	if n := testing.AllocsPerRun(100, call); n > 1 {
		t.Errorf("%v allocations a call", n)
	}
}

// parrot serves one connection: whatever comes in one piece after so many bytes is a
// call, and all calls have the same answer.
func parrot(ln net.Listener, begin int) {
	nc, err := ln.Accept()
	if err != nil {
		return
	}
	defer func() { _ = nc.Close() }()
	var block bytes.Buffer
	table := hpack.NewEncoder(&block)
	trailers := func() []byte {
		block.Reset()
		_ = table.WriteField(hpack.HeaderField{Name: "grpc-status", Value: "0"})
		return bytes.Clone(block.Bytes())
	}
	answer := func(trailers []byte) []byte {
		b := appendFrame(nil, http2.FrameHeaders, http2.FlagHeadersEndHeaders, 0, []byte{0x88}) // :status 200
		b = appendFrame(b, http2.FrameData, 0, 0, append(appendMessageHeader(nil, 6), "answer"...))
		return appendFrame(b, http2.FrameHeaders, http2.FlagHeadersEndHeaders|http2.FlagHeadersEndStream, 0, trailers)
	}
	first, next := answer(trailers()), answer(trailers())
	buf := make([]byte, 4096)
	if _, err := io.ReadFull(nc, buf[:begin]); err != nil {
		return
	}
	out := first
	for stream := uint32(firstCall); ; stream += 2 {
		if _, err := nc.Read(buf); err != nil {
			return
		}
		for b := out; len(b) > 0; b = b[frameHeader+int(b[2]):] {
			binary.BigEndian.PutUint32(b[5:], stream)
		}
		if _, err := nc.Write(out); err != nil {
			return
		}
		out = next
	}
}

func BenchmarkCall(b *testing.B) {
	c := dial(b, serve(b, echo), Handler{})
	message := make([]byte, 300)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Call(message); err != nil {
			b.Fatal(err)
		}
	}
}

// rawCodec moves messages that are encoded already.
type rawCodec struct{}

func (rawCodec) Name() string { return "proto" }

func (rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(v.([]byte))}, nil
}

func (rawCodec) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}
