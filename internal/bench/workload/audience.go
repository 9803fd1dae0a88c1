package workload

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rollcall-registry/rollcall/internal/bench/fleet"
	"github.com/rollcall-registry/rollcall/internal/bench/load"
	"github.com/rollcall-registry/rollcall/internal/bench/target"
)

// audience are subscribers of the services of a fleet, as many of each as of any
// other. They keep their subscriptions until the audience is closed.
type audience struct {
	env     *Env
	fleet   *fleet.Fleet
	changes *changes // nil when nothing is timed
	// heard, if set, is called with all that any of them is told. It must not block.
	heard func(*listener, target.Seen)

	groups      int
	told, acked *load.Series
	list        []*listener
	via         []target.Session // for look-ups over HTTP
	stop        context.CancelFunc
	renewers    sync.WaitGroup
	wake        chan struct{} // capacity 1: somebody was told something
	pushed      atomic.Int64  // lists that came unasked
}

// changes keeps when each revision of each service was sent. It is safe for concurrent
// use, each service by one who changes it.
type changes struct {
	kept     int64 // revisions of each service
	services []changesOf
	lost     atomic.Int64 // revisions that came when it was not known any more when they were sent
}

// changesOf are those of one service.
type changesOf struct {
	latest atomic.Int64   // revision
	sent   []atomic.Int64 // by revision modulo kept; 0: never
}

// How many revisions of a service may be on their way to a subscriber at once and still
// be timed: 64 Ki of one service, which are hardly sent within the patience of a run, and
// as many as take 8 MiB of many services, but at least 16.
const (
	mostKept  = 64 << 10
	leastKept = 16
	allKept   = 1 << 20
)

func newChanges(services int) *changes {
	c := &changes{kept: int64(min(max(allKept/services, leastKept), mostKept)), services: make([]changesOf, services)}
	for i := range c.services {
		c.services[i].sent = make([]atomic.Int64, c.kept)
	}
	return c
}

// begin notes that a revision, counted from 1, is about to be sent.
func (c *changes) begin(service int, revision, now int64) {
	s := &c.services[service]
	s.latest.Store(revision) // before the time of an older one goes
	s.sent[revision%c.kept].Store(now)
}

// each calls f with the times at which the revisions after one and up to another were
// sent, as far as they were and that is known.
func (c *changes) each(service int, after, upTo int64, f func(sent int64)) {
	s := &c.services[service]
	upTo = min(upTo, s.latest.Load())
	for r := after + 1; r <= upTo; r++ {
		sent := s.sent[r%c.kept].Load()
		if s.latest.Load()-r >= c.kept {
			c.lost.Add(1)
		} else if sent != 0 {
			f(sent)
		}
	}
}

// listener is one subscriber.
type listener struct {
	a       *audience
	n       int
	service fleet.Service

	revision, acked atomic.Int64 // the greatest that it was told, and has acknowledged
	hosts, enabled  atomic.Int64 // of the latest list

	mu  sync.Mutex // of what follows
	sub target.Subscriber
}

// renewEvery is how often subscribers say that they are there. Source: nacos-client
// 1.4 looks up each 10 s as long as pushes come, 2.x asks for health each 5 s.
func renewEvery(p target.Protocol) time.Duration {
	if p == target.GRPC {
		return beatInterval
	}
	return 10 * time.Second
}

// newAudience returns n listeners of the services of a fleet, in groups, none of them
// connected. The listeners of a group are for one goroutine at a time.
func (e *Env) newAudience(f *fleet.Fleet, n, groups int) *audience {
	a := &audience{env: e, fleet: f, groups: min(groups, n), wake: make(chan struct{}, 1)}
	a.list = make([]*listener, n)
	for i := range a.list {
		a.list[i] = &listener{a: a, n: i, service: f.Service(i)}
	}
	return a
}

// time has the changes of the services timed until the listeners know of them.
func (a *audience) time(c *changes) {
	a.changes = c
	a.told = a.env.Rec.Series("change to receipt")
	a.acked = a.env.Rec.Series("change to acknowledgement")
}

// gather connects and subscribes all listeners. They end with ctx.
func (a *audience) gather(ctx context.Context) (err error) {
	if a.env.Config.Protocol == target.HTTP {
		if a.via, err = a.env.dialAll(ctx, a.groups); err != nil {
			return err
		}
	}
	err = parallel(ctx, a.groups, func(_ context.Context, g int) error {
		for i := g; i < len(a.list); i += a.groups {
			if err := a.list[i].subscribe(ctx, a.session(g)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("subscribe: %w", err)
	}
	return nil
}

// keep has all listeners stay subscribed until the audience is closed.
func (a *audience) keep(ctx context.Context) {
	ctx, a.stop = context.WithCancel(ctx)
	for g := range a.groups {
		a.renewers.Go(func() { a.renew(ctx, g) })
	}
}

// session is that of a group over HTTP.
func (a *audience) session(group int) target.Session {
	if len(a.via) == 0 {
		return nil
	}
	return a.via[group]
}

// size is how many listeners a group has.
func (a *audience) size(group int) int { return (len(a.list) - group + a.groups - 1) / a.groups }

// renewOne renews the subscription of the n-th listener of a group.
func (a *audience) renewOne(group, n int) error {
	return a.list[group+n%a.size(group)*a.groups].renew(a.session(group))
}

// renew renews the subscriptions of a group, evenly over the time, until ctx ends.
func (a *audience) renew(ctx context.Context, group int) {
	tick := time.NewTicker(renewEvery(a.env.Config.Protocol) / time.Duration(a.size(group)))
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		_ = a.renewOne(group, n) // who is not there any more is found by the verification
	}
}

// close ends all subscribers. It is for a nil audience as well.
func (a *audience) close() {
	if a == nil {
		return
	}
	if a.stop != nil {
		a.stop()
	}
	a.renewers.Wait()
	_ = parallel(context.Background(), len(a.list), func(_ context.Context, i int) error {
		a.list[i].close()
		return nil
	})
	closeAll(a.via)
}

func (l *listener) subscribe(ctx context.Context, via target.Session) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	sub, err := l.a.env.Target.NewSubscriber(ctx, l.a.env.Config.Protocol, l)
	if err != nil {
		return err
	}
	l.sub = sub
	return sub.Subscribe(l.service, via)
}

func (l *listener) renew(via target.Session) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.sub == nil {
		return nil
	}
	return l.sub.Renew(l.service, via)
}

func (l *listener) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.sub != nil {
		l.sub.Close()
		l.sub = nil
	}
}

// Told implements [target.Listener].
func (l *listener) Told(s target.Seen) {
	if s.Pushed {
		l.a.pushed.Add(1)
	}
	l.hosts.Store(int64(s.Hosts))
	l.enabled.Store(int64(s.Enabled))
	l.arrived(&l.revision, s.Revision, l.a.told)
	if l.a.heard != nil {
		l.a.heard(l, s)
	}
	select {
	case l.a.wake <- struct{}{}:
	default:
	}
}

// Acked implements [target.Listener].
func (l *listener) Acked(s target.Seen) { l.arrived(&l.acked, s.Revision, l.a.acked) }

// arrived times the revisions up to the one that came: what was merged into it is
// known by it.
func (l *listener) arrived(last *atomic.Int64, revision int64, times *load.Series) {
	for {
		before := last.Load()
		if revision <= before {
			return
		}
		if !last.CompareAndSwap(before, revision) {
			continue
		}
		if l.a.changes == nil {
			return
		}
		now := l.a.env.Rec.Now()
		l.a.changes.each(l.service.N, before, revision, func(sent int64) { times.Record(l.n, sent, now) })
		return
	}
}

// untold says that some were not told of something, and whether anybody was told
// anything.
func (a *audience) untold(missing int, what string) error {
	err := fmt.Errorf("%d of %d subscribers were not told of %s within %v", missing, len(a.list), what, a.env.Patience)
	if a.pushed.Load() == 0 {
		return nobodyTold(err, a.env.Config.Protocol)
	}
	return err
}

// nobodyTold adds to an error that the server has pushed nothing at all, and how it was
// asked to.
func nobodyTold(err error, p target.Protocol) error {
	asked := "by packets of UDP (clientIP and udpPort of a look-up)"
	if p == target.GRPC {
		asked = "by SubscribeServiceRequest"
	}
	return fmt.Errorf("%w: the server has pushed nothing to anybody, although it was asked to %s", err, asked)
}

// wait waits until all listeners fulfil a condition, for as long as the patience of the run, and
// returns how many do not.
func (a *audience) wait(ctx context.Context, ok func(*listener) bool) (missing int) {
	give := time.NewTimer(a.env.Patience)
	defer give.Stop()
	first := 0
	for {
		for first < len(a.list) && ok(a.list[first]) {
			first++
		}
		if first == len(a.list) {
			break
		}
		select {
		case <-a.wake:
			continue
		case <-ctx.Done():
		case <-give.C:
		}
		break
	}
	for _, l := range a.list[first:] {
		if !ok(l) {
			missing++
		}
	}
	return missing
}
