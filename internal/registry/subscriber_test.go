package registry

import (
	"testing"
	"time"
)

func TestSubscribers(t *testing.T) {
	w := newWorld(t)
	sub := udpSubscriber("10.0.0.9:50000")
	w.must(&Subscribe{Meta: w.meta(), Subscriber: sub})
	if w.rec.events[0].Detail != "udp 10.0.0.9:50000 Nacos-Java-Client:v1.4.8" {
		t.Errorf("described as %q", w.rec.events[0].Detail)
	}
	w.events("subscribed orders") // to a service that is not there

	w.advance(5 * time.Second)
	w.must(&Subscribe{Meta: w.meta(), Subscriber: sub}) // renews
	w.events()
	kept := w.Subscribers(orders())
	if len(kept) != 1 || kept[0].Since.Lease != 0 || kept[0].LastSeen() != 5*time.Second {
		t.Fatalf("got %+v", kept)
	}
	if w.Subscriber(orders(), sub.SubscriberKey) != kept[0] || !w.HasSubscribers(orders()) {
		t.Error("the subscriber is not found by its key")
	}

	refused := udpSubscriber("10.0.0.9:50000")
	refused.Refused = "not its address"
	w.must(&Subscribe{Meta: w.meta(), Subscriber: refused})
	if w.rec.events[0].Detail != "udp 10.0.0.9:50000 Nacos-Java-Client:v1.4.8 (not pushed to: not its address)" {
		t.Errorf("described as %q", w.rec.events[0].Detail)
	}
	w.events("subscribed orders") // a change that people should see
	if n := w.Counts().Subscribers; n != 1 {
		t.Errorf("%d subscribers, want 1", n)
	}

	older := udpSubscriber("10.0.0.9:50000")
	older.Form = "old"
	w.must(&Subscribe{Meta: w.meta(), Subscriber: older})
	w.events("subscribed orders")
	if got := w.Subscriber(orders(), sub.SubscriberKey); got.Form != "old" || got.Refused != "" {
		t.Errorf("got %+v, want the form and no refusal", got)
	}

	other := udpSubscriber("10.0.0.8:50000")
	other.Clusters = "c1,c2"
	w.must(&Subscribe{Meta: w.meta(), Subscriber: other})
	if list := w.Subscribers(orders()); len(list) != 2 || list[0].Clusters != "c1,c2" {
		t.Errorf("not in the order of addresses: %+v", list)
	}
	list := w.FindSubscribers(func(k ServiceKey) bool { return k.Name == "orders" })
	if none := w.FindSubscribers(func(k ServiceKey) bool { return false }); len(list) != 2 || len(none) != 0 {
		t.Errorf("found %d and %d", len(list), len(none))
	}
	w.rec.take()
	w.must(&Unsubscribe{Meta: w.meta(), Service: orders(), Subscriber: other.SubscriberKey})
	w.must(&Unsubscribe{Meta: w.meta(), Service: orders(), Subscriber: sub.SubscriberKey})
	w.must(&Unsubscribe{Meta: w.meta(), Service: orders(), Subscriber: sub.SubscriberKey})
	w.events("unsubscribed orders", "unsubscribed orders")
	if w.HasSubscribers(orders()) || w.Counts().Subscribers != 0 {
		t.Error("somebody is left")
	}
}

func TestSubscribersExpire(t *testing.T) {
	w := newWorld(t)
	w.OpenClient("c1")
	early, late := udpSubscriber("10.0.0.1:1"), udpSubscriber("10.0.0.2:1")
	for _, s := range []*Subscriber{early, late, grpcSubscriber("c1")} {
		w.must(&Subscribe{Meta: w.meta(), Subscriber: s})
	}
	w.rec.take()
	w.advance(4 * time.Second)
	w.must(&Subscribe{Meta: w.meta(), Subscriber: late})
	w.advance(6 * time.Second)
	w.ExpireSubscribers(w.now, 10*time.Second)
	w.events() // strictly greater
	w.advance(time.Millisecond)
	w.ExpireSubscribers(w.now, 10*time.Second)
	if e := w.rec.events[0]; e.Cause.Kind != CauseExpiry || e.Cause.Detail != "not renewed for 10s" {
		t.Errorf("cause %+v", e.Cause)
	}
	w.events("unsubscribed orders")
	w.advance(time.Hour)
	w.ExpireSubscribers(w.now, 10*time.Second)
	w.events("unsubscribed orders")
	if list := w.Subscribers(orders()); len(list) != 1 || list[0].Protocol != ProtocolGRPC {
		t.Errorf("left: %+v; connections do not expire", list)
	}
}

// Subscribers outlive the service that they subscribed to.
func TestSubscribersOutliveTheService(t *testing.T) {
	w := newWorld(t)
	w.register(httpOwner, first)
	w.must(&Subscribe{Meta: w.meta(), Subscriber: udpSubscriber("10.0.0.1:1")})
	w.must(&DeleteService{Meta: w.meta(), Service: orders()})
	if !w.HasSubscribers(orders()) {
		t.Error("the subscriber went with the service")
	}
}
