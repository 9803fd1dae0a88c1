package grpcmode

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollcall-registry/rollcall/api/grpcv2"
	"github.com/rollcall-registry/rollcall/client/internal/wire"
	"github.com/rollcall-registry/rollcall/internal/grpcapi/grpctest"
)

const ordersName = "DEFAULT_GROUP@@orders"

// set makes instances of ports.
func set(ports ...int) []wire.Instance {
	var list []wire.Instance
	for _, port := range ports {
		list = append(list, instance(port))
	}
	return list
}

func holding(t *testing.T, s *grpctest.Server, ports ...int) {
	t.Helper()
	var want []string
	for _, port := range ports {
		want = append(want, fmt.Sprintf("10.0.0.1:%d", port))
	}
	if got := s.Hosts(ordersName); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the server has %v, want %v", got, want)
	}
}

// On a server where a second registration would take the place of the first, and which
// knows no batches, each instance has a connection.
func TestServerWithoutBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		server := w.serve(first, grpctest.Script{})
		r := start(t, to(first), on(w))
		r.connected(t, 1)
		orders := service("orders")
		publish := func(ports ...int) {
			t.Helper()
			if err := r.Publish(limited(t), orders, set(ports...)); err != nil {
				t.Fatal(err)
			}
			holding(t, server, ports...)
		}
		publish(1)
		if err := r.Publish(limited(t), orders, set(3, 2, 1)); err != nil {
			t.Fatal(err)
		}
		holding(t, server, 1, 2, 3)
		registrations := 0
		for _, f := range server.Peers()[0].Asked() {
			if f.Type == grpcv2.InstanceType {
				registrations++
			}
		}
		if registrations != 1 {
			t.Errorf("%d registrations in the place of the first instance", registrations)
		}
		if n := len(server.Peers()); n != 3 {
			t.Errorf("%d connections", n)
		}
		before := requests(server)
		publish(1, 2, 3)
		if after := requests(server); after != before {
			t.Errorf("%d requests for what is there", after-before)
		}
		publish(1, 3)
		publish(3, 4)
		publish(3, 4, 5)
		publish(5)
		publish(5, 6)
		if n := len(server.Peers()); n != 3 {
			t.Errorf("%d connections", n)
		}
		publish()
		publish(7)

		// Other services use the same connections.
		other := service("other")
		if err := r.Publish(limited(t), other, set(1, 2)); err != nil {
			t.Fatal(err)
		}
		if got := server.Hosts("DEFAULT_GROUP@@other"); len(got) != 2 || len(server.Peers()) != 3 {
			t.Errorf("hosts %v on %d connections", got, len(server.Peers()))
		}
		if len(r.told().causes) > 0 {
			t.Errorf("causes %v", r.told().causes)
		}
	})
}

func requests(s *grpctest.Server) (n int) {
	for _, p := range s.Peers() {
		n += len(p.Asked())
	}
	return n
}

// A session ends with any of its connections, because what that held is gone.
func TestExtraConnectionEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		server := w.serve(first, grpctest.Script{})
		r := start(t, to(first), on(w))
		r.connected(t, 1)
		if err := r.Publish(limited(t), service("orders"), set(1, 2, 3)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute) // signs of life are asked on all of them
		if len(r.told().causes) > 0 {
			t.Errorf("causes %v", r.told().causes)
		}
		server.Peers()[1].End(nil)
		r.connected(t, 2)
		synctest.Wait()
		if n := len(server.Peers()); n != 1 {
			t.Errorf("%d connections are left", n)
		}
		if err := r.Publish(limited(t), service("orders"), set(1, 2, 3)); err != nil {
			t.Fatal(err)
		}
		holding(t, server, 1, 2, 3)
	})
}

// When some instances cannot be registered, the others are, and the error says which.
func TestPartOfASet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var full atomic.Bool
		server := w.serve(first, grpctest.Script{Answer: func(p *grpctest.Peer, f grpctest.Frame) (grpctest.Message, bool) {
			switch {
			case f.Type == grpcv2.ServerCheck && full.Load():
				return grpctest.Fail("too many connections"), true
			case strings.Contains(string(f.Body), `"port":3,`):
				return grpctest.Refuse(grpcv2.CodeInvalid, "not this one"), f.Type == grpcv2.InstanceType
			}
			return grpctest.Message{}, false
		}})
		r := start(t, to(first), on(w))
		r.connected(t, 1)
		err := r.Publish(limited(t), service("orders"), set(1, 2, 3, 4))
		part, ok := errors.AsType[*wire.PartError](err)
		if !ok || len(part.Failed) != 1 || wire.KindOf(part.Failed[set(3)[0].Key()]) != wire.Invalid {
			t.Fatalf("got %v", err)
		}
		holding(t, server, 1, 2, 4)

		full.Store(true)
		err = r.Publish(limited(t), service("orders"), set(1, 2, 4, 5, 6))
		part, ok = errors.AsType[*wire.PartError](err)
		if !ok || len(part.Failed) != 1 {
			t.Fatalf("got %v", err)
		}
		holding(t, server, 1, 2, 4, 5)
		time.Sleep(time.Minute)
		if len(r.told().causes) > 0 || len(r.told().sessions) != 1 {
			t.Errorf("sessions %v, causes %v", r.told().sessions, r.told().causes)
		}

		many := set()
		for port := range maxExtras + 2 {
			many = append(many, instance(port+100))
		}
		full.Store(false)
		err = r.Publish(limited(t), service("many"), many)
		if part, ok = errors.AsType[*wire.PartError](err); !ok || len(part.Failed) != 1 {
			t.Fatalf("got %v", err)
		}
		for _, cause := range part.Failed {
			if wire.KindOf(cause) != wire.Overloaded {
				t.Errorf("got %v", cause)
			}
		}
	})
}

// What is on the wire is what servers of 2.x and 3.x read.
func TestPublishedBodies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		server := w.serve(first, grpctest.Script{Answer: func(_ *grpctest.Peer, f grpctest.Frame) (grpctest.Message, bool) {
			return grpctest.Answer(grpcv2.BatchInstanceResponse, ""), f.Type == grpcv2.BatchInstance
		}})
		r := start(t, to(first), on(w))
		r.connected(t, 1)
		i := instance(8080)
		i.ID, i.Weight, i.Metadata = "x", 0.5, map[string]string{"b": "\"", "a": "é"}
		s := wire.Service{Namespace: "ns", Group: "g", Name: "orders"}
		for _, instances := range [][]wire.Instance{{i}, {i, instance(2)}, {instance(2)}, nil} {
			if err := r.Publish(limited(t), s, instances); err != nil {
				t.Fatal(err)
			}
		}
		asked := slices.DeleteFunc(server.Peers()[0].Asked(), func(f grpctest.Frame) bool { return f.Type == grpcv2.ServiceQuery })
		asked = asked[len(asked)-4:]
		head := `{"headers":{},"module":"naming","namespace":"ns","serviceName":"orders","groupName":"g","type":`
		full := `{"instanceId":"x","ip":"10.0.0.1","port":8080,"weight":0.5,"healthy":true,"enabled":true,"ephemeral":true,` +
			`"clusterName":"DEFAULT","serviceName":"orders","metadata":{"a":"é","b":"\""}}`
		plain := `{"ip":"10.0.0.1","port":2,"weight":1.0,"healthy":true,"enabled":true,"ephemeral":true,` +
			`"clusterName":"DEFAULT","serviceName":"orders","metadata":{}}`
		for n, want := range []struct{ kind, body string }{
			{grpcv2.InstanceType, head + `"registerInstance","instance":` + full + `}`},
			{grpcv2.BatchInstance, head + `"batchRegisterInstance","instances":[` + full + `,` + plain + `]}`},
			{grpcv2.InstanceType, head + `"registerInstance","instance":` + plain + `}`},
			{grpcv2.InstanceType, head + `"deregisterInstance","instance":` + plain + `}`},
		} {
			if asked[n].Type != want.kind || string(asked[n].Body) != want.body || !json.Valid(asked[n].Body) {
				t.Errorf("%d: asked %s %s\nwant %s %s", n, asked[n].Type, asked[n].Body, want.kind, want.body)
			}
		}
	})
}

// What may have been published, because the answer is not known, is withdrawn.
func TestWithdrawOfTheUnsure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var lost atomic.Bool
		server := w.serve(first, grpctest.Script{Answer: func(_ *grpctest.Peer, f grpctest.Frame) (grpctest.Message, bool) {
			return grpctest.Fail("the answer is lost"), lost.Load() && f.Type == grpcv2.InstanceType
		}})
		r := start(t, to(first), on(w))
		r.connected(t, 1)
		if err := r.Publish(limited(t), service("never"), nil); err != nil {
			t.Error(err)
		}
		before := requests(server)
		lost.Store(true)
		if err := r.Publish(limited(t), service("orders"), set(1)); wire.KindOf(err) != wire.NotConnected || err == nil {
			t.Errorf("got %v", err)
		}
		if err := r.Publish(limited(t), service("orders"), nil); err == nil {
			t.Error("an instance that may be there was forgotten")
		}
		lost.Store(false)
		if err := r.Publish(limited(t), service("orders"), nil); err != nil {
			t.Error(err)
		}
		if n := requests(server) - before; n < 3 {
			t.Errorf("%d requests", n)
		}
	})
}

// Servers that cannot take persistent instances over gRPC are not asked to.
func TestNoPersistentAbility(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.serve(first, grpctest.Script{})
		r := start(t, to(first), on(w))
		r.connected(t, 1)
		if err := r.RegisterPersistent(limited(t), service("orders"), instance(1)); wire.KindOf(err) != wire.Unsupported {
			t.Errorf("got %v", err)
		}
		if err := r.WatchServices(limited(t), wire.Pattern{Namespace: "public", Group: "*", Name: "*"}, nil); wire.KindOf(err) != wire.Unsupported {
			t.Errorf("got %v", err)
		}
	})
}

// While there is no session, operations fail at once, with the reason.
func TestNoSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		r := start(t, to(first), on(w))
		r.wait(t, "cause", func() bool { return len(r.causes) > 0 })
		begun := time.Now()
		ctx, s := limited(t), service("orders")
		for what, f := range map[string]func() error{
			"publish":     func() error { return r.Publish(ctx, s, set(1)) },
			"subscribe":   func() error { _, err := r.Subscribe(ctx, s); return err },
			"unsubscribe": func() error { return r.Unsubscribe(ctx, s) },
			"query":       func() error { _, err := r.Query(ctx, s); return err },
			"register":    func() error { return r.RegisterPersistent(ctx, s, instance(1)) },
			"deregister":  func() error { return r.DeregisterPersistent(ctx, s, instance(1)) },
			"services":    func() error { _, _, err := r.Services(ctx, "public", "g", 1, 1); return err },
			"watch":       func() error { return r.WatchServices(ctx, wire.Pattern{}, nil) },
			"unwatch":     func() error { return r.UnwatchServices(ctx, wire.Pattern{}) },
		} {
			err := f()
			e, ok := errors.AsType[*wire.Error](err)
			if !ok || e.Kind != wire.NotConnected || e.Server != first || !strings.Contains(err.Error(), "refused") {
				t.Errorf("%s: %v", what, err)
			}
		}
		if took := time.Since(begun); took > 0 {
			t.Errorf("it took %v", took)
		}
	})
}
