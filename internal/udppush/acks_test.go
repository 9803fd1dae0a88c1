package udppush

import (
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/rollcall-registry/rollcall/internal/registry"
)

func TestAcksSendAgainOnceThenGiveUp(t *testing.T) {
	a, start := newAcks(), time.Now()
	sub := subscribers(1)[0]
	if _, waiting := a.waiting(sub); waiting {
		t.Error("it waits before it was sent")
	}
	changed := registry.Instant{Wall: 7}
	a.add(delivery{sub: sub, packet: &packet{1, []byte("x")}, changed: changed}, netip.AddrPort{}, start)
	if at, waiting := a.waiting(sub); !waiting || at != changed {
		t.Errorf("waiting %v since %v, want since %v", waiting, at, changed)
	}
	for _, step := range []struct {
		after         time.Duration
		again, failed int
		next          time.Duration
	}{
		{9999 * time.Millisecond, 0, 0, 10 * time.Second},
		{10 * time.Second, 1, 0, 20 * time.Second},
		{10 * time.Second, 0, 0, 20 * time.Second},
		{19999 * time.Millisecond, 0, 0, 20 * time.Second},
		{20 * time.Second, 0, 1, 0},
		{time.Hour, 0, 0, 0},
	} {
		again, failed, next := a.expire(start.Add(step.after))
		wantNext := time.Time{}
		if step.next != 0 {
			wantNext = start.Add(step.next)
		}
		if len(again) != step.again || len(failed) != step.failed || !next.Equal(wantNext) {
			t.Errorf("after %v: %d again, %d failed, next %v; want %d, %d, %v",
				step.after, len(again), len(failed), next, step.again, step.failed, wantNext)
		}
	}
}

func TestAcksAreBounded(t *testing.T) {
	a, now := newAcks(), time.Now()
	subs := subscribers(maxUnacked + 100)
	lost := 0
	for i, s := range subs {
		_, gone, ok := a.add(delivery{sub: s, packet: &packet{int64(i + 1), []byte("x")}}, netip.AddrPort{}, now)
		if !ok {
			t.Fatalf("packet %d was not taken", i)
		}
		for _, u := range gone {
			if u.sub != subs[lost] {
				t.Fatalf("gave up %v, want the oldest", u.sub.Addr)
			}
			lost++
		}
	}
	if a.len() != maxUnacked || lost != 100 {
		t.Errorf("%d wait and %d were given up, want %d and 100", a.len(), lost, maxUnacked)
	}
	a.clear()

	large := make([]byte, maxDatagram)
	for i, s := range subs[:2000] {
		a.add(delivery{sub: s, packet: &packet{int64(i + 1), large}}, netip.AddrPort{}, now)
	}
	if a.bytes > maxUnackedBytes || a.bytes < maxUnackedBytes-2*maxDatagram {
		t.Errorf("%d bytes wait, want a little below %d", a.bytes, maxUnackedBytes)
	}
	a.clear()

	shared := &packet{1, large}
	for _, s := range subs[:2000] {
		a.add(delivery{sub: s, packet: shared}, netip.AddrPort{}, now)
	}
	if a.len() != 2000 || a.bytes != maxDatagram {
		t.Errorf("%d wait with %d bytes, want all 2000 with those of the one packet", a.len(), a.bytes)
	}
}

func TestAcksOfTwoSubscriptionsOfOneClient(t *testing.T) {
	a, now := newAcks(), time.Now()
	subs := subscribers(2)
	subs[1].Addr = subs[0].Addr
	p := &packet{1, []byte("x")}
	if _, _, ok := a.add(delivery{sub: subs[0], packet: p}, netip.AddrPort{}, now); !ok {
		t.Error("the first was not taken")
	}
	if _, _, ok := a.add(delivery{sub: subs[1], packet: p}, netip.AddrPort{}, now); ok {
		t.Error("the same packet goes to the same target twice")
	}
	if u := a.take(subs[0].Addr, netip.AddrPort{}, 1); u == nil || a.len() != 0 {
		t.Errorf("got %v and %d left, want the first and none", u, a.len())
	}
}

func TestAcksFromAnotherAddressOfThisMachine(t *testing.T) {
	a, now := newAcks(), time.Now()
	var h hosts
	subs := subscribers(2)
	subs[0].Addr = netip.MustParseAddrPort("127.0.0.1:7")
	subs[1].Addr = netip.MustParseAddrPort("127.0.0.2:7")
	p := &packet{1, []byte("x")}
	for _, s := range subs {
		if _, _, ok := a.add(delivery{sub: s, packet: p}, h.alias(s.Addr), now); !ok {
			t.Errorf("%v was not taken", s.Addr)
		}
	}
	for _, step := range []struct {
		from string
		want *registry.Subscriber
	}{
		{"127.0.0.3:8", nil},
		{"127.0.0.1:7", subs[0]},
		{"127.0.0.1:7", subs[1]}, // the only one left on that port
		{"127.0.0.2:7", nil},
		{"10.0.0.1:7", nil},
	} {
		from := netip.MustParseAddrPort(step.from)
		u := a.take(from, h.alias(from), 1)
		if u == nil && step.want != nil || u != nil && u.sub != step.want {
			t.Errorf("from %v: got %+v, want %+v", from, u, step.want)
		}
	}
	if len(a.byAlias) != 0 {
		t.Errorf("%d aliases are left", len(a.byAlias))
	}
}

// TestAcksLeaveNothing does at random what can be done, and looks that the parts
// of the table agree.
func TestAcksLeaveNothing(t *testing.T) {
	for seed := range uint64(50) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		a, now := newAcks(), time.Now()
		subs := subscribers(30)
		for i, s := range subs { // some share a target, some are on one machine
			s.Addr = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, byte(i % 3)}), uint16(i%10))
		}
		var h hosts
		var packets []*packet
		for range 2000 {
			now = now.Add(time.Duration(rnd.IntN(1000)) * time.Millisecond)
			i := rnd.IntN(len(subs))
			switch rnd.IntN(6) {
			case 0, 1:
				if rnd.IntN(2) == 0 || packets == nil {
					packets = append(packets, &packet{int64(len(packets) + 1), make([]byte, rnd.IntN(100))})
				}
				a.add(delivery{sub: subs[i], packet: packets[len(packets)-1]}, h.alias(subs[i].Addr), now)
			case 2:
				a.take(subs[i].Addr, h.alias(subs[i].Addr), int64(len(packets)-rnd.IntN(5)))
			case 3:
				a.expire(now)
			case 4:
				if packets != nil {
					a.drop(delivery{sub: subs[i], packet: packets[len(packets)-1]})
				}
			case 5:
				if rnd.IntN(50) == 0 {
					a.clear()
				}
			}
			check(t, a)
		}
		a.expire(now.Add(time.Hour))
		a.expire(now.Add(2 * time.Hour))
		if a.len() != 0 || a.bytes != 0 || len(a.packets) != 0 {
			t.Fatalf("seed %d: %d packets with %d bytes are left", seed, a.len(), a.bytes)
		}
	}
}

func check(t *testing.T, a *acks) {
	t.Helper()
	listed, bytes, refs := 0, 0, 0
	for i := range a.attempts {
		var last time.Time
		for e := a.attempts[i].Front(); e != nil; e = e.Next() {
			u := e.Value.(*unacked)
			if a.byKey[u.key] != u || a.bySub[u.sub] != u || u.due.Before(last) || u.again != (i == 1) {
				t.Fatalf("%+v is out of place", u)
			}
			last = u.due
			listed++
		}
	}
	for _, u := range a.byAlias {
		if a.byKey[u.key] != u {
			t.Fatalf("%+v is left as an alias", u)
		}
	}
	for p, n := range a.packets {
		bytes += len(p.bytes)
		refs += n
	}
	if listed != len(a.byKey) || listed != len(a.bySub) || listed != refs || bytes != a.bytes {
		t.Fatalf("%d listed, %d by key, %d by subscriber, %d by packet; %d bytes, counted %d",
			listed, len(a.byKey), len(a.bySub), refs, a.bytes, bytes)
	}
}
