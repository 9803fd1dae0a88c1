package h2

import (
	"fmt"
	"net/netip"
	"sync"
)

// admission counts connections against the two limits.
type admission struct {
	mu       sync.Mutex
	max      int // 0 is no limit, as for the next
	maxPerIP int
	total    int
	perIP    map[netip.Addr]int // no entry is 0
	refusing int
	refused  struct{ inAll, ofAddress uint64 }
}

// limit sets the limits for connections to come.
func (a *admission) limit(inAll, perIP int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.max, a.maxPerIP = inAll, perIP
}

// enter counts a connection, or says why it is one too many.
func (a *admission) enter(ip netip.Addr) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.max > 0 && a.total >= a.max:
		a.refused.inAll++
		return fmt.Errorf("too many connections: the server serves at most %d", a.max)
	case a.maxPerIP > 0 && a.perIP[ip] >= a.maxPerIP:
		a.refused.ofAddress++
		return fmt.Errorf("too many connections from this address: at most %d", a.maxPerIP)
	}
	a.total++
	a.perIP[ip]++
	return nil
}

// leave takes a connection off the count.
func (a *admission) leave(ip netip.Addr) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.total--
	if a.perIP[ip]--; a.perIP[ip] == 0 {
		delete(a.perIP, ip)
	}
}

// maxRefusing is how many refused connections may wait for their client to read
// the reason; further ones are closed without one.
const maxRefusing = 64

func (a *admission) startRefusing() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.refusing >= maxRefusing {
		return false
	}
	a.refusing++
	return true
}

func (a *admission) stopRefusing() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.refusing--
}

// counts returns how many connections are served and how many were refused.
func (a *admission) counts() (served int, refused uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.total, a.refused.inAll + a.refused.ofAddress
}

// refusals returns how many were refused by the limit of all connections and by that
// of an address.
func (a *admission) refusals() (inAll, ofAddress uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.refused.inAll, a.refused.ofAddress
}
