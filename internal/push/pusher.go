package push

import (
	"log/slog"
	"sync"
	"time"

	"github.com/rollcall-registry/rollcall/internal/registry"
)

// Sender delivers the state of a service to subscribers of one protocol.
type Sender interface {
	// Push hands over the state of a service for the given subscribers, who are
	// all of the sender's protocol and may all be sent to. view is nil when there
	// is no such service. changed is the time of the first change that this push
	// tells of; zero when it tells of none (see [Pusher.Schedule]).
	//
	// It must not wait for a subscriber: what a slow one has not taken yet is
	// replaced, not queued. It may keep view and the subscribers, which are
	// immutable, but not the slice. It returns how long what it now holds will
	// keep it busy, by which the merge window widens. Calls for one service never
	// overlap, calls for several may.
	Push(view *registry.View, key registry.ServiceKey, subs []*registry.Subscriber, changed registry.Instant) (backlog time.Duration)
}

// Store is what a [Pusher] reads. None of its methods may block.
type Store interface {
	View(registry.ServiceKey) *registry.View
	HasSubscribers(registry.ServiceKey) bool
	Audience(registry.ServiceKey) []*registry.Subscriber
	Subscriber(registry.ServiceKey, registry.SubscriberKey) *registry.Subscriber
	Switches() *registry.Switches
}

// Clock reads the time by which commands are stamped.
type Clock interface {
	Now() registry.Instant
}

// Observer is told of pushes, for metrics. Its methods are called by several
// goroutines and must not block.
type Observer interface {
	// Pushed tells of a change of a service that was handed to the senders: how
	// many changes it merged (1 when it merged none), how long the first of them
	// waited, and whether the service has no instance now.
	Pushed(changes int, waited time.Duration, empty bool)
}

// Pusher gathers changes and pushes them. Create it with [New]; it is the
// [registry.Sink] of a store, and does its work in [Pusher.Run].
//
// It learns from the events who is subscribed to, so that a change of a service
// that nobody watches costs a look into a map. Its memory is bounded by the number
// of services with subscribers, and of subscribers with a scheduled push.
type Pusher struct {
	cfg      Config
	store    Store
	clock    Clock
	observer Observer
	log      *slog.Logger
	senders  []sender // not changed once Run runs

	// wake holds a token when there may be something to do; further tokens are
	// dropped, as one worker that looks finds everything.
	wake chan struct{}

	mu       sync.Mutex
	services map[registry.ServiceKey]*service
	peak     int        // largest size of services since it was made
	pending  int        // services with changes that were not pushed
	queue    []*service // those that are actionable, in turn; each at most once
	alarms   alarms
	timer    *time.Timer // rings for the earliest alarm; nil unless Run runs
	armed    time.Time   // what timer is set to; zero when it is not
}

type sender struct {
	protocol registry.Protocol
	Sender
}

// New returns a pusher without senders; see [Pusher.Deliver].
func New(cfg Config, store Store, clock Clock, observer Observer, logger *slog.Logger) *Pusher {
	return &Pusher{
		cfg: cfg, store: store, clock: clock, observer: observer,
		log:      logger.With("component", "push"),
		wake:     make(chan struct{}, 1),
		services: map[registry.ServiceKey]*service{},
	}
}

// Deliver sets the sender for the subscribers of a protocol. It is called before
// Run. Subscribers without a sender are not pushed to.
func (p *Pusher) Deliver(protocol registry.Protocol, s Sender) {
	p.senders = append(p.senders, sender{protocol, s})
}

// Emit implements [registry.Sink].
func (p *Pusher) Emit(e *registry.Event) {
	switch {
	case e.ChangesView():
		p.note(e.Service, e.At, e.Kind == registry.ServiceUpdated || e.Kind == registry.ClusterUpdated)
	case e.Kind == registry.Subscribed:
		p.join(e.Service)
	case e.Kind == registry.Unsubscribed:
		p.leave(e.Service)
	case e.Kind == registry.SwitchSet: // pushes may have been switched on
		p.signal()
	}
}

// note remembers a change of a service that somebody watches. Whoever subscribes
// later reads it with his first look-up.
func (p *Pusher) note(key registry.ServiceKey, at registry.Instant, settings bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.services[key]
	if s == nil || !s.watched {
		return
	}
	if s.note(at, settings); s.changes == 1 {
		p.pending++
		p.consider(s)
	}
}

// join remembers that somebody subscribed.
func (p *Pusher) join(key registry.ServiceKey) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.service(key)
	s.watched = true
	s.joined++
}

// leave has a worker look whether anybody is left.
func (p *Pusher) leave(key registry.ServiceKey) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.services[key]; s != nil {
		s.left = true
		p.consider(s)
	}
}

// Schedule pushes the state that the service of a subscriber then has to that
// subscriber alone, after a delay. At most one such push is pending per
// subscription, the earlier of two; it is dropped when the subscription has
// ended by then. changed is handed to the sender; zero when no change is the
// cause. It never blocks.
func (p *Pusher) Schedule(sub *registry.Subscriber, delay time.Duration, changed registry.Instant) {
	a := &alarm{at: time.Now().Add(delay), target: sub.SubscriberKey, changed: changed}
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.service(sub.Service)
	if old := s.scheduled[a.target]; old != nil && !a.at.Before(old.at) {
		return
	}
	if s.scheduled == nil {
		s.scheduled = map[registry.SubscriberKey]*alarm{}
	}
	a.service = s
	s.scheduled[a.target] = a
	p.setAlarm(a)
}

// Pending returns the number of services that changed and were not pushed yet.
func (p *Pusher) Pending() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pending
}

// signal wakes a worker, or the next one that would sleep.
func (p *Pusher) signal() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// The methods below are called with p.mu held.

func (p *Pusher) service(key registry.ServiceKey) *service {
	s := p.services[key]
	if s == nil {
		s = &service{key: key}
		p.services[key] = s
		p.peak = max(p.peak, len(p.services))
	}
	return s
}

// consider puts a service into the queue when there is something to do for it,
// and forgets it when it is over.
func (p *Pusher) consider(s *service) {
	switch {
	case s.busy:
	case s.actionable():
		s.busy, s.queuedAt = true, time.Now()
		p.queue = append(p.queue, s)
		p.signal()
	case s.over():
		p.forget(s)
	}
}

// mapKept is the size up to which an empty map keeps its memory: a map never
// shrinks.
const mapKept = 1024

func (p *Pusher) forget(s *service) {
	if p.services[s.key] != s { // forgotten before; an alarm was left of it
		return
	}
	delete(p.services, s.key)
	if len(p.services) == 0 && p.peak > mapKept {
		p.services, p.peak = map[registry.ServiceKey]*service{}, 0
	}
}

func (p *Pusher) setAlarm(a *alarm) {
	p.alarms.set(a)
	p.arm()
}

// arm sets the timer to the earliest alarm.
func (p *Pusher) arm() {
	if p.timer == nil {
		return
	}
	var at time.Time
	if len(p.alarms) > 0 {
		at = p.alarms[0].at
	}
	if at.Equal(p.armed) {
		return
	}
	p.armed = at
	if at.IsZero() {
		p.timer.Stop()
		return
	}
	p.timer.Reset(time.Until(at))
}
