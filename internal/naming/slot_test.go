package naming

import (
	"bytes"
	"log/slog"
	"math"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/rollcall-registry/rollcall/internal/registry"
)

// slot is what connection c1 registers of orders.
func slot(keys ...registry.InstanceKey) Slot {
	s := Slot{Service: orders, Client: "c1"}
	for _, k := range keys {
		s.Instances = append(s.Instances, registration(k).Instance)
	}
	return s
}

func (r *rig) publish(s Slot) []*registry.Instance {
	r.t.Helper()
	released, err := r.Publish(r.t.Context(), testCause, s)
	r.must(err)
	return released
}

func TestPublish(t *testing.T) {
	r := newRig(t)
	_, err := r.Publish(t.Context(), testCause, slot(key("10.0.0.1", 1, "DEFAULT")))
	r.refused("an unknown connection", err, registry.ClientClosed)
	r.Open("c1")
	s := slot(key("10.0.0.1", 1, "DEFAULT"), key("10.0.0.1", 2, "a_b"))
	s.Instances[0].Weight = 1e9
	r.publish(s)
	view := r.store.View(orders)
	if len(view.Instances) != 2 || view.Info.Kind != registry.KindEphemeral || view.Instances[0].Weight != 10000 || !view.Instances[0].Ephemeral {
		t.Errorf("got %+v, %+v", view.Info, view.Instances)
	}
	if released := r.publish(slot(key("10.0.0.1", 3, "DEFAULT"))); len(released) != 2 {
		t.Errorf("released %v", released)
	}
	r.Close(registry.Cause{Kind: registry.CauseDisconnect}, "c1")
	if got := r.clusters(); len(got) != 0 {
		t.Errorf("after the connection: %v", got)
	}
}

func TestPublishRefuses(t *testing.T) {
	r := newRig(t)
	r.Open("c1")
	for name, tt := range map[string]struct {
		change func(*Slot)
		code   registry.Code
	}{
		"no address": {func(s *Slot) { s.Instances[0].IP = "" }, registry.InvalidArgument},
		"no number":  {func(s *Slot) { s.Instances[0].Weight = math.NaN() }, registry.InvalidWeight},
		"a bad name": {func(s *Slot) { s.Service.Name = "a b" }, registry.RefusedName},
		"large metadata": {func(s *Slot) {
			s.Instances[0].Metadata = registry.NewMetadata(map[string]string{"a": string(make([]byte, 1<<17))})
		}, registry.MetadataTooLarge},
		"one of two only": {func(s *Slot) { s.Instances = append(s.Instances, registry.Instance{}) }, registry.InvalidArgument},
	} {
		s := slot(key("10.0.0.1", 1, "DEFAULT"))
		tt.change(&s)
		_, err := r.Publish(t.Context(), testCause, s)
		r.refused(name, err, tt.code)
	}
	if got := r.clusters(); len(got) != 0 {
		t.Errorf("something was stored: %v", got)
	}
	r.cfg.InstanceLimit = 1
	r.publish(slot(key("10.0.0.1", 1, "DEFAULT")))
	_, err := r.Publish(t.Context(), testCause, slot(key("10.0.0.1", 2, "DEFAULT")))
	r.refused("the limit", err, registry.LimitExceeded)
	r.publish(slot(key("10.0.0.1", 1, "DEFAULT"))) // what is there may be renewed
}

// At the limit of subscriptions those that are there are renewed.
func TestSubscriptionLimit(t *testing.T) {
	r := newRig(t)
	var log bytes.Buffer
	r.slog = slog.New(slog.NewTextHandler(&log, nil))
	r.cfg.SubscriptionLimit = 1
	r.subscribe("10.0.0.1:5000", "")
	err := r.Subscribe(t.Context(), testCause, &registry.Subscriber{
		SubscriberKey: registry.SubscriberKey{Addr: netip.MustParseAddrPort("10.0.0.2:5000")},
		Service:       orders, Protocol: registry.ProtocolUDP,
	})
	r.refused("one more", err, registry.LimitExceeded)
	for range 120 { // seconds, in each of which somebody asks again
		if err := r.admitSubscription(&registry.Subscriber{Service: orders}); err == nil {
			t.Fatal("one more is let in")
		}
		r.clock.now.Lease += time.Second
	}
	if n := strings.Count(log.String(), "are refused"); n != 2 {
		t.Errorf("the log tells of it %d times in two minutes, want 2:\n%s", n, log.String())
	}
	r.subscribe("10.0.0.1:5000", "")
	if n := r.store.Counts().Subscribers; n != 1 {
		t.Errorf("%d subscriptions, want 1", n)
	}
}

// Deregistering drops overrides, replacing one instance by another does not.
func TestLeave(t *testing.T) {
	r := newRig(t)
	r.Open("c1")
	one := key("10.0.0.1", 1, "DEFAULT")
	r.publish(slot(one))
	r.must(r.Patch(t.Context(), testCause, Patch{Service: orders, Instance: one, Override: registry.Override{Weight: new(7.0)}}))
	r.publish(slot(key("10.0.0.1", 2, "DEFAULT")))
	r.publish(slot(one))
	if i := r.instance(orders, one); i.Weight != 7 {
		t.Errorf("weight %v after it was away", i.Weight)
	}
	r.must(r.Leave(t.Context(), testCause, orders, "c1"))
	if got := r.clusters(); len(got) != 0 {
		t.Errorf("left, and yet there: %v", got)
	}
	r.publish(slot(one))
	if i := r.instance(orders, one); i.Weight != 1 {
		t.Errorf("weight %v after a deregistration", i.Weight)
	}
	r.must(r.Leave(t.Context(), testCause, registry.ServiceKey{Namespace: "x", Group: "g", Name: "s"}, "c1"))
}

func TestAbsentRevision(t *testing.T) {
	r := newRig(t)
	r.Open("c1")
	absent := r.AbsentRevision()
	if now := r.clock.now.Wall; absent < now-1 || absent > now {
		t.Errorf("%d, not close to %d", absent, now)
	}
	r.publish(slot(key("10.0.0.1", 1, "DEFAULT"))) // in the same millisecond
	first := r.store.View(orders).Revision
	if first <= absent {
		t.Errorf("the first revision %d is not above the absence %d", first, absent)
	}
	r.clock.now.Wall -= 1e6 // the clock is set back
	r.must(r.DeleteService(t.Context(), testCause, orders, false))
	if gone := r.AbsentRevision(); gone < first {
		t.Errorf("the absence %d is below the revision %d that was", gone, first)
	} else if r.publish(slot(key("10.0.0.1", 1, "DEFAULT"))); r.store.View(orders).Revision <= gone {
		t.Errorf("the new revision %d is not above the absence %d", r.store.View(orders).Revision, gone)
	}
}
