package grpcmode

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollcall-registry/rollcall/api/grpcv2"
	"github.com/rollcall-registry/rollcall/client/internal/wire"
	"github.com/rollcall-registry/rollcall/internal/grpcapi/grpctest"
	"github.com/rollcall-registry/rollcall/servertest"
)

// notify is a push.
func notify(id int, namespace, group, name, hosts string) string {
	return fmt.Sprintf(`{"headers":{},"module":"naming","requestId":"%d","namespace":%s,"serviceInfo":{"name":%q,"groupName":%q,"clusters":"","cacheMillis":10000,"hosts":[%s],"lastRefTime":%d}}`,
		id, namespace, name, group, hosts, id)
}

// subscribed returns a transport with a subscription and its peer.
func subscribed(t *testing.T, w *world, script grpctest.Script, services ...wire.Service) (*rig, *grpctest.Peer) {
	server := w.serve(first, script)
	r := start(t, to(first), on(w))
	r.connected(t, 1)
	for _, s := range services {
		if _, err := r.Subscribe(limited(t), s); err != nil {
			t.Fatal(err)
		}
	}
	return r, server.Peers()[0]
}

// say sends a push and waits until it was dealt with.
func say(t *testing.T, p *grpctest.Peer, body string) {
	t.Helper()
	if err := p.Say(grpcv2.NotifySubscriber, body); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
}

// The engine gets what came, as it came and in that order, twice if it came twice: it
// knows what is new.
func TestPushes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		orders := service("orders")
		r, peer := subscribed(t, newWorld(t), grpctest.Script{}, orders)
		host := `{"ip":"10.0.0.1","port":1,"metadata":{"text":"}]\\\" ünd"}}`
		for _, body := range []string{
			notify(3, "null", "DEFAULT_GROUP", "orders", host), notify(3, "null", "DEFAULT_GROUP", "orders", host),
			notify(2, `""`, "DEFAULT_GROUP", "orders", ""), notify(4, `"public"`, "", "DEFAULT_GROUP@@orders", ""),
			`{"requestId":"5","serviceInfo":{"name":"orders","groupName":"DEFAULT_GROUP","hosts":null}}`,
		} {
			say(t, peer, body)
		}
		if len(r.told().lists) != 5 || len(peer.Heard()) != 5 {
			t.Fatalf("%d lists, %d acknowledgements", len(r.told().lists), len(peer.Heard()))
		}
		want := `{"name":"orders","groupName":"DEFAULT_GROUP","clusters":"","cacheMillis":10000,"hosts":[` + host + `],"lastRefTime":3}`
		for n, l := range r.told().lists {
			if l.Service != orders || l.Asked || l.Session != r.told().sessions[0].ID || l.Server != first {
				t.Errorf("%d: %+v", n, l)
			}
			if n < 2 && string(l.Raw) != want {
				t.Errorf("%d: %s\nwant %s", n, l.Raw, want)
			}
		}
		if !strings.Contains(string(r.told().lists[2].Raw), `"lastRefTime":2`) {
			t.Errorf("out of order: %s", r.told().lists[2].Raw)
		}

		if err := r.Unsubscribe(limited(t), orders); err != nil {
			t.Fatal(err)
		}
		say(t, peer, notify(6, "null", "DEFAULT_GROUP", "orders", ""))
		if len(r.told().lists) != 5 || len(r.told().dropped) != 1 {
			t.Errorf("%d lists after the end of the subscription, dropped %v", len(r.told().lists), r.told().dropped)
		}
	})
}

// A push does not say of which namespace its service is. If it may be of several, all
// are asked for.
func TestSameNameInTwoNamespaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := service("orders"), service("orders")
		b.Namespace = "other"
		r, peer := subscribed(t, newWorld(t), grpctest.Script{}, a, b)
		say(t, peer, notify(2, "null", "DEFAULT_GROUP", "orders", `{"ip":"10.0.0.1","port":1}`))
		got := map[wire.Service]bool{}
		for _, l := range r.told().lists {
			got[l.Service] = l.Asked
		}
		if len(r.told().lists) != 2 || !got[a] || !got[b] {
			t.Errorf("lists %+v", r.told().lists)
		}
		say(t, peer, notify(3, `"other"`, "DEFAULT_GROUP", "orders", ""))
		if len(r.told().lists) != 3 || r.told().lists[2].Service != b || r.told().lists[2].Asked {
			t.Errorf("lists %+v", r.told().lists)
		}
		if err := r.Unsubscribe(limited(t), a); err != nil {
			t.Fatal(err)
		}
		say(t, peer, notify(4, "null", "DEFAULT_GROUP", "orders", ""))
		if len(r.told().lists) != 4 || r.told().lists[3].Service != b || r.told().lists[3].Asked {
			t.Errorf("lists %+v", r.told().lists)
		}
	})
}

// A push above the limit is dropped and counted, an answer above it is an error; neither
// harms anything else. Far above it the connection is given up.
func TestHugeMessages(t *testing.T) {
	huge := strings.Repeat(" ", maxMessage)
	server := serve(t, grpctest.Script{Answer: func(_ *grpctest.Peer, f grpctest.Frame) (grpctest.Message, bool) {
		m := grpctest.Answer(grpcv2.QueryServiceResponse, `"serviceInfo":{}`)
		m.Body += huge
		return m, f.Type == grpcv2.ServiceQuery
	}})
	r := start(t, to(server.Addr()))
	r.connected(t, 1)
	orders := service("orders")
	if _, err := r.Subscribe(limited(t), orders); err != nil {
		t.Fatal(err)
	}
	peer := server.Peers()[0]
	for _, body := range []string{notify(2, "null", "DEFAULT_GROUP", "orders", huge), notify(3, "null", "DEFAULT_GROUP", "orders", "")} {
		if err := peer.Say(grpcv2.NotifySubscriber, body); err != nil {
			t.Fatal(err)
		}
	}
	r.pushed(t, `"lastRefTime":3`)
	if fmt.Sprint(r.told().dropped) != "[grpc_too_large]" {
		t.Errorf("dropped %v", r.told().dropped)
	}
	if _, err := r.Query(limited(t), orders); wire.KindOf(err) != wire.BadAnswer {
		t.Errorf("got %v", err)
	}
	if len(r.told().causes) > 0 {
		t.Fatalf("the connection ended: %v", r.told().causes)
	}
	if err := peer.Say(grpcv2.NotifySubscriber, strings.Repeat(" ", mostMessage+1)); err != nil {
		t.Fatal(err)
	}
	r.connected(t, 2)
}

// Answers that make no sense are errors of their own kind, and end nothing.
func TestBadAnswers(t *testing.T) {
	for name, body := range map[string]string{
		"broken": `{"resultCode":200,"serviceInfo":{`, "no list": `{"resultCode":200}`, "null list": `{"resultCode":200,"serviceInfo":null}`,
		"list is a list": `{"resultCode":200,"serviceInfo":[]}`, "null": `null`, "nothing": ``,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.serve(first, grpctest.Script{Answer: func(_ *grpctest.Peer, f grpctest.Frame) (grpctest.Message, bool) {
					return grpctest.Message{Head: grpcv2.Head{Type: grpcv2.QueryServiceResponse}, Body: body}, f.Type == grpcv2.ServiceQuery
				}})
				r := start(t, to(first), on(w))
				r.connected(t, 1)
				if _, err := r.Query(limited(t), service("orders")); wire.KindOf(err) != wire.BadAnswer {
					t.Errorf("got %v", err)
				}
				time.Sleep(time.Minute)
				if len(r.told().causes) > 0 {
					t.Errorf("causes %v", r.told().causes)
				}
			})
		})
	}
}

// Patterns are watched on servers of 3.x and on ours.
func TestWatchServices(t *testing.T) {
	srv := servertest.New(t)
	r := start(t, to(srv.Addr()))
	r.connected(t, 1)
	ctx := limited(t)
	known := service("shop.known")
	for _, name := range []string{"shop.a", "other.b"} {
		if err := r.Publish(ctx, service(name), set(1)); err != nil {
			t.Fatal(err)
		}
	}
	p := wire.Pattern{Namespace: "public", Group: "DEFAULT_GROUP", Name: "shop.*"}
	if err := r.WatchServices(ctx, p, []wire.Service{known}); err != nil {
		t.Fatal(err)
	}
	seen := func(what string, f func(c wire.ServicesChange) bool) {
		t.Helper()
		r.wait(t, what, func() bool {
			for _, c := range r.changes {
				if c.Pattern != p || c.Session != r.sessions[0].ID {
					t.Errorf("change %+v", c)
				}
				if f(c) {
					return true
				}
			}
			return false
		})
	}
	has := func(list []wire.Service, name string) bool { return len(list) == 1 && list[0] == service(name) }
	seen("what is there", func(c wire.ServicesChange) bool { return has(c.Added, "shop.a") })
	seen("what is gone", func(c wire.ServicesChange) bool { return has(c.Removed, "shop.known") })
	seen("the end of that", func(c wire.ServicesChange) bool { return c.Complete })
	if err := r.Publish(ctx, service("shop.c"), set(1)); err != nil {
		t.Fatal(err)
	}
	seen("a new one", func(c wire.ServicesChange) bool { return has(c.Added, "shop.c") })
	if err := r.Publish(ctx, service("shop.c"), nil); err != nil {
		t.Fatal(err)
	}
	seen("its end", func(c wire.ServicesChange) bool { return has(c.Removed, "shop.c") })
	if err := r.UnwatchServices(ctx, p); err != nil {
		t.Fatal(err)
	}
}

// A pattern for which the protocol has no words is watched as well, and is told of what
// matches it and no more.
func TestWatchServicesBeyondWords(t *testing.T) {
	srv := servertest.New(t)
	r := start(t, to(srv.Addr()))
	r.connected(t, 1)
	ctx := limited(t)
	inner := wire.Pattern{Namespace: "public", Group: "*", Name: "m*e"}
	other := wire.Pattern{Namespace: "public", Group: "*", Name: "m*x*"}
	for _, p := range []wire.Pattern{inner, other} {
		if err := r.WatchServices(ctx, p, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.UnwatchServices(ctx, other); err != nil { // which leaves the one with the same words
		t.Fatal(err)
	}
	for _, name := range []string{"moose", "mouse", "max", "else"} {
		if err := r.Publish(ctx, service(name), set(1)); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Publish(ctx, service("moose"), nil); err != nil {
		t.Fatal(err)
	}
	added := make(map[wire.Service]bool)
	r.wait(t, "the end of a service", func() bool {
		gone := false
		for _, c := range r.changes {
			for _, s := range c.Added {
				added[s] = added[s] || c.Pattern == inner
			}
			gone = gone || len(c.Removed) == 1
		}
		return gone
	})
	if len(added) != 2 || !added[service("moose")] || !added[service("mouse")] {
		t.Errorf("told of %v", added)
	}
}

func TestSpokenPatterns(t *testing.T) {
	for item, want := range map[string]string{
		"": "", "*": "*", "a": "a", "a*": "a*", "*a": "*a", "*a*": "*a*",
		"a*b": "a*", "*a*b": "*a*", "a*b*": "a*", "**": "*", "**a": "*", "a**": "a*", "*a*b*": "*a*",
	} {
		if got := spoken(item); got != want {
			t.Errorf("%q is spoken %q, want %q", item, got, want)
		}
	}
}
