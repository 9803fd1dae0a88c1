package udppush

import (
	"container/list"
	"net/netip"
	"sync"
	"time"

	"github.com/rollcall-registry/rollcall/internal/registry"
)

const (
	// ackTimeout is how long an acknowledgement is waited for, once before the
	// packet is sent again and once after. Source: live 1.4.8, 10.0 s.
	ackTimeout = 10 * time.Second
	// maxUnacked and maxUnackedBytes bound the packets that wait for an
	// acknowledgement; equal packets count their bytes once. When one more is
	// sent, the oldest is given up: what is newer tells more.
	maxUnacked      = 1 << 16
	maxUnackedBytes = 32 << 20
)

// ackKey is what an acknowledgement is matched by: where it comes from and the
// number in it.
type ackKey struct {
	from   netip.AddrPort
	number int64
}

// unacked is a packet that waits for its acknowledgement.
type unacked struct {
	delivery
	key ackKey
	// alias also matches when its target is on this machine: the acknowledgement
	// may come from another address than the packet went to. See [hosts.alias].
	alias ackKey
	due   time.Time
	at    *list.Element // its place in the queue of its attempt
}

// acks are the packets that wait for an acknowledgement. It is safe for
// concurrent use.
type acks struct {
	// first holds a token when one was added to an empty table.
	first chan struct{}

	mu       sync.Mutex
	byKey    map[ackKey]*unacked
	byAlias  map[ackKey]*unacked               // the latest of several
	bySub    map[*registry.Subscriber]*unacked // at most one each: the newest
	attempts [2]list.List                      // of *unacked: sent once, sent twice; the earliest due first
	packets  map[*packet]int                   // how many wait with it
	bytes    int                               // of packets
}

func newAcks() *acks {
	return &acks{
		first: make(chan struct{}, 1),
		byKey: map[ackKey]*unacked{}, byAlias: map[ackKey]*unacked{}, bySub: map[*registry.Subscriber]*unacked{}, packets: map[*packet]int{},
	}
}

// add remembers a packet that is about to be sent for the first time. It returns
// the older one to the same subscriber, nil when there is none, and those that
// were given up to make room. ok is false, and nothing happens, when the target
// has been sent this very packet: for another subscription of the same client.
// alias is the zero value for targets on other machines.
func (a *acks) add(d delivery, alias netip.AddrPort, now time.Time) (older *unacked, lost []*unacked, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	u := &unacked{
		delivery: d, key: ackKey{d.sub.Addr, d.packet.number}, alias: ackKey{alias, d.packet.number},
		due: now.Add(ackTimeout),
	}
	if a.byKey[u.key] != nil {
		return nil, nil, false
	}
	if older = a.bySub[d.sub]; older != nil {
		a.remove(older)
	}
	a.byKey[u.key], a.bySub[d.sub] = u, u
	if alias.IsValid() {
		a.byAlias[u.alias] = u
	}
	u.at = a.attempts[0].PushBack(u)
	if a.packets[d.packet]++; a.packets[d.packet] == 1 {
		a.bytes += len(d.packet.bytes)
	}
	for len(a.byKey) > maxUnacked || a.bytes > maxUnackedBytes {
		oldest := a.oldest()
		if oldest == u {
			break
		}
		a.remove(oldest)
		lost = append(lost, oldest)
	}
	if len(a.byKey) == 1 {
		select {
		case a.first <- struct{}{}:
		default:
		}
	}
	return older, lost, true
}

// oldest prefers those that were sent twice. The table is not empty.
func (a *acks) oldest() *unacked {
	for i := range a.attempts {
		if e := a.attempts[len(a.attempts)-1-i].Front(); e != nil {
			return e.Value.(*unacked)
		}
	}
	return nil
}

func (a *acks) remove(u *unacked) {
	delete(a.byKey, u.key)
	delete(a.bySub, u.sub)
	if a.byAlias[u.alias] == u {
		delete(a.byAlias, u.alias)
	}
	a.attempts[u.attempt()].Remove(u.at)
	if a.packets[u.packet]--; a.packets[u.packet] == 0 {
		delete(a.packets, u.packet)
		a.bytes -= len(u.packet.bytes)
	}
}

// attempt is the index of the queue that holds u.
func (u *unacked) attempt() int {
	if u.again {
		return 1
	}
	return 0
}

// take removes and returns what an acknowledgement is for, nil when nothing waits
// for it. alias is the zero value when it comes from another machine.
func (a *acks) take(from, alias netip.AddrPort, number int64) *unacked {
	a.mu.Lock()
	defer a.mu.Unlock()
	u := a.byKey[ackKey{from, number}]
	if u == nil {
		u = a.byAlias[ackKey{alias, number}]
	}
	if u != nil {
		a.remove(u)
	}
	return u
}

// drop removes what waits for an acknowledgement of d, and reports whether it
// was there.
func (a *acks) drop(d delivery) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	u := a.bySub[d.sub]
	if u == nil || u.packet != d.packet {
		return false
	}
	a.remove(u)
	return true
}

// waits reports whether d still waits for its acknowledgement.
func (a *acks) waits(d delivery) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	u := a.bySub[d.sub]
	return u != nil && u.packet == d.packet
}

// waiting returns the time of the change in the packet to a subscriber that waits
// for its acknowledgement.
func (a *acks) waiting(sub *registry.Subscriber) (changed registry.Instant, waiting bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	u := a.bySub[sub]
	if u == nil {
		return registry.Instant{}, false
	}
	return u.changed, true
}

// expire returns the packets that are to be sent again and those that are given
// up. next is when the next one is due; zero when none waits.
func (a *acks) expire(now time.Time) (again, failed []*unacked, next time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for u := a.due(1, now); u != nil; u = a.due(1, now) {
		a.remove(u)
		failed = append(failed, u)
	}
	for u := a.due(0, now); u != nil; u = a.due(0, now) {
		a.attempts[0].Remove(u.at)
		u.again, u.due = true, now.Add(ackTimeout)
		u.at = a.attempts[1].PushBack(u)
		again = append(again, u)
	}
	for i := range a.attempts {
		if e := a.attempts[i].Front(); e != nil {
			if due := e.Value.(*unacked).due; next.IsZero() || due.Before(next) {
				next = due
			}
		}
	}
	return again, failed, next
}

// due returns the first of a queue if its time has come.
func (a *acks) due(attempt int, now time.Time) *unacked {
	e := a.attempts[attempt].Front()
	if e == nil {
		return nil
	}
	if u := e.Value.(*unacked); !u.due.After(now) {
		return u
	}
	return nil
}

// clear forgets everything and returns how many waited.
func (a *acks) clear() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := len(a.byKey)
	clear(a.byKey)
	clear(a.byAlias)
	clear(a.bySub)
	clear(a.packets)
	a.bytes = 0
	for i := range a.attempts {
		a.attempts[i].Init()
	}
	return n
}

func (a *acks) len() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.byKey)
}

// some returns at most n packets that wait, the oldest first.
func (a *acks) some(n int) []*packet {
	a.mu.Lock()
	defer a.mu.Unlock()
	var out []*packet
	for i := range a.attempts {
		for e := a.attempts[len(a.attempts)-1-i].Front(); e != nil && len(out) < n; e = e.Next() {
			out = append(out, e.Value.(*unacked).packet)
		}
	}
	return out
}
