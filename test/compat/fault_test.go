package compat

import (
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/rollcall-registry/rollcall/api/opsv1"
)

// evictedWithin is how long a server may take to give up a connection that says
// nothing and does not end.
const evictedWithin = probeAfter + probeEvery + probeWithin + pushWithin

// A stage is what the scenarios of broken networks begin with: a provider and a
// subscriber, each behind a proxy of its own, and an observer with a good network.
type stage struct {
	*server
	place
	keeper, inst       Instance
	provider, sub, obs *client
	toProvider, toSub  *proxy
}

// stage sets up a stage. latency is that of the proxies, each way, and piece what
// they write at once.
func (b *bench) stage(t *testing.T, name string, latency time.Duration, piece int) *stage {
	t.Helper()
	s := serve(t, b.bin)
	st := &stage{server: s, place: b.driver.place(name), keeper: lasting(9001)}
	st.inst = b.driver.rich(st.place, 8080)
	st.toProvider, st.toSub = between(t, s), between(t, s)
	st.toProvider.slowDown(latency, piece)
	st.toSub.slowDown(latency, piece)
	s.register(st.place, st.keeper)
	st.obs = b.subscribe(t, s, st.place, st.keeper.addr())
	st.sub = b.subscribeAt(t, s, st.toSub.addr, st.place, st.keeper.addr())
	st.provider = b.clientAt(t, st.toProvider.addr, st.namespace)
	st.provider.do("register", st.inst)
	st.obs.told(st.service, time.Time{}, pushWithin, "the instance", st.both())
	st.sub.told(st.service, time.Time{}, pushWithin+latency, "the instance", st.both())
	return st
}

// both wants the keeper and the instance, and maybe others.
func (st *stage) both() func([]Instance) bool { return with(st.keeper.addr(), st.inst.addr()) }

// there reports whether the server has the instance, and it is healthy.
func (st *stage) there() bool {
	got, ok := st.candidate(st.place, st.inst.addr())
	return ok && got.Healthy
}

// settled waits until the instance hangs on a connection that lives, and nobody is
// connected who should not be; then all works as if nothing had been.
func (st *stage) settled(t *testing.T, within time.Duration) {
	t.Helper()
	alone := func() bool { return st.there() && len(st.connections()) == 3 }
	if !holds(within, alone) {
		t.Fatalf("after %s there are the connections %v, want three; history:\n%s",
			within, st.connections(), tell(st.history(st.place, st.inst.addr())))
	}
	checkStored(t, st.server, st.place, st.inst)
	start := time.Now()
	other := lasting(9002)
	st.register(st.place, other)
	all := only(st.keeper.addr(), st.inst.addr(), other.addr())
	// A subscriber that missed something may have to look again.
	st.sub.told(st.service, time.Time{}, within, "the instance and one more", all)
	st.obs.told(st.service, start, pushWithin, "the instance and one more", all)
	start = time.Now()
	st.deregister(st.place, other)
	st.sub.told(st.service, start, pushWithin, "its end", only(st.keeper.addr(), st.inst.addr()))
	t.Logf("history:\n%s", tell(st.history(st.place, st.inst.addr())))
}

// connections returns the IDs of the connections that registered or subscribed
// something, in order. Python 3.2 may leave others behind: when the server answers
// late, it forgets the connection that it began, and its stream goes on living.
func (st *stage) connections() []string {
	st.t.Helper()
	var clients opsv1.Clients
	st.ask("/rollcall/v1/clients", url.Values{"protocol": {"grpc"}}, &clients)
	var ids []string
	for _, c := range clients.Clients {
		if c.Registered+c.Subscribed > 0 && !c.Recalled {
			ids = append(ids, c.ID)
		}
	}
	slices.Sort(ids)
	return ids
}

// cut resets the provider's connections, and then the subscriber's, three times
// each.
func cut(t *testing.T, b *bench) {
	st := b.stage(t, "cut", 0, 0)
	for range 3 {
		start := time.Now()
		st.toProvider.cut()
		gone := st.obs.told(st.service, start, pushWithin, "it is gone", only(st.keeper.addr()))
		back := st.obs.told(st.service, gone.at, b.driver.returns(), "it is back", st.both())
		t.Logf("gone %s after its connection was cut, back %s later",
			gone.at.Sub(start).Round(time.Millisecond), back.at.Sub(gone.at).Round(time.Millisecond))
	}
	for i := range 3 {
		other := lasting(9100 + i)
		start := time.Now()
		st.toSub.cut()
		st.register(st.place, other)
		got := st.sub.told(st.service, start, b.driver.returns(), "what changed when it was cut off", with(other.addr(), st.inst.addr()))
		t.Logf("a subscriber that was cut off was told %s later", got.at.Sub(start).Round(time.Millisecond))
		st.deregister(st.place, other)
	}
	st.settled(t, b.driver.returns())
}

// refused has nobody reach the server for longer than an SDK tries at once.
func refused(t *testing.T, b *bench) {
	st := b.stage(t, "refused", 0, 0)
	start := time.Now()
	for _, p := range []*proxy{st.toProvider, st.toSub} {
		p.close()
		p.cut()
	}
	st.obs.told(st.service, start, pushWithin, "it is gone", only(st.keeper.addr()))
	throughout(t, 20*time.Second, "it cannot come back", func() bool { return !st.there() })
	start = time.Now()
	st.toProvider.open(t)
	st.toSub.open(t)
	back := st.obs.told(st.service, start, 2*b.driver.returns(), "it is back", st.both())
	t.Logf("back %s after the server could be reached", back.at.Sub(start).Round(time.Millisecond))
	st.settled(t, 2*b.driver.returns())
}

// halfOpen has the connections fall silent without an end, as when a firewall
// forgets them. Client and server must each notice, and the end of the old
// connection must not take what was registered on the new one.
func halfOpen(t *testing.T, b *bench) {
	st := b.stage(t, "half-open", 0, 0)
	old := st.connections()
	start := time.Now()
	st.toProvider.freeze()
	st.toSub.freeze()
	eventually(t, evictedWithin+b.driver.returns(), "the old connections to be given up and new ones in use", func() bool {
		now := st.connections()
		stale := slices.DeleteFunc(slices.Clone(now), func(id string) bool { return !slices.Contains(old, id) })
		return len(now) == len(old) && len(stale) == 1 && st.there() // the observer's
	})
	t.Logf("on new connections alone after %s", time.Since(start).Round(time.Millisecond))
	st.settled(t, b.driver.returns())
	st.absences(t, start)
	throughout(t, evictedWithin, "it stays", st.there)
}

// absences logs how long the observer was without the instance.
func (st *stage) absences(t *testing.T, since time.Time) {
	t.Helper()
	var left time.Time
	for _, ch := range st.obs.since(st.service, since) {
		switch _, ok := find(ch.hosts, st.inst.addr()); {
		case !ok && left.IsZero():
			left = ch.at
		case ok && !left.IsZero():
			t.Logf("gone after %s, for %s", left.Sub(since).Round(time.Millisecond), ch.at.Sub(left).Round(time.Millisecond))
			left = time.Time{}
		}
	}
}

// partition has nothing pass, on old and new connections, for longer than the
// server waits, and then lets everything that was held up pass at once.
func partition(t *testing.T, b *bench) {
	st := b.stage(t, "partition", 0, 0)
	start := time.Now()
	st.toProvider.part(true)
	st.toSub.part(true)
	gone := st.obs.told(st.service, start, evictedWithin, "it is gone", only(st.keeper.addr()))
	t.Logf("given up after %s", gone.at.Sub(start).Round(time.Millisecond))
	other := lasting(9100)
	st.register(st.place, other)
	throughout(t, 15*time.Second, "it cannot come back", func() bool { return !st.there() })

	start = time.Now()
	st.toProvider.part(false)
	st.toSub.part(false)
	back := st.obs.told(st.service, start, 2*b.driver.returns(), "it is back", st.both())
	t.Logf("back %s after the network was", back.at.Sub(start).Round(time.Millisecond))
	got := st.sub.told(st.service, start, 2*b.driver.returns(), "what changed meanwhile", with(other.addr(), st.inst.addr()))
	t.Logf("the subscriber was told %s after the network was back", got.at.Sub(start).Round(time.Millisecond))
	st.deregister(st.place, other)
	st.settled(t, 2*b.driver.returns())
	st.absences(t, back.at)
}

// The slow network takes this long each way, and passes so few bytes at once.
const (
	slowLatency = 400 * time.Millisecond
	slowPiece   = 7
)

// slow has nobody lose a connection because of a slow network.
func slow(t *testing.T, b *bench) {
	st := b.stage(t, "slow", slowLatency, slowPiece)
	old := st.connections()
	for i := range 3 {
		other := lasting(9100 + i)
		start := time.Now()
		st.register(st.place, other)
		got := st.sub.told(st.service, start, pushWithin+slowLatency, "a change", with(other.addr()))
		t.Logf("told after %s", got.at.Sub(start).Round(time.Millisecond))
		start = time.Now()
		st.deregister(st.place, other)
		st.sub.told(st.service, start, pushWithin+slowLatency, "its end", only(st.keeper.addr(), st.inst.addr()))
	}
	throughout(t, 45*time.Second, "the connections live", func() bool { return st.there() && slices.Equal(st.connections(), old) })
	if events := st.history(st.place, st.inst.addr()); happened(events, "unhealthy", "removed") {
		t.Errorf("history:\n%s", tell(events))
	}
}
