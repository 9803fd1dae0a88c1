package health

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
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
