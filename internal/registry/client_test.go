package registry

import (
	"errors"
	"slices"
	"testing"
)

func TestCloseClient(t *testing.T) {
	w := newWorld(t)
	w.OpenClient("c1")
	w.OpenClient("c1") // does nothing
	w.OpenClient("c2")
	const many = 3*closeBatch + 1
	for n := range many {
		w.registerIn(named("s"+string(rune('a'+n%7))), connection("c1"), at("10.0.0.1", int32(n)))
	}
	w.register(connection("c1"), first)
	w.register(connection("c2"), first)
	w.register(connection("c2"), at("10.0.0.2", 1))
	for _, id := range []ClientID{"c1", "c2"} {
		w.must(&Subscribe{Meta: w.meta(), Subscriber: grpcSubscriber(id)})
	}
	held := 0
	for _, list := range w.ClientHoldings("c1") {
		held += len(list)
	}
	if held != many+1 {
		t.Errorf("c1 holds %d instances, want %d", held, many+1)
	}

	w.rec.take()
	w.must(&CloseClient{Meta: w.meta(), Client: "c1"})
	got := map[string]int{}
	for _, e := range w.rec.events {
		got[string(e.Kind)]++
		if e.Kind == InstanceRemoved && e.Owner != connection("c1") {
			t.Errorf("%+v was removed for %+v", e.Instance, e.Owner)
		}
	}
	if got["removed"] != many || got["owner removed"] != 1 || got["unsubscribed"] != 1 || len(got) != 3 {
		t.Errorf("events %v", got)
	}
	if n := w.Counts(); n.Ephemeral != 2 || n.Healthy != 2 || n.Subscribers != 1 {
		t.Errorf("left: %+v", n)
	}
	if h := w.ClientHoldings("c1"); h != nil {
		t.Errorf("a closed connection holds %v", h)
	}
	if h := w.ClientHoldings("c2"); !slices.Equal(h[orders()], []InstanceKey{first, at("10.0.0.2", 1)}) {
		t.Errorf("c2 holds %v", h)
	}
	w.rec.take()
	w.must(&CloseClient{Meta: w.meta(), Client: "c1"})
	w.events()
}

// A request that comes after its connection was closed brings nothing back.
func TestLateRequestOfAClosedConnection(t *testing.T) {
	w := newWorld(t)
	w.OpenClient("c1")
	w.must(&CloseClient{Meta: w.meta(), Client: "c1"})
	w.refuse(&Register{Meta: w.meta(), Service: orders(), Owner: connection("c1"), Instance: instanceAt(first)}, ClientClosed)
	w.refuse(&Subscribe{Meta: w.meta(), Subscriber: grpcSubscriber("c1")}, ClientClosed)
	w.refuse(&Register{Meta: w.meta(), Service: orders(), Owner: connection("never"), Instance: instanceAt(first)}, ClientClosed)
	w.events()
	if w.View(orders()) != nil || w.HasSubscribers(orders()) {
		t.Error("a late request left something")
	}
}

// Whatever way an instance goes, its connection holds it no longer.
func TestHoldingsFollowTheInstances(t *testing.T) {
	for name, remove := range map[string]Command{
		"deregistered":    &Deregister{Service: orders(), Owner: connection("c1"), Instance: first},
		"service deleted": &DeleteService{Service: orders()},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.OpenClient("c1")
			w.register(httpOwner, first)
			w.register(connection("c1"), first)
			w.must(remove)
			if h := w.ClientHoldings("c1"); len(h) != 0 || len(w.clients.get("c1").records) != 0 {
				t.Errorf("still holds %v", h)
			}
			w.register(connection("c1"), first)
			if h := w.ClientHoldings("c1"); len(h[orders()]) != 1 {
				t.Errorf("holds %v after registering again", h)
			}
		})
	}
}

// A long-lived connection that comes and goes as a subscriber remembers nothing.
func TestSubscriptionsOfAConnectionAreForgotten(t *testing.T) {
	w := newWorld(t)
	w.OpenClient("c1")
	sub, other := grpcSubscriber("c1"), grpcSubscriber("c1")
	other.Clusters = "c9"
	for range 3 {
		for _, s := range []*Subscriber{sub, sub, other} { // one of them twice
			w.must(&Subscribe{Meta: w.meta(), Subscriber: s})
		}
		w.must(&Unsubscribe{Meta: w.meta(), Service: orders(), Subscriber: sub.SubscriberKey})
		if n := w.clients.get("c1").subs[orders()]; n != 1 {
			t.Fatalf("%d subscriptions are noted, want 1", n)
		}
		w.must(&Unsubscribe{Meta: w.meta(), Service: orders(), Subscriber: other.SubscriberKey})
		w.must(&Unsubscribe{Meta: w.meta(), Service: orders(), Subscriber: other.SubscriberKey}) // not there
	}
	if n := len(w.clients.get("c1").subs); n != 0 {
		t.Errorf("%d services are noted, want none", n)
	}
}

func TestErrorsAreRefusals(t *testing.T) {
	w := newWorld(t)
	_, err := w.Apply(&DeleteService{Service: orders()})
	var refusal *Error
	if !errors.As(err, &refusal) || refusal.Value != "DEFAULT_GROUP@@orders" || refusal.Error() != refusal.Msg || refusal.Msg == "" {
		t.Errorf("got %#v", err)
	}
}

// A client that comes back after a restart takes over what its old connection is
// remembered to have registered, so that it can take it back again.
func TestRecalledClients(t *testing.T) {
	w := newWorld(t)
	w.RecallClient("old")
	w.RecallClient("older")
	for _, id := range []ClientID{"older", "old"} {
		w.register(connection(id), first)
		w.register(connection(id), at("10.0.0.9", 1))
	}
	if got := w.owners(first); got != "old older" {
		t.Fatalf("remembered owners %q: those of a recalled connection are not replaced by another one's", got)
	}
	w.register(httpOwner, first)
	w.OpenClient("new")
	w.rec.take()
	w.publish("new", first)
	if got := w.owners(first); got != "new http" {
		t.Errorf("owners %q, want those who are there", got)
	}
	w.deregister(httpOwner, first)
	w.publish("new")
	if got := w.owners(first); got != "gone" {
		t.Errorf("owners %q after the client left", got)
	}
	if got := w.owners(at("10.0.0.9", 1)); got != "old older" {
		t.Errorf("owners %q of what nobody claimed", got)
	}
	for _, id := range []ClientID{"old", "older"} {
		w.must(&CloseClient{Meta: w.meta(), Client: id})
	}
	if v := w.View(orders()); v != nil && len(v.Instances) > 0 {
		t.Errorf("%d instances are left", len(v.Instances))
	}
}
