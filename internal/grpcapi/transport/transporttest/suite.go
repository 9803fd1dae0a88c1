// Package transporttest holds every transport to the contract of package
// transport, with a client that is none of its own.
package transporttest

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rollcall-registry/rollcall/api/grpcv2"
	"github.com/rollcall-registry/rollcall/internal/grpcapi/grpctest"
	"github.com/rollcall-registry/rollcall/internal/grpcapi/transport"
)

// Limits are those that the suite tries.
type Limits struct{ Conns, ConnsPerIP, Message, Streams int }

// Server is a running transport.
type Server struct {
	Address string
	// Stop stops it and returns when it has stopped.
	Stop func()
}

// Start starts a transport that is stopped with the test.
type Start func(t *testing.T, h transport.Handler, limits Limits) Server

func (s Start) start(t *testing.T, h transport.Handler) Server {
	t.Helper()
	return s(t, h, Limits{Conns: 100, ConnsPerIP: 100, Message: 1 << 20, Streams: 16})
}

// Run runs the suite.
func Run(t *testing.T, start Start) {
	for name, test := range map[string]func(*testing.T, Start){
		"calls":                             calls,
		"large messages":                    largeMessages,
		"messages over the limit":           overLimit,
		"unknown methods":                   unknownMethods,
		"broken messages":                   brokenMessages,
		"answers are written once":          written,
		"context of calls":                  callContext,
		"both methods share a connection":   oneConnection,
		"frames in order":                   framesInOrder,
		"a stream is pulled":                pulled,
		"a half-closed stream ends with OK": halfClose,
		"a cancelled stream":                cancelled,
		"close ends streams with a status":  closeStatus,
		"close cuts those who do not read":  closeStuck,
		"a client that closes":              clientCloses,
		"stopping":                          stopping,
		"too many connections":              tooMany,
		"junk":                              junk,
	} {
		t.Run(name, func(t *testing.T) { test(t, start) })
	}
}

// handler is a handler whose sessions a test can see.
type handler struct {
	mu       sync.Mutex
	sessions []*session
	answer   func(*session, context.Context, *grpcv2.Payload, *transport.Message)
}

type session struct {
	handler *handler
	conn    transport.Conn
	closed  chan bool // gets the argument of Closed
	streams chan *stream
}

type stream struct {
	transport.Stream
	received chan string
	ended    chan struct{}
	mu       sync.Mutex
	queue    []transport.Message
	taken    int
}

func (h *handler) Accept(c transport.Conn) transport.Session {
	s := &session{handler: h, conn: c, closed: make(chan bool, 2), streams: make(chan *stream, 100)}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sessions = append(h.sessions, s)
	return s
}

// session returns the n-th session, which must have come.
func (h *handler) session(t *testing.T, n int) *session {
	t.Helper()
	var s *session
	wait(t, fmt.Sprintf("session %d", n), func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		if n < len(h.sessions) {
			s = h.sessions[n]
		}
		return s != nil
	})
	return s
}

// Answer echoes, unless the test wants something else.
func (s *session) Answer(ctx context.Context, p *grpcv2.Payload, m *transport.Message) {
	if s.handler.answer != nil {
		s.handler.answer(s, ctx, p, m)
		return
	}
	if p.Type == blocking {
		<-ctx.Done()
	}
	m.Type = "Echo"
	m.Buf = append(m.Buf, p.Body...)
}

func (s *session) Open(st transport.Stream) transport.Frames {
	f := &stream{Stream: st, received: make(chan string, 1000), ended: make(chan struct{}, 2)}
	s.streams <- f
	return f
}

func (s *session) Closed(stopping bool) { s.closed <- stopping }

func (f *stream) Received(p *grpcv2.Payload) {
	f.received <- strings.Clone(p.Type) + " " + string(p.Body)
}

func (f *stream) Next(m *transport.Message) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.queue) == 0 {
		return false
	}
	next := f.queue[0]
	f.queue = f.queue[1:]
	f.taken++
	m.Type, m.ClientIP, m.Tail, m.Written = next.Type, next.ClientIP, next.Tail, next.Written
	m.Buf = append(m.Buf, next.Buf...)
	return true
}

func (f *stream) Ended() { f.ended <- struct{}{} }

// send has a message sent.
func (f *stream) send(m transport.Message) {
	f.mu.Lock()
	f.queue = append(f.queue, m)
	f.mu.Unlock()
	f.Wake()
}

func (f *stream) left() (queued, taken int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.queue), f.taken
}

// wait waits for a condition.
func wait(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(grpctest.Patience); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %v", what, grpctest.Patience)
		}
	}
}

// receive returns what comes from a channel.
func receive[T any](t *testing.T, what string, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(grpctest.Patience):
		t.Fatalf("%s: not within %v", what, grpctest.Patience)
		panic("unreachable")
	}
}

// open opens a stream and returns both ends of it.
func open(t *testing.T, c *grpctest.Client, s *session) (*grpctest.Stream, *stream) {
	t.Helper()
	client := c.Open(t)
	client.Say(t, "Hello", "{}")
	server := receive(t, "a stream", s.streams)
	if got := receive(t, "the first frame", server.received); got != "Hello {}" {
		t.Fatalf("got %q", got)
	}
	return client, server
}

func calls(t *testing.T, start Start) {
	h := &handler{}
	server := start.start(t, h)
	h.answer = func(s *session, _ context.Context, p *grpcv2.Payload, m *transport.Message) {
		app, _ := p.Header("app")
		m.Type, m.ClientIP = "Answer", "10.0.0.1"
		m.Buf = append(m.Buf, p.Type+"|"+p.ClientIP+"|"+app+"|"...)
		m.Tail = p.Body
		if !s.conn.Peer().IsValid() || s.conn.Local().String() != server.Address {
			t.Errorf("peer %v, local %v", s.conn.Peer(), s.conn.Local())
		}
	}
	c := grpctest.Dial(t, server.Address)
	var all sync.WaitGroup
	for n := range 200 {
		all.Go(func() {
			got, err := c.Try(grpctest.Message{
				Head: grpcv2.Head{Type: "T", ClientIP: "::1", Headers: map[string]string{"app": fmt.Sprint(n)}}, Body: fmt.Sprint("body", n),
			})
			if want := fmt.Sprintf("T|::1|%d|body%d", n, n); err != nil || got.Type != "Answer" || got.ClientIP != "10.0.0.1" || string(got.Body) != want {
				t.Errorf("got %+v, %v; want %s", got, err, want)
			}
		})
	}
	all.Wait()
	if got, err := c.Try(grpctest.Message{Bare: true, NoBody: true}); err != nil || string(got.Body) != "|||" {
		t.Errorf("an empty message: %+v, %v", got, err)
	}
}

func largeMessages(t *testing.T, start Start) {
	server := start.start(t, &handler{answer: func(_ *session, _ context.Context, p *grpcv2.Payload, m *transport.Message) {
		m.Type = "Echo"
		half := len(p.Body) / 2
		m.Buf = append(m.Buf, p.Body[:half]...)
		m.Tail = bytes.Clone(p.Body[half:])
	}})
	c := grpctest.Dial(t, server.Address)
	for _, size := range []int{0, 1, 1000, 4000, 4200, 16 << 10, 70 << 10, 900 << 10} {
		body := strings.Repeat("x", size)
		if got := c.Call(t, "T", body); string(got.Body) != body {
			t.Errorf("%d bytes came back as %d", size, len(got.Body))
		}
	}
}

func overLimit(t *testing.T, start Start) {
	h := &handler{}
	server := start.start(t, h)
	c := grpctest.Dial(t, server.Address)
	_, err := c.Try(grpctest.Message{Head: grpcv2.Head{Type: "T"}, Body: strings.Repeat("x", 2<<20)})
	if got := grpctest.StatusOf(err); got != "ResourceExhausted" {
		t.Errorf("got %s: %v", got, err)
	}
	if got := c.Call(t, "T", "still here"); string(got.Body) != "still here" {
		t.Errorf("got %q", got.Body)
	}
	if len(h.sessions) != 1 {
		t.Errorf("%d connections, want the one that lives on", len(h.sessions))
	}
}

func unknownMethods(t *testing.T, start Start) {
	server := start.start(t, &handler{})
	c := grpctest.Dial(t, server.Address)
	for _, method := range []string{"/Request/nothing", "/Nothing/request", "/", "/Request/"} {
		_, err := c.Invoke(t.Context(), method, grpctest.Message{Body: "{}"})
		if got := grpctest.StatusOf(err); got != "Unimplemented" {
			t.Errorf("%s: got %s: %v", method, got, err)
		}
	}
	c.Call(t, "T", "{}")
}

func brokenMessages(t *testing.T, start Start) {
	server := start.start(t, &handler{})
	c := grpctest.Dial(t, server.Address)
	// A string that is not UTF-8, which no protobuf library sends.
	_, err := c.Try(grpctest.Message{Head: grpcv2.Head{Type: "\xff"}})
	if err == nil {
		t.Error("a broken message was answered")
	}
	c.Call(t, "T", "{}")
}

func written(t *testing.T, start Start) {
	const n = 100
	said := make(chan int, 10*n)
	server := start.start(t, &handler{answer: func(_ *session, _ context.Context, p *grpcv2.Payload, m *transport.Message) {
		m.Type, m.Buf = "Echo", append(m.Buf, p.Body...)
		if len(p.Body) > 10 {
			m.Tail = bytes.Clone(p.Body)
		}
		size := len(p.Body)
		m.Written = func() { said <- size }
	}})
	c := grpctest.Dial(t, server.Address)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { c.Call(t, "T", strings.Repeat("x", i*100)) })
	}
	all.Wait()
	var sizes []int
	for range n {
		sizes = append(sizes, receive(t, "a written answer", said))
	}
	slices.Sort(sizes)
	for i, size := range sizes {
		if size != i*100 {
			t.Fatalf("answer %d: %d bytes were written", i, size)
		}
	}
	select {
	case size := <-said:
		t.Errorf("an answer of %d bytes was written twice", size)
	case <-time.After(20 * time.Millisecond):
	}
}

func callContext(t *testing.T, start Start) {
	begun, ended := make(chan struct{}, 1), make(chan struct{}, 1)
	server := start.start(t, &handler{answer: func(_ *session, ctx context.Context, _ *grpcv2.Payload, m *transport.Message) {
		begun <- struct{}{}
		<-ctx.Done()
		ended <- struct{}{}
		m.Type = "Late"
	}})
	c := grpctest.Dial(t, server.Address)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-begun
		cancel()
	}()
	if _, err := c.Invoke(ctx, "/Request/request", grpctest.Message{Head: grpcv2.Head{Type: blocking}}); err == nil {
		t.Error("a call that was given up was answered")
	}
	receive(t, "the end of the call", ended)
}

func oneConnection(t *testing.T, start Start) {
	h := &handler{}
	server := start.start(t, h)
	a, b := grpctest.Dial(t, server.Address), grpctest.Dial(t, server.Address)
	a.Call(t, "T", "{}")
	open(t, a, h.session(t, 0))
	b.Call(t, "T", "{}")
	open(t, b, h.session(t, 1))
	if h.session(t, 0).conn.Peer() == h.session(t, 1).conn.Peer() {
		t.Error("two connections have one peer")
	}
	if len(h.sessions) != 2 {
		t.Errorf("%d sessions", len(h.sessions))
	}
}

func framesInOrder(t *testing.T, start Start) {
	h := &handler{}
	server := start.start(t, h)
	c := grpctest.Dial(t, server.Address)
	c.Call(t, "T", "{}")
	client, end := open(t, c, h.session(t, 0))
	const n = 300
	for i := range n {
		end.send(transport.Message{Type: "Down", ClientIP: "10.0.0.1", Buf: fmt.Append(nil, i), Tail: []byte(strings.Repeat("y", i*20))})
	}
	for i := range n {
		f := client.Expect(t, "Down")
		if want := fmt.Sprint(i) + strings.Repeat("y", i*20); string(f.Body) != want || f.ClientIP != "10.0.0.1" {
			t.Fatalf("frame %d: got %d bytes, %s", i, len(f.Body), f.ClientIP)
		}
	}
	for i := range n {
		client.Say(t, "Up", fmt.Sprint(i))
	}
	for i := range n {
		if got := receive(t, "a frame", end.received); got != fmt.Sprint("Up ", i) {
			t.Fatalf("frame %d: got %s", i, got)
		}
	}
}

// A client that does not read is sent no more than its windows and the buffers on
// the way hold; the rest is not taken.
func pulled(t *testing.T, start Start) {
	h := &handler{}
	server := start.start(t, h)
	slow := newSilentClient(t, server.Address)
	end := receive(t, "a stream", h.session(t, 0).streams)
	tail := bytes.Repeat([]byte("z"), 256<<10)
	const n = 400
	for range n {
		end.send(transport.Message{Type: "Down", Tail: tail})
	}
	_, before := end.left()
	wait(t, "the stream comes to rest", func() bool {
		time.Sleep(50 * time.Millisecond)
		_, now := end.left()
		rested := now == before
		before = now
		return rested && now > 0
	})
	if queued, taken := end.left(); taken > n/2 {
		t.Errorf("%d of %d messages were taken for a client that reads nothing, %d left", taken, n, queued)
	}
	// Others are not delayed.
	c := grpctest.Dial(t, server.Address)
	c.Call(t, "T", "{}")
	client, other := open(t, c, h.session(t, 1))
	other.send(transport.Message{Type: "Down", Tail: tail})
	client.Expect(t, "Down")
	slow.close()
	receive(t, "the end of the stream", end.ended)
}

func halfClose(t *testing.T, start Start) {
	h := &handler{}
	server := start.start(t, h)
	c := grpctest.Dial(t, server.Address)
	c.Call(t, "T", "{}")
	client, end := open(t, c, h.session(t, 0))
	client.HalfClose()
	if f := client.Next(t); grpctest.StatusOf(f.Err) != "OK" {
		t.Errorf("got %+v", f)
	}
	receive(t, "the end of the stream", end.ended)
	end.send(transport.Message{Type: "Late"}) // goes nowhere
	c.Call(t, "T", "{}")
	open(t, c, h.session(t, 0))
	select {
	case <-h.session(t, 0).closed:
		t.Error("the connection was closed with the stream")
	default:
	}
}

func cancelled(t *testing.T, start Start) {
	h := &handler{}
	server := start.start(t, h)
	c := grpctest.Dial(t, server.Address)
	c.Call(t, "T", "{}")
	client, end := open(t, c, h.session(t, 0))
	client.Cancel()
	receive(t, "the end of the stream", end.ended)
	c.Call(t, "T", "{}")
}

func closeStatus(t *testing.T, start Start) {
	h := &handler{}
	server := start.start(t, h)
	c := grpctest.Dial(t, server.Address)
	c.Call(t, "T", "{}")
	s := h.session(t, 0)
	first, _ := open(t, c, s)
	second, _ := open(t, c, s)
	s.conn.Close(transport.Status{Code: transport.Unavailable, Message: "go away"})
	for _, client := range []*grpctest.Stream{first, second} {
		f := client.Next(t)
		if grpctest.StatusOf(f.Err) != "Unavailable" || !strings.Contains(fmt.Sprint(f.Err), "go away") {
			t.Errorf("got %+v, want UNAVAILABLE with the message", f)
		}
	}
	if receive(t, "the end of the connection", s.closed) {
		t.Error("a closed connection was said to be stopped")
	}
	s.conn.Close(transport.Status{Code: transport.Unavailable}) // once more does nothing
}

func closeStuck(t *testing.T, start Start) {
	h := &handler{}
	server := start.start(t, h)
	newSilentClient(t, server.Address)
	s := h.session(t, 0)
	end := receive(t, "a stream", s.streams)
	for range 100 {
		end.send(transport.Message{Type: "Down", Tail: bytes.Repeat([]byte("z"), 256<<10)})
	}
	s.conn.Close(transport.Status{Code: transport.Unavailable, Message: "go away"})
	receive(t, "the end of the connection", s.closed)
	receive(t, "the end of the stream", end.ended)
}

func clientCloses(t *testing.T, start Start) {
	h := &handler{}
	server := start.start(t, h)
	c := grpctest.Dial(t, server.Address)
	c.Call(t, "T", "{}")
	s := h.session(t, 0)
	_, end := open(t, c, s)
	c.Close()
	if receive(t, "the end of the connection", s.closed) {
		t.Error("the client's end was taken for a stop")
	}
	receive(t, "the end of the stream", end.ended)
	select {
	case <-s.closed:
		t.Error("closed twice")
	case <-end.ended:
		t.Error("ended twice")
	case <-time.After(20 * time.Millisecond):
	}
}

func stopping(t *testing.T, start Start) {
	h := &handler{}
	server := start.start(t, h)
	c := grpctest.Dial(t, server.Address)
	c.Call(t, "T", "{}")
	s := h.session(t, 0)
	client, _ := open(t, c, s)
	quiet := grpctest.Dial(t, server.Address)
	quiet.Call(t, "T", "{}")
	server.Stop()
	if f := client.Next(t); grpctest.StatusOf(f.Err) != "Unavailable" {
		t.Errorf("the stream ended with %+v", f)
	}
	for n := range 2 {
		if !receive(t, "the end of the connection", h.session(t, n).closed) {
			t.Errorf("connection %d was not said to be stopped", n)
		}
	}
}

func tooMany(t *testing.T, start Start) {
	for name, tt := range map[string]struct {
		limits Limits
		want   string
	}{
		"in all":      {Limits{Conns: 2, ConnsPerIP: 100, Message: 1 << 20, Streams: 16}, "at most 2"},
		"per address": {Limits{Conns: 100, ConnsPerIP: 2, Message: 1 << 20, Streams: 16}, "from this address"},
	} {
		t.Run(name, func(t *testing.T) {
			h := &handler{}
			server := start(t, h, tt.limits)
			first := grpctest.Dial(t, server.Address)
			first.Call(t, "T", "{}")
			grpctest.Dial(t, server.Address).Call(t, "T", "{}")
			third := grpctest.Dial(t, server.Address)
			_, err := third.Try(grpctest.Message{})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("the third: %v, want the reason", err)
			}
			first.Close()
			receive(t, "the end of the first", h.session(t, 0).closed)
			wait(t, "room for another", func() bool {
				c := grpctest.Dial(t, server.Address)
				defer c.Close()
				_, err := c.Try(grpctest.Message{})
				return err == nil
			})
		})
	}
}

// Whoever does not speak HTTP/2 costs no more than his connection.
func junk(t *testing.T, start Start) {
	h := &handler{}
	server := start.start(t, h)
	for _, said := range []string{
		"", "x", "GET / HTTP/1.1\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + strings.Repeat("\xff", 100),
	} {
		nc, err := net.Dial("tcp", server.Address)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := nc.Write([]byte(said)); err != nil {
			t.Fatal(err)
		}
		_ = nc.Close()
	}
	for n := range 5 {
		receive(t, "the end of a connection", h.session(t, n).closed)
	}
	grpctest.Dial(t, server.Address).Call(t, "T", "{}")
}
