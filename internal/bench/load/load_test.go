package load

import (
	"context"
	"errors"
	"math"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A server that stands still for a second in the middle makes an open loop record
// the wait of all that was due meanwhile, not of the one unit that hung.
func TestOpenLoopCorrectsForStalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := NewRecorder()
		times, late := rec.Series("units"), rec.Aside("late")
		start := time.Now()
		step := func(context.Context, int, int) error {
			if at := time.Since(start); at > 2*time.Second && at < 3*time.Second {
				time.Sleep(3*time.Second - at)
			}
			time.Sleep(time.Millisecond)
			return nil
		}
		l := &Loop{Workers: 4, Rate: 100, Duration: 5 * time.Second, newAlarm: newTimerAlarm}
		out, err := l.Run(t.Context(), rec, times, late, step)
		if err != nil || out.Done != 500 || out.Failed != 0 || out.Missed != 0 {
			t.Fatalf("got %+v, %v", out, err)
		}
		if h, _ := late.Result(); h.TotalCount() == 0 || len(rec.All()) != 1 {
			t.Errorf("%d units tell how late the generator was, among %d series", h.TotalCount(), len(rec.All()))
		}
		h, _ := times.Result()
		var slow int64
		for _, bar := range h.Distribution() {
			if bar.From > int64(2*time.Millisecond) {
				slow += bar.Count
			}
		}
		// A hundred were due in that second, and the last of them hardly waited.
		if slow < 90 || slow > 110 {
			t.Errorf("%d units waited, want about 100", slow)
		}
		if p := time.Duration(h.ValueAtPercentile(90)); p < 400*time.Millisecond || p > 600*time.Millisecond {
			t.Errorf("the 90th percentile is %v, want about half a second", p)
		}
	})
}

// The same server under a closed loop: the stall is seen once by each worker, which
// is why the rate matters.
func TestClosedLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := NewRecorder()
		times := rec.Series("units")
		var calls atomic.Int64
		step := func(context.Context, int, int) error {
			calls.Add(1)
			time.Sleep(10 * time.Millisecond)
			return nil
		}
		l := &Loop{Workers: 2, Warmup: time.Second, Duration: 2 * time.Second}
		out, err := l.Run(t.Context(), rec, times, nil, step)
		if err != nil || out.Done != 400 || calls.Load() != 600 {
			t.Fatalf("got %+v and %d calls, %v", out, calls.Load(), err)
		}
		if len(out.Intervals) != 2 && len(out.Intervals) != 3 {
			t.Errorf("got %d samples of a second", len(out.Intervals))
		}
		if h, points := times.Result(); h.TotalCount() != 400 || len(points) != len(out.Intervals) {
			t.Errorf("%d times and %d points", h.TotalCount(), len(points))
		}
	})
}

func TestErrorsAreNoWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bad := errors.New("bad")
		rec := NewRecorder()
		times := rec.Series("units")
		l := &Loop{Workers: 2, Rate: 100, Duration: time.Second, newAlarm: newTimerAlarm}
		out, err := l.Run(t.Context(), rec, times, nil, func(_ context.Context, _, n int) error {
			if n%2 == 0 {
				return bad
			}
			return nil
		})
		if err != nil || out.Done != 50 || out.Failed != 50 || !errors.Is(out.Fault, bad) {
			t.Fatalf("got %+v, %v", out, err)
		}
		if h, _ := times.Result(); h.TotalCount() != 50 {
			t.Errorf("%d times of 50 units", h.TotalCount())
		}
	})
}

// A server that is gone costs a bounded number of attempts.
func TestGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := NewRecorder()
		l := &Loop{Workers: 1, Duration: time.Hour}
		out, err := l.Run(t.Context(), rec, rec.Series("units"), nil, func(context.Context, int, int) error { return errors.New("gone") })
		if err != nil || out.Failed != maxFailures || out.Elapsed > time.Minute {
			t.Errorf("got %+v, %v", out, err)
		}
	})
}

// A server that never answers does not hold an open loop for ever, and what it kept
// from being sent is counted.
func TestOvertime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := NewRecorder()
		l := &Loop{Workers: 1, Rate: 10, Duration: 10 * time.Second, newAlarm: newTimerAlarm}
		out, err := l.Run(t.Context(), rec, rec.Series("units"), nil, func(context.Context, int, int) error {
			time.Sleep(time.Second)
			return nil
		})
		if err != nil || out.Done+out.Missed != 100 || out.Missed < 70 {
			t.Errorf("got %+v, %v", out, err)
		}
	})
}

// What a server kept from being sent within the warm-up is not missed: it would not have
// counted.
func TestMissedAreOfTheRecordedTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := NewRecorder()
		l := &Loop{Workers: 1, Rate: 10, Warmup: 10 * time.Second, Duration: 10 * time.Second, newAlarm: newTimerAlarm}
		out, err := l.Run(t.Context(), rec, rec.Series("units"), nil, func(context.Context, int, int) error {
			time.Sleep(time.Minute)
			return nil
		})
		if err != nil || out.Done != 0 || out.Missed != 100 {
			t.Errorf("got %+v, %v; want 100 missed", out, err)
		}
	})
}

// A bound on the units leaves nine tenths of them to record, however long the warm-up
// was to be.
func TestWarmupEndsWithCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, rate := range []float64{0, 1000} {
			rec := NewRecorder()
			times := rec.Series("units")
			begun := time.Duration(0)
			start := time.Now()
			l := &Loop{
				Workers: 10, Rate: rate, Warmup: time.Hour, Duration: time.Minute, Count: 1000,
				OnBegin: func() { begun = time.Since(start) }, newAlarm: newTimerAlarm,
			}
			out, err := l.Run(t.Context(), rec, times, nil, func(context.Context, int, int) error {
				time.Sleep(time.Millisecond)
				return nil
			})
			if h, _ := times.Result(); err != nil || out.Done < 890 || out.Done > 910 || h.TotalCount() != out.Done {
				t.Errorf("rate %v: got %+v and %d times, %v", rate, out, h.TotalCount(), err)
			}
			if begun == 0 || begun > time.Second {
				t.Errorf("rate %v: the warm-up ended after %v", rate, begun)
			}
		}
	})
}

func TestCountBounds(t *testing.T) {
	for _, workers := range []int{1, 3, 7} {
		rec := NewRecorder()
		l := &Loop{Workers: workers, Duration: time.Minute, Count: 100}
		out, err := l.Run(t.Context(), rec, rec.Series("units"), nil, func(context.Context, int, int) error { return nil })
		if err != nil || out.Done != 100 {
			t.Errorf("%d workers: got %+v, %v", workers, out, err)
		}
	}
}

func TestContextEndsLoop(t *testing.T) {
	for _, rate := range []float64{0, 5} {
		ctx, cancel := context.WithCancel(t.Context())
		rec := NewRecorder()
		l := &Loop{Workers: 4, Rate: rate, Duration: time.Hour}
		var once atomic.Bool
		_, err := l.Run(ctx, rec, rec.Series("units"), nil, func(context.Context, int, int) error {
			if once.CompareAndSwap(false, true) {
				cancel()
			}
			return nil
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("rate %v: got %v", rate, err)
		}
	}
}

func TestWorkersEndByThemselves(t *testing.T) {
	rec := NewRecorder()
	l := &Loop{Workers: 3, Duration: time.Hour}
	out, err := l.Run(t.Context(), rec, rec.Series("units"), nil, func(_ context.Context, w, n int) error {
		if n == w {
			return ErrDone
		}
		return nil
	})
	if err != nil || out.Done != 3 || out.Failed != 0 {
		t.Errorf("got %+v, %v", out, err)
	}
}

// The kernel's alarm is closer than the millisecond by which package time misses.
func TestSystemAlarm(t *testing.T) {
	a, err := systemAlarm(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer a.close()
	for _, d := range []time.Duration{0, 50 * time.Microsecond, 3 * time.Millisecond} {
		begun := time.Now()
		if err := a.wait(d); err != nil || time.Since(begun) < d {
			t.Errorf("it woke after %v, not %v: %v", time.Since(begun), d, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	b, err := systemAlarm(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer b.close()
	cancel()
	if err := b.wait(time.Hour); err == nil {
		t.Error("it waits although the run has ended")
	}
}

func TestUnitsDoNotAllocate(t *testing.T) {
	rec := NewRecorder()
	s := rec.Series("units")
	rec.Begin()
	if n := testing.AllocsPerRun(100, func() { s.Record(1, rec.Now(), rec.Now()) }); n != 0 {
		t.Errorf("recording a time allocates %v times", n)
	}
}

func BenchmarkUnit(b *testing.B) {
	b.ReportAllocs()
	rec := NewRecorder()
	l := &Loop{Workers: 1, Duration: time.Hour, Count: b.N}
	if _, err := l.Run(b.Context(), rec, rec.Series("units"), nil, func(context.Context, int, int) error { return nil }); err != nil {
		b.Fatal(err)
	}
}

// Few units in a short time are as many a second as were due, not as many as the time
// between the first and the last has room for.
func TestFewUnitsAreNotOverstated(t *testing.T) {
	for _, tt := range []struct {
		rate     float64
		duration time.Duration
		count    int
		want     float64 // done each second
	}{
		{2, time.Second, 0, 2},
		{5, 2 * time.Second, 0, 5},
		{10, time.Hour, 5, 10},
	} {
		synctest.Test(t, func(t *testing.T) {
			rec := NewRecorder()
			l := &Loop{Workers: 2, Rate: tt.rate, Duration: tt.duration, Count: tt.count, newAlarm: newTimerAlarm}
			out, err := l.Run(t.Context(), rec, rec.Series("units"), nil, func(context.Context, int, int) error { return nil })
			if got := float64(out.Done) / out.Elapsed.Seconds(); err != nil || math.Abs(got-tt.want) > 0.01*tt.want {
				t.Errorf("%v/s for %v: got %v, %v", tt.rate, tt.duration, got, err)
			}
		})
	}
}
