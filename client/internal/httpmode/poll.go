package httpmode

import (
	"context"
	"math/rand/v2"
	"net/netip"
	"sync"
	"time"

	"github.com/rollcall-registry/rollcall/api/grpcv2"
	"github.com/rollcall-registry/rollcall/client/internal/schedule"
	"github.com/rollcall-registry/rollcall/client/internal/servers"
	"github.com/rollcall-registry/rollcall/client/internal/wire"
)

// The schedule of polls. Source: UpdateTask of Nacos clients, which begins with 1 s,
// follows the cacheMillis of the answer, and doubles 1 s after failures up to 60 s.
const (
	firstPoll    = time.Second
	failedPoll   = time.Second
	slowestPoll  = time.Minute
	maxPollFails = 6
	// unsaid is the interval when the server does not say one.
	unsaid = 5 * time.Second
	// renewal is how long a server keeps a subscription to pushes.
	renewal = 10 * time.Second
	// soonest is the least time between two polls of a service that are due to
	// packets from strangers.
	soonest = time.Second
)

// subscription is one service that is polled.
type subscription struct {
	transport *Transport
	service   wire.Service
	job       *schedule.Job

	mu      sync.Mutex
	fails   int
	polled  time.Time
	pushed  bool       // a push came since the last poll
	from    netip.Addr // of who answered the last poll; invalid if that is not known
	stopped bool
}

// Subscribe asks for a service and goes on asking.
func (t *Transport) Subscribe(ctx context.Context, s wire.Service) (wire.List, error) {
	d, err := t.connected()
	if err != nil {
		return wire.List{}, err
	}
	list, from, err := t.query(ctx, d, s, t.target(ctx, d))
	if err != nil {
		return wire.List{}, err
	}
	t.mu.Lock()
	sub := t.subscriptions[s]
	if sub == nil {
		sub = &subscription{transport: t, service: s}
		sub.job = t.queue.Job(schedule.Normal, sub.run)
		t.subscriptions[s] = sub
	}
	t.mu.Unlock()
	sub.mu.Lock()
	sub.polled, sub.from, sub.pushed = time.Now(), from, false
	sub.mu.Unlock()
	sub.job.Within(firstPoll)
	return list, nil
}

// Unsubscribe ends the polls. The server forgets the subscription by itself.
func (t *Transport) Unsubscribe(_ context.Context, s wire.Service) error {
	t.mu.Lock()
	sub := t.subscriptions[s]
	delete(t.subscriptions, s)
	t.mu.Unlock()
	if sub != nil {
		sub.job.Stop()
		sub.mu.Lock()
		sub.stopped = true
		sub.mu.Unlock()
	}
	return nil
}

// target returns where pushes are to be sent.
func (t *Transport) target(ctx context.Context, d dialect) udpTarget {
	t.mu.Lock()
	udp := t.udp
	t.mu.Unlock()
	if udp == nil || !d.pushes() {
		return udpTarget{ip: t.cfg.LocalIP}
	}
	return udpTarget{ip: t.address(ctx), port: udp.port()}
}

// home is the client's address as it was found for a server.
type home struct {
	server servers.Server
	ip     string
	found  time.Time
}

// homeAge is how long the client's address is believed, since a machine may move to
// another network.
const homeAge = 30 * time.Second

// address returns the client's address; empty if there is no way to a server.
func (t *Transport) address(ctx context.Context) string {
	round := t.caller.order()
	if t.cfg.LocalIP != "" || len(round) == 0 {
		return t.cfg.LocalIP
	}
	h := t.home.Load()
	if h == nil || h.server != round[0] || time.Since(h.found) > homeAge {
		ip, err := servers.LocalIP(ctx, round[0])
		if err != nil {
			return ""
		}
		h = &home{round[0], ip, time.Now()}
		t.home.Store(h)
	}
	return h.ip
}

// run polls once. What comes is discarded if a push was faster: the poll has then
// done its work by renewing the subscription, and may have been answered by another
// server, which has not heard of the change yet.
func (s *subscription) run(ctx context.Context) time.Duration {
	s.mu.Lock()
	s.pushed, s.polled = false, time.Now()
	s.mu.Unlock()
	d, err := s.transport.connected()
	if err != nil {
		return schedule.Idle // woken when there is a server
	}
	var list wire.List
	var from netip.Addr
	list, from, err = s.transport.query(ctx, d, s.service, s.transport.target(ctx, d))
	if ctx.Err() != nil {
		return schedule.Idle
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return schedule.Idle
	}
	if err != nil {
		s.fails = min(s.fails+1, maxPollFails)
		return min(failedPoll<<s.fails, slowestPoll)
	}
	s.fails = 0
	moved := s.from != from
	s.from = from
	if !s.pushed || moved {
		s.transport.hand(list)
	}
	return spread(pollInterval(list.Raw, d.pushes()))
}

// spread shortens an interval by up to a tenth, so that polls which began together do
// not stay together.
func spread(d time.Duration) time.Duration { return d - rand.N(d/10+1) }

// hand gives a list to the engine.
func (t *Transport) hand(list wire.List) {
	t.mu.Lock()
	events := t.events
	t.mu.Unlock()
	if events != nil {
		events.Pushed(list)
	}
}

// pollInterval returns how long the server wants to be left alone.
func pollInterval(raw []byte, pushes bool) time.Duration {
	var info grpcv2.ServiceInfo
	if grpcv2.ReadServiceInfo(raw, &info, nil) != nil || info.CacheMillis <= 0 {
		return unsaid
	}
	d := time.Duration(min(info.CacheMillis, slowestPoll.Milliseconds())) * time.Millisecond
	if pushes {
		d = min(d, renewal)
	}
	return max(d, soonest)
}

// trusts reports whether pushes from an address belong to the answers of the polls: the
// clocks of two servers cannot be compared.
func (s *subscription) trusts(ip netip.Addr) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.from.IsValid() || s.from == ip.Unmap()
}

// soon polls before its time, because something may have changed.
func (s *subscription) soon() {
	s.mu.Lock()
	wait := max(soonest-time.Since(s.polled), 0)
	s.mu.Unlock()
	s.job.Within(wait)
}
