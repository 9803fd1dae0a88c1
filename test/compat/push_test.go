package compat

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/rollcall-registry/rollcall/api/opsv1"
)

// pushWithin is how late a change may be told to an SDK that is pushed to, on a
// machine with much to do besides. pollWithin is for those that poll.
const (
	pushWithin = 2 * time.Second
	pollWithin = 4 * time.Second
)

// within is how late the SDK may learn of a change.
func (d *driver) within() time.Duration {
	if d.pushed {
		return pushWithin
	}
	return pollWithin
}

// subscribe has a client subscribe to a service that has an instance, and waits
// until it knows of it.
func (b *bench) subscribe(t *testing.T, s *server, p place, known string) *client {
	t.Helper()
	return b.subscribeAt(t, s, s.addr, p, known)
}

// subscribeAt does so through an address of the server's or of a proxy.
func (b *bench) subscribeAt(t *testing.T, s *server, addr string, p place, known string) *client {
	t.Helper()
	c := b.clientAt(t, addr, p.namespace)
	c.do("subscribe", Instance{Service: p.service, Group: p.group})
	c.lookup(p.service, p.group, aMoment, known, with(known))
	if b.driver.pushed {
		eventually(t, aMoment, "the subscription", func() bool { return len(s.explain(p).Subscribers) > 0 })
		for _, sub := range s.explain(p).Subscribers {
			if sub.Refused != "" {
				t.Errorf("the subscription of %s is refused: %s", sub.Agent, sub.Refused)
			}
		}
	}
	return c
}

// changes has somebody subscribe, and others change the service: the same SDK, and
// people by hand.
func changes(t *testing.T, b *bench) {
	s := serve(t, b.bin)
	p := b.driver.place("changes")
	first := lasting(9001)
	s.register(p, first)
	sub := b.subscribe(t, s, p, first.addr())
	provider := b.client(t, s, p.namespace)
	within := b.driver.within()

	mine := b.driver.rich(p, 8080)
	start := time.Now()
	provider.do("register", mine)
	got := sub.told(p.service, start, within, "the SDK's registration", with(mine.addr()))
	checkShown(t, got.hosts, mine)

	start = time.Now()
	provider.do("deregister", mine)
	sub.told(p.service, start, within, "the SDK's deregistration", only(first.addr()))

	delays := b.changesByHand(t, s, p, sub, first)
	slices.Sort(delays)
	t.Logf("changes by hand told after %s to %s, median %s", delays[0], delays[len(delays)-1], delays[len(delays)/2])

	b.changeAfterSilence(t, s, p, sub)
	b.lastOneLeaves(t, s, p, sub)
	if b.driver.pushed {
		checkAcknowledged(t, s, p)
	}
}

// checkAcknowledged wants every packet acknowledged: SDKs differ in how they write
// the number of a packet, and who is misread is sent everything twice.
func checkAcknowledged(t *testing.T, s *server, p place) {
	t.Helper()
	var pushes opsv1.Pushes
	s.ask("/rollcall/v1/pushes", p.params(), &pushes)
	for _, push := range pushes.Pushes {
		if push.Kind != "acknowledged" {
			t.Errorf("%s of revision %d: %s", push.Kind, push.Revision, push.Problem)
		}
	}
	if len(pushes.Pushes) == 0 {
		t.Error("no packet was acknowledged")
	}
	t.Logf("%d pushes", len(pushes.Pushes))
}

// changesByHand registers, changes and deregisters with plain HTTP, and returns how
// long the subscriber waited for each.
func (b *bench) changesByHand(t *testing.T, s *server, p place, sub *client, first Instance) []time.Duration {
	t.Helper()
	var delays []time.Duration
	await := func(what string, act func(), right func([]Instance) bool) {
		t.Helper()
		start := time.Now()
		act()
		got := sub.told(p.service, start, b.driver.within(), what, right)
		delays = append(delays, got.at.Sub(start).Round(time.Millisecond))
	}
	for i := range 5 {
		inst := lasting(9100 + i)
		await("a registration", func() { s.register(p, inst) }, only(first.addr(), inst.addr()))
		inst.Weight, inst.Metadata["round"] = 7, fmt.Sprint(i)
		await("a change", func() { s.call(http.MethodPut, "/nacos/v1/ns/instance", s.instanceParams(p, inst)) },
			where(inst.addr(), func(h Instance) bool { return h.Weight == 7 && h.Metadata["round"] == fmt.Sprint(i) }))
		await("a deregistration", func() { s.deregister(p, inst) }, only(first.addr()))
	}
	return delays
}

// changeAfterSilence changes the service when nothing happened for longer than a
// subscription lasts that is not renewed.
func (b *bench) changeAfterSilence(t *testing.T, s *server, p place, sub *client) {
	t.Helper()
	quiet := time.Now()
	throughout(t, 23*time.Second, "nothing is told while nothing changes", func() bool {
		return len(sub.since(p.service, quiet)) == 0
	})
	inst := lasting(9200)
	start := time.Now()
	s.register(p, inst)
	got := sub.told(p.service, start, b.driver.within(), "a change after silence", with(inst.addr()))
	t.Logf("told after %s when nothing had happened for %s", got.at.Sub(start).Round(time.Millisecond), start.Sub(quiet).Round(time.Second))
	start = time.Now()
	s.deregister(p, inst)
	sub.told(p.service, start, b.driver.within(), "its end", func(hosts []Instance) bool { return !with(inst.addr())(hosts) })
}

// lastOneLeaves empties the service. Some SDKs ignore an empty list on purpose and
// must take the next one that is not.
func (b *bench) lastOneLeaves(t *testing.T, s *server, p place, sub *client) {
	t.Helper()
	start := time.Now()
	s.deregister(p, lasting(9001))
	if !b.driver.keepsLast {
		sub.told(p.service, start, b.driver.within(), "an empty list", only())
	}
	inst := lasting(9300)
	start = time.Now()
	s.register(p, inst)
	sub.told(p.service, start, b.driver.within(), "the next instance", only(inst.addr()))
}
