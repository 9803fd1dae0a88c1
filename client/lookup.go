package rollcall

import (
	"context"
	"errors"
	"time"

	"github.com/rollcall-registry/rollcall/client/internal/wire"
)

// lookupTime bounds a look-up whose context has no deadline. Nacos clients hold a
// look-up back for as long while another one of the same service is on its way.
const lookupTime = 5 * time.Second

var errNoAnswer = errors.New("no answer so far")

// flight is a look-up that several callers wait for.
type flight struct {
	waiting int // guarded by Client.mu
	cancel  context.CancelFunc
	done    chan struct{}
	list    wire.List
	err     error
}

// Lookup asks a server for the state of a service now. Look-ups of one service at the
// same time share one request. If ctx has no deadline, the look-up ends after 5 s.
// While the failover switch is on, its data is returned; while no server is connected,
// though one has been tried, that of the disk cache at once, if it has the service.
func (c *Client) Lookup(ctx context.Context, s Service, options ...QueryOption) (*Snapshot, error) {
	var f filter
	faults := applyEach(options, func(o QueryOption) { o.applyQuery(&f) })
	s, named := c.complete(s)
	if err := errors.Join(append(f.faults, faults, named)...); err != nil {
		return nil, opError("lookup", s, err)
	}
	whole, err := c.lookup(ctx, s.wire())
	if err != nil {
		return nil, opError("lookup", s, err)
	}
	return f.apply(c, whole), nil
}

func (c *Client) lookup(ctx context.Context, s wire.Service) (*Snapshot, error) {
	if over := c.disk.failover(s); over != nil {
		return over, nil
	}
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, lookupTime)
		defer cancel()
	}
	list, err := c.query(ctx, s)
	v := new(view)
	switch {
	case err == nil:
		v, _, err = v.take(&list, request{own: true}, 0)
	case errors.Is(err, ErrClosed):
	case wire.KindOf(err) == wire.NotConnected:
		if raw, at, ok := c.disk.load(s); ok {
			v, err = v.fromDisk(raw, at)
		}
	}
	if err != nil {
		return nil, err
	}
	return &Snapshot{SnapshotInfo{Service: Service(s), Source: v.source(), Time: v.at, Protected: v.protected}, v.instances}, nil
}

// query asks for a service, together with all who ask for it at the moment.
func (c *Client) query(ctx context.Context, s wire.Service) (wire.List, error) {
	c.mu.Lock()
	if c.isClosed() {
		c.mu.Unlock()
		return wire.List{}, ErrClosed
	}
	f := c.flights[s]
	if f == nil {
		flying, cancel := context.WithTimeout(context.WithoutCancel(ctx), operation)
		f = &flight{cancel: cancel, done: make(chan struct{})}
		c.flights[s] = f
		c.running.Go(func() { c.fly(flying, s, f) })
	}
	f.waiting++
	c.mu.Unlock()
	defer c.land(s, f)
	for {
		changed := c.changes.next()
		if err := c.unreached(); err != nil && c.disk.has(s) {
			return wire.List{}, err
		}
		select {
		case <-f.done:
			return f.list, f.err
		case <-changed:
		case <-ctx.Done():
			last := errNoAnswer
			if c.link.Load() == nil {
				last = *c.lastError.Load()
			}
			return wire.List{}, because(ctx, &wire.Error{Kind: wire.NotConnected, Err: last})
		}
	}
}

// unreached returns why no server is connected, once one has been tried; nil before, and
// while one is.
func (c *Client) unreached() error {
	last := *c.lastError.Load()
	if c.link.Load() != nil || c.isClosed() || errors.Is(last, errNotYet) {
		return nil
	}
	return &wire.Error{Kind: wire.NotConnected, Err: last}
}

// land ends a look-up that nobody waits for any more.
func (c *Client) land(s wire.Service, f *flight) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f.waiting--; f.waiting == 0 {
		f.cancel()
		if c.flights[s] == f {
			delete(c.flights, s)
		}
	}
}

// fly makes the request of a look-up. It waits for a connection.
func (c *Client) fly(ctx context.Context, s wire.Service, f *flight) {
	defer close(f.done)
	l, err := c.linked(ctx)
	if err == nil {
		started := time.Now()
		f.list, err = l.transport.Query(ctx, s)
		c.done("lookup", s, started, err)
	}
	f.err = err
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.isClosed() && f.err != nil {
		f.err = ErrClosed
	}
	if c.flights[s] == f {
		delete(c.flights, s)
	}
}

// linked waits for a connection.
func (c *Client) linked(ctx context.Context) (*link, error) {
	for {
		changed := c.changes.next()
		if l := c.link.Load(); l != nil {
			return l, nil
		}
		if c.isClosed() {
			return nil, ErrClosed
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
