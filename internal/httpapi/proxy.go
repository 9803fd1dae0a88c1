package httpapi

import (
	"bytes"
	"net/netip"
	"slices"
)

// trusted reports whether addr is one of the trusted proxies.
func (s *Server) trusted(addr netip.Addr) bool {
	for _, p := range s.cfg.TrustedProxies {
		if p.Contains(addr) {
			return true
		}
	}
	return false
}

// clientBehind returns the client behind a trusted proxy: the last address of
// X-Forwarded-For, whose lines are one list, that is not trusted itself. What
// cannot be read ends the search, so that a client cannot hide behind its own
// nonsense.
func (s *Server) clientBehind(proxy netip.Addr, lines [][]byte) netip.Addr {
	client := proxy
	for _, line := range slices.Backward(lines) {
		for line != nil {
			last := line
			if i := bytes.LastIndexByte(line, ','); i >= 0 {
				line, last = line[:i], line[i+1:]
			} else {
				line = nil
			}
			addr, ok := parseForwarded(alias(bytes.TrimSpace(last)))
			if !ok {
				return client
			}
			if client = addr; !s.trusted(client) {
				return client
			}
		}
	}
	return client
}

// parseForwarded reads an address with or without a port.
func parseForwarded(s string) (netip.Addr, bool) {
	if addr, err := netip.ParseAddr(s); err == nil {
		return addr.Unmap().WithZone(""), true
	}
	if ap, err := netip.ParseAddrPort(s); err == nil {
		return ap.Addr().Unmap().WithZone(""), true
	}
	return netip.Addr{}, false
}
