package compat

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// across has every SDK register an instance of one service with its default
// settings. Each must find all others, and be told when one leaves and comes back.
func across(t *testing.T, benches []*bench) {
	s := serve(t, benches[0].bin)
	p := place{service: "shared"}
	keeper := lasting(9001)
	s.register(p, keeper)
	members := crowd(t, benches, s, p)
	defer func() {
		if t.Failed() {
			t.Logf("pushes: %s", s.call(http.MethodGet, "/rollcall/v1/pushes", p.params()))
		}
	}()

	want := []string{keeper.addr()}
	for _, m := range members {
		want = append(want, m.inst.addr())
	}
	for _, m := range members {
		m.lookup(p.service, p.group, aPoll, "everybody", only(want...))
		m.told(p.service, time.Time{}, aPoll, "everybody", only(want...))
	}
	for _, actor := range members {
		others := slices.DeleteFunc(slices.Clone(want), func(addr string) bool { return addr == actor.inst.addr() })
		start := time.Now()
		actor.do("deregister", actor.inst)
		t.Logf("%s left, and was missed by %s", actor.name, seen(t, members, p, start, only(others...)))
		start = time.Now()
		actor.do("register", actor.inst)
		t.Logf("%s came, and was seen by %s", actor.name, seen(t, members, p, start, only(want...)))
	}
}

// seen waits until every member was told something right, and returns a text of how
// long after start each was.
func seen(t *testing.T, members []*member, p place, start time.Time, right func([]Instance) bool) string {
	t.Helper()
	var parts []string
	for _, m := range members {
		got := m.told(p.service, start, m.driver.within(), "the change", right)
		parts = append(parts, fmt.Sprintf("%s %d ms", m.name, got.at.Sub(start).Milliseconds()))
	}
	return strings.Join(parts, ", ")
}

// A member is one SDK's client and the instance that it registered.
type member struct {
	*client
	driver *driver
	inst   Instance
}

// crowd starts a client of each SDK, registered and subscribed.
func crowd(t *testing.T, benches []*bench, s *server, p place) []*member {
	t.Helper()
	var members []*member
	for i, b := range benches {
		m := &member{client: b.client(t, s, p.namespace), driver: b.driver, inst: plain(p, 8001+i)}
		if b.driver.cluster != "" {
			m.inst.Cluster = "DEFAULT" // where the others look
		}
		m.do("register", m.inst)
		m.do("subscribe", Instance{Service: p.service, Group: p.group})
		members = append(members, m)
	}
	return members
}
