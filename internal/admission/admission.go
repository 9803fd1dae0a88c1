// Package admission counts the connections of a server against two limits: of all,
// and of one client address.
package admission

import (
	"fmt"
	"net/netip"
	"sync"
)

// Gate counts connections. It is safe for concurrent use and does not block.
type Gate struct {
	mu             sync.Mutex
	max, maxFrom   int // 0 is no limit
	total          int
	from           map[netip.Addr]int // no entry is 0
	refusedInAll   uint64
	refusedAddress uint64
	refusing       int // refusals that are being written; see maxRefusing
}

// New returns a gate for so many connections in all and of one address; 0 is no limit.
func New(inAll, ofAddress int) *Gate {
	return &Gate{max: inAll, maxFrom: ofAddress, from: map[netip.Addr]int{}}
}

// Limit sets the limits for connections to come; those that are there stay.
func (g *Gate) Limit(inAll, ofAddress int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.max, g.maxFrom = inAll, ofAddress
}

// Refusal says which limit a connection is beyond. Its text is for the client.
type Refusal struct {
	OfAddress bool // the limit is that of one address, otherwise that of all
	Limit     int
}

func (r *Refusal) Error() string {
	if r.OfAddress {
		return fmt.Sprintf("too many connections from this address: at most %d", r.Limit)
	}
	return fmt.Sprintf("too many connections: the server serves at most %d", r.Limit)
}

// Enter counts a connection of which the address is not known yet, or returns why it
// is one too many. Each that was counted must [Gate.Leave].
func (g *Gate) Enter() *Refusal {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.max > 0 && g.total >= g.max {
		g.refusedInAll++
		return &Refusal{Limit: g.max}
	}
	g.total++
	return nil
}

// Leave takes a connection off the count of all.
func (g *Gate) Leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.total--
}

// EnterFrom counts a connection of an address, or returns why it is one too many. Each
// that was counted must [Gate.LeaveFrom]. Connections without an IP address, such as
// those in memory, are not limited.
func (g *Gate) EnterFrom(ip netip.Addr) *Refusal {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.maxFrom > 0 && ip.IsValid() && g.from[ip] >= g.maxFrom {
		g.refusedAddress++
		return &Refusal{OfAddress: true, Limit: g.maxFrom}
	}
	g.from[ip]++
	return nil
}

// LeaveFrom takes a connection off the count of its address.
func (g *Gate) LeaveFrom(ip netip.Addr) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.from[ip]--; g.from[ip] == 0 {
		delete(g.from, ip)
	}
}

// Admit is Enter and EnterFrom of a connection of which the address is known.
func (g *Gate) Admit(ip netip.Addr) *Refusal {
	if r := g.Enter(); r != nil {
		return r
	}
	if r := g.EnterFrom(ip); r != nil {
		g.Leave()
		return r
	}
	return nil
}

// Release takes an admitted connection off both counts.
func (g *Gate) Release(ip netip.Addr) {
	g.LeaveFrom(ip)
	g.Leave()
}

// maxRefusing is how many refused connections may wait for their client to read
// the reason; further ones are closed without one.
const maxRefusing = 64

// StartRefusing reports whether one more client may be told why it is refused. If so,
// [Gate.StopRefusing] must follow.
func (g *Gate) StartRefusing() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.refusing >= maxRefusing {
		return false
	}
	g.refusing++
	return true
}

// StopRefusing ends what StartRefusing began.
func (g *Gate) StopRefusing() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.refusing--
}

// Refusing returns how many clients are being told that they are refused.
func (g *Gate) Refusing() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.refusing
}

// Connections returns how many connections are counted.
func (g *Gate) Connections() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.total
}

// Refused returns how many connections were refused by the limit of all connections
// and by that of one address.
func (g *Gate) Refused() (inAll, ofAddress uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.refusedInAll, g.refusedAddress
}
