package push

import (
	"context"
	"runtime"
	"sync"
	"time"

	"github.com/rollcall-registry/rollcall/internal/registry"
)

const (
	// maxWorkers bounds how many services are pushed at once, so that one large
	// service does not hold up the others.
	maxWorkers = 4
	// drainLimit bounds the last pushes when the server stops.
	drainLimit = 2 * time.Second
)

// Run pushes until ctx ends, then pushes what is pending at once, for at most
// two seconds, and returns nil. While the switch pushEnabled is off, nothing is
// pushed and changes are kept. It may run once.
func (p *Pusher) Run(ctx context.Context) error {
	p.mu.Lock()
	p.timer = time.AfterFunc(0, p.signal)
	p.mu.Unlock()

	var workers sync.WaitGroup
	for range min(maxWorkers, runtime.GOMAXPROCS(0)) {
		workers.Go(func() { p.work(ctx) })
	}
	workers.Wait()

	p.mu.Lock()
	p.timer.Stop()
	p.timer = nil
	p.mu.Unlock()
	p.drain()
	return nil
}

// work pushes service after service until ctx ends.
func (p *Pusher) work(ctx context.Context) {
	for ctx.Err() == nil {
		if s := p.next(); s != nil {
			p.push(s)
			continue
		}
		select {
		case <-ctx.Done():
		case <-p.wake:
		}
	}
}

// next takes the first service of the queue, nil when there is none.
func (p *Pusher) next() *service {
	if !p.store.Switches().PushEnabled {
		return nil
	}
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	for a := p.alarms.due(now); a != nil; a = p.alarms.due(now) {
		a.service.ring(a)
		p.consider(a.service)
	}
	p.arm()
	if len(p.queue) == 0 {
		return nil
	}
	s := p.queue[0]
	p.queue[0] = nil
	p.queue = p.queue[1:]
	if len(p.queue) > 0 {
		p.signal()
	}
	return s
}

// push pushes what there is to push of a service.
func (p *Pusher) push(s *service) {
	// One command may have several events, and the first of them got us here. This
	// takes the lock that the command holds, so the others are there as well.
	p.store.HasSubscribers(s.key)

	j := p.begin(s)
	subs := p.subscribers(&j)
	var cost time.Duration
	if len(subs) > 0 {
		cost = j.late + p.hand(&j, subs)
	}
	p.settle(&j, cost)
}

func (p *Pusher) begin(s *service) job {
	p.mu.Lock()
	defer p.mu.Unlock()
	j := s.begin(time.Now())
	if j.all {
		p.pending--
	}
	return j
}

// hand reads the state and hands it to the senders. It returns what that cost.
func (p *Pusher) hand(j *job, subs []*registry.Subscriber) (cost time.Duration) {
	start := time.Now()
	key := j.service.key
	view := p.store.View(key)
	if j.all {
		waited := p.clock.Now().Lease - j.changed.Lease
		p.observer.Pushed(j.changes, waited, view == nil || len(view.Instances) == 0)
	}
	var backlog time.Duration
	for _, s := range p.senders {
		// Nacos 1.x pushes no change of settings (recorded: packets_by_cause), and
		// its clients poll; those of gRPC would never learn of one.
		if j.settings && s.protocol == registry.ProtocolUDP {
			continue
		}
		if mine := ofProtocol(subs, s.protocol); len(mine) > 0 {
			backlog = max(backlog, s.Push(view, key, mine, j.changed))
		}
	}
	return time.Since(start) + backlog
}

// subscribers returns whom to tell. It must come after [service.begin]: one who
// subscribes later reads the change with his first look-up.
func (p *Pusher) subscribers(j *job) []*registry.Subscriber {
	key := j.service.key
	if j.all {
		return p.store.Audience(key)
	}
	var subs []*registry.Subscriber
	for _, t := range j.targets {
		if sub := p.store.Subscriber(key, t.key); sub != nil {
			subs = append(subs, sub)
		}
	}
	return subs
}

// ofProtocol returns those who are told by a protocol, without those who must
// not be sent to. It does not copy when that is everybody.
func ofProtocol(subs []*registry.Subscriber, protocol registry.Protocol) []*registry.Subscriber {
	wanted := func(s *registry.Subscriber) bool { return s.Protocol == protocol && s.Refused == "" }
	n := 0
	for n < len(subs) && wanted(subs[n]) {
		n++
	}
	if n == len(subs) {
		return subs
	}
	mine := append([]*registry.Subscriber(nil), subs[:n]...)
	for _, s := range subs[n:] {
		if wanted(s) {
			mine = append(mine, s)
		}
	}
	return mine
}

// settle ends a job: the merge window of the service begins.
func (p *Pusher) settle(j *job, cost time.Duration) {
	s := j.service
	deserted := (j.all || j.left) && !p.store.HasSubscribers(s.key)
	p.mu.Lock()
	defer p.mu.Unlock()
	s.busy = false
	if j.all {
		s.length = p.cfg.nextWindow(s.length, j.commands, cost)
		s.window = &alarm{at: time.Now().Add(s.length), service: s}
		p.setAlarm(s.window)
	}
	// One who joined since the look may have come after it.
	if deserted && s.joined == j.joined {
		s.watched = false
		p.drop(s)
	}
	p.consider(s)
}

// drop forgets a change that nobody is left to be told of. It is called with p.mu
// held.
func (p *Pusher) drop(s *service) {
	if n, _, _ := s.takeChanges(); n > 0 {
		p.pending--
	}
}

// drain pushes every change that is left, whatever its window. The workers have
// ended.
func (p *Pusher) drain() {
	if !p.store.Switches().PushEnabled {
		return
	}
	deadline := time.Now().Add(drainLimit)
	left := p.abandonWindows()
	for i, s := range left {
		if time.Now().After(deadline) {
			p.log.Warn("stopped before every change was pushed", "services", len(left)-i)
			return
		}
		p.push(s)
	}
}

// abandonWindows takes every service with a change or a due push.
func (p *Pusher) abandonWindows() []*service {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.queue = nil
	var left []*service
	for _, s := range p.services {
		s.window = nil
		if s.actionable() {
			s.busy, s.queuedAt = true, time.Now()
			left = append(left, s)
		}
	}
	return left
}
