package registry

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestServiceLife(t *testing.T) {
	w := newWorld(t)
	info := ServiceInfo{ProtectThreshold: 0.5, Selector: Selector{Type: SelectorNone}, Metadata: NewMetadata(map[string]string{"a": "1"})}
	w.must(&CreateService{Meta: w.meta(), Service: orders(), Info: info})
	w.events("service created orders")
	w.refuse(&CreateService{Meta: w.meta(), Service: orders()}, ServiceExists)
	w.refuse(&CreateService{Meta: w.meta(), Service: orders(), Adopt: true}, ServiceExists)
	if v := w.View(orders()); v.Info.ProtectThreshold != 0.5 || !v.Info.Set || v.Info.Metadata != `{"a":"1"}` {
		t.Errorf("settings %+v", v.Info)
	}
	info.ProtectThreshold = 0.7
	w.must(&UpdateService{Meta: w.meta(), Service: orders(), Info: info})
	w.events("service updated orders")
	w.register(httpOwner, first)
	w.rec.take()
	w.refuse(&DeleteService{Meta: w.meta(), Service: orders(), IfEmpty: true}, ServiceNotEmpty)
	if err := w.Check(&DeleteService{Service: orders(), IfEmpty: true}); err == nil {
		t.Error("Check lets a service with instances be deleted as an empty one")
	}
	w.must(&DeleteService{Meta: w.meta(), Service: orders()})
	w.events("removed orders 10.0.0.1:8080/DEFAULT", "service removed orders")
	w.refuse(&DeleteService{Meta: w.meta(), Service: orders()}, ServiceNotFound)
	if w.View(orders()) != nil || w.beat(first).Known {
		t.Error("the service is still there")
	}
	w.must(&UpdateService{Meta: w.meta(), Service: orders(), Info: info}) // its creation was long ago
	w.events("service created orders")
}

// Deleting takes the owners one by one, so that a history of events can be
// repeated without knowing of the service.
func TestDeleteServiceTellsOfEachOwner(t *testing.T) {
	w := newWorld(t)
	w.OpenClient("c1")
	w.register(httpOwner, first)
	w.register(connection("c1"), first)
	w.rec.take()
	w.must(&DeleteService{Meta: w.meta(), Service: orders()})
	if e := w.rec.events; e[0].Owner != httpOwner || e[1].Owner != connection("c1") {
		t.Errorf("owners %+v, %+v", e[0].Owner, e[1].Owner)
	}
	w.events("owner removed orders 10.0.0.1:8080/DEFAULT", "removed orders 10.0.0.1:8080/DEFAULT", "service removed orders")
}

func TestAdoptService(t *testing.T) {
	w := newWorld(t)
	w.register(httpOwner, first)
	w.refuse(&CreateService{Meta: w.meta(), Service: orders()}, ServiceExists)
	w.rec.take()
	w.must(&CreateService{Meta: w.meta(), Service: orders(), Adopt: true, Info: ServiceInfo{ProtectThreshold: 1}})
	w.events("service updated orders")
	if v := w.View(orders()); v.Info.ProtectThreshold != 1 || len(v.Instances) != 1 {
		t.Errorf("got %+v", v)
	}
}

func TestClusters(t *testing.T) {
	w := newWorld(t)
	names := func() string {
		var list []string
		for _, c := range w.View(orders()).Clusters {
			list = append(list, c.Name)
		}
		return strings.Join(list, " ")
	}
	w.register(httpOwner, first)
	w.register(httpOwner, InstanceKey{IP: "10.0.0.1", Port: 1, Cluster: "b"})
	before := w.View(orders())
	w.rec.take()
	probe := Cluster{Name: "a", Checker: HealthCheck{Type: CheckHTTP, Path: "/up"}, CheckPort: 81}
	w.must(&SetCluster{Meta: w.meta(), Service: orders(), Cluster: probe})
	w.events("cluster updated orders")
	if got := names(); got != "DEFAULT a b" {
		t.Errorf("clusters %s", got)
	}
	if len(before.Clusters) != 2 {
		t.Error("an earlier view changed")
	}
	if c := w.View(orders()).Cluster("a"); *c != probe {
		t.Errorf("got %+v", c)
	}
	w.must(&SetCluster{Meta: w.meta(), Service: orders(), Cluster: Cluster{Name: "a"}})
	if c := w.View(orders()).Cluster("a"); *c != (Cluster{Name: "a"}) || names() != "DEFAULT a b" {
		t.Errorf("replaced by %+v", c)
	}
	if c := w.View(orders()).Cluster("DEFAULT"); *c != *NewCluster("DEFAULT") || w.View(orders()).Cluster("z") != nil {
		t.Errorf("default cluster %+v", c)
	}
	w.must(&SetCluster{Meta: w.meta(), Service: named("new"), Cluster: probe})
	if v := w.View(named("new")); v == nil || len(v.Clusters) != 1 || v.Info.Set {
		t.Errorf("a new service with a cluster: %+v", v)
	}
}

func TestEmptyServicesAreCleaned(t *testing.T) {
	for _, tt := range []struct {
		name string
		make func(*world)
		stay bool
	}{
		{"came with an ephemeral instance", func(w *world) {
			w.register(httpOwner, first)
			w.deregister(httpOwner, first)
		}, false},
		{"came with a persistent instance", func(w *world) {
			w.register(durableOwner, first)
			w.deregister(durableOwner, first)
		}, false},
		{"made by hand", func(w *world) { w.must(&CreateService{Meta: w.meta(), Service: orders()}) }, true},
		{"set up by hand", func(w *world) {
			w.register(httpOwner, first)
			w.must(&UpdateService{Meta: w.meta(), Service: orders()})
			w.deregister(httpOwner, first)
		}, true},
		{"set up after it was empty", func(w *world) {
			w.register(httpOwner, first)
			w.deregister(httpOwner, first)
			w.must(&UpdateService{Meta: w.meta(), Service: orders()})
		}, true},
		{"with a cluster set up", func(w *world) {
			w.must(&SetCluster{Meta: w.meta(), Service: orders(), Cluster: *NewCluster("c")})
		}, true},
		{"in use", func(w *world) {
			w.register(httpOwner, first, times("", "600000", "600000"))
			w.deregister(httpOwner, first)
			w.register(httpOwner, first, times("", "600000", "600000"))
		}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			tt.make(w)
			w.rec.take()
			w.pass(59999 * time.Millisecond)
			w.events()
			w.pass(time.Millisecond)
			if tt.stay {
				w.events()
				return
			}
			if c := w.rec.events[0].Cause; c.Kind != CauseExpiry || c.Detail != "empty for 1m0s" {
				t.Errorf("cause %+v", c)
			}
			w.events("service removed orders")
			w.pass(time.Hour)
			w.events()
		})
	}
}

// A service that comes and goes all the time does not keep others from being
// cleaned, and its own time begins anew each time.
func TestBusyServiceDoesNotDelayCleaning(t *testing.T) {
	w := newWorld(t)
	busy := orders()
	var others []ServiceKey // in the same shard
	for n := 0; len(others) < 3; n++ {
		if key := named(fmt.Sprint("s", n)); w.shard(key) == w.shard(busy) {
			others = append(others, key)
		}
	}
	w.register(httpOwner, first)
	w.deregister(httpOwner, first)
	for _, key := range others {
		w.advance(time.Second)
		w.registerIn(key, httpOwner, first)
		w.must(&Deregister{Meta: w.meta(), Service: key, Owner: httpOwner, Instance: first})
	}
	for w.now.Lease < 61*time.Second {
		w.register(httpOwner, first)
		w.deregister(httpOwner, first)
		w.pass(time.Second)
	}
	if w.View(others[0]) != nil || w.View(others[1]) == nil {
		t.Error("the first of the others should be gone after a minute, and no other")
	}
	w.pass(58 * time.Second)
	if w.View(others[2]) != nil || w.View(busy) == nil {
		t.Error("the busy service should be the last one left")
	}
	w.pass(time.Second)
	if w.View(busy) != nil {
		t.Error("the busy service should be gone a minute after it became quiet")
	}
}

func TestDirectory(t *testing.T) {
	w := newWorld(t)
	var keys []ServiceKey
	for _, group := range []string{"a", "a-b", "a_b", "A", "b", "a@@x"} {
		for _, name := range []string{"orders", "b-orders", "Orders", "o@2"} {
			keys = append(keys, ServiceKey{"n1", group, name})
		}
	}
	keys = append(keys, ServiceKey{"n1", "a", "x@@orders"}) // grouped like a@@x, orders
	rand.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	for _, key := range keys {
		w.registerIn(key, httpOwner, first)
	}
	w.register(httpOwner, first)
	check := func() {
		t.Helper()
		slices.SortFunc(keys, func(a, b ServiceKey) int {
			if c := strings.Compare(a.Grouped(), b.Grouped()); c != 0 {
				return c
			}
			return strings.Compare(a.Group, b.Group)
		})
		for _, group := range []string{"", "a", "a-b", "A", "none"} {
			var want []ServiceKey
			for _, key := range keys {
				if group == "" || strings.HasPrefix(key.Grouped(), group+GroupSeparator) {
					want = append(want, key)
				}
			}
			for _, page := range [][2]int{{0, -1}, {0, 0}, {0, 3}, {2, 3}, {-5, 3}, {len(want) - 1, 9}, {999, 9}, {1, 1 << 40}} {
				got, total := w.Services("n1", group, page[0], page[1])
				from := min(max(page[0], 0), len(want))
				to := len(want)
				if page[1] >= 0 {
					to = min(from+page[1], to)
				}
				if total != len(want) || !slices.Equal(got, want[from:to]) {
					t.Errorf("group %q, page %v: got %v of %d\nwant %v of %d", group, page, got, total, want[from:to], len(want))
				}
			}
		}
	}
	check()
	for len(keys) > 10 {
		n := rand.IntN(len(keys))
		w.must(&DeleteService{Meta: w.meta(), Service: keys[n]})
		keys = slices.Delete(keys, n, n+1)
	}
	check()
	if got := w.ServiceNamespaces(); !slices.Equal(got, []string{"n1", "public"}) {
		t.Errorf("namespaces %v", got)
	}
	if got, total := w.Services("n2", "", 0, -1); len(got) != 0 || total != 0 {
		t.Errorf("an unknown namespace has %v", got)
	}
}

// A list longer than a chunk, built in any order and taken apart again.
func TestServiceListChunks(t *testing.T) {
	var l serviceList
	all := make([]*service, 3*listChunk+7)
	for n := range all {
		key, grouped := named(fmt.Sprintf("s%06d", n)).clone("public")
		all[n] = &service{key: key, grouped: grouped}
	}
	shuffled := slices.Clone(all)
	shuffle := func() {
		rand.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	}
	shuffle()
	for _, svc := range shuffled {
		l.add(svc)
		l.add(svc) // does nothing
	}
	check := func(want []*service) {
		t.Helper()
		at := 0
		for _, chunk := range l.chunks {
			if len(chunk) == 0 || len(chunk) > listChunk {
				t.Fatalf("a chunk of %d", len(chunk))
			}
			for _, svc := range chunk {
				if svc != want[at] || l.rank(svc.grouped) != at {
					t.Fatalf("%s is at %d, rank %d", svc.grouped, at, l.rank(svc.grouped))
				}
				at++
			}
		}
		if at != len(want) || l.size != len(want) {
			t.Fatalf("%d services, size %d, want %d", at, l.size, len(want))
		}
	}
	check(all)
	if page := l.slice(listChunk-2, 2*listChunk+2); len(page) != listChunk+4 || page[0] != all[listChunk-2].key {
		t.Errorf("a page over chunks has %d keys from %v", len(page), page[0])
	}
	shuffle()
	for _, svc := range shuffled[7:] {
		l.remove(svc)
		l.remove(svc) // does nothing
	}
	slices.SortFunc(shuffled[:7], func(a, b *service) int { return a.compareName(b.grouped, b.key.Group) })
	check(shuffled[:7])
}

func TestRevisionsOnlyGrow(t *testing.T) {
	w := newWorld(t)
	last := int64(0)
	check := func(step string) {
		t.Helper()
		for _, e := range w.rec.events {
			if e.Revision == 0 {
				continue
			}
			// Two events of one change may share its revision.
			if e.Revision < last || e.Revision == last && e.Kind != InstanceHealthy && e.Kind != InstanceUnhealthy {
				t.Errorf("%s: %s has revision %d after %d", step, e.Kind, e.Revision, last)
			}
			last = max(last, e.Revision)
		}
		w.rec.take()
		if v := w.View(orders()); v != nil && v.Revision != last {
			t.Errorf("%s: the view has revision %d, the last event %d", step, v.Revision, last)
		}
		if high := w.HighestRevision(); high < last {
			t.Errorf("%s: the highest revision is %d, and %d was given", step, high, last)
		}
	}
	w.register(httpOwner, first)
	check("first")
	if last != wall0+1 { // created and registered within one millisecond
		t.Errorf("revision %d, want the wall clock's", last)
	}
	w.register(httpOwner, first, weight(2))
	check("same millisecond")
	w.now.Wall -= 1e9
	w.register(httpOwner, first, weight(3))
	check("clock set back")
	w.must(&DeleteService{Meta: w.meta(), Service: orders()})
	check("deleted")
	w.register(httpOwner, first)
	check("made again")
	w.RaiseFloor(wall0 + 5e9)
	w.RaiseFloor(5)
	w.must(&DeleteService{Meta: w.meta(), Service: orders()})
	w.rec.take()
	w.register(httpOwner, first)
	check("after the floor was raised")
	if last <= wall0+5e9 {
		t.Errorf("revision %d is not above the floor", last)
	}
	w.now.Wall += 1e12
	w.register(httpOwner, first, weight(4))
	check("clock set forward")
	if last != w.now.Wall {
		t.Errorf("revision %d does not follow the clock", last)
	}
}

// A view is immutable, shared until the next change, and then known to be stale.
func TestViews(t *testing.T) {
	w := newWorld(t)
	w.register(httpOwner, first)
	v := w.View(orders())
	if w.View(orders()) != v || v.Stale() {
		t.Error("an unchanged service has a new view")
	}
	w.beat(first)
	w.register(httpOwner, first) // renewed without a change
	if w.View(orders()) != v || v.Stale() {
		t.Error("a renewal made a new view")
	}
	w.register(httpOwner, first, weight(2))
	if w.View(orders()) == v || !v.Stale() || v.Instances[0].Weight != 1 {
		t.Error("a change did not make a new view, or changed the old one")
	}
}

func TestEncodings(t *testing.T) {
	var e Encodings
	if e.Get("a") != nil || e.Len() != 0 {
		t.Error("not empty")
	}
	e.Add("a", 1)
	e.Add("b", 2)
	e.Add("a", 3)
	if e.Get("a") != 3 || e.Get("b") != 2 || e.Len() != 3 {
		t.Errorf("got %v, %v of %d", e.Get("a"), e.Get("b"), e.Len())
	}
	e.Remove("a")
	e.Remove("z")
	if e.Get("a") != nil || e.Get("b") != 2 || e.Len() != 1 {
		t.Errorf("got %v, %v of %d", e.Get("a"), e.Get("b"), e.Len())
	}
}

func TestNamespaces(t *testing.T) {
	w := newWorld(t)
	create := func(id string) *CreateNamespace {
		return &CreateNamespace{Meta: w.meta(), Namespace: Namespace{ID: id, Name: "name of " + id}}
	}
	described := new("d")
	w.must(create("b"))
	w.must(create("a"))
	w.refuse(create("a"), NamespaceExists)
	w.refuse(create(DefaultNamespace), NamespaceExists)
	w.must(&UpdateNamespace{Meta: w.meta(), Namespace: Namespace{ID: "a", Name: "other", Description: described}})
	w.refuse(&UpdateNamespace{Meta: w.meta(), Namespace: Namespace{ID: "z"}}, NamespaceNotFound)
	want := []Namespace{{ID: "a", Name: "other", Description: described}, {ID: "b", Name: "name of b"}}
	if got := w.Namespaces(); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if n, ok := w.NamespaceByID("a"); !ok || n != want[0] {
		t.Errorf("got %v, %v", n, ok)
	}
	w.registerIn(ServiceKey{"a", DefaultGroup, "orders"}, httpOwner, first)
	w.must(&DeleteNamespace{Meta: w.meta(), ID: "a"})
	w.refuse(&DeleteNamespace{Meta: w.meta(), ID: "a"}, NamespaceNotFound)
	if w.View(ServiceKey{"a", DefaultGroup, "orders"}) == nil {
		t.Error("the services went with the namespace")
	}
	w.events("namespace created", "namespace created", "namespace updated",
		"service created orders", "registered orders 10.0.0.1:8080/DEFAULT", "namespace removed")
}

func TestCheckLeavesOtherCommandsToApply(t *testing.T) {
	w := newWorld(t)
	w.must(&CreateService{Meta: w.meta(), Service: orders()})
	var refusal *Error
	if err := w.Check(&CreateService{Service: orders()}); !errors.As(err, &refusal) || refusal.Code != ServiceExists {
		t.Errorf("got %v", err)
	}
	if err := w.Check(&CreateNamespace{Namespace: Namespace{ID: DefaultNamespace}}); err != nil {
		t.Errorf("got %v", err)
	}
}

func TestCauses(t *testing.T) {
	w := newWorld(t)
	w.register(httpOwner, first)
	w.pass(15001 * time.Millisecond)
	w.pass(15001 * time.Millisecond)
	var causes []string
	for _, e := range w.rec.events {
		causes = append(causes, e.Cause.String())
	}
	want := []string{"test", "test", "beat timeout: 15s without a beat", "beat timeout: 30s without a beat"}
	if !slices.Equal(causes, want) {
		t.Errorf("got %q, want %q", causes, want)
	}
	full := Cause{Kind: CauseRequest, API: "http-v1", Op: "register", Actor: "alice", From: udpSubscriber("10.0.0.7:1").Addr.Addr(), Detail: "x"}
	if got := full.String(); got != "http-v1 register by alice from 10.0.0.7: x" {
		t.Errorf("got %q", got)
	}
}
