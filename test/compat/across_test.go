package compat

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// across has every SDK register an instance of one service, beside callers of each
// generation's HTTP API. Whatever happens to one of them, all others are told, and
// all of them and every list show the same.
func across(t *testing.T, benches []*bench) {
	g := gather(t, benches)
	defer func() {
		if t.Failed() {
			t.Logf("pushes: %s", g.call(http.MethodGet, "/rollcall/v1/pushes", g.params()))
		}
	}()
	for _, m := range g.members {
		m.lookup(g.service, g.group, aPoll, "everybody", g.right)
	}
	g.seen(t, time.Time{}, aPoll, "everybody")
	for _, actor := range g.members {
		g.leaveAndCome(t, actor)
	}
	for _, actor := range g.members {
		if actor.driver.updates {
			g.change(t, actor)
		}
	}
	g.override(t)
	g.silence(t)
	g.kill(t)
}

// A member is one SDK's client and the instance that it registered.
type member struct {
	*client
	driver *driver
	inst   Instance
}

// A gathering is all SDKs in one service.
type gathering struct {
	*server
	place
	members []*member
	present map[string]Instance // what everybody must be shown, by address
}

// gather starts a client of each SDK, registered and subscribed.
func gather(t *testing.T, benches []*bench) *gathering {
	t.Helper()
	g := &gathering{server: serve(t, benches[0].bin), place: place{service: "shared"}, present: map[string]Instance{}}
	for i, path := range []string{"/nacos/v1/ns/instance", "/nacos/v2/ns/instance", "/nacos/v3/client/ns/instance"} {
		keeper := lasting(9001 + i)
		g.call(http.MethodPost, path, g.instanceParams(g.place, keeper))
		g.show(keeper)
	}
	for i, b := range benches {
		m := &member{client: b.client(t, g.server, ""), driver: b.driver, inst: plain(g.place, 8001+i)}
		m.inst.Cluster = "DEFAULT" // where all SDKs look
		m.inst.Weight = 1 + float64(i)/4
		m.inst.Metadata = map[string]string{"sdk": b.driver.name}
		m.do("register", m.inst)
		m.do("subscribe", Instance{Service: g.service, Group: g.group})
		g.members = append(g.members, m)
		g.show(m.inst)
	}
	return g
}

// show has an instance be shown from now on, healthy.
func (g *gathering) show(inst Instance) {
	inst.Healthy = true
	g.present[inst.addr()] = inst
}

// hide has an instance be shown no more.
func (g *gathering) hide(inst Instance) { delete(g.present, inst.addr()) }

// right wants what must be shown and nothing else.
func (g *gathering) right(hosts []Instance) bool {
	if len(hosts) != len(g.present) {
		return false
	}
	for _, h := range hosts {
		want, ok := g.present[h.addr()]
		if !ok || h.Weight != want.Weight || h.Healthy != want.Healthy || !h.Enabled ||
			(h.Cluster != "DEFAULT" && h.Cluster != "") || !maps.Equal(h.Metadata, want.Metadata) {
			return false
		}
	}
	return true
}

// seen waits until every member was told what is right since start, and every list
// shows it, and logs how long each took.
func (g *gathering) seen(t *testing.T, start time.Time, within time.Duration, what string) {
	t.Helper()
	var parts []string
	for _, m := range g.members {
		got := m.told(g.service, start, max(within, m.driver.within()), what, g.right)
		if !start.IsZero() {
			parts = append(parts, fmt.Sprintf("%s %d ms", m.name, got.at.Sub(start).Milliseconds()))
		}
	}
	for _, path := range []string{"/nacos/v1/ns/instance/list", "/nacos/v2/ns/instance/list", "/nacos/v3/client/ns/instance/list"} {
		if hosts := g.list(path); !g.right(hosts) {
			t.Errorf("%s: GET %s shows %+v, want %+v", what, path, hosts, g.present)
		}
	}
	t.Logf("%s: %s", what, strings.Join(parts, ", "))
}

// list asks for the list of the service as a caller of plain HTTP.
func (g *gathering) list(path string) []Instance {
	g.t.Helper()
	type host struct {
		Instance
		ClusterName string
	}
	var answer struct {
		Hosts []host          // v1
		Data  json.RawMessage // v2: an object with the hosts; v3: the hosts
	}
	g.ask(path, url.Values{"serviceName": {g.service}}, &answer)
	if answer.Hosts == nil {
		var inner struct{ Hosts []host }
		if json.Unmarshal(answer.Data, &inner) == nil {
			answer.Hosts = inner.Hosts
		} else if err := json.Unmarshal(answer.Data, &answer.Hosts); err != nil {
			g.t.Fatalf("GET %s: %v", path, err)
		}
	}
	var out []Instance
	for _, h := range answer.Hosts {
		h.Cluster = h.ClusterName
		out = append(out, h.Instance)
	}
	return out
}

// leaveAndCome deregisters an SDK's instance and registers it again.
func (g *gathering) leaveAndCome(t *testing.T, actor *member) {
	t.Helper()
	start := time.Now()
	actor.do("deregister", actor.inst)
	g.hide(actor.inst)
	g.seen(t, start, pushWithin, actor.name+" left")
	start = time.Now()
	actor.do("register", actor.inst)
	g.show(actor.inst)
	g.seen(t, start, pushWithin, actor.name+" came")
}

// change has an SDK change its own instance.
func (g *gathering) change(t *testing.T, actor *member) {
	t.Helper()
	start := time.Now()
	actor.inst.Weight += 10
	actor.inst.Metadata = map[string]string{"sdk": actor.name, "round": "2"}
	actor.do("update", actor.inst)
	g.show(actor.inst)
	g.seen(t, start, pushWithin, actor.name+" changed its instance")
}

// override changes each SDK's instance by hand.
func (g *gathering) override(t *testing.T) {
	t.Helper()
	for _, m := range g.members {
		start := time.Now()
		changed := m.inst
		changed.Weight = 42
		changed.Metadata = map[string]string{"by": "hand"}
		g.call(http.MethodPut, "/nacos/v1/ns/instance", g.instanceParams(g.place, changed))
		g.show(changed)
		g.seen(t, start, pushWithin, "the instance of "+m.name+" was changed by hand")
	}
}

// silence stops an SDK of each kind: one that beats, and one with a connection.
func (g *gathering) silence(t *testing.T) {
	t.Helper()
	var stopped []*member
	for _, grpc := range []bool{false, true} {
		if i := slices.IndexFunc(g.members, func(m *member) bool { return m.driver.grpc == grpc }); i >= 0 {
			stopped = append(stopped, g.members[i])
			g.members = slices.Delete(g.members, i, i+1)
		}
	}
	if len(g.members) == 0 {
		return
	}
	was := maps.Clone(g.present)
	start := time.Now()
	for _, m := range stopped {
		m.signal(syscall.SIGSTOP)
		g.hide(m.inst)
	}
	for _, m := range g.members {
		for _, silent := range stopped {
			if !silent.driver.grpc {
				m.told(g.service, start, 20*time.Second+m.driver.within(), silent.name+" is unhealthy",
					where(silent.inst.addr(), func(h Instance) bool { return !h.Healthy }))
			}
		}
	}
	g.seen(t, start, 35*time.Second+pushWithin, "some are silent")
	start = time.Now()
	for _, m := range stopped {
		m.signal(syscall.SIGCONT)
	}
	g.present = was
	g.seen(t, start, aPoll, "they are back")
	g.members = append(g.members, stopped...)
}

// kill kills all who have a connection but one.
func (g *gathering) kill(t *testing.T) {
	t.Helper()
	for {
		i := slices.IndexFunc(g.members, func(m *member) bool { return m.driver.grpc })
		if i < 0 || len(g.members) == 1 {
			return
		}
		m := g.members[i]
		g.members = slices.Delete(g.members, i, i+1)
		start := time.Now()
		m.signal(syscall.SIGKILL)
		g.hide(m.inst)
		g.seen(t, start, pushWithin, m.name+" was killed")
	}
}
