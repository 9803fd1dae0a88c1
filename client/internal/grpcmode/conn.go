package grpcmode

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	"github.com/rollcall-registry/rollcall/api/grpcv2"
	"github.com/rollcall-registry/rollcall/client/internal/auth"
	"github.com/rollcall-registry/rollcall/client/internal/servers"
	"github.com/rollcall-registry/rollcall/client/internal/wire"
)

// The times of a connection.
const (
	// idle is after which silence a server is asked for a sign of life: that of Nacos
	// clients. Servers do the same after 20 s.
	idle = 5 * time.Second
	// alive bounds that question; see [Config.Timeout] for what else does.
	alive = 3 * time.Second
	// closing bounds writing the farewell to a network that takes nothing.
	closing = 200 * time.Millisecond
)

// conn is one connection to a server, with its stream.
type conn struct {
	cfg     *Config
	server  servers.Server
	address string // of server, for people
	localIP string
	handler handler

	socket net.Conn
	client *grpc.ClientConn
	stream grpc.ClientStream
	cancel context.CancelFunc // ends the stream

	begun   time.Time
	heard   atomic.Int64 // when something last came, since begun
	sending atomic.Int64 // since when an acknowledgement has been written, since begun; 0 for none

	setup     chan []string // capacity 1: the abilities of the server
	ended     chan struct{} // closed by the first fail
	running   sync.WaitGroup
	mu        sync.Mutex
	cause     error // why it ended
	good      bool  // it was established
	closed    bool  // nothing may be started any more
	checking  bool
	suspected bool // ask for a sign of life at once
	timer     *time.Timer
}

// handler is what a connection is for. Its functions are called by the reader of the
// stream, in the order in which messages came, and return soon.
type handler struct {
	// request takes a request of the server and returns the type of the
	// acknowledgement and what it acknowledges; no type for none.
	request func(*grpcv2.Payload) (ack, requestID string)
	// dropped counts what was not understood.
	dropped func(reason string)
	// lost is called once, by any goroutine, when the connection has ended after it was
	// established.
	lost func(cause error)
}

// fail ends the connection with a cause, of which the first counts.
func (c *conn) fail(cause error) {
	c.mu.Lock()
	first, good := c.cause == nil, c.good
	if first {
		c.cause = cause
		close(c.ended)
	}
	c.mu.Unlock()
	if first {
		c.cancel()
	}
	if first && good {
		c.handler.lost(cause)
	}
}

// over reports whether the connection has ended, and why.
func (c *conn) over() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cause
}

// close ends the connection and waits for what it started.
func (c *conn) close() {
	c.fail(errClosed)
	c.mu.Lock()
	c.closed = true
	if c.timer != nil {
		c.timer.Stop()
	}
	c.mu.Unlock()
	_ = c.socket.SetDeadline(time.Now().Add(closing))
	_ = c.client.Close()
	_ = c.socket.Close()
	c.running.Wait()
}

// during returns a context that ends with the connection, too.
func (c *conn) during(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(c.stream.Context(), func() { cancel(broken(c.address, c.over())) })
	return ctx, func() { stop(); cancel(nil) }
}

// since returns the time since the connection began, never 0.
func (c *conn) since() int64 { return int64(time.Since(c.begun)) + 1 }

func (c *conn) hear() { c.heard.Store(c.since()) }

const (
	unaryMethod  = "/" + grpcv2.UnaryService + "/" + grpcv2.UnaryMethod
	streamMethod = "/" + grpcv2.StreamService + "/" + grpcv2.StreamMethod
)

// payload encodes a message to the server.
func (c *conn) payload(kind string, body []byte, fields []auth.Field) []byte {
	h := grpcv2.Head{Type: kind, ClientIP: c.localIP}
	if len(fields) > 0 || c.cfg.AppName != "" {
		h.Headers = make(map[string]string, len(fields)+1)
		for _, f := range fields {
			h.Headers[f.Name] = f.Value
		}
		if c.cfg.AppName != "" {
			h.Headers["app"] = c.cfg.AppName
		}
	}
	return grpcv2.AppendPayload(make([]byte, 0, len(body)+256), &h, body)
}

// errSlow is the cause of a request that was not answered in time.
type errSlow struct{ limit time.Duration }

func (e errSlow) Error() string { return fmt.Sprintf("no answer within %v", e.limit) }

// ask sends one request and reads the answer. An error says that there was none that
// made sense.
func (c *conn) ask(ctx context.Context, limit time.Duration, message []byte) (grpcv2.Answer, error) {
	limited, cancel := context.WithTimeoutCause(ctx, limit, errSlow{limit})
	defer cancel()
	var b []byte
	err := c.client.Invoke(limited, unaryMethod, message, &b)
	var p grpcv2.Payload
	switch {
	case interrupted(ctx) != nil && err != nil:
		return grpcv2.Answer{}, interrupted(ctx)
	case err != nil && c.over() != nil:
		return grpcv2.Answer{}, broken(c.address, c.over())
	case err != nil && limited.Err() != nil:
		return grpcv2.Answer{}, broken(c.address, context.Cause(limited))
	case err != nil:
		return grpcv2.Answer{}, broken(c.address, err)
	case b == nil:
		return grpcv2.Answer{}, &wire.Error{Kind: wire.BadAnswer, Server: c.address, Err: errTooLarge, Attempts: 1}
	}
	c.hear()
	if err = p.Unmarshal(b); err == nil {
		var a grpcv2.Answer
		if a, err = grpcv2.ReadAnswer(p.Body); err == nil {
			return a, nil
		}
	}
	return grpcv2.Answer{}, &wire.Error{Kind: wire.BadAnswer, Server: c.address, Err: err, Attempts: 1}
}

// call makes a request of an operation and returns its answer, which is a success. The
// resource is group@@service, or empty. Credentials that were refused are replaced and
// the request is repeated, once.
func (c *conn) call(ctx context.Context, kind, resource string, body []byte) (grpcv2.Answer, error) {
	for again := false; ; again = true {
		fields, err := c.cfg.Auth.Fields(ctx, resource)
		if err != nil {
			return grpcv2.Answer{}, c.noCredentials(ctx, err)
		}
		a, err := c.ask(ctx, c.cfg.Timeout, c.payload(kind, body, fields))
		if err != nil {
			if wire.KindOf(err) == wire.NotConnected && ctx.Err() == nil {
				c.suspect()
			}
			return a, err
		}
		if a.OK() {
			return a, nil
		}
		e := refusal(c.address, &a)
		if e.Kind == wire.Unregistered {
			c.fail(e)
		}
		refused := a.ErrorCode == codeForbidden || a.ErrorCode == codeUnauthorized
		if again || !refused || !c.cfg.Auth.Refused(fields) {
			if again {
				e.Attempts = 2
			}
			return a, e
		}
	}
}

func (c *conn) noCredentials(ctx context.Context, err error) error {
	if cause := interrupted(ctx); cause != nil {
		return cause
	}
	if _, ok := errors.AsType[*wire.Error](err); ok {
		return err
	}
	return &wire.Error{Kind: wire.Unauthorized, Server: c.address, Err: err}
}

// read reads the stream until it ends.
func (c *conn) read() {
	for {
		var b []byte
		if err := c.stream.RecvMsg(&b); err != nil {
			c.fail(streamEnd(c.address, err))
			return
		}
		c.hear()
		if b == nil {
			c.handler.dropped("grpc_too_large")
			continue
		}
		c.take(b)
	}
}

// streamEnd says why a stream ended.
func streamEnd(server string, err error) error {
	if errors.Is(err, io.EOF) {
		err = errors.New("the server ended the stream")
	}
	e := broken(server, err)
	e.Kind = wire.NotConnected
	return e
}

// take takes a message of the stream and acknowledges it.
func (c *conn) take(b []byte) {
	var p grpcv2.Payload
	if p.Unmarshal(b) != nil {
		c.handler.dropped("grpc_malformed")
		return
	}
	if p.Type == grpcv2.SetupAck {
		c.takeSetup(&p)
		return
	}
	ack, id := c.handler.request(&p)
	if ack == "" {
		return
	}
	c.sending.Store(c.since())
	_ = c.stream.SendMsg(c.payload(ack, grpcv2.AppendAck(nil, id), nil)) // the reader hears of failures
	c.sending.Store(0)
}

// takeSetup takes the abilities of the server.
func (c *conn) takeSetup(p *grpcv2.Payload) {
	q, err := grpcv2.ReadServerRequest(p.Body)
	if err != nil {
		c.handler.dropped("grpc_malformed")
		return
	}
	select {
	case c.setup <- append([]string{}, q.Abilities...): // not nil
	default: // one is enough
	}
}

// establish begins to ask for signs of life. It returns an error if the connection has
// ended by now.
func (c *conn) establish() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cause != nil {
		return c.cause
	}
	c.good = true
	c.timer = time.AfterFunc(idle, c.check)
	return nil
}

// suspect has the server asked for a sign of life at once.
func (c *conn) suspect() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.timer != nil && !c.closed && !c.checking {
		c.suspected = true
		c.timer.Reset(0)
	}
}

// check asks the server for a sign of life if nothing was heard of it for long, and
// says when to look again. It runs on the goroutine of the timer.
func (c *conn) check() {
	c.mu.Lock()
	due := c.suspected
	if c.closed || c.checking {
		c.mu.Unlock()
		return
	}
	c.checking, c.suspected = true, false
	c.running.Add(1) // before closed is set, so that close waits
	c.mu.Unlock()
	defer c.running.Done()
	if due || c.since()-c.heard.Load() >= int64(idle) {
		if err := c.ping(); err != nil {
			c.fail(err)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.checking = false
	if !c.closed && c.cause == nil {
		c.timer.Reset(max(idle-time.Duration(c.since()-c.heard.Load()), 0))
	}
}

// ping asks for a sign of life. Whatever answer there is, is one, unless it says that
// the server does not know the connection.
func (c *conn) ping() error {
	if began := c.sending.Load(); began > 0 && c.since()-began > int64(alive) {
		return broken(c.address, errors.New("it does not take acknowledgements"))
	}
	ctx, cancel := c.during(context.Background())
	defer cancel()
	a, err := c.ask(ctx, min(alive, c.cfg.Timeout), c.payload(grpcv2.HealthCheck, grpcv2.AppendBare(nil), nil))
	switch {
	case c.over() != nil:
		return c.over()
	case err != nil && wire.KindOf(err) != wire.BadAnswer:
		return err
	case err == nil && !a.OK() && kindOf(&a) == wire.Unregistered:
		return refusal(c.address, &a)
	default:
		return nil
	}
}
