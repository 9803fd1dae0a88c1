package naming

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"testing"
	"time"

	"github.com/rollcall-registry/rollcall/internal/registry"
)

// quickLog applies durable commands at once, in their durable form.
type quickLog struct{ machine *Machine }

func (l quickLog) Propose(_ context.Context, c registry.Command) (registry.Result, error) {
	data, err := registry.EncodeCommand(c)
	if err != nil {
		return registry.Result{}, err
	}
	done := l.machine.Apply(data, 0).(Applied)
	return done.Result, done.Err
}

type noEvents struct{}

func (noEvents) Emit(*registry.Event) {}

// handClock moves only when it is told to.
type handClock struct{ now registry.Instant }

func (c *handClock) Now() registry.Instant { return c.now }

// rig is a core with its store, and a clock in the test's hand.
type rig struct {
	*Core
	t     testing.TB
	store *registry.Store
	clock *handClock
}

func newRig(t testing.TB) *rig {
	clock := &handClock{registry.Instant{Wall: 1795996800000}} // 2026-11-30T00:00:00Z
	store := registry.NewStore(registry.DefaultConfig(), noEvents{})
	core := New(DefaultConfig(), store, quickLog{NewMachine(store, clock)}, clock, slog.New(slog.DiscardHandler))
	return &rig{Core: core, t: t, store: store, clock: clock}
}

var (
	testCause = registry.Cause{Kind: registry.CauseRequest, API: "test"}
	orders    = registry.ServiceKey{Namespace: registry.DefaultNamespace, Group: registry.DefaultGroup, Name: "orders"}
)

func key(ip string, port int32, cluster string) registry.InstanceKey {
	return registry.InstanceKey{IP: ip, Port: port, Cluster: cluster}
}

// registration is one that 2.x makes when the client says no more than needed.
func registration(k registry.InstanceKey, change ...func(*registry.Instance)) Registration {
	i := registry.Instance{
		IP: k.IP, Port: k.Port, Cluster: k.Cluster, Weight: 1, Healthy: true, Enabled: true, Ephemeral: true,
	}
	for _, f := range change {
		f(&i)
	}
	return Registration{Service: orders, Instance: i}
}

func persistent(i *registry.Instance) { i.Ephemeral = false }

func described(text string) func(*registry.Instance) {
	return func(i *registry.Instance) { i.Metadata = registry.Metadata(text) }
}

func (r *rig) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) register(reg Registration) {
	r.t.Helper()
	r.must(r.Register(r.t.Context(), testCause, reg))
}

// refused checks the code of a refusal.
func (r *rig) refused(what string, err error, code registry.Code) {
	r.t.Helper()
	var refusal *registry.Error
	if !errors.As(err, &refusal) || refusal.Code != code {
		r.t.Errorf("%s: got %v, want code %d", what, err, code)
	}
}

// clusters returns the clusters of the instances of orders, in order.
func (r *rig) clusters() (list []string) {
	if view := r.store.View(orders); view != nil {
		for _, i := range view.Instances {
			list = append(list, i.Cluster)
		}
	}
	return list
}

func (r *rig) metadata(k registry.InstanceKey) string {
	r.t.Helper()
	i := r.instance(orders, k)
	if i == nil {
		r.t.Fatalf("%v is not there", k)
	}
	return i.Metadata.JSON()
}

func (r *rig) subscribe(addr, clusters string) {
	r.t.Helper()
	r.must(r.Subscribe(r.t.Context(), testCause, &registry.Subscriber{
		SubscriberKey: registry.SubscriberKey{Addr: netip.MustParseAddrPort(addr), Clusters: clusters},
		Service:       orders, Protocol: registry.ProtocolUDP,
	}))
}

func (r *rig) advance(d time.Duration) {
	r.clock.now.Wall += d.Milliseconds()
	r.clock.now.Lease += d
}
