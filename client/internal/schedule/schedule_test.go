package schedule

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// running runs a queue in a bubble until the test ends.
func running(t *testing.T, limit int, f func(q *Queue, stop func())) {
	synctest.Test(t, func(t *testing.T) {
		q := New(limit)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { q.Run(ctx); close(done) }()
		stop := func() { cancel(); <-done }
		defer stop()
		f(q, stop)
	})
}

func TestJobRunsWhenItWants(t *testing.T) {
	running(t, 2, func(q *Queue, _ func()) {
		var runs atomic.Int32
		start := time.Now()
		j := q.Job(Normal, func(context.Context) time.Duration {
			if runs.Add(1) == 3 {
				return Idle
			}
			return time.Second
		})
		j.Wake()
		time.Sleep(10 * time.Second)
		if n := runs.Load(); n != 3 {
			t.Errorf("ran %d times in %v, want 3", n, time.Since(start))
		}
		j.Within(time.Hour)
		j.Within(time.Minute)
		j.Within(2 * time.Hour)
		time.Sleep(59 * time.Second)
		if n := runs.Load(); n != 3 {
			t.Errorf("ran %d times, want 3: it is not due", n)
		}
		time.Sleep(2 * time.Second)
		if n := runs.Load(); n < 4 {
			t.Errorf("ran %d times, want 4 or more: the earliest time counts", n)
		}
	})
}

func TestWakeWhileRunning(t *testing.T) {
	running(t, 4, func(q *Queue, _ func()) {
		var runs, together, most atomic.Int32
		j := q.Job(Normal, func(context.Context) time.Duration {
			most.Store(max(most.Load(), together.Add(1)))
			time.Sleep(time.Second)
			together.Add(-1)
			runs.Add(1)
			return Idle
		})
		j.Wake()
		synctest.Wait()
		for range 10 {
			j.Wake()
		}
		time.Sleep(10 * time.Second)
		if runs.Load() != 2 || most.Load() != 1 {
			t.Errorf("ran %d times, %d at once; want 2 and 1", runs.Load(), most.Load())
		}
	})
}

func TestPriorityAndLimit(t *testing.T) {
	running(t, 1, func(q *Queue, _ func()) {
		var order []int
		job := func(p Priority, n int) *Job {
			return q.Job(p, func(context.Context) time.Duration {
				order = append(order, n) // one worker
				time.Sleep(time.Second)
				return Idle
			})
		}
		job(Normal, 0).Wake()
		synctest.Wait()
		job(Normal, 2).Wake()
		job(Normal, 3).Wake()
		job(High, 1).Wake()
		time.Sleep(10 * time.Second)
		synctest.Wait()
		for n, got := range order {
			if got != n {
				t.Fatalf("order %v", order)
			}
		}
		if len(order) != 4 {
			t.Errorf("ran %v, want 4", order)
		}
	})
}

func TestStop(t *testing.T) {
	running(t, 1, func(q *Queue, stop func()) {
		var runs atomic.Int32
		count := func(context.Context) time.Duration { runs.Add(1); return 0 }
		waiting := q.Job(Normal, count)
		waiting.Within(time.Second)
		waiting.Stop()
		waiting.Wake()
		time.Sleep(2 * time.Second)
		if runs.Load() != 0 {
			t.Error("a stopped job ran")
		}
		blocked := q.Job(Normal, func(ctx context.Context) time.Duration { <-ctx.Done(); return 0 })
		blocked.Wake()
		queued := q.Job(Normal, count)
		queued.Wake()
		synctest.Wait()
		stop() // waits for the blocked one, and runs nothing more
		if runs.Load() != 0 {
			t.Error("a job ran after the end")
		}
		blocked.Wake()
	})
}

func TestManyJobs(t *testing.T) {
	running(t, 8, func(q *Queue, _ func()) {
		var runs atomic.Int32
		for i := range 1000 {
			q.Job(Normal, func(context.Context) time.Duration {
				runs.Add(1)
				return 10 * time.Second
			}).Within(time.Duration(i) * time.Millisecond)
		}
		time.Sleep(60*time.Second - time.Millisecond)
		synctest.Wait()
		if n := runs.Load(); n != 6000 {
			t.Errorf("%d runs of 1000 jobs in a minute, want 6000", n)
		}
	})
}

func BenchmarkWake(b *testing.B) {
	q := New(2)
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan struct{})
	go func() { q.Run(ctx); close(done) }()
	ran := make(chan struct{})
	j := q.Job(Normal, func(context.Context) time.Duration { ran <- struct{}{}; return Idle })
	b.ReportAllocs()
	for b.Loop() {
		j.Wake()
		<-ran
	}
	cancel()
	<-done
}
