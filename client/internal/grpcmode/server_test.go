package grpcmode

import (
	"strings"
	"testing"

	"github.com/rollcall-registry/rollcall/client/internal/wire"
	"github.com/rollcall-registry/rollcall/servertest"
)

// A server of ours does everything that the protocol has.
func TestServer(t *testing.T) {
	srv := servertest.New(t)
	r := start(t, to(srv.Addr()))
	session := r.connected(t, 1)
	if session.Server != srv.Addr() || session.Protocol != wire.GRPC || !session.Persistent || !session.Fuzzy || session.Polls {
		t.Errorf("session %+v", session)
	}
	ctx := limited(t)
	orders := service("orders")

	list, err := r.Subscribe(ctx, orders)
	if err != nil || !list.Asked || list.Session != session.ID || !strings.Contains(string(list.Raw), `"hosts":[]`) {
		t.Fatalf("subscribe: %+v %s, %v", list, list.Raw, err)
	}
	if err := r.Publish(ctx, orders, []wire.Instance{instance(1)}); err != nil {
		t.Fatal(err)
	}
	pushed := r.pushed(t, `"port":1,`)
	if pushed.Service != orders || pushed.Asked || pushed.Session != session.ID {
		t.Errorf("pushed %+v", pushed)
	}
	if err := r.Publish(ctx, orders, []wire.Instance{instance(1), instance(2)}); err != nil {
		t.Fatal(err)
	}
	r.pushed(t, `"port":2,`)
	if list, err = r.Query(ctx, orders); err != nil || strings.Count(string(list.Raw), `"ip"`) != 2 {
		t.Errorf("query: %s, %v", list.Raw, err)
	}
	if names, total, err := r.Services(ctx, "public", "DEFAULT_GROUP", 1, 10); err != nil || total != 1 || len(names) != 1 || names[0] != "orders" {
		t.Errorf("services: %v of %d, %v", names, total, err)
	}
	if err := r.Publish(ctx, orders, []wire.Instance{instance(2)}); err != nil {
		t.Fatal(err)
	}
	if list, err = r.Query(ctx, orders); err != nil || strings.Count(string(list.Raw), `"ip"`) != 1 {
		t.Errorf("after one left: %s, %v", list.Raw, err)
	}
	if err := r.Publish(ctx, orders, nil); err != nil {
		t.Fatal(err)
	}
	if list, err = r.Query(ctx, orders); err != nil || strings.Count(string(list.Raw), `"ip"`) != 0 {
		t.Errorf("after all left: %s, %v", list.Raw, err)
	}
	if err := r.Unsubscribe(ctx, orders); err != nil {
		t.Error(err)
	}

	stays := instance(9)
	stays.Ephemeral = false
	if err := r.RegisterPersistent(ctx, service("stays"), stays); err != nil {
		t.Fatal(err)
	}
	if err := r.Publish(ctx, service("stays"), []wire.Instance{instance(1)}); wire.KindOf(err) != wire.Conflict {
		t.Errorf("an instance of the other kind: %v", err)
	}
	if err := r.DeregisterPersistent(ctx, service("stays"), stays); err != nil {
		t.Error(err)
	}
	if len(r.told().causes) > 0 {
		t.Errorf("the session broke: %v", r.told().causes)
	}
}
