package workload

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/rollcall-registry/rollcall/internal/bench/fleet"
	"github.com/rollcall-registry/rollcall/internal/bench/load"
	"github.com/rollcall-registry/rollcall/internal/bench/target"
)

// pushKinds are the workloads of subscribers that are told of changes.
func pushKinds() []Kind {
	return []Kind{
		{
			Name: "subscribe", Summary: "subscribe to a service",
			Defaults: Config{Services: 100, Instances: 10, Connections: 64, Warmup: time.Second, Duration: 5 * time.Second},
			New:      func(e *Env) Workload { return &subscribe{Env: e} },
		},
		{
			Name: "fanout", Summary: "one change at a time, told to all subscribers of a service",
			Defaults: Config{Services: 1, Instances: 10, Subscribers: 1000, Connections: 1, Rate: 2, Duration: 10 * time.Second},
			Check:    oneAtATime, New: func(e *Env) Workload { return &publish{Env: e, wait: true} },
		},
		{
			Name: "churn", Summary: "changes of many services, each told to some subscribers",
			Defaults: Config{Services: 100, Instances: 10, Subscribers: 2000, Connections: 16, Rate: 500, Warmup: time.Second, Duration: 10 * time.Second},
			Check:    onePublisher, New: func(e *Env) Workload { return &publish{Env: e} },
		},
	}
}

// oneAtATime lets one connection do all changes: each waits until all were told of it.
func oneAtATime(c *Config) error {
	c.Connections = 1
	return nil
}

// onePublisher lets no service have two connections that change it: its changes come
// one after the other.
func onePublisher(c *Config) error {
	c.Connections = min(c.Connections, c.Services)
	return nil
}

// publish changes services, each by the one connection that looks after it, and has
// an audience that is told.
type publish struct {
	*Env
	wait bool // a unit ends when all were told, otherwise when it was answered

	fixture    *fixture
	keeper     *keeper
	beats      *pulse // of the instances that change
	publishers []target.Session
	changes    *changes
	answered   *load.Series
	audience   *audience
	last       []int64 // of each service: the revision that was answered last
	uncertain  []bool  // of each service: the change after that failed, and may have been done all the same
	lost       int
}

func (p *publish) Prepare(ctx context.Context) (err error) {
	c := &p.Config
	// The changing instance is one more, so that it is the publisher's own.
	f := p.fleet("push", c.Services, c.Instances, 1)
	p.answered = p.Rec.Series("change to answer")
	p.changes = newChanges(c.Services)
	p.last, p.uncertain = make([]int64, c.Services), make([]bool, c.Services)
	if p.publishers, err = p.dialAll(ctx, c.Connections); err != nil {
		return err
	}
	if p.fixture, err = p.hold(ctx, f); err != nil {
		return err
	}
	var changing []fleet.Instance
	for n := range c.Services {
		changing = append(changing, p.changing(n, 0))
	}
	p.beats = p.newPulse(f.Len()+c.Services, usualTimeout)
	if p.keeper, err = p.keepAlive(ctx, changing, p.beats); err != nil {
		return err
	}
	p.audience = p.newAudience(f, c.Subscribers, holders)
	p.audience.time(p.changes)
	if err := p.audience.gather(ctx); err != nil {
		return err
	}
	p.audience.keep(ctx)
	// All are told something before the clock starts: what welcomes subscribers is
	// no push of a change.
	for n := range c.Services {
		if err := p.change(n%c.Connections, n, 1); err != nil {
			return err
		}
	}
	if missing := p.missing(ctx); missing > 0 {
		return p.audience.untold(missing, "the first change")
	}
	return nil
}

// changing is the instance of a service whose revision grows.
func (p *publish) changing(service int, revision int64) fleet.Instance {
	return fleet.Instance{Service: p.fixture.fleet.Service(service), Host: p.Config.Instances, Revision: revision}
}

func (p *publish) change(worker, service int, revision int64) error {
	begun := p.Rec.Now()
	p.changes.begin(service, revision, begun)
	err := p.publishers[worker].Register(p.changing(service, revision))
	if p.uncertain[service] = err != nil; err != nil {
		return err
	}
	p.answered.Record(worker, begun, p.Rec.Now())
	p.last[service] = revision
	return nil
}

func (p *publish) Step(ctx context.Context, worker, n int) error {
	c := &p.Config
	mine := (c.Services - worker + c.Connections - 1) / c.Connections
	service := worker + n%mine*c.Connections
	if err := p.change(worker, service, p.last[service]+1); err != nil || !p.wait {
		return err
	}
	if missing := p.missing(ctx); missing > 0 {
		return p.audience.untold(missing, "a change")
	}
	return nil
}

// missing is how many subscribers do not learn of the last revision of their service
// in time.
func (p *publish) missing(ctx context.Context) int {
	return p.audience.wait(ctx, func(l *listener) bool { return l.revision.Load() >= p.last[l.service.N] })
}

// Verify counts those who never learned of the final state. A service whose last change
// failed may be in either state.
func (p *publish) Verify(ctx context.Context) (Checked, error) {
	p.lost = p.missing(ctx)
	checked, err := p.verify(ctx, p.fixture.fleet, func(s fleet.Service, hosts []fleet.Host) error {
		if p.uncertain[s.N] {
			return nil
		}
		// The list has one more than the fixture.
		whole := *s.Fleet
		whole.Size++
		s.Fleet = &whole
		return s.Check(hosts, func(host int) (fleet.Instance, bool) {
			i := fleet.Instance{Service: s, Host: host}
			if host == p.Config.Instances {
				i.Revision = p.last[s.N]
			}
			return i, true
		})
	})
	checked.Subscribers = p.Config.Subscribers - p.lost
	return checked, p.fixture.pulse.judge(p.beats.judge(err))
}

func (p *publish) Figures() []Figure {
	figures := []Figure{
		{Name: "lost final states", Value: float64(p.lost)},
		{Name: "lists pushed", Value: float64(p.audience.pushed.Load())},
	}
	if n := p.changes.lost.Load(); n > 0 {
		figures = append(figures, Figure{Name: "changes told too late to be timed", Value: float64(n)})
	}
	return figures
}

func (p *publish) Close(ctx context.Context) {
	p.audience.close()
	p.keeper.close()
	if p.Config.Protocol == target.HTTP && ctx.Err() == nil && p.fixture != nil && len(p.publishers) > 0 {
		for n := range p.Config.Services {
			_ = p.publishers[n%len(p.publishers)].Deregister(p.changing(n, 0)) // what is left goes by itself
		}
	}
	p.fixture.close(ctx)
	closeAll(p.publishers)
}

// subscribe has each connection subscribe to all services, over and over. That they
// are subscribed is seen by telling all of them of some changes.
type subscribe struct {
	*Env
	fixture     *fixture
	sessions    []target.Session // for look-ups over HTTP, and for the changes
	subscribers []target.Subscriber
	heard       []*heard
	done        [][]bool      // of each connection and service: it has subscribed
	more        chan struct{} // capacity 1: somebody was told something
}

// heard are the changes that a client was told of: each is of another service, and
// has another revision.
type heard struct {
	mu      sync.Mutex
	changes map[int64]bool
	more    chan<- struct{}
}

// Told implements [target.Listener].
func (h *heard) Told(s target.Seen) {
	if s.Revision == 0 || !s.Pushed {
		return
	}
	h.mu.Lock()
	h.changes[s.Revision] = true
	h.mu.Unlock()
	select {
	case h.more <- struct{}{}:
	default:
	}
}

// Acked implements [target.Listener].
func (*heard) Acked(target.Seen) {}

// any reports whether anything was pushed.
func (h *heard) any() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.changes) > 0
}

func (h *heard) has(revision int64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.changes[revision]
}

func (s *subscribe) Prepare(ctx context.Context) (err error) {
	c := &s.Config
	if s.fixture, err = s.hold(ctx, s.fleet("subscribe", c.Services, c.Instances, 1)); err != nil {
		return err
	}
	if s.sessions, err = s.dialAll(ctx, c.Connections); err != nil {
		return err
	}
	s.more = make(chan struct{}, 1)
	s.subscribers, s.heard, s.done = make([]target.Subscriber, c.Connections), make([]*heard, c.Connections), make([][]bool, c.Connections)
	return parallel(ctx, c.Connections, func(_ context.Context, i int) (err error) {
		s.heard[i] = &heard{changes: map[int64]bool{}, more: s.more}
		s.done[i] = make([]bool, c.Services)
		s.subscribers[i], err = s.Target.NewSubscriber(ctx, c.Protocol, s.heard[i])
		return err
	})
}

func (s *subscribe) Step(_ context.Context, worker, n int) error {
	service := s.fixture.fleet.Service(worker + n)
	err := s.subscribers[worker].Subscribe(service, s.sessions[worker])
	s.done[worker][service.N] = err == nil
	return err
}

// told is how many services are changed to see who is told.
const told = 10

func (s *subscribe) Verify(ctx context.Context) (Checked, error) {
	services := min(told, s.Config.Services)
	checked := Checked{Services: services}
	for n := range services {
		i := fleet.Instance{Service: s.fixture.fleet.Service(n), Host: s.Config.Instances, Revision: int64(n + 1)}
		session := s.sessions[n%len(s.sessions)]
		if err := session.Register(i); err != nil {
			return checked, err
		}
		defer func() { _ = session.Deregister(i) }() // what is left goes by itself
	}
	give := time.NewTimer(s.Patience)
	defer give.Stop()
	for w, h := range s.heard {
		for n := range services {
			if !s.done[w][n] {
				continue
			}
			for !h.has(int64(n + 1)) {
				select {
				case <-s.more:
				case <-give.C:
					return checked, s.untold(n)
				case <-ctx.Done():
					return checked, context.Cause(ctx)
				}
			}
			checked.Subscribers++
		}
	}
	return checked, nil
}

// untold says that a client was not told of a change, and whether anybody was told of
// any.
func (s *subscribe) untold(service int) error {
	err := fmt.Errorf("a client that subscribed to service %d was not told of its change within %v", service, s.Patience)
	for _, h := range s.heard {
		if h.any() {
			return err
		}
	}
	return nobodyTold(err, s.Config.Protocol)
}

func (s *subscribe) Close(ctx context.Context) {
	for _, sub := range s.subscribers {
		if sub != nil {
			sub.Close()
		}
	}
	s.fixture.close(ctx)
	closeAll(s.sessions)
}
