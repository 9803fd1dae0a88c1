package rollcall

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rollcall-registry/rollcall/client/internal/auth"
	"github.com/rollcall-registry/rollcall/client/internal/httpmode"
	"github.com/rollcall-registry/rollcall/client/internal/quiet"
	"github.com/rollcall-registry/rollcall/client/internal/schedule"
	"github.com/rollcall-registry/rollcall/client/internal/servers"
	"github.com/rollcall-registry/rollcall/client/internal/wire"
)

// Client is the connection of a program to the registry. One is enough for all
// services and namespaces; several do not share anything.
type Client struct {
	cfg     config
	logger  *slog.Logger
	journal *slog.Logger // the same for changes of state, which are no repetitions
	servers *servers.List
	auth    *auth.Provider
	queue   *schedule.Queue
	plain   wire.Transport // for what needs no session; not run
	// newGRPC and newHTTP make transports, each for one run.
	newGRPC, newHTTP func() wire.Transport
	disk             *diskCache
	counts           counts

	stop      context.CancelCauseFunc
	running   sync.WaitGroup
	closeOnce sync.Once
	closing   chan struct{} // closed by Close
	ended     chan struct{} // closed when all has ended, after Close

	link      atomic.Pointer[link]  // nil while not connected
	lastError atomic.Pointer[error] // never nil inside
	changes   broadcast             // of the status
	signal    chan struct{}         // capacity 1: a transport connected or lost its server

	mu           sync.Mutex
	publications map[wire.Service]*publication
	persistent   map[instanceID]*Registration
	entries      map[wire.Service]*entry
	flights      map[wire.Service]*flight
	patterns     map[wire.Pattern]*pattern
}

// errNotYet is why a client is not connected that has not tried.
var errNotYet = fmt.Errorf("%w: no server has been tried", ErrNotConnected)

// workers is how many operations of the engine run at once.
const workers = 16

// New checks the options and starts a client, which connects in the background. The
// error tells all that is wrong with the options; that no server can be reached is
// told by [Client.Ready] and by the operations.
func New(options ...Option) (*Client, error) {
	c, err := build(options)
	if err != nil {
		return nil, err
	}
	c.start()
	return c, nil
}

// build makes a client that does nothing yet.
func build(options []Option) (*Client, error) {
	cfg, err := configOf(options)
	if err != nil {
		return nil, err
	}
	said := quiet.Guard(cfg.logger.Handler()).WithAttrs([]slog.Attr{slog.String("component", "rollcall")})
	c := &Client{
		cfg:          cfg,
		logger:       slog.New(quiet.New(said)),
		journal:      slog.New(said),
		queue:        schedule.New(workers),
		closing:      make(chan struct{}),
		ended:        make(chan struct{}),
		signal:       make(chan struct{}, 1),
		publications: make(map[wire.Service]*publication),
		persistent:   make(map[instanceID]*Registration),
		entries:      make(map[wire.Service]*entry),
		flights:      make(map[wire.Service]*flight),
		patterns:     make(map[wire.Pattern]*pattern),
	}
	c.lastError.Store(new(errNotYet))
	c.newGRPC, c.newHTTP = c.overGRPC, c.overHTTP
	c.guardAll()
	if cfg.transport != nil {
		c.plain = cfg.transport
	} else {
		c.servers = servers.New(c.cfg.source, cfg.ports)
		c.auth = auth.New(c.cfg.credentials, httpmode.NewLogin(c.callerConfig()))
		c.plain = c.overHTTP()
	}
	c.disk = newDiskCache(c)
	return c, nil
}

// start starts what runs as long as the client.
func (c *Client) start() {
	ctx, stop := context.WithCancelCause(context.Background())
	c.stop = stop
	c.running.Go(func() { c.queue.Run(ctx) })
	c.running.Go(func() { c.connect(ctx) })
	if c.servers != nil && !c.cfg.static {
		c.queue.Job(schedule.High, c.refreshServers).Within(endpointRefresh)
	}
	c.disk.start()
}

// refresh asks for the list of servers.
func (c *Client) refresh(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.timeout)
	defer cancel()
	return c.servers.Refresh(ctx)
}

// refreshServers asks for the list of servers again.
func (c *Client) refreshServers(ctx context.Context) time.Duration {
	if err := c.refresh(ctx); err != nil {
		c.logger.Warn("the list of servers stays as it was", "err", err)
	}
	return endpointRefresh
}

// Ready waits until the client is connected and what was asked of it so far has been
// tried. When ctx ends before, the error has the last cause as well.
func (c *Client) Ready(ctx context.Context) error {
	for {
		changed := c.changes.next()
		switch {
		case c.isClosed():
			return opError("ready", Service{}, ErrClosed)
		case c.link.Load() != nil && c.tried():
			if _, err := c.auth.Fields(ctx, ""); err != nil {
				return opError("ready", Service{}, err)
			}
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return opError("ready", Service{}, because(ctx, *c.lastError.Load()))
		}
	}
}

// tried reports whether all that is wanted has been tried on the present session, or at
// all if no session carries it.
func (c *Client) tried() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.link.Load()
	if l == nil {
		return false
	}
	for _, p := range c.publications {
		if p.answered != l.session.ID {
			return false
		}
	}
	for _, e := range c.entries {
		if e.tried != l.session.ID {
			return false
		}
	}
	for _, p := range c.patterns {
		if p.tried != l.session.ID {
			return false
		}
	}
	for _, r := range c.persistent {
		if !r.removed && r.goodVersion == 0 && r.failures == 0 && !r.refused {
			return false
		}
	}
	return true
}

// isClosed reports whether Close was called. What is added under mu while it was not, is
// ended by Close.
func (c *Client) isClosed() bool { return isClosed(c.closing) }

func isClosed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

// Shutdown deregisters all ephemeral instances that were registered through the
// client, as [Registration.Deregister] does, and closes it. If ctx ends before, it closes
// all the same, and the error is [ErrMayRemain] as well.
func (c *Client) Shutdown(ctx context.Context) error {
	c.mu.Lock()
	var all []*Registration
	for _, p := range c.publications {
		all = slices.AppendSeq(all, maps.Values(p.wanted))
		all = append(all, p.leaving...)
	}
	c.mu.Unlock()
	c.remove(all...) // together, so that one request takes several
	errs := make([]error, len(all))
	var wg sync.WaitGroup
	for n, r := range all {
		wg.Go(func() { errs[n] = r.Deregister(ctx) })
	}
	wg.Wait()
	return errors.Join(append(errs, c.Close())...)
}

// closeTime is how long Close waits for what the client started.
const closeTime = time.Second

// Close ends the client within a second, from any state, and waits for what it
// started, the last changes being written to the disk cache among it, but not for
// functions of the user that still run. Ephemeral instances go with the gRPC connection;
// over HTTP they become unhealthy and disappear for want of beats, unless
// [Client.Shutdown] is used. Closing again does nothing.
func (c *Client) Close() error {
	timer := time.NewTimer(closeTime)
	defer timer.Stop()
	c.closeOnce.Do(func() {
		close(c.closing)
		c.stop(ErrClosed)
		go c.end()
	})
	select {
	case <-c.ended:
		return nil
	case <-timer.C:
		return fmt.Errorf("close: after %v, a function that was passed to the client has not returned, or the disk cache is not written", closeTime)
	}
}

// end ends all that the client has, and waits for it. A function of the user that hangs
// may hold locks that it takes.
func (c *Client) end() {
	c.mu.Lock()
	var watches []*Watch
	for _, e := range c.entries {
		watches = append(watches, e.list()...)
	}
	var patterns []*ServiceWatch
	for _, p := range c.patterns {
		patterns = append(patterns, p.all()...)
	}
	for _, f := range c.flights {
		f.cancel()
	}
	c.mu.Unlock()
	for _, w := range watches {
		w.end()
	}
	for _, w := range patterns {
		w.end()
	}
	c.endRegistrations()
	c.changes.send()
	c.disk.flush()
	c.running.Wait() // nothing is started any more
	if h, ok := c.plain.(*httpmode.Transport); ok {
		h.Release()
	}
	close(c.ended)
}

// complete fills in the defaults of a service and returns what is wrong with its name.
func (c *Client) complete(s Service) (Service, error) {
	s.Namespace = cmp.Or(s.Namespace, c.cfg.namespace)
	s.Group = cmp.Or(s.Group, c.cfg.group)
	return s, s.check()
}

// broadcast wakes all who wait.
type broadcast struct {
	mu sync.Mutex
	ch chan struct{}
}

// next returns a channel that is closed by the next send.
func (b *broadcast) next() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ch == nil {
		b.ch = make(chan struct{})
	}
	return b.ch
}

func (b *broadcast) send() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ch != nil {
		close(b.ch)
		b.ch = nil
	}
}
