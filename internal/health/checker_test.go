package health

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
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

// field is a store with a checker over instances whose answers a test chooses.
type field struct {
	t       *testing.T
	store   *registry.Store
	out     *sinks
	checker *Checker

	mu      sync.Mutex
	answers map[string]probe.Result // by address; Up when there is none
	took    map[string]time.Duration
	probes  map[string][]time.Time
	aims    map[string]probe.Target // the latest
	reports []string
	fault   error // what a report is answered with
	flying  int
	most    int
}

func newField(t *testing.T) *field {
	f := &field{
		t: t, out: &sinks{},
		answers: map[string]probe.Result{}, took: map[string]time.Duration{},
		probes: map[string][]time.Time{}, aims: map[string]probe.Target{},
	}
	f.store = registry.NewStore(registry.DefaultConfig(), f.out)
	f.checker = NewChecker(DefaultConfig(), f.store, f, slog.New(slog.DiscardHandler))
	f.checker.prober = f
	f.out.set(f.checker)
	return f
}

// Probe implements [Prober].
func (f *field) Probe(ctx context.Context, target probe.Target) probe.Result {
	at := target.Address()
	f.mu.Lock()
	f.probes[at] = append(f.probes[at], time.Now())
	f.aims[at] = target
	f.flying++
	f.most = max(f.most, f.flying)
	took := f.took[at]
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		f.flying--
		f.mu.Unlock()
	}()
	if took == 0 {
		took = 2 * time.Millisecond
	}
	select {
	case <-ctx.Done():
		return probe.Result{Outcome: probe.Down, Detail: ctx.Err().Error()}
	case <-time.After(took):
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if r, ok := f.answers[at]; ok {
		return r
	}
	return probe.Result{Outcome: probe.Up}
}

// Probed implements [Reporter].
func (f *field) Probed(key registry.ServiceKey, instance registry.InstanceKey, healthy bool, detail string) error {
	f.mu.Lock()
	fault := f.fault
	f.reports = append(f.reports, fmt.Sprintf("%s/%s %s:%d %v: %s", key.Namespace, key.Name, instance.IP, instance.Port, healthy, detail))
	f.mu.Unlock()
	if fault != nil {
		return fault
	}
	_, err := f.store.Apply(&registry.SetHealth{
		Meta: registry.Meta{Cause: registry.Cause{Kind: registry.CauseProbe}}, Service: key, Instance: instance,
		Healthy: healthy, Kind: registry.OwnerDurable,
	})
	return err
}

// run starts the checker and returns what stops it and waits for it.
func (f *field) run() (stop func()) {
	ctx, cancel := context.WithCancel(f.t.Context())
	ended := make(chan error)
	go func() { ended <- f.checker.Run(ctx) }()
	return func() {
		cancel()
		if err := <-ended; err != nil {
			f.t.Error(err)
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.flying > 0 {
			f.t.Errorf("%d probes run after Run ended", f.flying)
		}
	}
}

func (f *field) answer(at string, r probe.Result) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answers[at] = r
}

// slow makes each probe of an address take d.
func (f *field) slow(at string, d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.took[at] = d
}

// told returns what was reported so far.
func (f *field) told() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.reports)
}

// count returns how often an address was probed.
func (f *field) count(at string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.probes[at])
}

func (f *field) healthy(key registry.ServiceKey, instance registry.InstanceKey) bool {
	f.t.Helper()
	view := f.store.View(key)
	if view == nil || view.Find(instance) == nil {
		f.t.Fatalf("%v has no %v", key, instance)
	}
	return view.Find(instance).Healthy
}

// wait lets time pass until the instance has the health, and returns how long
// that took; at most a minute.
func (f *field) wait(r *registry.Register, healthy bool) time.Duration {
	f.t.Helper()
	start := time.Now()
	for f.healthy(r.Service, r.Instance.Key()) != healthy {
		if time.Since(start) > time.Minute {
			f.t.Fatalf("%v is not healthy=%v after a minute", r.Instance.Key(), healthy)
		}
		time.Sleep(10 * time.Millisecond)
	}
	return time.Since(start)
}

// persistent is the registration of a persistent instance 10.0.0.n:8080.
func persistent(service string, n int) *registry.Register {
	r := ephemeral(registry.Instant{}, service, n, "")
	r.Owner.Kind = registry.OwnerDurable
	r.Instance.Ephemeral = false
	return r
}

func removal(r *registry.Register) *registry.Deregister {
	return &registry.Deregister{Service: r.Service, Owner: r.Owner, Instance: r.Instance.Key()}
}

func checkType(key registry.ServiceKey, kind registry.CheckType) *registry.SetCluster {
	c := registry.NewCluster(registry.DefaultCluster)
	c.Checker.Type = kind
	return &registry.SetCluster{Service: key, Cluster: *c}
}

var (
	down    = probe.Result{Outcome: probe.Down, Detail: "no answer in time"}
	refuses = probe.Result{Outcome: probe.Refused, Detail: "connection refused"}
	answers = probe.Result{Outcome: probe.Up}
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

// BenchmarkRound measures what one probe costs the checker beside the probe
// itself: finding it due, a worker, the verdict, the next time; 10,000 instances.
func BenchmarkRound(b *testing.B) {
	store := registry.NewStore(registry.DefaultConfig(), &sinks{})
	for n := range 10_000 {
		apply(b, store, persistent(fmt.Sprint("svc-", n/10), n))
	}
	c := NewChecker(DefaultConfig(), store, nil, slog.New(slog.DiscardHandler))
	c.prober = ready{}
	c.cfg.ProbeRate = 1_000_000
	p := newPatrol(c)
	p.readAll(b.Context())
	now := time.Now()
	b.ReportAllocs()
	for b.Loop() {
		now = p.agenda.next().due
		p.launchDue(b.Context(), now)
		for p.flying > 0 {
			p.land(<-p.landed, now)
		}
	}
	p.end()
}

// BenchmarkReadAll measures the start of a checker over 100,000 ephemeral
// instances, which it has to look through.
func BenchmarkReadAll(b *testing.B) {
	store := registry.NewStore(registry.DefaultConfig(), &sinks{})
	for n := range 100_000 {
		apply(b, store, ephemeral(registry.Instant{}, fmt.Sprint("svc-", n/10), n, ""))
	}
	c := NewChecker(DefaultConfig(), store, nil, slog.New(slog.DiscardHandler))
	b.ReportAllocs()
	for b.Loop() {
		newPatrol(c).readAll(b.Context())
	}
}

// ready answers every probe at once.
type ready struct{}

func (ready) Probe(context.Context, probe.Target) probe.Result {
	return probe.Result{Outcome: probe.Up}
}
