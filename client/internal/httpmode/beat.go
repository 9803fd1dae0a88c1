package httpmode

import (
	"context"
	"maps"
	"strconv"
	"sync"
	"time"

	"github.com/rollcall-registry/rollcall/client/internal/schedule"
	"github.com/rollcall-registry/rollcall/client/internal/wire"
)

// The bounds of beat intervals.
const (
	defaultBeat = 5 * time.Second
	// leastBeat keeps a server that tells nonsense from being flooded.
	leastBeat = 200 * time.Millisecond
	mostBeat  = time.Minute
)

// intervalKey is the metadata that asks for an interval, in milliseconds.
const intervalKey = "preserved.heart.beat.interval"

// beatInterval returns how often an instance wants to beat, unless the server wants
// something else.
func beatInterval(i *wire.Instance) time.Duration {
	if text, ok := i.Metadata[intervalKey]; ok {
		if millis, err := strconv.ParseInt(text, 10, 64); err == nil && millis > 0 {
			return clamp(millis)
		}
	}
	return defaultBeat
}

func clamp(millis int64) time.Duration {
	return min(max(time.Duration(min(millis, mostBeat.Milliseconds()))*time.Millisecond, leastBeat), mostBeat)
}

// beat keeps one published instance alive.
type beat struct {
	transport *Transport
	service   wire.Service
	job       *schedule.Job
	// busy, of capacity 1, is held while a request about the instance is on its way,
	// so that no beat overtakes a deregistration and brings the instance back.
	busy chan struct{}

	// guarded by busy
	instance wire.Instance
	light    bool // the server needs no full beats
	failures int
	stopped  bool // it beats no more, or not yet: the server may have it or not
}

func (t *Transport) newBeat(s wire.Service, i wire.Instance) *beat {
	b := &beat{transport: t, service: s, instance: i, busy: make(chan struct{}, 1)}
	b.job = t.queue.Job(schedule.High, b.run)
	return b
}

// hold waits for the beat to be free.
func (b *beat) hold(ctx context.Context) error {
	select {
	case b.busy <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// alive reports whether an instance is known to be registered as it is wanted, without
// waiting: of many instances of a service most are.
func (b *beat) alive(i *wire.Instance) bool {
	select {
	case b.busy <- struct{}{}:
		defer b.release()
		return !b.stopped && b.instance.Alike(i)
	default:
		return false
	}
}

func (b *beat) release() { <-b.busy }

// run sends one beat and returns when the next is wanted.
func (b *beat) run(ctx context.Context) time.Duration {
	if b.hold(ctx) != nil {
		return schedule.Idle
	}
	defer b.release()
	if b.stopped {
		return schedule.Idle
	}
	d, err := b.transport.connected()
	if err != nil {
		return schedule.Idle // woken when there is a server
	}
	period := beatInterval(&b.instance)
	a, err := b.send(ctx, d)
	if err != nil {
		b.failures++
		b.light = false // whoever answers next may know nothing
		return min(max(b.transport.cfg.Backoff.Delay(b.failures), leastBeat), period)
	}
	b.failures, b.light = 0, a.light
	if a.unknown {
		if err := b.register(ctx); err != nil {
			b.failures++
			return min(max(b.transport.cfg.Backoff.Delay(b.failures), leastBeat), period)
		}
	}
	if a.millis > 0 {
		period = clamp(a.millis)
	}
	return period
}

// send sends a beat and reads the answer.
func (b *beat) send(ctx context.Context, d dialect) (beatAnswer, error) {
	a, err := b.transport.call(ctx, d.beat(b.service, &b.instance, b.light))
	switch {
	case err == nil:
		return d.readBeat(a.body)
	case wire.KindOf(err) == wire.NotFound:
		return beatAnswer{unknown: true}, nil
	default:
		return beatAnswer{}, err
	}
}

// register registers the instance.
func (b *beat) register(ctx context.Context) error {
	return b.transport.change(ctx, b.service, func(d dialect) *request { return d.register(b.service, &b.instance) })
}

// publishing is how many instances of a service are registered at the same time.
const publishing = 8

// Publish registers what is new or different, removes what is not wanted any more,
// and keeps all of it alive with beats.
func (t *Transport) Publish(ctx context.Context, s wire.Service, instances []wire.Instance) error {
	if _, err := t.connected(); err != nil {
		return err
	}
	t.mu.Lock()
	present := maps.Clone(t.published[s])
	t.mu.Unlock()

	var jobs []publication
	for _, i := range instances {
		key := i.Key()
		b := present[key]
		if b != nil && b.alive(&i) {
			delete(present, key)
			continue
		}
		jobs = append(jobs, publication{key, func() error { return t.publish(ctx, s, b, i) }})
		delete(present, key)
	}
	if err := together(jobs); err != nil {
		return err
	}
	jobs = nil
	for key, b := range present {
		jobs = append(jobs, publication{key, func() error { return t.withdraw(ctx, s, b) }})
	}
	return together(jobs)
}

// publication is one part of a Publish.
type publication struct {
	key wire.Key
	do  func() error
}

// together does several parts at once, a few at a time, and returns which failed.
func together(jobs []publication) error {
	var (
		mu     sync.Mutex
		failed = make(map[wire.Key]error)
		slots  = make(chan struct{}, publishing)
		wg     sync.WaitGroup
	)
	for _, job := range jobs {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			if err := job.do(); err != nil {
				mu.Lock()
				failed[job.key] = err
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if len(failed) > 0 {
		return &wire.PartError{Failed: failed}
	}
	return nil
}

// publish registers an instance, unless it is registered so already, and begins to
// send beats for it. b is its beat from before, or nil.
func (t *Transport) publish(ctx context.Context, s wire.Service, b *beat, i wire.Instance) error {
	if b == nil {
		return t.begin(ctx, s, i)
	}
	if err := b.hold(ctx); err != nil {
		return err
	}
	defer b.release()
	switch {
	case b.stopped: // whether the server still has it is not known
		return t.begin(ctx, s, i)
	case b.instance.Alike(&i):
		return nil
	}
	before := b.instance
	b.instance = i
	if err := b.register(ctx); err != nil {
		b.instance = before // a beat does not change what the server has
		return err
	}
	b.job.Within(beatInterval(&i))
	return nil
}

// begin registers an instance and begins to send beats for it. One of which the server
// may have taken the registration without answering is kept too, to be withdrawn.
func (t *Transport) begin(ctx context.Context, s wire.Service, i wire.Instance) error {
	b := t.newBeat(s, i)
	err := b.register(ctx)
	b.stopped = err != nil
	if wire.Refused(err) {
		return err
	}
	t.mu.Lock()
	if t.published[s] == nil {
		t.published[s] = make(map[wire.Key]*beat)
	}
	t.published[s][i.Key()] = b
	t.mu.Unlock()
	if err == nil {
		b.job.Within(beatInterval(&i))
	}
	return err
}

// withdraw ends the beats of an instance and removes it. That the server does not
// know it is as good.
func (t *Transport) withdraw(ctx context.Context, s wire.Service, b *beat) error {
	if err := b.hold(ctx); err != nil {
		return err
	}
	defer b.release()
	b.job.Stop()
	b.stopped = true
	i := b.instance
	err := t.change(ctx, s, func(d dialect) *request { return d.deregister(s, &i) })
	if err != nil && wire.KindOf(err) != wire.NotFound {
		return err
	}
	t.mu.Lock()
	delete(t.published[s], i.Key())
	if len(t.published[s]) == 0 {
		delete(t.published, s)
	}
	t.mu.Unlock()
	return nil
}
