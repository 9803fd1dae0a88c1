package ops_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/rollcall-registry/rollcall/api/opsv1"
)

func TestServices(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for n := range 3 {
		r.register(fmt.Sprintf("serviceName=s%d", n), "ip=10.0.0.1", "port=80")
	}
	r.register("serviceName=s0", "ip=10.0.0.2", "port=80", "healthy=false")
	r.register("serviceName=g@@s3", "ip=10.0.0.1", "port=80")
	r.register("serviceName=s4", "ip=10.0.0.1", "port=80", "namespaceId=dev")
	r.subscribe("s0", "udpPort="+newHearer(t, false).port())

	for _, tt := range []struct{ query, want string }{
		{"", "DEFAULT_GROUP@@s0 1/2 1, DEFAULT_GROUP@@s1 1/1 0, DEFAULT_GROUP@@s2 1/1 0, g@@s3 1/1 0 of 4"},
		{"offset=1 limit=2", "DEFAULT_GROUP@@s1 1/1 0, DEFAULT_GROUP@@s2 1/1 0 of 4"},
		{"offset=9", " of 4"},
		{"group=g", "g@@s3 1/1 0 of 1"},
		{"namespace=dev", "DEFAULT_GROUP@@s4 1/1 0 of 1"},
		{"namespace=none", " of 0"},
	} {
		got := ask[opsv1.Services](r, "services", strings.Fields(tt.query)...)
		var lines []string
		for _, s := range got.Services {
			lines = append(lines, fmt.Sprintf("%s@@%s %d/%d %d", s.Group, s.Service.Service, s.Healthy, s.Instances, s.Subscribers))
		}
		if text := fmt.Sprintf("%s of %d", strings.Join(lines, ", "), got.Total); text != tt.want {
			t.Errorf("%q: got %s, want %s", tt.query, text, tt.want)
		}
	}
	for query, want := range map[string]string{
		"limit=10001": `400 limit: "10001" is no whole number from 0 to 10000`,
		"offset=-1":   `400 offset: "-1" is no whole number from 0 to 2147483647`,
		"limit=many":  `400 limit: "many" is no whole number from 0 to 10000`,
	} {
		if got := r.refusal("GET", "/rollcall/v1/services?"+query, http.NoBody); got != want {
			t.Errorf("%s: got %s, want %s", query, got, want)
		}
	}
}

func TestInstances(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.register("serviceName=orders", "ip=10.0.0.1", "port=80", "metadata=zone=a", "weight=2")
	r.register("serviceName=orders", "ip=10.0.0.2", "port=80", "ephemeral=false", "clusterName=b")
	r.register("serviceName=orders", "ip=::1", "port=80", "enabled=false")
	r.v1("PUT", "/instance", "serviceName=orders", "ip=10.0.0.1", "port=80", "weight=3", "metadata=zone=b")

	got := ask[opsv1.Instances](r, "instances", "service=orders")
	if got.Total != 3 || len(got.Instances) != 3 {
		t.Fatalf("got %+v, want three instances", got)
	}
	first, second, third := got.Instances[0], got.Instances[1], got.Instances[2]
	if first.IP != "10.0.0.1" || first.Weight != 3 || first.Override == nil || *first.Override.Weight != 3 ||
		(*first.Override.Metadata)["zone"] != "b" || first.SinceBeat == nil || *first.ExpiresIn < 20_000 ||
		len(first.Owners) != 1 || first.Owners[0].Kind != "http" {
		t.Errorf("the overridden one: %+v", first)
	}
	if second.Owners[0].Kind != "durable" || second.SinceBeat != nil || second.ExpiresIn != nil || second.Ephemeral || second.Cluster != "b" {
		t.Errorf("the persistent one: %+v", second)
	}
	if third.IP != "::1" || third.Enabled {
		t.Errorf("the disabled one: %+v", third)
	}
	for query, want := range map[string]string{
		"cluster=b": "10.0.0.2", "cluster=c": "", "offset=1 limit=1": "10.0.0.2", "offset=3": "", "group=DEFAULT_GROUP limit=1": "10.0.0.1",
	} {
		page := ask[opsv1.Instances](r, "instances", append(strings.Fields(query), "service=orders")...)
		var ips []string
		for _, i := range page.Instances {
			ips = append(ips, i.IP)
		}
		if got := strings.Join(ips, " "); got != want {
			t.Errorf("%s: got %q, want %q", query, got, want)
		}
	}
	for query, want := range map[string]string{
		"":                             "400 service: say of which service",
		"service=gone":                 "404 there is no service DEFAULT_GROUP@@gone in namespace public",
		"service=a@@b&namespace=dev":   "404 there is no service a@@b in namespace dev",
		"service=orders&limit=1000000": `400 limit: "1000000" is no whole number from 0 to 10000`,
	} {
		if got := r.refusal("GET", "/rollcall/v1/instances?"+query, http.NoBody); got != want {
			t.Errorf("%q: got %s, want %s", query, got, want)
		}
	}
}

func TestHealthPaths(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, path := range []string{"/livez", "/readyz", "/nacos/livez"} {
		if got := r.must("GET", path); got != "ok" {
			t.Errorf("%s: %q", path, got)
		}
	}
	for _, path := range []string{"/metrics", "/nacos/actuator/prometheus"} {
		if got := r.must("GET", path); !strings.Contains(got, "rollcall_instances{") {
			t.Errorf("%s has no rollcall_instances: %.200s", path, got)
		}
	}
}

func TestHistory(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.register("serviceName=orders", "ip=10.0.0.1", "port=80")
	r.register("serviceName=orders", "ip=2001:db8::1", "port=81")
	r.register("serviceName=g@@stock", "ip=10.0.0.1", "port=80", "clusterName=b")
	r.register("serviceName=orders", "ip=10.0.0.1", "port=80", "namespaceId=dev")
	r.v1("DELETE", "/instance", "serviceName=orders", "ip=10.0.0.1", "port=80")

	const all = "service created|registered 10.0.0.1:80|registered 2001:db8::1:81|removed 10.0.0.1:80"
	for _, tt := range []struct{ query, want string }{
		{"service=orders order=oldest", all},
		{"service=orders group=DEFAULT_GROUP namespace=public order=oldest", all},
		{"service=DEFAULT_GROUP@@orders kind=removed", "removed 10.0.0.1:80"},
		{"service=orders kind=service-created,registered order=oldest limit=2", "service created|registered 10.0.0.1:80"},
		{"service=orders ip=10.0.0.1", "removed 10.0.0.1:80|registered 10.0.0.1:80"},
		{"ip=2001:0db8:0::1 port=81", "registered 2001:db8::1:81"},
		{"ip=10.0.0.1 port=80 kind=registered", "registered 10.0.0.1:80|registered 10.0.0.1:80|registered 10.0.0.1:80"},
		{"cluster=b", "registered 10.0.0.1:80"},
		{"service=orders namespace=dev order=oldest", "service created|registered 10.0.0.1:80"},
		{"namespace=dev kind=registered", "registered 10.0.0.1:80"},
		{"service=orders since=1h until=0s kind=removed", "removed 10.0.0.1:80"},
		{"service=orders until=1h", ""},
		{"service=orders since=2999-01-01T00:00:00Z", ""},
		{"service=orders until=1000", ""},
		{"service=nothing", ""},
	} {
		got := ask[opsv1.History](r, "history", strings.Fields(tt.query)...)
		if text := eventLines(got.Events); text != tt.want {
			t.Errorf("%s: got %s, want %s", tt.query, text, tt.want)
		}
	}
	for query, want := range map[string]string{
		"kind=gone":    `400 kind: "gone" is none of registered, updated, removed, `,
		"since=soon":   `400 since: "soon" is no time; write 2006-01-02T15:04:05Z, milliseconds since 1970, or an age such as 15m`,
		"order=random": `400 order: "random" is neither newest nor oldest`,
		"port=65536":   `400 port: "65536" is no whole number from 0 to 65535`,
		"cursor=-1":    `400 cursor: "-1" is no whole number from 0 to 4611686018427387904`,
		"limit=1e3":    `400 limit: "1e3" is no whole number from 0 to 10000`,
	} {
		if got := r.refusal("GET", "/rollcall/v1/history?"+query, http.NoBody); !strings.HasPrefix(got, want) {
			t.Errorf("%s: got %s, want %s", query, got, want)
		}
	}
}

func eventLines(events []opsv1.Event) string {
	var lines []string
	for _, e := range events {
		line := e.Kind
		if e.Instance != nil {
			line += fmt.Sprintf(" %s:%d", e.Instance.IP, e.Instance.Port)
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "|")
}

// Pages follow one another without a gap or a repetition, in both orders.
func TestHistoryPages(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for n := range 7 {
		r.register("serviceName=orders", "ip=10.0.0.1", fmt.Sprintf("port=%d", 8000+n))
	}
	for _, order := range []string{"oldest", "newest"} {
		var ports []int32
		params := []string{"service=orders", "kind=registered", "limit=3", "order=" + order}
		for cursor := uint64(0); ; {
			page := ask[opsv1.History](r, "history", append(params, fmt.Sprint("cursor=", cursor))...)
			for _, e := range page.Events {
				ports = append(ports, e.Instance.Port)
			}
			if cursor = page.Next; cursor == 0 {
				break
			}
		}
		want := "[8000 8001 8002 8003 8004 8005 8006]"
		if order == "newest" {
			want = "[8006 8005 8004 8003 8002 8001 8000]"
		}
		if got := fmt.Sprint(ports); got != want {
			t.Errorf("%s first: got %s, want %s", order, got, want)
		}
	}
}

// An event of a removal does not pretend to know the weight.
func TestHistoryOfRemovals(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.register("serviceName=orders", "ip=10.0.0.1", "port=80", "weight=2", "metadata=zone=a")
	r.v1("DELETE", "/instance", "serviceName=orders", "ip=10.0.0.1", "port=80")
	got := ask[opsv1.History](r, "history", "service=orders", "ip=10.0.0.1").Events
	if len(got) != 2 {
		t.Fatalf("%d events, want 2", len(got))
	}
	removed, registered := got[0], got[1]
	if removed.Instance.Weight != nil || removed.Instance.Enabled != nil || !removed.Instance.Healthy || removed.Owner != "http" {
		t.Errorf("removal: %+v", removed.Instance)
	}
	if *registered.Instance.Weight != 2 || !*registered.Instance.Enabled || registered.Instance.Metadata["zone"] != "a" {
		t.Errorf("registration: %+v", registered.Instance)
	}
	if want := "http-v1 deregister from 127.0.0.1"; removed.Cause.Text != want || removed.Cause.From != "127.0.0.1" {
		t.Errorf("cause %+v, want %s", removed.Cause, want)
	}
}

func TestPushes(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	h := newHearer(t, true)
	r.register("serviceName=orders", "ip=10.0.0.1", "port=80")
	r.subscribe("orders", "udpPort="+h.port())
	address := "127.0.0.1:" + h.port()

	var got opsv1.Pushes
	for n, ip := range []string{"10.0.0.2", "10.0.0.3"} {
		r.register("serviceName=orders", "ip="+ip, "port=80")
		eventually(t, "the push is recorded", func() bool {
			got = ask[opsv1.Pushes](r, "pushes", "service=orders", "subscriber="+address, "order=oldest")
			return len(got.Pushes) == n+1
		})
	}
	first, second := got.Pushes[0], got.Pushes[1]
	if first.Kind != "acknowledged" || first.Subscriber.Protocol != "udp" || first.Subscriber.Agent != "Nacos-Java-Client:v1.4.2" ||
		first.Took <= 0 || first.Took > float64(patience.Milliseconds()) {
		t.Errorf("first push: %+v", first)
	}
	if second.Subscriber.Address != address || second.Revision <= first.Revision {
		t.Errorf("second push: %+v after %+v", second, first)
	}
	for _, tt := range []string{"subscriber=127.0.0.1:1", "service=other", "kind=push-failed", "until=1h"} {
		if got := ask[opsv1.Pushes](r, "pushes", tt); len(got.Pushes) != 0 {
			t.Errorf("%s: got %+v", tt, got)
		}
	}
	for query, want := range map[string]string{
		"subscriber=me": `400 subscriber: "me" is no address with a port; write 10.0.0.7:4444 or [::1]:4444`,
		"kind=removed":  `400 kind: "removed" is none of acknowledged, push failed, history lost`,
	} {
		if got := r.refusal("GET", "/rollcall/v1/pushes?"+query, http.NoBody); got != want {
			t.Errorf("%s: got %s, want %s", query, got, want)
		}
	}
}

func TestPushesNotKept(t *testing.T) {
	t.Parallel()
	r := newRig(t, withoutPushes)
	want := "404 no history of pushes is kept; the setting history.pushes is off"
	if got := r.refusal("GET", "/rollcall/v1/pushes", http.NoBody); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
