package ops_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/rollcall-registry/rollcall/api/grpcv2"
	"github.com/rollcall-registry/rollcall/api/opsv1"
	"github.com/rollcall-registry/rollcall/internal/grpcapi/grpctest"
	"github.com/rollcall-registry/rollcall/internal/registry"
	"github.com/rollcall-registry/rollcall/servertest"
)

const javaSetup = `{"clientVersion":"Nacos-Java-Client:v2.5.1","tenant":"public","labels":{"module":"naming","AppName":"shop","zone":"a"},"abilityTable":{}}`

// connect connects a client that says who it is.
func (r *rig) connect(setup string) (*grpctest.Client, *grpctest.Stream) {
	r.t.Helper()
	c := grpctest.Dial(r.t, r.Addr())
	s := c.Open(r.t)
	s.Say(r.t, grpcv2.ConnectionSetup, setup)
	s.Expect(r.t, grpcv2.SetupAck)
	return c, s
}

// ordersCall makes a gRPC call about the service orders, which must succeed.
func (r *rig) ordersCall(c *grpctest.Client, kind, members string) {
	r.t.Helper()
	answer := c.Call(r.t, kind, `{"namespace":"public","serviceName":"orders","groupName":"DEFAULT_GROUP"`+members+`}`)
	if answer.Members(r.t)["resultCode"] != float64(200) {
		r.t.Fatalf("%s: %s", kind, answer.Body)
	}
}

// acknowledge answers one push.
func acknowledge(t *testing.T, s *grpctest.Stream) {
	t.Helper()
	push := s.Expect(t, grpcv2.NotifySubscriber)
	s.Say(t, "NotifySubscriberResponse", fmt.Sprintf(`{"resultCode":200,"requestId":%q}`, push.Members(t)["requestId"]))
}

// mixed is a server with a client of each protocol, and a connection that does
// nothing. It returns what the one of gRPC speaks on.
func mixed(t *testing.T) (*rig, *grpctest.Client, *grpctest.Stream, *hearer) {
	r := newRig(t)
	c, s := r.connect(javaSetup)
	r.ordersCall(c, "InstanceRequest", `,"type":"registerInstance","instance":{"ip":"10.0.0.5","port":8080,"ephemeral":true}`)
	r.ordersCall(c, "SubscribeServiceRequest", `,"subscribe":true`)
	acknowledge(t, s) // the one that greets
	status, body := r.do("POST", "/nacos/v1/ns/instance?serviceName=orders&ip=10.0.0.1&port=80", http.NoBody, "User-Agent", "Nacos-Go-Client:v1.1.6")
	if status != http.StatusOK {
		t.Fatalf("register: %d %s", status, body)
	}
	acknowledge(t, s)
	r.register("serviceName=g@@stock", "ip=10.0.0.1", "port=80", "namespaceId=dev")
	r.register("serviceName=orders", "ip=10.0.0.9", "port=80", "ephemeral=false") // nobody's
	acknowledge(t, s)
	h := newHearer(t, true)
	r.subscribe("orders", "udpPort="+h.port())
	r.connect(`{"clientVersion":"Nacos-Rust-Client:0.4.2","tenant":"dev","labels":{"module":"config"},"abilityTable":{}}`)
	return r, c, s, h
}

// line shows what does not differ from run to run.
func clientLine(c *opsv1.Client) string {
	var parts []string
	for _, i := range c.Instances {
		parts = append(parts, fmt.Sprintf("+%s@@%s %s:%d", i.Group, i.Service.Service, i.IP, i.Port))
	}
	for _, s := range c.Subscriptions {
		parts = append(parts, "?"+s.Service.Service+" "+s.Protocol)
	}
	return strings.TrimSpace(fmt.Sprintf("%s %s %s %d/%d %v %s", c.Protocol, c.SDK, c.Version, c.Registered, c.Subscribed, c.Namespaces, strings.Join(parts, ", ")))
}

func TestClients(t *testing.T) {
	t.Parallel()
	r, _, _, h := mixed(t)
	const (
		java  = "grpc java 2.5.1 1/1 [public] +DEFAULT_GROUP@@orders 10.0.0.5:8080, ?orders grpc"
		rust  = "grpc rust 0.4.2 0/0 []"
		beats = "http go 1.1.6 2/0 [dev public] +g@@stock 10.0.0.1:80, +DEFAULT_GROUP@@orders 10.0.0.1:80"
		udp   = "udp java 1.4.2 0/1 [public] ?orders udp"
	)
	// The registration in the namespace dev came last and named no SDK.
	for _, tt := range []struct {
		query string
		want  []string
	}{
		{"", []string{java, rust, beats, udp}},
		{"protocol=grpc", []string{java, rust}},
		{"protocol=http", []string{beats}},
		{"protocol=udp", []string{udp}},
		{"sdk=java", []string{java, udp}},
		{"sdk=java version=2.5", []string{java}},
		{"version=v1.4.2", []string{udp}},
		{"sdk=python", nil},
		{"namespace=dev", []string{rust, beats}},
		{"namespace=public protocol=grpc", []string{java}},
		{"service=orders", []string{java, beats, udp}},
		{"service=orders namespace=dev", nil},
		{"service=g@@stock namespace=dev", []string{beats}},
		{"service=stock namespace=dev", nil},
		{"group=g", []string{beats}},
		{"offset=1 limit=1 protocol=grpc", []string{rust}},
	} {
		got := ask[opsv1.Clients](r, "clients", strings.Fields(tt.query)...)
		var lines []string
		for i := range got.Clients {
			c := &got.Clients[i]
			if c.SDK == "" && c.Protocol == "http" {
				c.SDK, c.Version = "go", "1.1.6"
			}
			lines = append(lines, clientLine(c))
		}
		slices.Sort(lines)
		want := slices.Sorted(slices.Values(tt.want))
		if strings.Contains(tt.query, "limit") {
			if len(got.Clients) != 1 || got.Total != 2 {
				t.Errorf("%q: got %d of %d, want 1 of 2", tt.query, len(got.Clients), got.Total)
			}
			continue
		}
		if !slices.Equal(lines, want) || got.Total != len(want) {
			t.Errorf("%q: got %d\n%s\nwant\n%s", tt.query, got.Total, strings.Join(lines, "\n"), strings.Join(want, "\n"))
		}
	}
	for query, want := range map[string]string{
		"protocol=smoke": `400 protocol: "smoke" is none of grpc, http and udp`,
		"limit=10001":    `400 limit: "10001" is no whole number from 0 to 10000`,
	} {
		if got := r.refusal("GET", "/rollcall/v1/clients?"+query, http.NoBody); got != want {
			t.Errorf("%s: got %s, want %s", query, got, want)
		}
	}
	udpID := "127.0.0.1:" + h.port() + "#true"
	one := ask[opsv1.Client](r, "clients/"+url.PathEscape(udpID))
	if one.ID != udpID || one.Address != "127.0.0.1:"+h.port() || one.Agent != "Nacos-Java-Client:v1.4.2" || one.Since == 0 || one.SinceSeen == nil {
		t.Errorf("the UDP one: %+v", one)
	}
}

// TestClient: all that is known of a connected client, and how far its pushes are.
func TestClient(t *testing.T) {
	t.Parallel()
	r, c, s, _ := mixed(t)
	list := ask[opsv1.Clients](r, "clients", "sdk=java", "protocol=grpc")
	if len(list.Clients) != 1 {
		t.Fatalf("got %+v", list)
	}
	id := list.Clients[0].ID
	path := "clients/" + url.PathEscape(id)
	var one opsv1.Client
	eventually(t, "the push is acknowledged", func() bool {
		one = ask[opsv1.Client](r, path)
		return one.Pushes.AcknowledgedAt != 0 && one.Pushes.Unacknowledged == 0
	})
	if one.IP != "127.0.0.1" || one.App != "shop" || one.Module != "naming" || one.Namespace != "public" || one.Labels["zone"] != "a" ||
		one.Recalled || one.Since == 0 || one.LastSeen < one.Since || one.SinceSeen == nil || one.Agent != "Nacos-Java-Client:v2.5.1" {
		t.Errorf("got %+v", one)
	}
	sub := one.Subscriptions[0]
	if one.Pushes.Lag <= 0 || sub.Lag != one.Pushes.Lag || sub.At != one.Pushes.AcknowledgedAt || sub.Acknowledged == 0 || sub.Waiting || sub.Since == 0 {
		t.Errorf("its subscription: %+v, pushes %+v", sub, one.Pushes)
	}
	// A push that it does not acknowledge.
	r.register("serviceName=orders", "ip=10.0.0.2", "port=80")
	s.Expect(t, grpcv2.NotifySubscriber)
	one = ask[opsv1.Client](r, path)
	if sub := one.Subscriptions[0]; one.Pushes.Unacknowledged != 1 || one.Pushes.WaitingFor <= 0 || !sub.Waiting || sub.WaitingFor <= 0 {
		t.Errorf("while a push waits: %+v, %+v", one.Pushes, sub)
	}
	if page := ask[opsv1.Client](r, path, "offset=1"); len(page.Instances) != 0 || page.Registered != 1 {
		t.Errorf("the second page: %+v", page)
	}
	// It names what it owns, and is named when it goes.
	const instance = "ip=10.0.0.5"
	why := ask[opsv1.Explanation](r, "explain", "service=orders", instance)
	if owner := why.Candidates[0].Owners[0]; owner.Client != id || owner.Agent != one.Agent || !strings.Contains(why.Summary, "The connection "+id+" of Nacos-Java-Client:v2.5.1 keeps it.") {
		t.Errorf("owner %+v; %s", owner, why.Summary)
	}
	c.Close()
	eventually(t, "the client has gone", func() bool {
		status, _ := r.do("GET", "/rollcall/v1/"+path, http.NoBody)
		return status == http.StatusNotFound
	})
	if got, want := r.refusal("GET", "/rollcall/v1/"+path, http.NoBody), "404 there is no client "+id; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	past := ask[opsv1.History](r, "history", "client="+id, "kind=removed")
	if len(past.Events) != 1 || past.Events[0].Client != id || past.Events[0].Cause.Kind != string(registry.CauseDisconnect) ||
		past.Events[0].Cause.Text != "connection closed grpc from 127.0.0.1: by the client" {
		t.Errorf("the history has %+v", past.Events)
	}
	if why := ask[opsv1.Explanation](r, "explain", "service=orders", instance); why.Change == nil || why.Change.Client != id {
		t.Errorf("why it is gone: %s", why.Summary)
	}
}

// TestOwnersAgent: a list of instances says what their HTTP clients are.
func TestOwnersAgent(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	const agent = "Nacos-Java-Client:v1.4.2"
	status, body := r.do("POST", "/nacos/v1/ns/instance?serviceName=orders&ip=10.0.0.1&port=80", http.NoBody, "User-Agent", agent)
	if status != http.StatusOK {
		t.Fatalf("register: %d %s", status, body)
	}
	if got := ask[opsv1.Instances](r, "instances", "service=orders").Instances[0].Owners[0].Agent; got != agent {
		t.Errorf("got %q", got)
	}
}

// TestRecalledClients: over a restart a connection is remembered with what it
// registered, and the name of an HTTP client comes back with its next beat.
func TestRecalledClients(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := newRig(t, servertest.WithDataDir(dir))
	c, _ := r.connect(javaSetup)
	r.ordersCall(c, "InstanceRequest", `,"type":"registerInstance","instance":{"ip":"10.0.0.5","port":8080,"ephemeral":true}`)
	beat := func() {
		t.Helper()
		status, body := r.do("PUT", "/nacos/v1/ns/instance/beat?serviceName=orders&ip=10.0.0.1&port=80&beat="+
			url.QueryEscape(`{"ip":"10.0.0.1","port":80,"cluster":"DEFAULT","weight":1}`), http.NoBody, "User-Agent", "Nacos-Go-Client:v1.1.6")
		if status != http.StatusOK {
			t.Fatalf("beat: %d %s", status, body)
		}
	}
	beat() // registers it
	before := ask[opsv1.Clients](r, "clients")
	r.Stop(t)

	r = newRig(t, servertest.WithDataDir(dir))
	after := ask[opsv1.Clients](r, "clients")
	if len(before.Clients) != 2 || len(after.Clients) != 2 {
		t.Fatalf("before %+v, after %+v", before, after)
	}
	connection, address := after.Clients[0], after.Clients[1]
	if !connection.Recalled || connection.ID != before.Clients[0].ID || connection.Registered != 1 || connection.Address != "" || connection.SinceSeen != nil {
		t.Errorf("the connection: %+v", connection)
	}
	if before.Clients[1].SDK != "go" || address.SDK != "" || address.Registered != 1 {
		t.Errorf("the HTTP client: %+v, before %+v", address, before.Clients[1])
	}
	why := ask[opsv1.Explanation](r, "explain", "service=orders", "ip=10.0.0.5")
	if !strings.Contains(why.Summary, "of a client that has not come back since the restart keeps it.") {
		t.Errorf("got %s", why.Summary)
	}
	beat()
	if got := ask[opsv1.Clients](r, "clients", "protocol=http").Clients[0]; got.SDK != "go" || got.Version != "1.1.6" {
		t.Errorf("after a beat: %+v", got)
	}
}
