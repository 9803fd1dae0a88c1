package compat

import (
	"slices"
	"testing"
	"time"
)

// across has every SDK register an instance of one service with its default
// settings. Each must find all others, and be told when one leaves.
func across(t *testing.T, benches []*bench) {
	s := serve(t, benches[0].bin)
	p := place{service: "shared"}
	keeper := lasting(9001)
	s.register(p, keeper)
	members := crowd(t, benches, s, p)

	want := []string{keeper.addr()}
	for _, m := range members {
		want = append(want, m.inst.addr())
	}
	for _, m := range members {
		m.lookup(p.service, p.group, aPoll, "everybody", only(want...))
		m.told(p.service, time.Time{}, aPoll, "everybody", only(want...))
	}
	for _, leaver := range members {
		start := time.Now()
		leaver.do("deregister", leaver.inst)
		want = slices.DeleteFunc(want, func(addr string) bool { return addr == leaver.inst.addr() })
		for _, m := range members {
			got := m.told(p.service, start, m.driver.within(), "all but "+leaver.name, only(want...))
			t.Logf("%s told of the end of %s after %s", m.name, leaver.name, got.at.Sub(start).Round(time.Millisecond))
		}
	}
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
