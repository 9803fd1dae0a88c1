package rollcall

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/rollcall-registry/rollcall/client/internal/schedule"
	"github.com/rollcall-registry/rollcall/client/internal/wire"
)

// entry is a service that is watched, by one watch or several: the server has one
// subscription for all of them.
type entry struct {
	client  *Client
	service wire.Service
	job     *schedule.Job
	changed broadcast // something became known, or a subscription failed

	// guarded by Client.mu
	subscribed string // the session on which the server was asked for pushes
	tried      string // the session on which it was last tried
	failures   int
	failure    error     // of the last try
	due        time.Time // when to ask again

	covered bool // the failover switch was looked at; used by run alone

	mu      sync.Mutex // below Client.mu
	watches []*Watch
	live    *view      // what servers said
	asking  string     // the session of a request on its way; empty for none
	early   *wire.List // the last push of that session that came before its answer
	over    *Snapshot  // what the failover switch put over it; nil when it is off
	shown   *Snapshot  // what the watches have last been given; never nil
}

// entry returns the entry of a service. The caller holds mu.
func (c *Client) entry(s wire.Service) *entry {
	e := c.entries[s]
	if e == nil {
		e = &entry{client: c, service: s, live: new(view), shown: NewSnapshot(SnapshotInfo{Service: Service(s)})}
		e.job = c.queue.Job(schedule.Normal, e.run)
		c.entries[s] = e
	}
	return e
}

// list returns the watches.
func (e *entry) list() []*Watch {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.watches)
}

// run makes the server push the service, asks again now and then, and unsubscribes
// when nobody watches any more.
func (e *entry) run(ctx context.Context) time.Duration {
	c := e.client
	c.mu.Lock()
	l, unwatched := c.link.Load(), len(e.list()) == 0
	subscribed := l != nil && e.subscribed == l.session.ID
	wait := time.Until(e.due)
	if unwatched && !subscribed {
		delete(c.entries, e.service)
		e.job.Stop()
		c.counts.services.Add(-1)
		if e.subscribed != "" {
			c.counts.subscribed.Add(-1)
		}
		c.changes.send()
	}
	c.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, operation)
	defer cancel()
	if !e.covered {
		e.covered = true
		c.disk.cover(e)
	}
	switch {
	case unwatched && subscribed:
		return e.unsubscribe(ctx, l)
	case unwatched:
		return schedule.Idle
	case l == nil:
		e.fallBack()
		return schedule.Idle // woken when there is a link
	case !subscribed:
		return e.ask(ctx, l, l.transport.Subscribe)
	}
	held, next := e.settle(), schedule.Idle
	switch {
	case l.session.Polls || c.cfg.resync <= 0:
	case wait > 0:
		next = wait
	default:
		next = e.ask(ctx, l, l.transport.Query)
	}
	if held > 0 && (next < 0 || held < next) {
		return held
	}
	return next
}

// unsubscribe takes the subscription back, after which the entry is forgotten, or
// subscribes anew if a watch came meanwhile. It keeps its place until then: a request of
// another entry to subscribe could overtake this one. A failure is of no matter: pushes
// that come all the same are dropped, and the session ends some time.
func (e *entry) unsubscribe(ctx context.Context, l *link) time.Duration {
	c := e.client
	started := time.Now()
	err := l.transport.Unsubscribe(ctx, e.service)
	c.done("unsubscribe", e.service, started, err)
	c.mu.Lock()
	defer c.mu.Unlock()
	e.subscribed = ""
	c.counts.subscribed.Add(-1)
	c.changes.send()
	return 0
}

// ask subscribes or asks again, and returns when to do so next.
func (e *entry) ask(ctx context.Context, l *link, how func(context.Context, wire.Service) (wire.List, error)) time.Duration {
	c := e.client
	after := e.begin(l.session.ID)
	started := time.Now()
	list, err := how(ctx, e.service)
	c.done("watch", e.service, started, err)
	err = e.answered(list, after, err)
	c.mu.Lock()
	e.tried, e.failure = l.session.ID, err
	if err == nil && e.subscribed != l.session.ID {
		if e.subscribed == "" {
			c.counts.subscribed.Add(1)
		}
		e.subscribed = l.session.ID
	}
	if err != nil {
		e.failures++
	} else {
		e.failures = 0
	}
	next := c.nextResync(l)
	if err != nil {
		next = c.cfg.backoff.Delay(e.failures)
	}
	e.due = time.Now().Add(next)
	c.mu.Unlock()
	e.changed.send()
	c.changes.send()
	switch {
	case err == nil:
		return next
	case wire.Final(err):
		e.fallBack()
		return refusedPause
	default:
		c.logger.Warn("watch", "namespace", e.service.Namespace, "group", e.service.Group, "service", e.service.Name, "err", err)
		e.fallBack()
		return next
	}
}

// nextResync returns when to ask again: a fifth more or less than what is set, so that
// watches which began together do not stay together.
func (c *Client) nextResync(l *link) time.Duration {
	if l.session.Polls || c.cfg.resync <= 0 {
		return schedule.Idle
	}
	return c.cfg.resync*4/5 + rand.N(c.cfg.resync*2/5+1)
}

// begin notes that a request is on its way, and returns how many lists have been taken.
func (e *entry) begin(session string) uint64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.asking, e.early = session, nil
	return e.live.applied
}

// answered takes the answer, and then the push that was faster, if there is one.
func (e *entry) answered(list wire.List, after uint64, err error) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	early := e.early
	e.asking, e.early = "", nil
	if err != nil {
		return err
	}
	if err := e.apply(&list, request{own: true, after: after}); err != nil {
		return err
	}
	if early != nil {
		_ = e.apply(early, request{}) // counted there
	}
	return nil
}

// pushed takes what a server sent unasked, or to a poll of the transport.
func (c *Client) pushed(list wire.List) {
	c.mu.Lock()
	e := c.entries[list.Service]
	c.mu.Unlock()
	if e == nil {
		c.cfg.metrics.Dropped("push_unwatched")
		return
	}
	e.mu.Lock()
	if e.asking == list.Session && e.live.session != list.Session {
		e.early = &list
	} else {
		_ = e.apply(&list, request{}) // counted there
	}
	e.mu.Unlock()
	e.changed.send()
}

var errNoHosts = errors.New("a list without hosts")

// apply takes a list, if it is to be believed; see view.take. The caller holds mu.
func (e *entry) apply(list *wire.List, asked request) error {
	c := e.client
	received := time.Now()
	next, verdict, err := e.live.take(list, asked, c.cfg.emptyProtection)
	if err != nil {
		c.cfg.metrics.Dropped("list_malformed")
		return &wire.Error{Kind: wire.BadAnswer, Server: list.Server, Err: err}
	}
	switch verdict {
	case stale:
		c.cfg.metrics.Dropped("push_stale")
		return nil
	case foreign:
		c.cfg.metrics.Dropped("push_foreign")
		return nil
	case taken:
	}
	e.live = next
	if next.held {
		e.job.Within(c.cfg.emptyProtection - time.Since(next.heldSince))
	} else {
		c.disk.store(e.service, list.Raw)
	}
	if e.show() {
		c.cfg.metrics.Published(Service(e.service), len(next.instances), time.Since(received))
	}
	return nil
}

// settle ends the protection of an empty list if its time has come, and returns how
// long it still has; 0 if there is none.
func (e *entry) settle() time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.live.held {
		return 0
	}
	if left := e.client.cfg.emptyProtection - time.Since(e.live.heldSince); left > 0 {
		return left
	}
	next := *e.live
	next.held, next.listed, next.protected = false, listed{}, false
	e.live = &next
	e.client.disk.store(e.service, next.empty)
	e.show()
	return 0
}

// fallBack shows what the disk has, if nothing is known from a server.
func (e *entry) fallBack() {
	if list, at, ok := e.client.disk.load(e.service); ok {
		e.mu.Lock()
		if !e.live.known {
			if next, err := e.live.fromDisk(list, at); err == nil {
				e.live = next
				e.show()
			}
		}
		e.mu.Unlock()
	}
	e.changed.send()
}

// override puts what the failover switch says over what servers say; nil takes it off.
func (e *entry) override(s *Snapshot) {
	e.mu.Lock()
	e.over = s
	e.show()
	e.mu.Unlock()
	e.changed.send()
}

// show gives the watches what is to be seen now, and reports whether that is anything
// new. The caller holds e.mu.
func (e *entry) show() bool {
	info := SnapshotInfo{
		Service: Service(e.service), Revision: e.shown.info.Revision + 1, Time: e.live.at,
		Source: e.live.source(), Protected: e.live.protected, HeldEmpty: e.live.held,
	}
	instances := e.live.instances
	if e.over != nil {
		instances = e.over.instances
		info.Source, info.Time, info.Protected, info.HeldEmpty = FromFailover, e.over.info.Time, false, false
	}
	if e.shown.like(info, instances) {
		return false
	}
	e.shown = &Snapshot{info, instances}
	for _, w := range e.watches {
		w.offer(e.shown)
	}
	return true
}

// like reports whether a snapshot would show the same. Instances that are equal are
// the same pointers.
func (s *Snapshot) like(info SnapshotInfo, instances []*Instance) bool {
	return s.info.Source == info.Source && s.info.Protected == info.Protected && s.info.HeldEmpty == info.HeldEmpty &&
		slices.Equal(s.instances, instances)
}
