// Package schedule runs many small jobs at their times on few goroutines: one timer
// for all that wait, and workers that exist while there is something to do.
//
// A [Job] runs at most once at a time and says itself when it wants to run next.
// Whoever has something for it to do wakes it, as often as he likes: what comes
// while it waits is merged, what comes while it runs makes it run again.
//
// All types are safe for concurrent use.
package schedule

import (
	"container/heap"
	"context"
	"sync"
	"time"
)

// Idle is what a job returns to sleep until it is woken.
const Idle time.Duration = -1

// Priority orders jobs that are due at the same time.
type Priority uint8

// The priorities.
const (
	High Priority = iota
	Normal
	priorities
)

// Queue is a set of jobs. The zero value is of no use; see [New].
type Queue struct {
	limit int

	mu      sync.Mutex
	waiting waiting
	ready   [priorities][]*Job // in order; each job is in it once at most
	running int
	ctx     context.Context // of Run; nil before and after it
	wake    chan struct{}   // capacity 1: the earliest time has changed
	workers sync.WaitGroup
}

// New returns a queue that runs up to limit jobs at once, while [Queue.Run] runs.
func New(limit int) *Queue { return &Queue{limit: limit, wake: make(chan struct{}, 1)} }

// state is where a job is.
type state uint8

const (
	idle state = iota
	waits
	isReady
	runs
	stopped
)

// Job is something to do again and again.
type Job struct {
	queue    *Queue
	priority Priority
	run      func(ctx context.Context) time.Duration

	// guarded by queue.mu
	state state
	again bool      // due is when somebody wants it, who said so while it ran
	due   time.Time // when it is to run, while it waits
	index int       // in queue.waiting
}

// Job returns a job that sleeps until it is woken. run gets a context that ends with
// [Queue.Run], and returns when to be run again at the latest, or [Idle].
func (q *Queue) Job(priority Priority, run func(ctx context.Context) time.Duration) *Job {
	return &Job{queue: q, priority: priority, run: run}
}

// Run runs the jobs until ctx ends, then waits for those that run. A queue runs once.
func (q *Queue) Run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	q.mu.Lock()
	q.ctx = ctx
	q.mu.Unlock()
	for {
		if d := q.tick(time.Now()); d >= 0 {
			timer.Reset(d)
		} else {
			timer.Stop()
		}
		select {
		case <-timer.C:
		case <-q.wake:
		case <-ctx.Done():
			q.end()
			return
		}
	}
}

// end waits for what runs; nobody starts a worker any more.
func (q *Queue) end() {
	q.mu.Lock()
	q.ctx = nil
	q.mu.Unlock()
	q.workers.Wait()
}

// tick makes ready what is due and returns how long nothing else will be, or Idle.
func (q *Queue) tick(now time.Time) time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.waiting) > 0 {
		next := q.waiting[0]
		if d := next.due.Sub(now); d > 0 {
			q.start()
			return d
		}
		heap.Pop(&q.waiting)
		q.enqueue(next)
	}
	q.start()
	return Idle
}

// enqueue makes a job ready. The caller holds mu.
func (q *Queue) enqueue(j *Job) {
	j.state = isReady
	q.ready[j.priority] = append(q.ready[j.priority], j)
}

// start starts as many workers as there is work for. The caller holds mu.
func (q *Queue) start() {
	if q.ctx == nil {
		return
	}
	jobs := 0
	for _, ready := range q.ready {
		jobs += len(ready)
	}
	for ; jobs > 0 && q.running < q.limit; jobs-- {
		q.running++
		q.workers.Add(1)
		go q.work(q.ctx)
	}
}

// work runs ready jobs until there is none.
func (q *Queue) work(ctx context.Context) {
	defer q.workers.Done()
	for {
		j := q.next(ctx)
		if j == nil {
			return
		}
		next := j.run(ctx)
		q.mu.Lock()
		j.ran(next)
		q.mu.Unlock()
	}
}

// next takes a ready job; nil if there is none, and then the worker counts no more.
func (q *Queue) next(ctx context.Context) *Job {
	q.mu.Lock()
	defer q.mu.Unlock()
	for p := range q.ready {
		for len(q.ready[p]) > 0 && ctx.Err() == nil {
			j := q.ready[p][0]
			q.ready[p][0] = nil
			q.ready[p] = q.ready[p][1:]
			if j.state == isReady {
				j.state = runs
				return j
			}
		}
	}
	q.running--
	return nil
}

// ran puts a job where it belongs after it ran. The caller holds mu.
func (j *Job) ran(next time.Duration) {
	switch {
	case j.state == stopped:
	case j.again:
		j.again = false
		if wanted := max(time.Until(j.due), 0); next < 0 || wanted < next {
			next = wanted
		}
		fallthrough
	case next >= 0:
		j.plan(next)
	default:
		j.state = idle
	}
}

// plan makes the job run after d. The caller holds mu.
func (j *Job) plan(d time.Duration) {
	if d > 0 {
		j.wait(d)
		return
	}
	j.queue.enqueue(j)
	j.queue.start()
}

// wait makes the job wait. The caller holds mu.
func (j *Job) wait(d time.Duration) {
	j.state = waits
	j.due = time.Now().Add(d)
	heap.Push(&j.queue.waiting, j)
	j.queue.signal()
}

// signal makes Run look at the times again.
func (q *Queue) signal() {
	select {
	case q.wake <- struct{}{}:
	default: // it will look anyway
	}
}

// Wake makes the job run as soon as there is a worker; again, if it runs now.
func (j *Job) Wake() { j.Within(0) }

// Within makes the job run in d at the latest, counted from now; what is planned for
// an earlier time stays so.
func (j *Job) Within(d time.Duration) {
	q := j.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	due := time.Now().Add(d)
	switch j.state {
	case idle:
		j.plan(d)
	case waits:
		if due.Before(j.due) {
			heap.Remove(&q.waiting, j.index)
			j.plan(d)
		}
	case runs:
		if !j.again || due.Before(j.due) {
			j.again, j.due = true, due
		}
	case isReady, stopped:
	}
}

// Stop makes the job never run again. It does not wait for one that runs now.
func (j *Job) Stop() {
	q := j.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	if j.state == waits {
		heap.Remove(&q.waiting, j.index)
	}
	j.state = stopped
}

// waiting is a heap by time.
type waiting []*Job

func (w waiting) Len() int           { return len(w) }
func (w waiting) Less(i, j int) bool { return w[i].due.Before(w[j].due) }

func (w waiting) Swap(i, j int) {
	w[i], w[j] = w[j], w[i]
	w[i].index, w[j].index = i, j
}

func (w *waiting) Push(x any) {
	j := x.(*Job)
	j.index = len(*w)
	*w = append(*w, j)
}

func (w *waiting) Pop() any {
	last := len(*w) - 1
	j := (*w)[last]
	(*w)[last] = nil
	*w = (*w)[:last]
	return j
}
