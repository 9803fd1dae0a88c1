package health

import (
	"fmt"
	"math"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollcall-registry/rollcall/internal/health/probe"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// TestPace: no instance is probed more often than every two seconds, and no
// seldomer than the switch's maximum plus a fifth, answering or not.
func TestPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newField(t)
		for n := range 60 {
			apply(t, f.store, persistent(fmt.Sprint("svc-", n%7), n))
			switch at := fmt.Sprintf("10.0.0.%d:8080", n); n % 3 {
			case 1:
				f.answer(at, down)
				f.slow(at, 500*time.Millisecond)
			case 2:
				f.answer(at, refuses)
			}
		}
		stop := f.run()
		time.Sleep(10 * time.Minute)
		stop()
		for at, times := range f.probes {
			if len(times) < 80 {
				t.Errorf("%s: %d probes in ten minutes", at, len(times))
			}
			for i := range times[1:] {
				if gap := times[i+1].Sub(times[i]); gap < 2*time.Second || gap > 6*time.Second+f.took[at]+10*time.Millisecond {
					t.Fatalf("%s: %v between two probes", at, gap)
				}
			}
		}
		// Probes that start together must not stay together.
		moments := map[time.Time]int{}
		for _, times := range f.probes {
			moments[times[len(times)-1]]++
		}
		for at, n := range moments {
			if n > 3 {
				t.Errorf("%d probes at %v", n, at)
			}
		}
	})
}

func TestConcurrencyIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newField(t)
		f.checker.cfg.ProbeConcurrency = 8
		for n := range 500 {
			apply(t, f.store, persistent("orders", n))
			at := fmt.Sprintf("10.0.%d.%d:8080", n>>8, n&255)
			f.slow(at, 500*time.Millisecond)
			f.answer(at, down)
		}
		stop := f.run()
		time.Sleep(10 * time.Minute)
		stop()
		if f.most != 8 {
			t.Errorf("%d probes at once, want 8", f.most)
		}
		least, most := math.MaxInt, 0
		for _, times := range f.probes {
			least, most = min(least, len(times)), max(most, len(times))
		}
		// 8 workers do 16 probes a second: 19.2 for each of 500 in ten minutes.
		if len(f.probes) != 500 || least < 17 || most > 21 {
			t.Errorf("%d instances probed, %d to %d times", len(f.probes), least, most)
		}
	})
}

func TestRateIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newField(t)
		f.checker.cfg.ProbeRate = 100
		for n := range 1000 {
			apply(t, f.store, persistent("orders", n))
		}
		stop := f.run()
		time.Sleep(102 * time.Second) // 2 s until the first
		stop()
		total, seconds := 0, map[int64]int{}
		for _, times := range f.probes {
			if n := len(times); n < 9 || n > 11 {
				t.Errorf("%d probes of an instance, want 10", n)
			}
			total += len(times)
			for _, at := range times {
				seconds[at.Unix()]++
			}
		}
		if total < 9900 || total > 10010 {
			t.Errorf("%d probes in 100 s, want 10,000", total)
		}
		for second, n := range seconds {
			if n > 106 {
				t.Errorf("%d probes in second %d", n, second)
			}
		}
	})
}

func TestResponseTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newField(t)
		r := persistent("orders", 1)
		apply(t, f.store, r)
		before := f.checker.RT(r.Service, registry.DefaultCluster)
		if before.BestMillis != 9223372036854775807 || before.WorstMillis != 0 ||
			before.NormalizedMillis < 2000 || before.NormalizedMillis >= 7000 {
			t.Errorf("before any probe: %+v", before)
		}
		if before != f.checker.RT(r.Service, registry.DefaultCluster) {
			t.Error("another answer at the second look")
		}
		var seen, up atomic.Int64
		f.checker.OnProbe = func(kind registry.CheckType, o probe.Outcome, took time.Duration) {
			if kind != registry.CheckTCP || took != 40*time.Millisecond {
				t.Errorf("told of %s %v", kind, took)
			}
			seen.Add(1)
			if o == probe.Up {
				up.Add(1)
			}
		}
		f.slow("10.0.0.1:8080", 40*time.Millisecond)
		stop := f.run()
		time.Sleep(2 * time.Minute)
		if got, want := f.checker.RT(r.Service, registry.DefaultCluster), (RT{40, 40, 1000}); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
		f.answer("10.0.0.1:8080", refuses)
		f.wait(r, false)
		if got := f.checker.RT(r.Service, registry.DefaultCluster); got.WorstMillis != 5000 || got.NormalizedMillis != 2000 {
			t.Errorf("after a refusal: %+v", got)
		}
		apply(t, f.store, removal(r))
		synctest.Wait()
		if got := f.checker.RT(r.Service, registry.DefaultCluster); got != before {
			t.Errorf("after its end: %+v", got)
		}
		stop()
		if got := f.checker.Checks(registry.CheckTCP); got != seen.Load() || got != up.Load()+1 || got < 40 {
			t.Errorf("%d checks, told of %d and that %d answered", got, seen.Load(), up.Load())
		}
		if got := f.checker.Checks(registry.CheckHTTP) + f.checker.Checks(registry.CheckMySQL) + f.checker.Checks(registry.CheckNone); got != 0 {
			t.Errorf("%d checks of other kinds", got)
		}
	})
}

func TestPaceFormula(t *testing.T) {
	tcp := registry.DefaultSwitches().TCPHealthParams
	s := time.Second
	for _, test := range []struct {
		name     string
		smoothed time.Duration
		outcome  probe.Outcome
		took     time.Duration
		params   registry.ProbeParams
		want     time.Duration
	}{
		{"an answer", 4 * s, probe.Up, 0, tcp, 3 * s},
		{"never below min", 1 * s, probe.Up, 0, tcp, 1 * s},
		{"a time-out", 2 * s, probe.Down, 500 * time.Millisecond, tcp, 2500 * time.Millisecond},
		{"never above max", 4500 * time.Millisecond, probe.Down, 0, tcp, 5 * s},
		{"a refusal", 1 * s, probe.Refused, 0, tcp, 2 * s},
		{"min above max", 1 * s, probe.Up, 0, registry.ProbeParams{Max: 3000, Min: 4000, Factor: 0.5}, 4 * s},
		{"negative", 1 * s, probe.Up, 0, registry.ProbeParams{Max: -1, Min: -5, Factor: -3}, 0},
		{"endless", 1 * s, probe.Refused, 0, registry.ProbeParams{Max: math.MaxInt, Min: math.MaxInt}, longestPeriod},
	} {
		got := smooth(test.smoothed, cost(test.outcome, test.took, test.smoothed, test.params), test.params)
		if got.Round(time.Millisecond) != test.want {
			t.Errorf("%s: got %v, want %v", test.name, got, test.want)
		}
	}
	for _, r := range []float64{0, 0.5, 0.999} {
		if d := spread(time.Second, 2*s, r); d < 2*s || d > 2400*time.Millisecond {
			t.Errorf("a second is spread to %v", d)
		}
		if d := spread(5*s, 2*s, r); d < 4*s || d > 6*s {
			t.Errorf("five seconds are spread to %v", d)
		}
	}
}
