package rollcall

import (
	"context"
	"errors"
	"iter"
	"sync/atomic"
)

// State is what a client is about.
type State uint8

// The states.
const (
	Connecting State = iota
	Connected
	Closed
)

func (s State) String() string {
	return [...]string{"connecting", "connected", "closed"}[min(s, Closed)]
}

// Status is how a client is.
type Status struct {
	State State
	// Server is the host:port of the server, Protocol how it is spoken to, both
	// only while Connected.
	Server   string
	Protocol Protocol
	// LastError is why the client is not connected, or why it last was not; nil if it
	// always has been since it first was.
	LastError error
	// Registrations is how many instances are to be registered, Registered how many
	// of them are.
	Registrations, Registered int
	// Watches is how many watches are open, Services how many services they are of,
	// and Subscribed of how many of these a server was asked for pushes.
	Watches, Services, Subscribed int
}

// counts are numbers that Status shows.
type counts struct{ registrations, registered, watches, services, subscribed atomic.Int64 }

// Status returns how the client is. It takes no lock.
func (c *Client) Status() Status {
	s := Status{
		Registrations: int(c.counts.registrations.Load()), Registered: int(c.counts.registered.Load()),
		Watches: int(c.counts.watches.Load()), Services: int(c.counts.services.Load()), Subscribed: int(c.counts.subscribed.Load()),
	}
	if err := *c.lastError.Load(); !errors.Is(err, errNotYet) {
		s.LastError = err
	}
	if c.isClosed() {
		s.State = Closed
		return s
	}
	if l := c.link.Load(); l != nil {
		s.State, s.Server, s.Protocol = Connected, l.session.Server, publicProtocol(l.session.Protocol)
	}
	return s
}

// StatusChanges yields the present status and each one that follows, the latest if
// the loop is slow, until ctx ends or the client is closed; the last one is then
// Closed.
func (c *Client) StatusChanges(ctx context.Context) iter.Seq[Status] {
	return func(yield func(Status) bool) {
		var last Status
		for first := true; ; first = false {
			changed := c.changes.next()
			s := c.Status()
			if (first || s != last) && !yield(s) || s.State == Closed {
				return
			}
			last = s
			select {
			case <-changed:
			case <-ctx.Done():
				return
			}
		}
	}
}
