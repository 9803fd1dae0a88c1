package udppush

import (
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/rollcall-registry/rollcall/internal/registry"
)

// RefusedForeign is why a subscriber is listed but never sent to.
const RefusedForeign = "its address is not the one it calls from, and push.udp-allow does not name it"

// Admission decides who may be pushed to. It is safe for concurrent use.
type Admission struct {
	hosts    *hosts
	allow    atomic.Pointer[[]netip.Prefix]
	refusals atomic.Int64
}

// Request is what a client's look-up says of pushes.
type Request struct {
	// ClientIP is the address that the client names, as text; Port the one on
	// which it listens, 0 when it wants no pushes.
	ClientIP string
	Port     int
	// Peer is the address that the call comes from.
	Peer netip.Addr
	// Eligible: the client's agent understands pushes.
	Eligible bool
	Switches *registry.Switches
}

// Verdict is the answer to a [Request].
type Verdict struct {
	// Subscribe: the client becomes a subscriber. Otherwise its call is a mere
	// look-up.
	Subscribe bool
	// Target is where its packets go; set when Subscribe is.
	Target netip.AddrPort
	// Refused says why nothing may be sent to Target; empty when it may.
	Refused string
}

// Pushable reports whether changes are pushed, so that the client need not poll
// often.
func (v Verdict) Pushable() bool { return v.Subscribe && v.Refused == "" }

// Judge decides on one look-up. It asks no name server and does no I/O.
func (a *Admission) Judge(r Request) Verdict {
	if r.Port <= 0 || r.Port > 65535 || !r.Eligible || !r.Switches.PushEnabled {
		return Verdict{}
	}
	peer := r.Peer.Unmap()
	claimed, ok := claimedAddr(r.ClientIP, peer)
	if !ok {
		return Verdict{}
	}
	if claimed.WithZone("") == peer.WithZone("") {
		claimed = peer // a link-local address is of no use without its zone
	}
	v := Verdict{Subscribe: true, Target: netip.AddrPortFrom(claimed, uint16(r.Port))}
	if !a.mayReach(claimed, peer) {
		v.Refused = RefusedForeign
		a.refusals.Add(1)
	}
	return v
}

// claimedAddr reads the address that a client names. None at all means the one it
// calls from. What is no address ("resolve_failed", a host name), or no single
// host's, is not ok.
func claimedAddr(text string, peer netip.Addr) (netip.Addr, bool) {
	text = strings.TrimSpace(text)
	if text == "" {
		return peer, usable(peer)
	}
	if inner, ok := strings.CutPrefix(text, "["); ok {
		text, ok = strings.CutSuffix(inner, "]")
		if !ok {
			return netip.Addr{}, false
		}
	}
	addr, err := netip.ParseAddr(text)
	if err != nil {
		return netip.Addr{}, false
	}
	addr = addr.Unmap()
	return addr, usable(addr)
}

// broadcast is the address of every host of the network.
func broadcast() netip.Addr { return netip.AddrFrom4([4]byte{255, 255, 255, 255}) }

func usable(a netip.Addr) bool {
	return a.IsValid() && !a.IsUnspecified() && !a.IsMulticast() && a != broadcast()
}

// mayReach reports whether packets for a client that calls from peer may go to
// target.
func (a *Admission) mayReach(target, peer netip.Addr) bool {
	if target == peer || a.hosts.own(target) && a.hosts.own(peer) {
		return true
	}
	allowed := func(p netip.Prefix) bool { return p.Contains(target) }
	return slices.ContainsFunc(*a.allow.Load(), allowed)
}

// SetAllowed replaces the ranges to which packets may go besides the address
// that a client calls from. Subscribers meet it at their next look-up.
func (a *Admission) SetAllowed(ranges []netip.Prefix) {
	ranges = slices.Clone(ranges)
	a.allow.Store(&ranges)
}

// Refusals returns how many look-ups were refused pushes because of their
// address.
func (a *Admission) Refusals() int64 { return a.refusals.Load() }
