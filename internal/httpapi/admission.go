package httpapi

import (
	"net"
	"net/netip"
	"strconv"
	"sync"
	"time"
)

// verdict is what becomes of a new connection.
type verdict uint8

const (
	admitted verdict = iota
	tooMany
	tooManyFromHere
)

// admission counts connections against the two limits. The total counts from the
// moment of acceptance, the address once it is known (behind PROXY protocol that
// takes a few bytes).
type admission struct {
	max, maxPerIP int // 0 is no limit

	mu    sync.Mutex
	total int
	perIP map[netip.Addr]int // only with maxPerIP; no entry is 0
	// refused counts by which limit connections were refused.
	refused struct{ inAll, ofAddress uint64 }
	// refusing counts refusals being written; see maxRefusing.
	refusing int
}

func (a *admission) init(maxConns, maxPerIP int) {
	a.max, a.maxPerIP = maxConns, maxPerIP
	a.perIP = map[netip.Addr]int{}
}

// enter counts a connection, unless that passes the limit.
func (a *admission) enter() verdict {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.max > 0 && a.total >= a.max {
		a.refused.inAll++
		return tooMany
	}
	a.total++
	return admitted
}

// leave takes a connection off the count.
func (a *admission) leave() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.total--
}

// enterFrom counts a connection of ip, unless that passes the limit.
func (a *admission) enterFrom(ip netip.Addr) verdict {
	if a.maxPerIP == 0 || !ip.IsValid() {
		return admitted
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.perIP[ip] >= a.maxPerIP {
		a.refused.ofAddress++
		return tooManyFromHere
	}
	a.perIP[ip]++
	return admitted
}

// leaveFrom takes a connection of ip off the count.
func (a *admission) leaveFrom(ip netip.Addr) {
	if a.maxPerIP == 0 || !ip.IsValid() {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.perIP[ip]--; a.perIP[ip] == 0 {
		delete(a.perIP, ip)
	}
}

// Connections returns how many connections are open.
func (s *Server) Connections() int {
	s.admission.mu.Lock()
	defer s.admission.mu.Unlock()
	return s.admission.total
}

// Refused returns how many connections were refused by the limit of all connections
// and by that of one address.
func (s *Server) Refused() (inAll, ofAddress uint64) {
	s.admission.mu.Lock()
	defer s.admission.mu.Unlock()
	return s.admission.refused.inAll, s.admission.refused.ofAddress
}

// maxRefusing is how many refused connections may wait for their client to read
// the reason; further ones are closed without one.
const maxRefusing = 64

// startRefusing reports whether one more refusal may be written.
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

// refuse tells a client in plain HTTP why it is not served, and closes its
// connection.
func (s *Server) refuse(nc net.Conn, v verdict) {
	defer func() { _ = nc.Close() }()
	if !s.admission.startRefusing() {
		return
	}
	defer s.admission.stopRefusing()

	status, text := "503 Service Unavailable", "too many connections: the server serves at most "+strconv.Itoa(s.cfg.MaxConns)
	if v == tooManyFromHere {
		status, text = "429 Too Many Requests", "too many connections from this address: at most "+strconv.Itoa(s.cfg.MaxConnsPerIP)
	}
	if nc.SetDeadline(time.Now().Add(lingerTime)) != nil {
		return
	}
	_, err := nc.Write([]byte("HTTP/1.1 " + status + "\r\nContent-Type: " + typeText +
		"\r\nContent-Length: " + strconv.Itoa(len(text)) + "\r\nRetry-After: 1\r\nConnection: close\r\n\r\n" + text))
	if err == nil {
		linger(nc)
	}
}
