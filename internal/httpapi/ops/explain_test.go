package ops_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/rollcall-registry/rollcall/api/opsv1"
	"github.com/rollcall-registry/rollcall/server"
)

func withoutPushes(c *server.Config) { c.RecordPushes = false }

const one = "10.0.0.1"

// brief has an ephemeral instance die of silence within a second.
var brief = `metadata={"preserved.heart.beat.timeout":"200","preserved.ip.delete.timeout":"400"}`

// TestExplainSummary tells each story on a server of its own: what was done, what
// is asked, what is answered.
func TestExplainSummary(t *testing.T) {
	t.Parallel()
	here := []string{"serviceName=orders", "ip=" + one, "port=80"}
	and := func(more ...string) []string { return append(append([]string{}, here...), more...) }
	for _, tt := range []struct {
		name string
		do   func(*rig)
		ask  string
		want string // with times hidden
	}{
		{
			"nothing of that name", func(*rig) {}, "service=orders",
			"There is no service DEFAULT_GROUP@@orders in namespace public. The history has nothing of it: it was never here, or that is longer ago than the history reaches.",
		},
		{
			"the name is elsewhere", func(r *rig) {
				r.register(and("groupName=g")...)
				r.register("serviceName=Orders", "ip="+one, "port=80", "namespaceId=dev")
			}, "service=orders",
			"There is no service DEFAULT_GROUP@@orders in namespace public. The history has nothing of it: it was never here, or that is longer ago than the history reaches. " +
				"Its name is elsewhere: DEFAULT_GROUP@@Orders in namespace dev, g@@orders in namespace public.",
		},
		{
			"the service was deleted", func(r *rig) {
				r.v1("POST", "/service", "serviceName=orders")
				r.v1("DELETE", "/service", "serviceName=orders")
			}, "service=orders",
			"There is no service DEFAULT_GROUP@@orders in namespace public. It was removed at TIME (http-v1 delete service from 127.0.0.1).",
		},
		{
			"kept", func(r *rig) { r.register(here...) }, "service=orders ip=10.0.0.1 port=80",
			"10.0.0.1:80 is in DEFAULT_GROUP@@orders, and a look-up has it so: kept. It was registered at TIME (http-v1 register from 127.0.0.1).",
		},
		{
			"disabled", func(r *rig) { r.register(and("enabled=false")...) }, "service=orders ip=10.0.0.1",
			"10.0.0.1:80 is in DEFAULT_GROUP@@orders, and a look-up has it so: dropped: disabled. It was registered at TIME (http-v1 register from 127.0.0.1).",
		},
		{
			"in another cluster", func(r *rig) { r.register(and("clusterName=b")...) }, "service=orders ip=10.0.0.1 clusters=a,c",
			"10.0.0.1:80 is in DEFAULT_GROUP@@orders, and a look-up has it so: dropped: not in the asked clusters. It was registered at TIME (http-v1 register from 127.0.0.1).",
		},
		{
			"in two clusters", func(r *rig) {
				r.register(here...)
				r.register(and("clusterName=b")...)
			}, "service=orders ip=10.0.0.1 port=80",
			"10.0.0.1:80 of cluster DEFAULT is in DEFAULT_GROUP@@orders, and a look-up has it so: kept. " +
				"10.0.0.1:80 of cluster b is in DEFAULT_GROUP@@orders, and a look-up has it so: kept. " +
				"The latest change: 10.0.0.1:80 was registered at TIME (http-v1 register from 127.0.0.1).",
		},
		{
			"unhealthy", func(r *rig) {
				r.register(here...)
				r.register("serviceName=orders", "ip=10.0.0.2", "port=80", "healthy=false")
			}, "service=orders ip=10.0.0.2 healthyOnly=true",
			"10.0.0.2:80 is in DEFAULT_GROUP@@orders, and a look-up has it so: dropped: unhealthy, and only healthy ones were asked for. " +
				"It was registered at TIME (http-v1 register from 127.0.0.1).",
		},
		{
			"protected", func(r *rig) {
				r.register(and("healthy=false")...)
			}, "service=orders healthyOnly=true",
			"A look-up of DEFAULT_GROUP@@orders gives 1 of 1 instances; 0 are healthy. The protect threshold 0 is reached, so all are shown as healthy. " +
				"The latest change: 10.0.0.1:80 was registered at TIME (http-v1 register from 127.0.0.1).",
		},
		{
			"not protected in 2.x", func(r *rig) {
				r.register(and("healthy=false")...)
			}, "service=orders healthyOnly=true api=v2",
			"A look-up of DEFAULT_GROUP@@orders gives 0 of 1 instances; 0 are healthy. " +
				"The latest change: 10.0.0.1:80 was registered at TIME (http-v1 register from 127.0.0.1).",
		},
		{
			"more than are shown", func(r *rig) {
				r.register(here...)
				r.register("serviceName=orders", "ip=10.0.0.2", "port=80")
			}, "service=orders limit=1",
			"A look-up of DEFAULT_GROUP@@orders gives 1 of the first 1 instances of 2; 2 are healthy. " +
				"The latest change: 10.0.0.2:80 was registered at TIME (http-v1 register from 127.0.0.1).",
		},
		{
			"deregistered", func(r *rig) {
				r.register(here...)
				r.v1("DELETE", "/instance", here...)
			}, "service=orders ip=10.0.0.1 port=80",
			"10.0.0.1:80 is not in DEFAULT_GROUP@@orders. It was removed at TIME (http-v1 deregister from 127.0.0.1).",
		},
		{
			"never there", func(r *rig) { r.register(here...) }, "service=orders ip=10.0.0.9",
			"10.0.0.9 is not in DEFAULT_GROUP@@orders. The history has nothing of it: it was never here, or that is longer ago than the history reaches.",
		},
		{
			"never there in that cluster", func(r *rig) { r.register(here...) }, "service=orders ip=::1 port=80 cluster=b",
			"[::1]:80 of cluster b is not in DEFAULT_GROUP@@orders. The history has nothing of it: it was never here, or that is longer ago than the history reaches.",
		},
		{
			"the address is elsewhere", func(r *rig) {
				r.register(here...)
				r.register("serviceName=stock", "ip=10.0.0.2", "port=80", "namespaceId=dev")
				r.register("serviceName=gone", "ip=10.0.0.2", "port=80")
				r.v1("DELETE", "/instance", "serviceName=gone", "ip=10.0.0.2", "port=80")
			}, "service=orders ip=10.0.0.2 port=80",
			"10.0.0.2:80 is not in DEFAULT_GROUP@@orders. The history has nothing of it: it was never here, or that is longer ago than the history reaches. " +
				"Its address is elsewhere: DEFAULT_GROUP@@stock in namespace dev.",
		},
		{
			"disabled service", func(r *rig) {
				r.register(here...)
				r.v1("PUT", "/operator/switches", "entry=pushEnabled", "value=true")
			}, "service=orders",
			"A look-up of DEFAULT_GROUP@@orders gives 1 of 1 instances; 1 are healthy. The latest change: 10.0.0.1:80 was registered at TIME (http-v1 register from 127.0.0.1).",
		},
		{
			"died of silence", func(r *rig) {
				r.register(here...)
				r.register("serviceName=orders", "ip=10.0.0.2", "port=80", brief)
				eventually(r.t, "it is gone", func() bool { return ask[opsv1.Instances](r, "instances", "service=orders").Total == 1 })
			}, "service=orders ip=10.0.0.2 port=80",
			"10.0.0.2:80 is not in DEFAULT_GROUP@@orders. It was removed at TIME (beat timeout: 400ms without a beat).",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			tt.do(r)
			got := ask[opsv1.Explanation](r, "explain", strings.Fields(tt.ask)...)
			if text := still(got.Summary); text != tt.want {
				t.Errorf("got\n%s\nwant\n%s", text, tt.want)
			}
		})
	}
}

func TestExplainRefuses(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for query, want := range map[string]string{
		"":                          "400 service: say which service to explain",
		"service=a&api=v9":          `400 api: "v9" is none of v1, v2, v3 and grpc`,
		"service=a&healthyOnly=no!": `400 healthyOnly: "no!" is neither true nor false`,
		"service=a&port=x":          `400 port: "x" is no whole number from 0 to 65535`,
		"service=a&limit=10001":     `400 limit: "10001" is no whole number from 0 to 10000`,
	} {
		if got := r.refusal("GET", "/rollcall/v1/explain?"+query, http.NoBody); got != want {
			t.Errorf("%q: got %s, want %s", query, got, want)
		}
	}
}

// Who removed my instance, and when did each subscriber learn of it?
func TestExplainWhoLearned(t *testing.T) {
	t.Parallel()
	for _, kept := range []bool{true, false} {
		t.Run(fmt.Sprint("history of pushes ", kept), func(t *testing.T) {
			t.Parallel()
			r := newRig(t, func(c *server.Config) { c.RecordPushes = kept })
			quick, deaf := newHearer(t, true), newHearer(t, false)
			r.register("serviceName=orders", "ip="+one, "port=80")
			r.subscribe("orders", "udpPort="+quick.port())
			r.subscribe("orders", "udpPort="+deaf.port())
			r.subscribe("orders", "udpPort=9", "clientIP=10.9.9.9")
			r.v1("DELETE", "/instance", "serviceName=orders", "ip="+one, "port=80")
			late := newHearer(t, true)

			var got opsv1.Explanation
			states := map[string]opsv1.Learned{}
			eventually(t, "one has learned of it", func() bool {
				got = ask[opsv1.Explanation](r, "explain", "service=orders", "ip="+one, "port=80")
				for _, s := range got.Subscribers {
					states[s.Address] = s.Learned
				}
				return states["127.0.0.1:"+quick.port()].State == opsv1.Acknowledged
			})
			if got.Change == nil || got.Change.Kind != "removed" || got.Change.Cause.Op != "deregister" {
				t.Errorf("the change is %+v", got.Change)
			}
			learned := states["127.0.0.1:"+quick.port()]
			if learned.Time < got.Change.Time || kept != (learned.Took > 0) {
				t.Errorf("the quick one: %+v", learned)
			}
			if s := states["127.0.0.1:"+deaf.port()]; s.State != opsv1.Waiting {
				t.Errorf("the deaf one: %+v", s)
			}
			if s := states["10.9.9.9:9"]; s.State != opsv1.NeverPushed || !strings.Contains(s.Problem, "push.udp-allow") {
				t.Errorf("the foreign one: %+v", s)
			}
			want := "10.0.0.1:80 is not in DEFAULT_GROUP@@orders. It was removed at TIME (http-v1 deregister from 127.0.0.1). " +
				"1 of 2 subscribers acknowledged it, the last SOON after it. " +
				"1 subscriber is never pushed to: its address is not the one it calls from, and push.udp-allow does not name it."
			if !kept {
				want = strings.Replace(want, ", the last SOON after it", "", 1)
			}
			if text := still(got.Summary); text != want {
				t.Errorf("got\n%s\nwant\n%s", text, want)
			}

			r.subscribe("orders", "udpPort="+late.port())
			got = ask[opsv1.Explanation](r, "explain", "service=orders", "ip="+one, "port=80")
			for _, s := range got.Subscribers {
				if s.Address == "127.0.0.1:"+late.port() && s.Learned.State != opsv1.Later && s.Learned.State != opsv1.Acknowledged {
					t.Errorf("the late one: %+v", s.Learned)
				}
			}
		})
	}
}
