package workload

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rollcall-registry/rollcall/internal/bench/fleet"
	"github.com/rollcall-registry/rollcall/internal/bench/target"
)

// client is a program that registers an instance and subscribes to a service, as
// SDKs do it: over gRPC with one connection for both, over HTTP with beats and a
// socket. Its methods are for one goroutine at a time.
type client struct {
	env      *Env
	instance fleet.Instance
	follows  fleet.Service
	watch    *watch

	session    target.Session
	subscriber target.Subscriber
	up         atomic.Bool // registered and subscribed, as far as it knows
}

// crowd are the clients of a fleet, one for each instance. Each follows the service
// next to its own.
func (e *Env) crowd(f *fleet.Fleet, w *watch) []*client {
	list := make([]*client, f.Len())
	for n := range list {
		i := f.Instance(n)
		list[n] = &client{env: e, instance: i, follows: f.Service(i.N + 1), watch: w}
	}
	return list
}

// join connects, registers and subscribes.
func (c *client) join(ctx context.Context) (err error) {
	c.leave()
	c.subscriber, err = c.env.Target.NewSubscriber(ctx, c.env.Config.Protocol, c.watch.listener(c.follows))
	if err != nil {
		return err
	}
	if c.session = c.subscriber.Session(); c.session == nil {
		if c.session, err = c.env.Target.Dial(ctx, c.env.Config.Protocol); err != nil {
			return err
		}
	}
	if err := c.session.Register(c.instance); err != nil {
		return err
	}
	if err := c.subscriber.Subscribe(c.follows, c.session); err != nil {
		return err
	}
	c.up.Store(true)
	return nil
}

// leave closes what is open, without a word to the server.
func (c *client) leave() {
	c.up.Store(false)
	if c.subscriber != nil {
		c.subscriber.Close()
		c.subscriber = nil
	}
	if c.session != nil {
		c.session.Close()
		c.session = nil
	}
}

// The pauses between the attempts of a client to come back. Source: nacos-client 2.x,
// RpcClient.reconnect, which begins with 100 ms and adds as much each time.
const (
	firstRetry = 100 * time.Millisecond
	lastRetry  = 5 * time.Second
)

// rejoin joins again, with connections that end with ctx, and tries until it succeeds
// or trying ends.
func (c *client) rejoin(ctx, trying context.Context) error {
	for wait := firstRetry; ; wait = min(wait+firstRetry, lastRetry) {
		err := c.join(ctx)
		if err == nil {
			return nil
		}
		if sleep(trying, wait) != nil {
			return fmt.Errorf("not back in time: %w", err)
		}
	}
}

// live keeps the client, which has joined, registered and subscribed until ctx ends,
// through whatever happens to the server.
func (c *client) live(ctx context.Context) {
	beat := time.NewTicker(beatInterval)
	defer beat.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-c.subscriber.Ended():
			if c.rejoin(ctx, ctx) != nil { // ctx has ended, and nothing may be connected
				return
			}
			continue
		case <-beat.C:
		}
		c.beat(n)
	}
}

// beat says that the client is there, and over HTTP looks up every other time.
func (c *client) beat(n int) {
	err := c.session.Beat(c.instance)
	if errors.Is(err, target.ErrUnknown) {
		err = c.session.Register(c.instance)
	}
	if err == nil && n%2 == 0 {
		err = c.subscriber.Renew(c.follows, c.session)
	}
	c.up.Store(err == nil)
}

// sleep waits for d or the end of ctx, whose error it returns.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// all calls f for all clients at the same time, and returns the first error.
func all(list []*client, f func(*client) error) error {
	errs := make([]error, len(list))
	var wg sync.WaitGroup
	for n, c := range list {
		wg.Go(func() { errs[n] = f(c) })
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// dismiss has all clients leave, and deregisters what stays without connection.
func (e *Env) dismiss(ctx context.Context, list []*client) {
	_ = all(list, func(c *client) error {
		if e.Config.Protocol == target.HTTP && ctx.Err() == nil && c.session != nil {
			_ = c.session.Deregister(c.instance) // what is left goes by itself
		}
		c.leave()
		return nil
	})
}

// watch looks at everything that subscribers are told, for instances that are missing
// although their clients live.
type watch struct {
	whole int         // how many instances each service has
	on    atomic.Bool // whether what is missing counts

	empty   atomic.Int64 // lists without any instance
	removed atomic.Int64 // instances that vanished from one list to the next
	sick    atomic.Int64 // instances that became unhealthy from one list to the next
}

// watcher is the view of one subscriber.
type watcher struct {
	*watch
	service fleet.Service
	mu      sync.Mutex
	last    target.Seen
}

func (w *watch) listener(s fleet.Service) *watcher {
	return &watcher{watch: w, service: s, last: target.Seen{Hosts: w.whole, Healthy: w.whole}}
}

// Told implements [target.Listener].
func (w *watcher) Told(s target.Seen) {
	w.mu.Lock()
	before := w.last
	w.last = s
	w.mu.Unlock()
	if !w.on.Load() {
		return
	}
	if s.Hosts == 0 {
		w.empty.Add(1)
	}
	w.removed.Add(int64(max(before.Hosts-s.Hosts, 0)))
	w.sick.Add(int64(max((before.Healthy-s.Healthy)-(before.Hosts-s.Hosts), 0)))
}

// Acked implements [target.Listener].
func (*watcher) Acked(target.Seen) {}
