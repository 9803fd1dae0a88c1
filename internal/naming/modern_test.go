package naming

import (
	"math"
	"slices"
	"testing"

	"github.com/rollcall-registry/rollcall/internal/registry"
)

func TestModernRegistrationsAreChecked(t *testing.T) {
	r := newRig(t)
	k := key("10.0.0.1", 80, "DEFAULT")
	for _, tt := range []struct {
		what string
		reg  Registration
		code registry.Code
	}{
		{"life times", registration(k, described(`{"preserved.heart.beat.interval":"9000","preserved.ip.delete.timeout":"3000"}`)), registry.InvalidBeatTimes},
		{"cluster", registration(key("10.0.0.1", 80, "a_b")), registry.InvalidClusterName},
		{"weight", registration(k, func(i *registry.Instance) { i.Weight = 10001 }), registry.InvalidWeight},
		{"no number", registration(k, func(i *registry.Instance) { i.Weight = math.NaN() }), registry.InvalidWeight},
	} {
		r.refused(tt.what, r.Register(t.Context(), testCause, tt.reg.Modern()), tt.code)
		r.refused(tt.what+" in an overlay", r.Overlay(t.Context(), testCause, tt.reg.Modern()), tt.code)
	}
	odd := registration(k)
	odd.Service.Name = "@x"
	r.refused("service name", r.Register(t.Context(), testCause, odd.Modern()), registry.RefusedName)
	if view := r.store.View(orders); view != nil {
		t.Error("a refused registration left its service behind")
	}
	small := registration(k, func(i *registry.Instance) { i.Weight = 0.001 })
	small.Service.Name = "a/b c?" // 1.x would refuse the name
	r.refused("blank in the name", r.Register(t.Context(), testCause, small.Modern()), registry.RefusedName)
	small.Service.Name = "a/b?"
	r.register(small.Modern())
	if got := r.instance(small.Service, k).Weight; got != 0.001 {
		t.Errorf("weight %v, want it as registered", got)
	}
}

func TestModernRegistrationsHaveAKind(t *testing.T) {
	r := newRig(t)
	first, second := key("10.0.0.1", 80, "DEFAULT"), key("10.0.0.2", 80, "DEFAULT")
	r.register(registration(first).Modern())
	r.refused("persistent into ephemeral", r.Register(t.Context(), testCause, registration(second, persistent).Modern()), registry.KindMismatch)
	r.register(registration(second, persistent)) // 1.x asks nothing
	r.register(registration(first, func(i *registry.Instance) { i.Healthy = false }).Modern())
	if r.instance(orders, first).Healthy {
		t.Error("the second registration did not count for health")
	}
}

func TestModernAddressesAreInOneCluster(t *testing.T) {
	for _, kind := range []func(*registry.Instance){func(*registry.Instance) {}, persistent} {
		r := newRig(t)
		r.register(registration(key("fe80::1", 80, "c1"), kind).Modern())
		r.register(registration(key("FE80:0::1", 80, "c2"), kind).Modern())
		if got := r.clusters(); !slices.Equal(got, []string{"c2"}) {
			t.Errorf("in clusters %v, want the later one alone", got)
		}
		r.register(registration(key("fe80::1", 80, "c3"), kind)) // 1.x has both
		if got := r.clusters(); !slices.Equal(got, []string{"c2", "c3"}) {
			t.Errorf("in clusters %v, want both", got)
		}
		ephemeral := r.store.View(orders).Instances[0].Ephemeral
		r.must(r.DeregisterAddress(t.Context(), testCause, orders, "fe80::1", 80, !ephemeral))
		if got := r.clusters(); len(got) != 2 {
			t.Errorf("deregistering the other kind left %v", got)
		}
		r.must(r.DeregisterAddress(t.Context(), testCause, orders, "[fe80::1]", 80, ephemeral))
		if got := r.clusters(); len(got) != 0 {
			t.Errorf("in clusters %v after deregistering the address", got)
		}
	}
	r := newRig(t)
	r.must(r.DeregisterAddress(t.Context(), testCause, orders, "10.0.0.1", 80, true)) // nothing there
}

func TestConnectionsAreLeftAlone(t *testing.T) {
	r := newRig(t)
	r.store.OpenClient("c1")
	held := registration(key("10.0.0.1", 80, "c1"))
	held.Client = "c1"
	r.register(held.Modern())
	r.register(registration(key("10.0.0.1", 80, "c2")).Modern())
	r.must(r.DeregisterAddress(t.Context(), testCause, orders, "10.0.0.1", 80, true))
	if got := r.clusters(); !slices.Equal(got, []string{"c1"}) {
		t.Errorf("in clusters %v, want that of the connection", got)
	}
	held.Instance.Cluster = "c3"
	r.register(held.Modern())
	if got := r.clusters(); !slices.Equal(got, []string{"c1", "c3"}) {
		t.Errorf("in clusters %v: what a connection holds is its front-end's business", got)
	}
}

func TestOverlay(t *testing.T) {
	r := newRig(t)
	k := key("10.0.0.1", 80, "DEFAULT")
	r.refused("no service", r.Overlay(t.Context(), testCause, registration(k).Modern()), registry.ServiceNotFound)
	r.register(registration(k, described(`{"own":"1"}`)).Modern())
	over := registration(k, described(`{"x":"1"}`), func(i *registry.Instance) { i.Weight, i.Enabled = 5, false })
	r.must(r.Overlay(t.Context(), testCause, over.Modern()))
	if i := r.instance(orders, k); i.Weight != 5 || i.Enabled || r.metadata(k) != `{"own":"1","x":"1"}` {
		t.Errorf("got %+v", i)
	}
	r.register(registration(k, described(`{"own":"2"}`)).Modern())
	if i := r.instance(orders, k); i.Weight != 5 || i.Enabled || r.metadata(k) != `{"own":"2","x":"1"}` {
		t.Errorf("after a registration: got %+v", i)
	}
	r.must(r.Overlay(t.Context(), testCause, registration(k, described(`{"y":"1"}`)).Modern()))
	if i := r.instance(orders, k); i.Weight != 1 || !i.Enabled || r.metadata(k) != `{"own":"2","y":"1"}` {
		t.Errorf("after the next one: got %+v", i)
	}
	r.must(r.Patch(t.Context(), testCause, Patch{Service: orders, Instance: k, Override: registry.Override{
		Extra: new(registry.Metadata(`{"z":"1"}`)),
	}}))
	if got := r.metadata(k); got != `{"own":"2","z":"1"}` {
		t.Errorf("after a patch: metadata %s", got)
	}
	// An instance need not be there: it finds the override when it comes.
	absent := key("10.0.0.2", 80, "DEFAULT")
	r.must(r.Overlay(t.Context(), testCause, registration(absent, func(i *registry.Instance) { i.Weight = 7 }).Modern()))
	r.register(registration(absent).Modern())
	if got := r.instance(orders, absent).Weight; got != 7 {
		t.Errorf("weight %v, want the operator's", got)
	}
}

func TestMetadataIsLaidAndLifted(t *testing.T) {
	r := newRig(t)
	k := key("10.0.0.1", 80, "DEFAULT")
	r.register(registration(k, described(`{"own":"1"}`)).Modern())
	all := func(*registry.Instance) bool { return true }
	for _, tt := range []struct {
		op   MetadataOp
		m    registry.Metadata
		want string
	}{
		{LiftMetadata, `{"own":"1"}`, `{"own":"1"}`}, // nothing is laid
		{LayMetadata, `{"k":"v","k2":"v2"}`, `{"k":"v","k2":"v2","own":"1"}`},
		{LayMetadata, `{"own":"2"}`, `{"k":"v","k2":"v2","own":"2"}`},
		{LiftMetadata, `{"k":"","own":""}`, `{"k2":"v2","own":"1"}`},
		{RemoveMetadata, `{"own":""}`, `{"k2":"v2"}`}, // of 1.x: the map is the operator's now
		{LayMetadata, `{"k":"3"}`, `{"k":"3","k2":"v2"}`},
		{LiftMetadata, `{"k":"","k2":""}`, `{}`},
	} {
		touched, err := r.UpdateMetadata(t.Context(), testCause, orders, tt.op, tt.m, all)
		if err != nil || len(touched) != 1 {
			t.Fatalf("%v %s: touched %v, %v", tt.op, tt.m, touched, err)
		}
		if got := r.metadata(k); got != tt.want {
			t.Errorf("%v %s: metadata %s, want %s", tt.op, tt.m, got, tt.want)
		}
	}
}

func TestLocate(t *testing.T) {
	r := newRig(t)
	there := key("10.0.0.1", 80, "c1")
	r.register(registration(there))
	for _, tt := range []struct{ asked, want registry.InstanceKey }{
		{there, there},
		{key("10.0.0.1", 80, "DEFAULT"), there},
		{key("10.0.0.1", 81, "DEFAULT"), key("10.0.0.1", 81, "DEFAULT")},
	} {
		if got := r.Locate(orders, tt.asked); got != tt.want {
			t.Errorf("%v: got %v, want %v", tt.asked, got, tt.want)
		}
	}
}

func TestSetPersistentHealth(t *testing.T) {
	r := newRig(t)
	k := key("10.0.0.1", 80, "DEFAULT")
	set := func() error { return r.SetPersistentHealth(t.Context(), testCause, orders, k, false) }
	noProbe := func(c *registry.Cluster) { c.Checker = registry.HealthCheck{Type: registry.CheckNone} }
	r.refused("no service", set(), registry.HealthChecked)
	r.register(registration(k, persistent))
	r.refused("a probe", set(), registry.HealthChecked)
	r.must(r.SetCluster(t.Context(), testCause, orders, "DEFAULT", noProbe))
	r.must(set())
	if r.instance(orders, k).Healthy {
		t.Error("health was not set")
	}
	r.must(r.SetPersistentHealth(t.Context(), testCause, orders, key("10.0.0.9", 80, "DEFAULT"), false))

	r = newRig(t)
	r.register(registration(k, persistent).Modern())
	r.must(r.SetCluster(t.Context(), testCause, orders, "DEFAULT", noProbe))
	r.refused("a persistent service", set(), registry.KindMismatch)
}
