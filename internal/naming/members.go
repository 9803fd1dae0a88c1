package naming

import (
	"strconv"
	"strings"
	"sync/atomic"
)

// Member is one of the servers that hold this registry together.
type Member struct {
	Host string // an address or a host name
	Port int    // of HTTP
	// State is a word of Nacos: STARTING, UP, SUSPICIOUS, DOWN or ISOLATION.
	State string
	// Seen is when it last showed that it lives, in milliseconds since the epoch.
	Seen int64
	// Failures is how many calls to it failed in a row.
	Failures int
}

// MemberUp is the state of a member that serves.
const MemberUp = "UP"

// Address returns host:port, an IPv6 address in brackets.
func (m Member) Address() string {
	if strings.Contains(m.Host, ":") {
		return "[" + m.Host + "]:" + strconv.Itoa(m.Port)
	}
	return m.Host + ":" + strconv.Itoa(m.Port)
}

// Alone is the membership of a server that has no others. It is safe for
// concurrent use.
type Alone struct {
	clock   Clock
	address atomic.Pointer[Member]
}

// NewAlone returns a membership whose one member has no address yet; see
// [Alone.SetAddress].
func NewAlone(clock Clock) *Alone {
	a := &Alone{clock: clock}
	a.address.Store(&Member{})
	return a
}

// SetAddress says where clients reach this server, which may be known only once
// its listener is open.
func (a *Alone) SetAddress(host string, port int) {
	a.address.Store(&Member{Host: host, Port: port})
}

// Self returns this server: it is up, or nobody could ask.
func (a *Alone) Self() Member {
	m := *a.address.Load()
	m.State, m.Seen = MemberUp, a.clock.Now().Wall
	return m
}

// Members returns all members sorted by address, which is this server.
func (a *Alone) Members() []Member { return []Member{a.Self()} }
