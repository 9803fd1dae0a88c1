package naming

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rollcall-registry/rollcall/internal/registry"
)

// connected are the connections of a test.
type connected []Connection

func (c connected) Connections() []Connection { return c }

func (c connected) Connection(id registry.ClientID) (Connection, bool) {
	i := slices.IndexFunc(c, func(c Connection) bool { return c.ID == id })
	if i < 0 {
		return Connection{}, false
	}
	return c[i], true
}

const (
	javaConnection = "1795996800000_10.0.0.5_51234"
	idleConnection = "1795996800001_10.0.0.6_40000"
	awayConnection = "1795997000000_10.0.0.7_40000"
)

// fleet is a rig with one client of each kind, and its roster.
func fleet(t *testing.T) (*rig, *Roster) {
	r := newRig(t)
	stock := registry.ServiceKey{Namespace: "dev", Group: "g", Name: "stock"}
	in := func(reg Registration, key registry.ServiceKey) Registration {
		reg.Service = key
		return reg
	}
	from := func(reg Registration, agent string, client registry.ClientID) Registration {
		reg.Agent, reg.Client = agent, client
		return reg
	}
	r.store.OpenClient(javaConnection)
	r.store.OpenClient(idleConnection)
	r.store.RecallClient(awayConnection)
	r.register(from(registration(key("10.0.0.5", 8080, "DEFAULT")), "", javaConnection))
	r.register(from(registration(key("10.0.0.7", 8080, "DEFAULT")), "", awayConnection))
	r.register(from(registration(key("10.0.0.1", 80, "DEFAULT")), "Nacos-Go-Client:v1.1.6", ""))
	r.register(registration(key("10.0.0.3", 80, "DEFAULT"), persistent))
	r.advance(2 * time.Second)
	r.register(from(in(registration(key("10.0.0.1", 80, "c1")), stock), "Nacos-Java-Client:v1.4.2", ""))
	r.register(from(registration(key("10.0.0.2", 80, "DEFAULT")), "curl/8.5", ""))
	subscribe := func(s *registry.Subscriber) {
		r.must(r.Subscribe(t.Context(), testCause, s))
	}
	udp := registry.SubscriberKey{Addr: netip.MustParseAddrPort("10.0.0.4:5000"), Agent: "Nacos-Java-Client:v1.4.6"}
	subscribe(&registry.Subscriber{SubscriberKey: udp, Service: orders, Protocol: registry.ProtocolUDP})
	r.advance(time.Second)
	subscribe(&registry.Subscriber{SubscriberKey: udp, Service: stock, Protocol: registry.ProtocolUDP, Refused: "not its own"})
	peer := netip.MustParseAddrPort("10.0.0.5:51234")
	grpc := registry.SubscriberKey{Client: javaConnection, Addr: peer, Agent: "Nacos-Java-Client:v2.5.1"}
	subscribe(&registry.Subscriber{SubscriberKey: grpc, Service: orders, Protocol: registry.ProtocolGRPC})

	conns := connected{
		{ID: javaConnection, Peer: peer, Version: "Nacos-Java-Client:v2.5.1", Tenant: "dev", Since: 1, LastActive: 2},
		{ID: idleConnection, Peer: netip.MustParseAddrPort("10.0.0.6:40000"), Version: "Nacos-Go-Client:v2.3.3"},
	}
	waiting := func(s *registry.Subscriber) (registry.Instant, bool) {
		switch {
		case s.Client != "":
			return registry.Instant{Wall: 1, Lease: r.clock.now.Lease - 300*time.Millisecond}, true
		default:
			return registry.Instant{}, s.Service == stock
		}
	}
	return r, NewRoster(r.Core, conns, waiting)
}

// names shortens the IDs of the fleet.
var names = strings.NewReplacer(javaConnection, "java", idleConnection, "idle", awayConnection, "away", "#true", "")

func TestRosterList(t *testing.T) {
	_, roster := fleet(t)
	const all = "java idle away 10.0.0.1:80 10.0.0.2:80 10.0.0.4:5000"
	for _, tt := range []struct {
		filter ClientFilter
		want   string
	}{
		{ClientFilter{}, all},
		{ClientFilter{Protocol: registry.ProtocolGRPC}, "java idle away"},
		{ClientFilter{Protocol: ProtocolHTTP}, "10.0.0.1:80 10.0.0.2:80"},
		{ClientFilter{Protocol: registry.ProtocolUDP}, "10.0.0.4:5000"},
		{ClientFilter{Protocol: "carrier pigeon"}, ""},
		{ClientFilter{SDK: "java"}, "java 10.0.0.1:80 10.0.0.4:5000"},
		{ClientFilter{SDK: "Java", Version: "1.4"}, "10.0.0.1:80 10.0.0.4:5000"},
		{ClientFilter{Version: "1.4.2"}, "10.0.0.1:80"},
		{ClientFilter{Version: "2"}, "java idle"},
		{ClientFilter{Version: "2.5.10"}, ""},
		{ClientFilter{Version: "1.4.2.1"}, ""},
		{ClientFilter{SDK: OtherSDK}, "away 10.0.0.2:80"},
		{ClientFilter{Namespace: "public"}, "java away 10.0.0.1:80 10.0.0.2:80 10.0.0.4:5000"},
		{ClientFilter{Namespace: "dev"}, "java 10.0.0.1:80 10.0.0.4:5000"},
		{ClientFilter{Namespace: "dev", Service: "orders"}, ""},
		{ClientFilter{Service: "stock"}, "10.0.0.1:80 10.0.0.4:5000"},
		{ClientFilter{Group: "g"}, "10.0.0.1:80 10.0.0.4:5000"},
		{ClientFilter{Group: "g", Protocol: registry.ProtocolUDP, SDK: "java", Version: "1.4.6"}, "10.0.0.4:5000"},
	} {
		page, total, err := roster.List(t.Context(), tt.filter, 0, 100, 10)
		if err != nil {
			t.Fatal(err)
		}
		var ids []string
		for _, c := range page {
			ids = append(ids, names.Replace(c.ID))
		}
		if got := strings.Join(ids, " "); got != tt.want || total != len(page) {
			t.Errorf("%+v: got %s, %d in all; want %s", tt.filter, got, total, tt.want)
		}
	}
	for _, tt := range []struct {
		offset, limit int
		want          string
	}{{0, 2, "java idle"}, {4, 2, "10.0.0.2:80 10.0.0.4:5000"}, {5, 9, "10.0.0.4:5000"}, {6, 1, ""}, {1 << 31, 1, ""}} {
		page, total, err := roster.List(t.Context(), ClientFilter{}, tt.offset, tt.limit, 10)
		var ids []string
		for _, c := range page {
			ids = append(ids, names.Replace(c.ID))
		}
		if got := strings.Join(ids, " "); err != nil || got != tt.want || total != 6 {
			t.Errorf("%d clients from %d: got %q of %d, %v; want %q of 6", tt.limit, tt.offset, got, total, err, tt.want)
		}
	}
}

// TestRosterClients: what is known of each client.
func TestRosterClients(t *testing.T) {
	_, roster := fleet(t)
	const start = 1795996800000
	line := func(c *Client) string {
		var parts []string
		for _, p := range c.Publications {
			parts = append(parts, "+"+p.Service.Name+"/"+p.Instance.Cluster)
		}
		for _, s := range c.Subscriptions {
			parts = append(parts, "?"+s.Service.Name)
		}
		return fmt.Sprintf("%s %s %s [%s] since %d seen %d in %v: %d %d %v", names.Replace(c.ID), c.Protocol, c.Address, c.SDK,
			c.Since, c.Seen, c.Namespaces, c.Registered, c.Subscribed, parts)
	}
	want := []string{
		"java grpc 10.0.0.5:51234 [java 2.5.1] since 1 seen 2 in [public]: 1 1 [+orders/DEFAULT ?orders]",
		"idle grpc 10.0.0.6:40000 [go 2.3.3] since 0 seen 0 in []: 0 0 []",
		"away grpc  [] since 0 seen 0 in [public]: 1 0 [+orders/DEFAULT]",
		fmt.Sprintf("10.0.0.1:80 http 10.0.0.1:80 [java 1.4.2] since 0 seen %d in [dev public]: 2 0 [+stock/c1 +orders/DEFAULT]", start+2000),
		fmt.Sprintf("10.0.0.2:80 http 10.0.0.2:80 [] since 0 seen %d in [public]: 1 0 [+orders/DEFAULT]", start+2000),
		fmt.Sprintf("10.0.0.4:5000 udp 10.0.0.4:5000 [java 1.4.6] since %d seen %d in [dev public]: 0 2 [?stock ?orders]", start+2000, start+3000),
	}
	page, _, err := roster.List(t.Context(), ClientFilter{}, 0, 100, 10)
	if err != nil {
		t.Fatal(err)
	}
	for i := range page {
		c := &page[i]
		if got := line(c); i >= len(want) || got != want[i] {
			t.Errorf("got  %s\nwant %s", got, want[min(i, len(want)-1)])
		}
		one, ok, err := roster.Client(t.Context(), c.ID, 0, 10)
		if err != nil || !ok || line(&one) != line(c) || !reflect.DeepEqual(one.Pushes, c.Pushes) {
			t.Errorf("%s alone: %v, %v, %s", c.ID, ok, err, line(&one))
		}
	}
	if c := page[2]; !c.Recalled || c.Connection != nil {
		t.Errorf("the one that is away: %+v", c)
	}
	for _, id := range []string{"10.0.0.3:80#false", "10.0.0.3:80#true", "nobody", "", "10.0.0.1:80"} {
		if c, ok, err := roster.Client(t.Context(), id, 0, 10); ok || err != nil {
			t.Errorf("%q: %+v, %v", id, c, err)
		}
	}
	one, _, err := roster.Client(t.Context(), "10.0.0.1:80#true", 1, 1)
	if err != nil || one.Registered != 2 || len(one.Publications) != 1 || one.Publications[0].Service.Name != "orders" {
		t.Errorf("the second page of one: %+v, %v", one, err)
	}
}

func TestRosterPushes(t *testing.T) {
	r, roster := fleet(t)
	acknowledged := func(id string) ClientPushes {
		t.Helper()
		c, ok, err := roster.Client(t.Context(), id, 0, 10)
		if !ok || err != nil {
			t.Fatalf("%s: %v, %v", id, ok, err)
		}
		return c.Pushes
	}
	if got, want := acknowledged(javaConnection), (ClientPushes{Waiting: 1, For: 300 * time.Millisecond}); got != want {
		t.Errorf("before an acknowledgement: %+v, want %+v", got, want)
	}
	subs := r.store.FindSubscribers(everywhere)
	for _, s := range subs {
		if s.Client == javaConnection {
			s.Acknowledge(10, 1000, 4*time.Millisecond)
			s.Acknowledge(11, 2000, 7*time.Millisecond)
		} else {
			s.Acknowledge(10, 3000, 0) // told of no change
			s.PushFailed(11, "lost")
		}
	}
	want := ClientPushes{Acknowledged: 2000, Lag: 7 * time.Millisecond, Waiting: 1, For: 300 * time.Millisecond}
	if got := acknowledged(javaConnection); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got, want := acknowledged("10.0.0.4:5000#true"), (ClientPushes{Waiting: 1, Failed: 2, Refused: "not its own"}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// TestRosterOfOneAddress: an address that registers and is sent packets is one
// client, in whatever spelling.
func TestRosterOfOneAddress(t *testing.T) {
	r := newRig(t)
	reg := registration(key("[FE80::1]", 80, "DEFAULT"))
	reg.Agent = "Nacos-Java-Client:v1.4.2"
	r.register(reg)
	r.subscribe("[fe80::1]:80", "")
	roster := NewRoster(r.Core, connected{}, func(*registry.Subscriber) (registry.Instant, bool) { return registry.Instant{}, false })
	for _, protocol := range []registry.Protocol{"", ProtocolHTTP, registry.ProtocolUDP} {
		page, total, err := roster.List(t.Context(), ClientFilter{Protocol: protocol}, 0, 10, 10)
		if err != nil || total != 1 {
			t.Fatalf("%q: %d clients, %v", protocol, total, err)
		}
		c := page[0]
		if c.Protocol != ProtocolHTTP || c.Registered != 1 || c.Subscribed != 1 || c.SDK.Version != "1.4.2" || c.Address != "[fe80::1]:80" {
			t.Errorf("%q: got %+v", protocol, c)
		}
		for _, id := range []string{c.ID, "[fe80::1]:80#true", "fe80:0::1:80#true"} {
			if _, ok, err := roster.Client(t.Context(), id, 0, 10); !ok || err != nil {
				t.Errorf("%s is not found, %v", id, err)
			}
		}
	}
}

// TestRosterTakesTurns: a second caller waits no longer than its context lasts.
func TestRosterTakesTurns(t *testing.T) {
	_, roster := fleet(t)
	roster.turn <- struct{}{}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := roster.List(ctx, ClientFilter{}, 0, 1, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("list: %v", err)
	}
	if _, _, err := roster.Client(ctx, javaConnection, 0, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("client: %v", err)
	}
}

// BenchmarkRosterList is a page of the clients of a registry with 10,000 instances
// over HTTP and as many subscribers.
func BenchmarkRosterList(b *testing.B) {
	clock := &handClock{}
	store := registry.NewStore(registry.DefaultConfig(), noEvents{})
	core := New(DefaultConfig(), store, nil, clock, slog.New(slog.DiscardHandler))
	for n := range 10_000 {
		svc := registry.ServiceKey{Namespace: registry.DefaultNamespace, Group: registry.DefaultGroup, Name: fmt.Sprint("s", n%100)}
		reg := registration(key(fmt.Sprintf("10.0.%d.%d", n/250, n%250), 80, "DEFAULT"))
		reg.Service, reg.Agent = svc, "Nacos-Java-Client:v1.4.2"
		if err := core.Register(b.Context(), testCause, reg); err != nil {
			b.Fatal(err)
		}
		addr := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 1, byte(n / 250), byte(n % 250)}), 5000)
		sub := &registry.Subscriber{SubscriberKey: registry.SubscriberKey{Addr: addr}, Service: svc, Protocol: registry.ProtocolUDP}
		if err := core.Subscribe(b.Context(), testCause, sub); err != nil {
			b.Fatal(err)
		}
	}
	roster := NewRoster(core, connected{}, func(*registry.Subscriber) (registry.Instant, bool) { return registry.Instant{}, false })
	b.ReportAllocs()
	for b.Loop() {
		if _, total, err := roster.List(b.Context(), ClientFilter{}, 0, 1000, 10); err != nil || total != 20_000 {
			b.Fatal(total, err)
		}
	}
}
