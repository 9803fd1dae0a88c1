package compat

import (
	"maps"
	"syscall"
	"testing"
	"time"

	"github.com/rollcall-registry/rollcall/api/opsv1"
)

// beats keeps an instance registered for longer than it may be silent.
func beats(t *testing.T, b *bench) {
	s := serve(t, b.bin)
	p := b.driver.place("beats")
	c := b.client(t, s, p.namespace)
	inst := b.driver.rich(p, 8080)
	c.do("register", inst)
	eventually(t, aMoment, "the registration", func() bool { _, ok := s.candidate(p, inst.addr()); return ok })
	throughout(t, 22*time.Second, "the instance is healthy", func() bool {
		got, ok := s.candidate(p, inst.addr())
		return ok && got.Healthy
	})
	checkStored(t, s, p, inst)
	events := s.history(p, inst.addr())
	if happened(events, "unhealthy", "removed") {
		t.Errorf("history:\n%s", tell(events))
	}
	if got := len(s.explain(p).Candidates); got != 1 {
		t.Errorf("%d instances, want the one: a beat registered another", got)
	}
}

// silence stops a client whose instance then is unhealthy and goes, and wakes it
// again.
func silence(t *testing.T, b *bench) {
	s := serve(t, b.bin)
	p := b.driver.place("silence")
	keeper := lasting(9001) // with nobody healthy left, the threshold would hide it
	s.register(p, keeper)
	sub := b.subscribe(t, s, p, keeper.addr())
	provider := b.client(t, s, p.namespace)
	inst := b.driver.rich(p, 8080)
	provider.do("register", inst)
	// A beat must come before the silence, so that the times below count from it.
	awaitBeat(t, s, p, inst)
	got, _ := s.candidate(p, inst.addr())
	lastBeat := time.Now().Add(-time.Duration(*got.SinceBeat) * time.Millisecond)
	provider.signal(syscall.SIGSTOP)

	slack := b.driver.within()
	ill := sub.told(p.service, lastBeat, 20*time.Second+slack, "it is unhealthy",
		where(inst.addr(), func(h Instance) bool { return !h.Healthy }))
	gone := sub.told(p.service, ill.at, 20*time.Second+slack, "it is gone", only(keeper.addr()))
	unhealthy, removed := ill.at.Sub(lastBeat), gone.at.Sub(lastBeat)
	t.Logf("told unhealthy %s and gone %s after the last beat", unhealthy.Round(time.Millisecond), removed.Round(time.Millisecond))
	if unhealthy < 14900*time.Millisecond || unhealthy > 20*time.Second+slack {
		t.Errorf("unhealthy after %s, want 15 to 20 s", unhealthy)
	}
	if removed < 29900*time.Millisecond || removed > 35*time.Second+slack {
		t.Errorf("gone after %s, want 30 to 35 s", removed)
	}
	checkExpired(t, s.history(p, inst.addr()))

	start := time.Now()
	provider.signal(syscall.SIGCONT)
	back := sub.told(p.service, start, aPoll, "it is back", with(inst.addr(), keeper.addr()))
	t.Logf("back %s after it woke", back.at.Sub(start).Round(time.Millisecond))
	checkReturned(t, s, p, inst)
}

// awaitBeat waits for a beat that is not the registration.
func awaitBeat(t *testing.T, s *server, p place, inst Instance) {
	t.Helper()
	eventually(t, aPoll, "a beat", func() bool {
		got, ok := s.candidate(p, inst.addr())
		return ok && got.SinceBeat != nil && *got.SinceBeat < 1000 && time.Since(registeredAt(s, p, inst)) > 2*time.Second
	})
}

// registeredAt returns when an instance was registered.
func registeredAt(s *server, p place, inst Instance) time.Time {
	events := s.history(p, inst.addr())
	if len(events) == 0 {
		return time.Now()
	}
	return time.UnixMilli(events[0].Time)
}

// checkExpired wants silence named as the cause of what happened.
func checkExpired(t *testing.T, events []opsv1.Event) {
	t.Helper()
	for _, e := range events {
		if (e.Kind == "unhealthy" || e.Kind == "removed") && e.Cause.Kind != "beat timeout" {
			t.Errorf("%s because of %q, want a beat timeout", e.Kind, e.Cause.Text)
		}
	}
	if !happened(events, "unhealthy") || !happened(events, "removed") {
		t.Errorf("history:\n%s", tell(events))
	}
}

// checkReturned wants an instance that came back by its beats to be as it was.
func checkReturned(t *testing.T, s *server, p place, want Instance) {
	t.Helper()
	got, ok := s.candidate(p, want.addr())
	if !ok {
		t.Fatalf("%s is not back; history:\n%s", want.addr(), tell(s.history(p, want.addr())))
	}
	if got.Weight != want.Weight || !maps.Equal(got.Metadata, want.Metadata) || !got.Healthy {
		t.Errorf("it came back as %+v, want %+v", got.Instance, want)
	}
}

// restart kills the server and starts it again with its data: nobody may notice.
func restart(t *testing.T, b *bench) {
	s := serve(t, b.bin)
	p := b.driver.place("restart")
	provider := b.client(t, s, p.namespace)
	inst := b.driver.rich(p, 8080)
	provider.do("register", inst)
	eventually(t, aMoment, "the registration", func() bool { _, ok := s.candidate(p, inst.addr()); return ok })
	sub := b.subscribe(t, s, p, inst.addr())
	// What is told of a registration may still be on its way.
	throughout(t, 2*time.Second, "the instance is there", func() bool { _, ok := s.candidate(p, inst.addr()); return ok })

	killed := time.Now()
	s.kill()
	s.start()
	if _, ok := s.candidate(p, inst.addr()); !ok {
		t.Errorf("the restarted server answers without the instance")
	}
	throughout(t, b.driver.grace(), "the instance is healthy after the restart", func() bool {
		got, ok := s.candidate(p, inst.addr())
		return ok && got.Healthy
	})
	for _, ch := range sub.since(p.service, killed) {
		if h, ok := find(ch.hosts, inst.addr()); !ok || !h.Healthy {
			t.Errorf("after the restart the subscriber was told %+v", ch.hosts)
		}
	}
	if got, _ := s.candidate(p, inst.addr()); !b.driver.grpc && (got.SinceBeat == nil || *got.SinceBeat > 11000) {
		t.Errorf("the last beat after the restart was %v ms ago", got.SinceBeat)
	}
	checkStored(t, s, p, inst)
	if events := s.history(p, inst.addr()); happened(events, "unhealthy", "removed") {
		t.Errorf("history:\n%s", tell(events))
	}

	other := lasting(9001)
	start := time.Now()
	s.register(p, other)
	got := sub.told(p.service, start, aPoll, "a change after the restart", only(inst.addr(), other.addr()))
	t.Logf("a change %s after the restart told after %s", b.driver.grace(), got.at.Sub(start).Round(time.Millisecond))
	if b.driver.grpc { // what it registered must hang on the new connection, not on what the server remembered
		start = time.Now()
		provider.signal(syscall.SIGKILL)
		sub.told(p.service, start, pushWithin, "the end of the client", only(other.addr()))
	}
}

// grace is how long to watch a server that was restarted: instances of HTTP clients
// have a fresh lease of 15 s, those of connections are remembered for 45 s.
func (d *driver) grace() time.Duration {
	if d.grpc {
		return 50 * time.Second
	}
	return 20 * time.Second
}

// returns is how long the SDK may take to bring back what it registered.
func (d *driver) returns() time.Duration { return max(aPoll, d.redo) }

// amnesia kills the server and starts it without its data: beats bring the
// instances back, as they were registered.
func amnesia(t *testing.T, b *bench) {
	s := serve(t, b.bin)
	p := b.driver.place("amnesia")
	provider := b.client(t, s, p.namespace)
	inst := b.driver.rich(p, 8080)
	provider.do("register", inst)
	eventually(t, aMoment, "the registration", func() bool { _, ok := s.candidate(p, inst.addr()); return ok })
	throughout(t, 7*time.Second, "the instance is there", func() bool { _, ok := s.candidate(p, inst.addr()); return ok })
	sub := b.subscribe(t, s, p, inst.addr())

	s.kill()
	s.forget()
	start := time.Now()
	s.start()
	eventually(t, b.driver.returns(), "the client to bring the instance back", func() bool { _, ok := s.candidate(p, inst.addr()); return ok })
	events := s.history(p, inst.addr())
	t.Logf("back after %s: %s by %q", time.Since(start).Round(time.Millisecond), events[0].Kind, events[0].Cause.Text)
	checkReturned(t, s, p, inst)

	other := lasting(9001)
	s.register(p, other)
	sub.told(p.service, start, 2*b.driver.returns(), "the instance and a new one", with(inst.addr(), other.addr()))
}
