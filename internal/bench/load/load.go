// Package load drives work at a server and times it.
//
// A [Loop] is closed or open. In a closed loop each worker begins its next unit when
// the last has ended, so that the server sets the pace. In an open loop units are due
// at fixed times, whatever the server does, and the time of a unit counts from when
// it was due: what a stalled server keeps from being sent is in the figures as if it
// had been sent (coordinated omission corrected). Workers have fixed shares: unit k
// of worker w of W is unit k*W+w of all.
//
// Times are recorded in HdrHistograms of three significant figures, without an
// allocation a unit. A [Recorder] and its series are safe for concurrent use.
package load

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// Step does unit n of a worker's work, n counting from 0. It must return soon after
// the context of the run has ended. An error means that the unit was not done;
// [ErrDone] that there is no such unit, and that the worker has no more.
type Step func(ctx context.Context, worker, n int) error

// ErrDone ends a worker: its work is exhausted.
var ErrDone = errors.New("no more work")

// Loop says how much work is done, how fast and for how long.
type Loop struct {
	Workers int
	// Rate is how many units a second are due over all workers; 0 makes the loop a
	// closed one.
	Rate float64
	// Warmup goes before what is recorded. It does not count towards Duration.
	Warmup, Duration time.Duration
	// Count bounds the units of all workers, warm-up included; 0 is no bound. Where
	// there is one, the warm-up ends at the latest when a tenth is done.
	Count int
	// Interval is the time between two samples; a second if it is 0.
	Interval time.Duration
	// OnBegin, if set, is called when the warm-up has ended, by a goroutine of the loop.
	OnBegin func()
	// OnInterval, if set, is called after each interval by a goroutine of the loop,
	// and may add to the sample.
	OnInterval func(*Interval)

	// newAlarm makes what wakes a worker when a unit is due; nil is the best of the
	// platform.
	newAlarm func(context.Context) (alarm, error)
}

// alarm wakes one worker.
type alarm interface {
	// wait returns after d, or with an error when the context of the run has ended.
	wait(d time.Duration) error
	close()
}

// Bounds that keep a run from going on against a server that does not answer.
const (
	// overtime is how long an open loop works off what was due but not begun.
	overtime = 10 * time.Second
	// maxFailures is after how many errors in a row a worker gives up, and
	// failurePause how long it waits after one in a closed loop.
	maxFailures  = 200
	failurePause = 10 * time.Millisecond
)

// Outcome is what a run of a loop did within the recorded time.
type Outcome struct {
	// Elapsed is the recorded time, until the last unit ended; in an open loop until the
	// next one would have been due, if that is later: ten units a second for a second
	// are ten, and not ten in nine tenths.
	Elapsed time.Duration
	// Done units succeeded, Failed ones did not. Missed ones were due and never
	// begun, as the server was too far behind.
	Done, Failed, Missed int64
	// Fault is the first error.
	Fault error
	// Intervals are the samples, in their order.
	Intervals []Interval
}

// Interval is what happened between two moments of the recorded time.
type Interval struct {
	// At is when it began, Length how long it was.
	At, Length time.Duration
	// Done and Failed are the units that ended in it.
	Done, Failed int64
	// Server is for [Loop.OnInterval] to fill: of the server's process.
	Resident int64         // bytes
	CPU      time.Duration // used within the interval
}

// run is one run of a loop.
type run struct {
	*Loop
	ctx   context.Context
	step  Step
	rec   *Recorder
	times *Series       // of units
	late  *Series       // by how much units began later than due although a worker waited
	first int64         // by the recorder's clock: when the warm-up began
	warm  chan struct{} // closed when it ended early
	once  sync.Once

	counts []counts    // of each worker
	spent  atomic.Bool // a worker had no more work before the time was over

	mu    sync.Mutex
	fault error
}

// Run does the work and returns when all workers have ended. Times of units go to
// times; late gets by how much the generator itself was late to begin units that were
// due, and may be nil. The error is that of the context.
func (l *Loop) Run(ctx context.Context, rec *Recorder, times, late *Series, step Step) (*Outcome, error) {
	r := &run{Loop: l, ctx: ctx, step: step, rec: rec, times: times, late: late, counts: make([]counts, l.Workers), warm: make(chan struct{}), first: rec.Now()}
	rec.start(r.first + int64(l.Warmup))

	samples := make(chan []Interval, 1)
	stop := make(chan struct{})
	go func() { samples <- r.sample(stop) }()

	var workers sync.WaitGroup
	for w := range l.Workers {
		workers.Go(func() {
			if err := r.work(w); err != nil {
				r.blame(err)
			}
		})
	}
	workers.Wait()
	ended := max(rec.Now(), r.scheduled())
	close(stop)
	out := &Outcome{Elapsed: time.Duration(max(ended-r.begin(), 1)), Intervals: <-samples, Fault: r.fault}
	for i := range r.counts {
		out.Done += r.counts[i].done.Load()
		out.Failed += r.counts[i].failed.Load()
		out.Missed += r.counts[i].missed
	}
	return out, context.Cause(ctx)
}

// begin is when the warm-up ends, which may be moved forward as long as it goes on.
func (r *run) begin() int64 { return r.rec.begin.Load() }

// end is when no more units begin.
func (r *run) end() int64 { return r.begin() + int64(r.Duration) }

// scheduled is when the next unit of an open loop would have been due that ran to its
// end, 0 for others.
func (r *run) scheduled() int64 {
	if r.Rate == 0 || r.spent.Load() || r.ctx.Err() != nil {
		return 0
	}
	if r.Count == 0 {
		return r.end()
	}
	return min(r.end(), r.first+int64(1e9/r.Rate*float64(r.Count)))
}

// over reports whether a unit of this time is none any more.
func (r *run) over(at int64) bool { return at >= r.end() || r.ctx.Err() != nil }

// lastOf reports whether a worker that got an error has no more to do.
func (r *run) lastOf(err error) bool { return errors.Is(err, ErrDone) || r.ctx.Err() != nil }

// warmUp ends the warm-up for all workers if one of them has done a tenth of its
// share.
func (r *run) warmUp(w, n int) {
	if r.Count == 0 || n != r.share(w)/10 {
		return
	}
	now := r.rec.Now()
	r.once.Do(func() {
		if now < r.begin() {
			r.rec.start(now)
			close(r.warm)
		}
	})
}

// blame keeps the first error of all workers.
func (r *run) blame(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fault == nil {
		r.fault = err
	}
}

// work does the units of a worker.
func (r *run) work(w int) error {
	if r.Rate > 0 {
		return r.open(w)
	}
	return r.closed(w)
}

// share is how many units a worker has at most.
func (r *run) share(w int) int {
	if r.Count == 0 {
		return math.MaxInt
	}
	return (r.Count - w + r.Workers - 1) / r.Workers
}

func (r *run) closed(w int) error {
	failures := 0
	for n := range r.share(w) {
		r.warmUp(w, n)
		begun := r.rec.Now()
		if r.over(begun) {
			return nil
		}
		err := r.unit(w, n, begun)
		switch {
		case err == nil:
			failures = 0
		case r.lastOf(err):
			return nil
		default:
			if failures++; failures == maxFailures {
				return fmt.Errorf("gave up after %d errors in a row: %w", failures, err)
			}
			r.blame(err)
			pause(r.ctx, failurePause)
		}
	}
	return nil
}

func (r *run) open(w int) error {
	newAlarm := r.newAlarm
	if newAlarm == nil {
		newAlarm = systemAlarm
	}
	bell, err := newAlarm(r.ctx)
	if err != nil {
		return err
	}
	defer bell.close()
	every := 1e9 / r.Rate
	for n := range r.share(w) {
		r.warmUp(w, n)
		due := r.first + int64(every*float64(n*r.Workers+w))
		if r.over(due) {
			return nil
		}
		if now := r.rec.Now(); now < due {
			if bell.wait(time.Duration(due-now)) != nil {
				return nil // the run has ended
			}
			if r.late != nil {
				r.late.Record(w, due, r.rec.Now())
			}
		} else if now > r.end()+int64(overtime) {
			left := float64(r.end()-max(due, r.begin())) / (every * float64(r.Workers))
			r.counts[w].missed = min(int64(math.Ceil(left)), int64(r.share(w)-n))
			return nil
		}
		switch err := r.unit(w, n, due); {
		case err == nil:
		case r.lastOf(err):
			r.spent.Store(true)
			return nil
		default:
			r.blame(err)
		}
	}
	return nil
}

// unit does one unit, whose time counts from begun.
func (r *run) unit(w, n int, begun int64) error {
	err := r.step(r.ctx, w, n)
	if begun < r.begin() {
		return err
	}
	switch {
	case err == nil:
		r.times.Record(w, begun, r.rec.Now())
		r.counts[w].done.Add(1)
	case !r.lastOf(err):
		r.counts[w].failed.Add(1)
	}
	return err
}

// pause waits for d or the end of ctx.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
