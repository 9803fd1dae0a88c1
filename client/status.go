package rollcall

import (
	"context"
	"iter"
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
	// LastError is why the client is not connected, or what failed last.
	LastError error
	// Registrations is how many instances are to be registered, Registered how many
	// of them are.
	Registrations, Registered int
	// Watches is how many watches are open, Services how many services they are of,
	// and Subscribed of how many of these the server was asked for pushes.
	Watches, Services, Subscribed int
}

// Status returns how the client is. It takes no lock.
func (c *Client) Status() Status { return Status{} }

// StatusChanges yields the present status and each one that follows, the latest if
// the loop is slow, until ctx ends or the client is closed.
func (c *Client) StatusChanges(ctx context.Context) iter.Seq[Status] {
	return func(yield func(Status) bool) {}
}
