package rollcall

import (
	"context"
	"errors"
	"iter"
	"sync/atomic"
	"time"

	"github.com/rollcall-registry/rollcall/client/internal/wire"
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
	// LastError is why the client is not connected, or why it last was not, or that a server
	// did not accept its credentials, if that was later; nil if neither ever was.
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

// done counts an operation and notes its refusal.
func (c *Client) done(op string, s wire.Service, started time.Time, err error) {
	c.cfg.metrics.CallDone(op, time.Since(started), err)
	c.noteRefusal(op, s, err)
}

// noteRefusal notes that the server did not accept the credentials, which is about all
// operations.
func (c *Client) noteRefusal(op string, s wire.Service, err error) {
	cause := err
	if part, ok := errors.AsType[*wire.PartError](err); ok {
		for _, cause = range part.Failed {
			break
		}
	}
	if cause == nil || wire.KindOf(cause) != wire.Unauthorized {
		return
	}
	if before := *c.lastError.Load(); !errors.Is(before, ErrUnauthorized) {
		failure := opError(op, Service(s), cause)
		c.lastError.Store(&failure)
		c.changes.send()
	}
}

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
