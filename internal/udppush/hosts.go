package udppush

import (
	"fmt"
	"net"
	"net/netip"
	"sync/atomic"
)

// hosts knows the addresses of this machine. A client on the same machine may
// call over loopback and name an outer address as its own, or the other way
// round, and it may acknowledge from either. It is safe for concurrent use.
type hosts struct {
	addrs atomic.Pointer[map[netip.Addr]struct{}]
}

// refresh reads the addresses of the network interfaces.
func (h *hosts) refresh() error {
	list, err := net.InterfaceAddrs()
	if err != nil {
		return fmt.Errorf("read the addresses of this machine: %w", err)
	}
	addrs := make([]netip.Addr, 0, len(list))
	for _, a := range list {
		if ipNet, ok := a.(*net.IPNet); ok {
			if addr, ok := netip.AddrFromSlice(ipNet.IP); ok {
				addrs = append(addrs, addr.Unmap())
			}
		}
	}
	h.set(addrs...)
	return nil
}

func (h *hosts) set(addrs ...netip.Addr) {
	m := make(map[netip.Addr]struct{}, len(addrs))
	for _, a := range addrs {
		m[a] = struct{}{}
	}
	h.addrs.Store(&m)
}

// own reports whether a is an address of this machine. Until the first refresh
// only loopback is.
func (h *hosts) own(a netip.Addr) bool {
	if a.IsLoopback() {
		return true
	}
	m := h.addrs.Load()
	if m == nil {
		return false
	}
	_, ok := (*m)[a.WithZone("")]
	return ok
}

// alias returns the one endpoint that stands for a port of this machine under
// whichever address; the zero value when a is another machine's.
func (h *hosts) alias(a netip.AddrPort) netip.AddrPort {
	if !h.own(a.Addr()) {
		return netip.AddrPort{}
	}
	return netip.AddrPortFrom(netip.IPv6Unspecified(), a.Port())
}
