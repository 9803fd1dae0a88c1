package grpcapi

import (
	"slices"
	"time"

	"github.com/rollcall-registry/rollcall/api/grpcv2"
	"github.com/rollcall-registry/rollcall/internal/grpcapi/transport"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// pushCost is about what one push costs until its acknowledgement has been
// handled, by which the merge window of a service with many subscribers widens.
const pushCost = 10 * time.Microsecond

// Push implements push.Sender: each subscriber's connection notes that there is a
// newer state to be told, and sends it when the client takes it.
func (a *API) Push(view *registry.View, key registry.ServiceKey, subs []*registry.Subscriber, changed registry.Instant) time.Duration {
	for _, sub := range subs {
		if c := a.client(sub.Client); c != nil {
			c.notify(view, key, changed)
		}
	}
	return time.Duration(len(subs)) * pushCost
}

// notify queues a push of a service, unless one is queued: then that tells the
// newer state.
func (c *client) notify(view *registry.View, key registry.ServiceKey, changed registry.Instant) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.watches[key]
	if w == nil || w.sub == nil {
		return
	}
	w.view = view
	if w.changed.Wall == 0 {
		w.changed = changed
	}
	if w.queued {
		return
	}
	w.queued = true
	c.ready = append(c.ready, w)
	if w.held == 0 {
		c.offer()
	}
}

// delivery is one push to one client.
type delivery struct {
	client   *client
	watch    *watch
	id       uint64
	sub      *registry.Subscriber
	view     *registry.View // nil when there is no such service
	revision int64
	changed  registry.Instant // zero when it tells of no change
	// superseded: an earlier push was not acknowledged yet, of a change at before.
	superseded bool
	before     registry.Instant
}

// nextPush takes the first push that may be sent. The caller holds c.mu.
func (c *client) nextPush(now registry.Instant) (d *delivery, found bool) {
	n := slices.IndexFunc(c.ready, func(w *watch) bool { return w.held == 0 })
	if n < 0 {
		return nil, false
	}
	w := c.ready[n]
	if n == 0 && len(c.ready) > 1 {
		c.ready[0] = nil
		c.ready = c.ready[1:]
	} else { // the last one leaves its place to the next, as nearly all are alone
		c.ready = slices.Delete(c.ready, n, n+1)
	}
	d = &delivery{client: c, watch: w, sub: w.sub, view: w.view, changed: w.changed}
	if d.view == nil || d.view.Stale() {
		d.view = c.api.core.Store().View(w.sub.Service)
	}
	if d.view != nil {
		d.revision = d.view.Revision
	} else {
		d.revision = c.api.core.AbsentRevision()
	}
	if w.sent != 0 {
		d.superseded, d.before = true, w.told
		delete(c.waiting, w.sent)
	}
	d.id = c.await(d, ackTimeout, now)
	w.queued, w.view, w.changed = false, nil, registry.Instant{}
	w.sent, w.told = d.id, d.changed
	return d, true
}

// write writes the push. It returns false, and gives the push up, when it is larger
// than the client takes.
func (d *delivery) write(m *transport.Message) bool {
	c, a := d.client, d.client.api
	if d.superseded {
		a.observer.Settled(Superseded, a.since(d.before))
	}
	m.Type, m.ClientIP = grpcv2.NotifySubscriber, c.local
	if d.view != nil {
		m.Tail = a.tail(d.view, d.sub.Clusters, false)
	} else {
		m.Tail = absent(d.revision)
	}
	given := func(s string) grpcv2.Optional { return grpcv2.Optional{Value: s, Given: true} }
	head := grpcv2.ServiceHead{
		Name: given(d.sub.Service.Name), Group: given(d.sub.Service.Group), Clusters: given(d.sub.Clusters),
		CacheMillis: a.core.Store().Switches().DefaultPushCacheMillis,
	}
	who := c.identity.Load()
	if who != nil {
		head.Newer = who.newer
	}
	m.Buf = grpcv2.AppendNotifyHead(m.Buf, d.id, &head)
	if who != nil && messageLen(m) > who.maxMessage() {
		d.giveUp(messageLen(m))
		m.Buf, m.Tail = m.Buf[:transport.Headroom], nil
		return false
	}
	a.observer.Sent(a.since(d.changed))
	return true
}

// giveUp ends a push that is too large. It is not made again: the client gets the
// next state that is smaller.
func (d *delivery) giveUp(size int) {
	c, a := d.client, d.client.api
	c.mu.Lock()
	delete(c.waiting, d.id)
	c.mu.Unlock()
	d.conclude(done)
	a.log.Warn("a push is larger than the client takes", "service", d.sub.Service.Grouped(), "namespace", d.sub.Service.Namespace,
		"bytes", size, "client_id", c.id, "agent", d.sub.Agent)
	a.observer.Settled(TooLarge, a.since(d.changed))
	d.record(registry.PushFailed, "larger than the client takes", a.since(d.changed))
}

// since returns the time since a change, 0 without one.
func (a *API) since(changed registry.Instant) time.Duration {
	if changed.Wall == 0 {
		return 0
	}
	return a.core.Now().Lease - changed.Lease
}

// settle implements settler: a push that failed is made again, as long as the
// client is subscribed, later each time.
func (d *delivery) settle(how outcome) {
	a, took := d.client.api, d.client.api.since(d.changed)
	switch how {
	case done:
		d.conclude(how)
		a.observer.Settled(Acked, took)
		d.record(registry.PushAcknowledged, "", took)
	case refused, overdue:
		result, problem := Failed, "not acknowledged within 5s"
		if how == refused {
			result, problem = Refused, "the client says that it failed"
		}
		a.observer.Settled(result, took)
		d.record(registry.PushFailed, problem, took)
		if failures := d.conclude(how); failures > 0 {
			a.later(d.sub, backOff(failures), d.changed)
		}
	default:
		a.observer.Settled(Gone, took)
	}
}

// conclude notes that the push is over, and returns how many failed in a row; 0
// when none did, or the client is not subscribed any more.
func (d *delivery) conclude(how outcome) (failures int) {
	d.client.mu.Lock()
	defer d.client.mu.Unlock()
	w := d.watch
	if w.sent != d.id || w.sub != d.sub {
		return 0
	}
	w.sent, w.told = 0, registry.Instant{}
	if how == done {
		w.failures = 0
	} else {
		w.failures++
	}
	return w.failures
}

// backOff returns how long after so many failures a push is made again.
func backOff(failures int) time.Duration {
	return min(retryDelay<<min(failures-1, 16), retryMax)
}

// record remembers how a push ended, when that is news of its subscriber. The
// absence of a service is no state that a history could name: its revision is only
// a moment.
func (d *delivery) record(kind registry.EventKind, problem string, took time.Duration) {
	if d.view == nil {
		return
	}
	now := d.client.api.core.Now()
	var news bool
	if kind == registry.PushAcknowledged {
		news = d.sub.Acknowledge(d.revision, now.Wall, took)
	} else {
		news = d.sub.PushFailed(d.revision, problem)
	}
	if news {
		d.client.api.history.Emit(&registry.Event{
			Kind: kind, At: now, Service: d.sub.Service, Revision: d.revision, Detail: problem,
			Subscriber: d.sub, Took: took,
		})
	}
}
