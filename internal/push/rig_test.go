package push

import (
	"context"
	"log/slog"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/rollcall-registry/rollcall/internal/registry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// clock is the time of a test.
type clock struct{ start time.Time }

func (c clock) Now() registry.Instant {
	now := time.Now()
	return registry.Instant{Wall: now.UnixMilli(), Lease: now.Sub(c.start)}
}

// sink lets the store be made before the pusher.
type sink struct{ registry.Sink }

func (s *sink) Emit(e *registry.Event) { s.Sink.Emit(e) }

// house is a store with a pusher.
type house struct {
	t      testing.TB
	clock  clock
	store  *registry.Store
	pusher *Pusher
	seen   *observed
}

type observed struct {
	mu             sync.Mutex
	changes, empty int
	waited         []time.Duration
}

func (o *observed) Pushed(changes int, waited time.Duration, empty bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.changes += changes
	o.waited = append(o.waited, waited)
	if empty {
		o.empty++
	}
}

func newHouse(t testing.TB, cfg Config) *house {
	out := &sink{}
	h := &house{t: t, clock: clock{time.Now()}, store: registry.NewStore(registry.DefaultConfig(), out), seen: &observed{}}
	h.pusher = New(cfg, h.store, h.clock, h.seen, slog.New(slog.DiscardHandler))
	out.Sink = h.pusher
	return h
}

// run runs the pusher until the returned function is called.
func (h *house) run() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- h.pusher.Run(ctx) }()
	return func() {
		h.t.Helper()
		cancel()
		if err := <-done; err != nil {
			h.t.Errorf("Run returned %v, want nil", err)
		}
	}
}

func (h *house) apply(c registry.Command) {
	h.t.Helper()
	if _, err := h.store.Apply(c); err != nil {
		h.t.Fatalf("%T: %v", c, err)
	}
}

func (h *house) meta() registry.Meta { return registry.Meta{At: h.clock.Now()} }

// register changes a service: weight is never the same twice in a test.
func (h *house) register(key registry.ServiceKey, port int32, weight float64) {
	h.t.Helper()
	h.apply(&registry.Register{Meta: h.meta(), Service: key, Instance: registry.Instance{
		IP: "10.0.0.1", Port: port, Cluster: registry.DefaultCluster,
		Weight: weight, Healthy: true, Enabled: true, Ephemeral: true,
	}})
}

func (h *house) subscribe(key registry.ServiceKey, sub registry.SubscriberKey, protocol registry.Protocol) *registry.Subscriber {
	h.t.Helper()
	h.apply(&registry.Subscribe{Meta: h.meta(), Subscriber: &registry.Subscriber{
		Service: key, SubscriberKey: sub, Protocol: protocol,
	}})
	return h.store.Subscriber(key, sub)
}

// remembered is what the pusher holds memory for.
func (h *house) remembered() (services, alarms int) {
	h.pusher.mu.Lock()
	defer h.pusher.mu.Unlock()
	return len(h.pusher.services), len(h.pusher.alarms)
}

func (h *house) setSwitch(entry, value string) {
	h.t.Helper()
	h.apply(&registry.SetSwitch{Meta: h.meta(), Entry: entry, Value: value})
}

func service1(n int) registry.ServiceKey {
	return registry.ServiceKey{Namespace: "public", Group: "DEFAULT_GROUP", Name: "svc-" + strconv.Itoa(n)}
}

func addr(n int) registry.SubscriberKey {
	return registry.SubscriberKey{Addr: netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(20000+n))}
}

// pushed is one call of a fake sender.
type pushed struct {
	at       time.Duration // since the test began
	key      registry.ServiceKey
	revision int64 // 0: the service was gone
	ports    []uint16
	changed  registry.Instant
}

// recorder is a sender that remembers.
type recorder struct {
	start   time.Time
	backlog time.Duration
	during  func(registry.ServiceKey) // called in Push, when set

	mu    sync.Mutex
	calls []pushed
}

func (r *recorder) Push(view *registry.View, key registry.ServiceKey, subs []*registry.Subscriber, changed registry.Instant) time.Duration {
	p := pushed{at: time.Since(r.start), key: key, changed: changed}
	if view != nil {
		p.revision = view.Revision
	}
	for _, s := range subs {
		p.ports = append(p.ports, s.Addr.Port())
	}
	r.mu.Lock()
	r.calls = append(r.calls, p)
	r.mu.Unlock()
	if r.during != nil {
		r.during(key)
	}
	return r.backlog
}

func (r *recorder) all() []pushed {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.calls)
}

func (r *recorder) times() []time.Duration {
	var at []time.Duration
	for _, p := range r.all() {
		at = append(at, p.at)
	}
	return at
}

// bubble runs a test in fake time with one subscribed service.
func bubble(t *testing.T, test func(t *testing.T, h *house, r *recorder)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, DefaultConfig())
		r := &recorder{start: time.Now()}
		h.pusher.Deliver(registry.ProtocolUDP, r)
		h.subscribe(service1(0), addr(0), registry.ProtocolUDP)
		stop := h.run()
		defer stop()
		synctest.Wait()
		test(t, h, r)
	})
}

func ms(list ...int) []time.Duration {
	var out []time.Duration
	for _, n := range list {
		out = append(out, time.Duration(n)*time.Millisecond)
	}
	return out
}
