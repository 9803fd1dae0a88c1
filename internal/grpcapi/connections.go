package grpcapi

import (
	"cmp"
	"context"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rollcall-registry/rollcall/api/grpcv2"
	"github.com/rollcall-registry/rollcall/internal/naming"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// Connections returns the registered clients, sorted by ID.
func (a *API) Connections() []naming.Connection {
	var list []naming.Connection
	now := a.core.Now()
	for _, c := range a.snapshot() {
		if who := c.identity.Load(); who != nil {
			list = append(list, c.describe(who, now))
		}
	}
	slices.SortFunc(list, func(a, b naming.Connection) int { return strings.Compare(string(a.ID), string(b.ID)) })
	return list
}

// Connection returns a registered client; ok is false when there is none of that
// ID.
func (a *API) Connection(id registry.ClientID) (conn naming.Connection, ok bool) {
	c := a.client(id)
	if c == nil {
		return conn, false
	}
	who := c.identity.Load()
	if who == nil {
		return conn, false
	}
	return c.describe(who, a.core.Now()), true
}

func (c *client) describe(who *identity, now registry.Instant) naming.Connection {
	conn := naming.Connection{
		ID: c.id, Peer: c.peer, IP: who.ip, Version: who.version, App: who.app, Module: who.module, Tenant: who.tenant,
		Labels: make(map[string]string, len(who.labels)), Since: c.since.Wall,
		LastActive: now.Wall - c.silence(now).Milliseconds(),
	}
	for _, l := range who.labels {
		conn.Labels[l.name] = l.value
	}
	conn.Untold, conn.Lag = c.lag(now)
	return conn
}

// lag returns of how many services the client has not acknowledged the newest
// state, and for how long the oldest of their changes has been waiting.
func (c *client) lag(now registry.Instant) (untold int, oldest time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, w := range c.watches {
		since, waiting := w.waiting()
		if waiting {
			untold++
		}
		if since.Wall != 0 {
			oldest = max(oldest, now.Lease-since.Lease)
		}
	}
	return untold, oldest
}

// waiting reports whether the client has not acknowledged the newest state of the
// service, and since when the oldest change in it has been waiting; zero when it
// tells of none. The caller holds the mutex of the client.
func (w *watch) waiting() (since registry.Instant, waiting bool) {
	if w.sent != 0 && w.told.Wall != 0 {
		return w.told, true
	}
	return w.changed, w.queued || w.sent != 0
}

// Waiting reports whether a subscriber has not acknowledged the newest state of its
// service, as [naming.Waiting] has it.
func (a *API) Waiting(sub *registry.Subscriber) (since registry.Instant, waiting bool) {
	c := a.client(sub.Client)
	if c == nil {
		return registry.Instant{}, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if w := c.watches[sub.Service]; w != nil && w.sub == sub {
		return w.waiting()
	}
	return registry.Instant{}, false
}

// Agents counts the registered clients by what they call themselves.
func (a *API) Agents() map[string]int {
	a.mu.RLock()
	defer a.mu.RUnlock()
	counts := map[string]int{}
	for _, c := range a.clients {
		if who := c.identity.Load(); who != nil {
			counts[who.version]++
		}
	}
	return counts
}

// Reset asks a client to go to the server at redirect, or to any other when that
// is empty or no address, and waits until it says that it will, for three seconds
// at most. It reports whether there is such a client. The connection is the
// client's to close.
func (a *API) Reset(ctx context.Context, id registry.ClientID, redirect string) bool {
	c := a.client(id)
	if c == nil || c.identity.Load() == nil {
		return false
	}
	host, port, err := net.SplitHostPort(redirect)
	if err != nil {
		host, port = "", ""
	}
	answered := make(chan struct{})
	asked := c.ask(&order{
		kind:    grpcv2.ConnectReset,
		write:   func(b []byte, id uint64) []byte { return grpcv2.AppendConnectReset(b, id, host, port) },
		timeout: resetTimeout,
		settled: func(outcome) { close(answered) },
	})
	if !asked {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, resetTimeout)
	defer cancel()
	select {
	case <-answered:
	case <-ctx.Done():
	}
	return true
}

// shed is a wish to have at most so many clients.
type shed struct {
	target   int
	redirect string
}

// Shed asks as many clients to go as are above target, [shedAtOnce] at a time and in
// the background; a target below 1 asks nobody. A later call takes the place of
// one that has not begun.
func (a *API) Shed(target int, redirect string) {
	if target < 1 {
		return
	}
	select {
	case <-a.shedding:
	default:
	}
	select {
	case a.shedding <- shed{target, redirect}:
	default: // another call was quicker, and is as good
	}
}

// shedClients asks clients to go when that is wished, until ctx ends.
func (a *API) shedClients(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case s := <-a.shedding:
			a.shedDown(ctx, s)
		}
	}
}

// shedAtOnce bounds the clients that are asked to go and have not answered yet. Those
// who answer do so in milliseconds, so that the others are asked without delay, and
// as many that hang cost three seconds together.
const shedAtOnce = 256

// shedDown asks those who came last to go, and returns when all have answered or
// have had their time.
func (a *API) shedDown(ctx context.Context, s shed) {
	list := a.Connections()
	surplus := len(list) - s.target
	if surplus <= 0 {
		return
	}
	slices.SortFunc(list, func(a, b naming.Connection) int { return cmp.Compare(b.Since, a.Since) })
	a.log.Info("clients are asked to go to another server", "clients", surplus, "redirect", s.redirect)
	var asked sync.WaitGroup
	defer asked.Wait()
	room := make(chan struct{}, shedAtOnce)
	for _, c := range list[:surplus] {
		select {
		case <-ctx.Done():
			return
		case room <- struct{}{}:
		}
		asked.Go(func() {
			a.Reset(ctx, c.ID, s.redirect)
			<-room
		})
	}
}
