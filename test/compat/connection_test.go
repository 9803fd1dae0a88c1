package compat

import (
	"syscall"
	"testing"
	"time"
)

// A connection that says nothing for 20 s is probed, at the next look that comes
// every 3 s, and has 5 s to answer. SDKs check their connection after 5 to 10 s of
// idleness, so that the last word may be this old when a client is stopped.
const (
	idleAtMost  = 10 * time.Second
	probeAfter  = 20 * time.Second
	probeEvery  = 3 * time.Second
	probeWithin = 5 * time.Second
)

// paused stops a client whose connection then is probed and ended, and wakes it
// again.
func paused(t *testing.T, b *bench) {
	s := serve(t, b.bin)
	p := b.driver.place("paused")
	keeper := lasting(9001)
	s.register(p, keeper)
	sub := b.subscribe(t, s, p, keeper.addr())
	provider := b.client(t, s, p.namespace)
	inst := b.driver.rich(p, 8080)
	provider.do("register", inst)
	sub.told(p.service, time.Time{}, pushWithin, "the instance", with(inst.addr()))

	stopped := time.Now()
	provider.signal(syscall.SIGSTOP)
	latest := probeAfter + probeEvery + probeWithin + pushWithin
	gone := sub.told(p.service, stopped, latest, "it is gone", only(keeper.addr()))
	silent := gone.at.Sub(stopped)
	t.Logf("told gone %s after it was stopped", silent.Round(time.Millisecond))
	if earliest := probeAfter + probeWithin - idleAtMost; silent < earliest {
		t.Errorf("gone after %s, want %s at least", silent, earliest)
	}
	events := s.history(p, inst.addr())
	t.Logf("history:\n%s", tell(events))
	if last := events[len(events)-1]; last.Kind != "removed" || last.Cause.Kind != "connection closed" {
		t.Errorf("the last event is %q by %q, want removed by a closed connection", last.Kind, last.Cause.Kind)
	}

	start := time.Now()
	provider.signal(syscall.SIGCONT)
	back := sub.told(p.service, start, b.driver.returns(), "it is back", with(inst.addr(), keeper.addr()))
	t.Logf("back %s after it woke", back.at.Sub(start).Round(time.Millisecond))
	checkReturned(t, s, p, inst)
}

// killed kills a client: its instances are gone at once.
func killed(t *testing.T, b *bench) {
	s := serve(t, b.bin)
	p := b.driver.place("killed")
	keeper := lasting(9001)
	s.register(p, keeper)
	sub := b.subscribe(t, s, p, keeper.addr())
	for i := range 3 {
		provider := b.client(t, s, p.namespace)
		inst := b.driver.rich(p, 8080+i)
		provider.do("register", inst)
		sub.told(p.service, time.Time{}, pushWithin, "the instance", with(inst.addr()))
		start := time.Now()
		provider.signal(syscall.SIGKILL)
		gone := sub.told(p.service, start, pushWithin, "its end", only(keeper.addr()))
		t.Logf("told %s after the kill", gone.at.Sub(start).Round(time.Millisecond))
		events := s.history(p, inst.addr())
		if last := events[len(events)-1]; last.Kind != "removed" || last.Cause.Kind != "connection closed" {
			t.Errorf("the last event is %q by %q, want removed by a closed connection", last.Kind, last.Cause.Kind)
		}
	}
}

// several registers instances of one service one after the other. Over HTTP they
// are several; a connection has one registration of a service, and the latest holds.
func several(t *testing.T, b *bench) {
	s := serve(t, b.bin)
	p := b.driver.place("several")
	keeper := lasting(9001)
	s.register(p, keeper)
	sub := b.subscribe(t, s, p, keeper.addr())
	one, two := b.client(t, s, p.namespace), b.client(t, s, p.namespace)
	first, second, third := b.driver.rich(p, 8080), b.driver.rich(p, 8081), b.driver.rich(p, 8082)
	one.do("register", first)
	two.do("register", third)
	want := []string{keeper.addr(), first.addr(), third.addr()}
	sub.told(p.service, time.Time{}, b.driver.within(), "one instance of each client", only(want...))
	one.do("register", second)
	if b.driver.grpc {
		want = []string{keeper.addr(), second.addr(), third.addr()}
	} else {
		want = append(want, second.addr())
	}
	sub.told(p.service, time.Time{}, b.driver.within(), "the second of one client", only(want...))
	two.do("deregister", third)
	one.do("deregister", second)
	if !b.driver.grpc {
		one.do("deregister", first)
	}
	sub.told(p.service, time.Time{}, b.driver.within(), "the end of all", only(keeper.addr()))
}

// batch registers instances in one call, another batch in place of it, and kills
// the client.
func batch(t *testing.T, b *bench) {
	s := serve(t, b.bin)
	p := b.driver.place("batch")
	keeper := lasting(9001)
	s.register(p, keeper)
	sub := b.subscribe(t, s, p, keeper.addr())
	provider := b.client(t, s, p.namespace)
	members := []Instance{b.driver.rich(p, 8080), b.driver.rich(p, 8081), b.driver.rich(p, 8082)}
	provider.batch(p, members...)
	got := sub.told(p.service, time.Time{}, pushWithin, "the batch", only(keeper.addr(), members[0].addr(), members[1].addr(), members[2].addr()))
	for _, inst := range members {
		checkStored(t, s, p, inst)
		checkShown(t, got.hosts, inst)
	}
	provider.batch(p, members[2])
	sub.told(p.service, got.at, pushWithin, "the smaller batch", only(keeper.addr(), members[2].addr()))
	start := time.Now()
	provider.signal(syscall.SIGKILL)
	sub.told(p.service, start, pushWithin, "the end of the client", only(keeper.addr()))
}

// persistent registers an instance that outlives its client and the server, and is
// removed by another client.
func persistent(t *testing.T, b *bench) {
	s := serve(t, b.bin)
	p := b.driver.place("persistent")
	provider := b.client(t, s, p.namespace)
	inst := b.driver.rich(p, 8080)
	inst.Persistent = true
	provider.do("register", inst)
	there := func() bool {
		got, ok := s.candidate(p, inst.addr())
		return ok && !got.Ephemeral && got.Weight == inst.Weight && got.Cluster == inst.Cluster
	}
	eventually(t, aMoment, "the persistent instance", there)
	sub := b.subscribe(t, s, p, inst.addr())
	provider.signal(syscall.SIGKILL)
	throughout(t, 3*time.Second, "it outlives its client", there)
	s.kill()
	s.start()
	throughout(t, 3*time.Second, "it outlives the server", there)
	other := b.client(t, s, p.namespace)
	other.do("deregister", inst)
	eventually(t, aMoment, "the deregistration", func() bool { return !there() })
	if b.driver.keepsLast {
		return
	}
	sub.told(p.service, time.Time{}, b.driver.returns(), "the deregistration", only())
}
