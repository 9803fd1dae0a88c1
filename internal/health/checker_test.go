package health

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollcall-registry/rollcall/internal/health/probe"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

func TestVerdicts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newField(t)
		r := persistent("orders", 1)
		apply(t, f.store, r)
		defer f.run()()
		const at = "10.0.0.1:8080"

		start := time.Now()
		for f.count(at) == 0 {
			time.Sleep(10 * time.Millisecond)
		}
		if first := time.Since(start); first < 2*time.Second || first > 7*time.Second+10*time.Millisecond {
			t.Errorf("first probe after %v, want 2 to 7 s", first)
		}
		time.Sleep(5 * time.Millisecond) // it lands
		f.answer(at, down)
		before := f.count(at)
		f.wait(r, false)
		if n := f.count(at) - before; n != 3 {
			t.Errorf("unhealthy after %d time-outs, want 3", n)
		}
		f.answer(at, answers)
		before = f.count(at)
		f.wait(r, true)
		if n := f.count(at) - before; n != 3 {
			t.Errorf("healthy after %d answers, want 3", n)
		}
		f.answer(at, refuses)
		before = f.count(at)
		f.wait(r, false)
		if n := f.count(at) - before; n != 1 {
			t.Errorf("unhealthy after %d refusals, want 1", n)
		}
		want := []string{
			"public/orders 10.0.0.1:8080 false: TCP 10.0.0.1:8080: no answer in time, 3 times in a row",
			"public/orders 10.0.0.1:8080 true: TCP 10.0.0.1:8080 answered 3 times in a row",
			"public/orders 10.0.0.1:8080 false: TCP 10.0.0.1:8080: connection refused",
		}
		if got := f.told(); !slices.Equal(got, want) {
			t.Errorf("reported\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	})
}

func TestContraryResultsMustFollowEachOther(t *testing.T) {
	one := &target{healthy: true}
	for i, step := range []struct {
		outcome probe.Outcome
		flips   bool
	}{
		{probe.Down, false},
		{probe.Down, false},
		{probe.Up, false},
		{probe.Down, false},
		{probe.Down, false},
		{probe.Down, true},
		{probe.Refused, true},
	} {
		if got := one.judge(step.outcome, 3); got != step.flips {
			t.Errorf("step %d: flips %v", i, got)
		}
	}
	if !(&target{healthy: true}).judge(probe.Down, 0) {
		t.Error("a switch below 1 must not be worse than 1")
	}
	if (&target{}).judge(probe.Refused, 3) {
		t.Error("a refusal makes an unhealthy instance healthy")
	}
}

func TestCheckTimesIsLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newField(t)
		r := persistent("orders", 1)
		apply(t, f.store, r)
		defer f.run()()
		apply(t, f.store, &registry.SetSwitch{Entry: "healthCheckTimes", Value: "1"})
		f.answer("10.0.0.1:8080", down)
		f.wait(r, false)
		if n := f.count("10.0.0.1:8080"); n != 1 {
			t.Errorf("%d probes, want 1", n)
		}
	})
}

// TestSamePlaceInTwoNamespaces: B92.
func TestSamePlaceInTwoNamespaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newField(t)
		one, two := persistent("svc-hb", 1), persistent("svc-hb", 1)
		one.Service.Namespace, two.Service.Namespace = "n1", "n2"
		apply(t, f.store, one)
		apply(t, f.store, two)
		defer f.run()()
		const at = "10.0.0.1:8080"
		f.answer(at, refuses)
		f.wait(one, false)
		f.wait(two, false)
		f.answer(at, answers)
		f.wait(one, true)
		f.wait(two, true)
		apply(t, f.store, removal(one))
		f.answer(at, refuses)
		f.wait(two, false)
		if got := f.checker.Stats().Targets; got != 1 {
			t.Errorf("%d targets, want 1", got)
		}
	})
}

// TestNone: B98. A cluster without a probe is left alone from the moment that it
// is set, and its instances keep the health that they were given.
func TestNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newField(t)
		old := persistent("svc-hn", 1)
		apply(t, f.store, old)
		defer f.run()()
		const at = "10.0.0.1:8080"
		f.answer(at, refuses)
		f.wait(old, false)
		apply(t, f.store, checkType(old.Service, registry.CheckNone))
		apply(t, f.store, &registry.SetHealth{Service: old.Service, Instance: old.Instance.Key(), Healthy: true, All: true})
		fresh := persistent("svc-hn", 2)
		apply(t, f.store, fresh)
		synctest.Wait()
		before := f.count(at)
		time.Sleep(time.Minute)
		if f.count(at) != before || f.count("10.0.0.2:8080") > 0 {
			t.Error("probed without a probe")
		}
		if !f.healthy(old.Service, old.Instance.Key()) || !f.healthy(fresh.Service, fresh.Instance.Key()) {
			t.Error("lost its health")
		}
		apply(t, f.store, checkType(old.Service, registry.CheckHTTP))
		if took := f.wait(old, false); took > 7*time.Second {
			t.Errorf("probed %v after a probe was set again", took)
		}
	})
}

// TestClusterSettingsCountAtOnce: also for the probe that runs.
func TestClusterSettingsCountAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newField(t)
		f.checker.cfg.ProbeTimeout = time.Hour
		r := persistent("orders", 1)
		apply(t, f.store, r)
		defer f.run()()
		f.slow("10.0.0.1:8080", 10*time.Minute)
		time.Sleep(8 * time.Second)
		if f.checker.Stats().InFlight != 1 {
			t.Fatal("no probe runs")
		}
		f.answer("10.0.0.1:99", refuses)
		c := registry.NewCluster(registry.DefaultCluster)
		c.CheckPort, c.UseInstancePort = 99, false
		c.Checker = registry.HealthCheck{Type: registry.CheckHTTP, Path: "/up", Headers: "a:b", ExpectedCode: 204}
		apply(t, f.store, &registry.SetCluster{Service: r.Service, Cluster: *c})
		if took := f.wait(r, false); took > 1200*time.Millisecond {
			t.Errorf("took %v", took)
		}
		want := probe.Target{Host: "10.0.0.1", Port: 99, Check: c.Checker}
		f.mu.Lock()
		if got := f.aims["10.0.0.1:99"]; got != want {
			t.Errorf("probed %+v, want %+v", got, want)
		}
		f.mu.Unlock()
		if s := f.checker.Stats(); s.InFlight != 0 || s.Targets != 1 {
			t.Errorf("%+v: the old probe still runs", s)
		}
		c.Checker.Type = registry.CheckMySQL // which has no check port in Nacos
		apply(t, f.store, &registry.SetCluster{Service: r.Service, Cluster: *c})
		f.slow("10.0.0.1:8080", 0)
		f.wait(r, true)
	})
}

func TestDeregistrationCancels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newField(t)
		r := persistent("orders", 1)
		apply(t, f.store, r)
		defer f.run()()
		f.slow("10.0.0.1:8080", time.Hour)
		time.Sleep(8 * time.Second)
		if f.checker.Stats().InFlight != 1 {
			t.Fatal("no probe runs")
		}
		apply(t, f.store, removal(r))
		synctest.Wait()
		if s := f.checker.Stats(); s.InFlight != 0 || s.Targets != 0 {
			t.Errorf("%+v after the deregistration", s)
		}
		time.Sleep(time.Minute)
		if n := f.count("10.0.0.1:8080"); n != 1 {
			t.Errorf("probed %d times", n)
		}
	})
}

// TestChangesAreGathered: registering many instances of a service reads it a few
// times only.
func TestChangesAreGathered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newField(t)
		counted := &countingSource{Source: f.store}
		f.checker.source = counted
		defer f.run()()
		synctest.Wait()
		for n := range 1000 {
			apply(t, f.store, persistent("orders", n))
			time.Sleep(time.Millisecond)
		}
		time.Sleep(gatherFor)
		if got := f.checker.Stats().Targets; got != 1000 {
			t.Errorf("%d targets, want 1000", got)
		}
		if got := counted.reads.Load(); got > 8 {
			t.Errorf("read %d times", got)
		}
	})
}

// countingSource counts how often a service is read.
type countingSource struct {
	Source
	reads atomic.Int64
}

func (s *countingSource) Standings(key registry.ServiceKey, at registry.Instant) []registry.Standing {
	s.reads.Add(1)
	return s.Source.Standings(key, at)
}

func TestSwitchStopsAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newField(t)
		r := persistent("orders", 1)
		apply(t, f.store, r)
		defer f.run()()
		const at = "10.0.0.1:8080"
		time.Sleep(10 * time.Second)
		f.answer(at, refuses)
		apply(t, f.store, &registry.SetSwitch{Entry: "check", Value: "false"})
		before := f.count(at)
		time.Sleep(time.Minute)
		if f.count(at) != before || !f.healthy(r.Service, r.Instance.Key()) {
			t.Error("probed while checks were off")
		}
		apply(t, f.store, &registry.SetSwitch{Entry: "check", Value: "true"})
		f.wait(r, false)
	})
}

func TestServiceSwitch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newField(t)
		r := persistent("orders", 1)
		apply(t, f.store, r)
		apply(t, f.store, &registry.UpdateService{Service: r.Service, Info: registry.ServiceInfo{Metadata: `{"preserved.probe.check":"off"}`}})
		defer f.run()()
		time.Sleep(time.Minute)
		if n := f.count("10.0.0.1:8080"); n > 0 {
			t.Errorf("probed %d times", n)
		}
		apply(t, f.store, &registry.UpdateService{Service: r.Service})
		time.Sleep(8 * time.Second)
		if f.count("10.0.0.1:8080") == 0 {
			t.Error("not probed")
		}
	})
}

func TestMarkedAndEphemeralAreLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newField(t)
		marked := persistent("orders", 1)
		marked.Instance.Marked = true
		apply(t, f.store, marked)
		apply(t, f.store, ephemeral(registry.Instant{}, "orders", 2, ""))
		// Persistent, and kept by a client's beats too: probed.
		apply(t, f.store, persistent("orders", 3))
		apply(t, f.store, ephemeral(registry.Instant{}, "orders", 3, ""))
		stop := f.run()
		time.Sleep(time.Minute)
		stop()
		if len(f.probes) != 1 || len(f.probes["10.0.0.3:8080"]) == 0 {
			t.Errorf("probed %v", f.probes)
		}
	})
}

// TestEventsMayBeMissed: the store is read again in time.
func TestEventsMayBeMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newField(t)
		one, two, gone := persistent("orders", 1), persistent("orders", 2), persistent("orders", 3)
		apply(t, f.store, one)
		apply(t, f.store, gone)
		defer f.run()()
		time.Sleep(10 * time.Second)
		f.out.set()
		apply(t, f.store, two)
		apply(t, f.store, removal(gone))
		apply(t, f.store, &registry.SetHealth{Service: one.Service, Instance: one.Instance.Key(), All: true})
		f.wait(one, true)
		f.answer("10.0.0.2:8080", refuses)
		f.wait(two, false)
		if got := f.checker.Stats().Targets; got != 2 {
			t.Errorf("%d targets, want 2", got)
		}
	})
}

// TestOperatorSetsHealth: the probes decide again, from the new state on.
func TestOperatorSetsHealth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newField(t)
		r := persistent("orders", 1)
		apply(t, f.store, r)
		defer f.run()()
		time.Sleep(10 * time.Second)
		for range 3 {
			apply(t, f.store, &registry.SetHealth{
				Meta:    registry.Meta{Cause: registry.Cause{Kind: registry.CauseRequest}},
				Service: r.Service, Instance: r.Instance.Key(), All: true,
			})
			if f.healthy(r.Service, r.Instance.Key()) {
				t.Fatal("the operator's word does not count")
			}
			if took := f.wait(r, true); took > 10*time.Second {
				t.Errorf("took %v", took)
			}
		}
	})
}

// TestOverridesSurviveFlips: B94.
func TestOverridesSurviveFlips(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newField(t)
		r := persistent("orders", 1)
		apply(t, f.store, r)
		weight, enabled, metadata := 0.0, false, registry.Metadata(`{"v":"2"}`)
		apply(t, f.store, &registry.SetOverride{Service: r.Service, Entries: []registry.TargetOverride{{
			Target: r.Instance.Key(), Override: registry.Override{Weight: &weight, Enabled: &enabled, Metadata: &metadata},
		}}})
		defer f.run()()
		for _, r2 := range []probe.Result{refuses, answers} {
			f.answer("10.0.0.1:8080", r2)
			f.wait(r, r2.Outcome == probe.Up)
			i := f.store.View(r.Service).Find(r.Instance.Key())
			if i.Enabled || i.Weight != 0 || i.Metadata != metadata {
				t.Errorf("a probe changed it to %+v", i)
			}
		}
	})
}

// TestRestart: B100. Health is the last known one, and follows reality soon.
func TestRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newField(t)
		f.out.set() // what is replayed is not heard
		var all []*registry.Register
		for n := range 20 {
			r := persistent("orders", n)
			r.Instance.Healthy = n < 10
			apply(t, f.store, r)
			all = append(all, r)
			if n >= 10 {
				f.answer(fmt.Sprintf("10.0.0.%d:8080", n), refuses)
			}
		}
		f.out.set(f.checker)
		defer f.run()()
		time.Sleep(time.Minute)
		for n, r := range all {
			if f.healthy(r.Service, r.Instance.Key()) != (n < 10) {
				t.Errorf("instance %d changed its health", n)
			}
		}
		if got := f.told(); len(got) > 0 {
			t.Errorf("reported %q", got)
		}
		for n := range 5 {
			f.answer(fmt.Sprintf("10.0.0.%d:8080", n), refuses)
		}
		for n := 10; n < 20; n++ {
			f.answer(fmt.Sprintf("10.0.0.%d:8080", n), answers)
		}
		for n, r := range all {
			f.wait(r, n >= 5)
		}
	})
}

func TestReportsAreRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newField(t)
		r := persistent("orders", 1)
		apply(t, f.store, r)
		f.answer("10.0.0.1:8080", down)
		f.fault = errors.New("not now")
		defer f.run()()
		for f.count("10.0.0.1:8080") < 6 {
			time.Sleep(time.Second)
		}
		f.mu.Lock()
		if len(f.reports) != 3 && len(f.reports) != 4 { // from the third probe on
			t.Errorf("reported %q", f.reports)
		}
		f.fault = nil
		f.mu.Unlock()
		f.wait(r, false)
		if got := f.checker.Stats().Flips; got != 1 {
			t.Errorf("%d flips counted", got)
		}
	})
}

// TestSlowServerBlamesNobody: a probe that was held up by this server does not
// count, and one that the configuration denies says nothing.
func TestSlowServerBlamesNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newField(t)
		slow, denied := persistent("orders", 1), persistent("orders", 2)
		apply(t, f.store, slow)
		apply(t, f.store, denied)
		f.answer("10.0.0.1:8080", down)
		f.slow("10.0.0.1:8080", 30*time.Second)
		f.answer("10.0.0.2:8080", probe.Result{Outcome: probe.Denied})
		defer f.run()()
		time.Sleep(5 * time.Minute)
		if got := f.told(); len(got) > 0 {
			t.Errorf("reported %q", got)
		}
		if s := f.checker.Stats(); s.Late < 5 || s.Denied < 30 {
			t.Errorf("counted %+v", s)
		}
	})
}

// TestEmitNeverBlocks: events before, during and after Run, from many goroutines.
func TestEmitNeverBlocks(t *testing.T) {
	f := newField(t)
	emit := func() {
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				for n := range 1000 {
					f.checker.Emit(&registry.Event{Kind: registry.ServiceUpdated, Service: serviceKey(fmt.Sprint("svc-", n%100))})
				}
			})
		}
		all.Wait()
	}
	emit()
	if n := len(f.checker.changes.take()); n != 100 {
		t.Errorf("%d services are noted, want 100", n)
	}
	stop := f.run()
	emit()
	stop()
	emit()
	if n := len(f.checker.changes.take()); n != 0 {
		t.Errorf("%d services are noted after the end", n)
	}
}
