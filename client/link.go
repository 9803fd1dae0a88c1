package rollcall

import (
	"context"
	"sync"
	"time"

	"github.com/rollcall-registry/rollcall/client/internal/httpmode"
	"github.com/rollcall-registry/rollcall/client/internal/wire"
)

// link is the transport that is used, with its session.
type link struct {
	transport wire.Transport
	session   wire.Session
}

// carrier is a transport that runs.
type carrier struct {
	client    *Client
	transport wire.Transport
	stop      context.CancelFunc
	done      chan struct{}

	mu      sync.Mutex
	session *wire.Session // nil while it has none
	cause   error         // why
}

// The times of choosing a protocol.
const (
	// probeHTTP is how long gRPC is tried alone.
	probeHTTP = time.Second
	// budget is how long gRPC may take before HTTP is used if that works.
	budget = 3 * time.Second
	// patience is the same for a client that was connected over gRPC before: a
	// server that restarts is worth waiting for.
	patience = 10 * time.Second
	// retryGRPC is how often gRPC is tried while HTTP is used.
	retryGRPC = time.Minute
	// handover is how long moving to another protocol may take before the old one
	// is left all the same.
	handover = 10 * time.Second
)

// run starts a transport.
func (c *Client) run(ctx context.Context, t wire.Transport) *carrier {
	ctx, stop := context.WithCancel(ctx)
	k := &carrier{client: c, transport: t, stop: stop, done: make(chan struct{})}
	c.running.Go(func() {
		defer close(k.done)
		_ = t.Run(ctx, k) // ends with ctx
	})
	return k
}

func (k *carrier) up() *wire.Session {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.session
}

// failed reports whether the transport has said that it cannot connect. To a server that
// is starting it can, soon.
func (k *carrier) failed() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.session == nil && k.cause != nil && wire.KindOf(k.cause) != wire.NotReady
}

// Connected is of wire.Events.
func (k *carrier) Connected(s wire.Session) {
	k.mu.Lock()
	k.session, k.cause = &s, nil
	k.mu.Unlock()
	k.client.poke()
}

// Disconnected is of wire.Events.
func (k *carrier) Disconnected(cause error) {
	k.mu.Lock()
	k.session, k.cause = nil, cause
	k.mu.Unlock()
	k.client.failed(cause)
	k.client.poke()
}

// Settle waits until the client goes by what it was told last of sessions, or the
// transport has ended. It is for package clienttest, and not called while the client calls
// a function of the user.
func (k *carrier) Settle() {
	for {
		changed := k.client.changes.next()
		s, l := k.up(), k.client.link.Load()
		if s == nil && l == nil || s != nil && l != nil && s.ID == l.session.ID {
			return
		}
		select {
		case <-changed:
		case <-k.done:
			return
		}
	}
}

// Pushed is of wire.Events.
func (k *carrier) Pushed(l wire.List) { k.client.pushed(l) }

// ServicesChanged is of wire.Events.
func (k *carrier) ServicesChanged(s wire.ServicesChange) { k.client.servicesChanged(s) }

// Dropped is of wire.Events.
func (k *carrier) Dropped(reason string) { k.client.cfg.metrics.Dropped(reason) }

// poke makes connect look at the carriers.
func (c *Client) poke() {
	select {
	case c.signal <- struct{}{}:
	default: // it will look anyway
	}
}

// failed notes what went wrong last.
func (c *Client) failed(cause error) {
	if cause != nil {
		err := opError("connect", Service{}, cause)
		c.lastError.Store(&err)
	}
}

// connect keeps the client connected until ctx ends.
func (c *Client) connect(ctx context.Context) {
	defer c.use(nil)
	if c.servers != nil {
		if err := c.firstServers(ctx); err != nil {
			return
		}
	}
	switch {
	case c.cfg.transport != nil:
		c.one(ctx, c.cfg.transport)
	case c.cfg.protocol == HTTP:
		c.one(ctx, c.newHTTP())
	case c.cfg.protocol == GRPC:
		c.one(ctx, c.newGRPC())
	default:
		(&chooser{client: c, limit: budget}).choose(ctx)
	}
}

// firstServers asks for the list of servers until there is one.
func (c *Client) firstServers(ctx context.Context) error {
	for n := 1; ; n++ {
		err := c.refresh(ctx)
		if err == nil {
			return nil
		}
		c.failed(&wire.Error{Kind: wire.NotConnected, Err: err})
		c.changes.send()
		c.wakeAll()
		select {
		case <-time.After(c.cfg.backoff.Delay(n)):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// one uses one transport.
func (c *Client) one(ctx context.Context, t wire.Transport) {
	k := c.run(ctx, t)
	for {
		c.use(k)
		select {
		case <-c.signal:
		case <-ctx.Done():
			return
		}
	}
}

// use makes a carrier the one that is used; nil for none. If its session is another
// one than before, all that is wanted is asked of it. Only connect calls it.
func (c *Client) use(k *carrier) {
	var next *link
	if k != nil {
		if s := k.up(); s != nil {
			next = &link{k.transport, *s}
		}
	}
	before := c.link.Load()
	same := before != nil && next != nil && before.session.ID == next.session.ID && before.transport == next.transport
	if same {
		c.link.Store(next) // the server may be another one
		if before.session != next.session {
			c.changes.send()
		}
		return
	}
	c.tell(before, next) // first, so that nothing is counted of a session before it is
	c.link.Store(next)
	c.wakeAll() // also while there is still none: who waits may fall back to the disk
	c.changes.send()
}

// tell logs and counts that a link takes the place of another; nil for none.
func (c *Client) tell(before, next *link) {
	cause := *c.lastError.Load()
	switch {
	case next != nil:
		p := publicProtocol(next.session.Protocol)
		c.journal.Info("connected", "server", next.session.Server, "protocol", p.String())
		if before != nil {
			c.cfg.metrics.Disconnected(nil)
		}
		c.cfg.metrics.Connected(next.session.Server, p)
	case before == nil: // still not
	case c.isClosed():
		c.cfg.metrics.Disconnected(ErrClosed)
	default:
		c.journal.Warn("disconnected", "err", cause)
		c.cfg.metrics.Disconnected(cause)
	}
}

// wakeAll makes the engine look at all that is wanted.
func (c *Client) wakeAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.publications {
		p.job.Wake()
	}
	for _, r := range c.persistent {
		r.job.Wake()
	}
	for _, e := range c.entries {
		e.job.Wake()
	}
	for _, p := range c.patterns {
		p.job.Wake()
	}
}

func publicProtocol(p wire.Protocol) Protocol {
	if p == wire.HTTP {
		return HTTP
	}
	return GRPC
}

func (c *Client) callerConfig() httpmode.CallerConfig {
	return httpmode.CallerConfig{
		Servers: c.servers, Auth: c.auth, Timeout: c.cfg.timeout, ContextPath: c.cfg.contextPath,
		AppName: c.cfg.appName, TLS: c.cfg.tls, Dial: c.cfg.dial,
	}
}

// overHTTP returns a transport over HTTP.
func (c *Client) overHTTP() wire.Transport {
	return httpmode.New(httpmode.Config{
		CallerConfig: c.callerConfig(), Backoff: c.cfg.backoff, Logger: c.logger, UDP: c.cfg.udp, LocalIP: c.cfg.localIP,
	})
}
