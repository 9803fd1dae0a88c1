package grpcapi

import (
	"time"

	"github.com/rollcall-registry/rollcall/internal/grpcapi/transport"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// outcome is what became of a request to a client.
type outcome uint8

const (
	done    outcome = iota // the client says that it did it
	refused                // the client says that it failed
	overdue                // no answer came in time
	gone                   // the connection or the subscription ended
)

// settler is told what became of a request, once and with no lock held. It must
// not block.
type settler interface{ settle(outcome) }

// wait is a request that was sent and not answered yet.
type wait struct {
	asker    settler
	deadline time.Duration // on the lease clock
}

// order is a request to a client other than a push.
type order struct {
	kind    string
	write   func(b []byte, id uint64) []byte // appends its JSON
	timeout time.Duration
	settled func(outcome) // may be nil
}

func (o *order) settle(how outcome) {
	if o.settled != nil {
		o.settled(how)
	}
}

// maxOrders bounds the requests that wait to be sent to one client. More are not
// made: the client does not even read those.
const maxOrders = 64

// ask sends a request to the client as soon as it takes one. It returns false when
// that cannot be: the client has no stream, or reads none of the many requests that
// wait. Then settled is not called.
func (c *client) ask(o *order) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.streams) == 0 || len(c.orders) >= maxOrders {
		return false
	}
	c.orders = append(c.orders, o)
	c.offer()
	return true
}

// await remembers a request that is being sent, and returns its ID. The caller
// holds c.mu.
func (c *client) await(s settler, timeout time.Duration, now registry.Instant) uint64 {
	id := c.api.requests.Add(1)
	if c.waiting == nil {
		c.waiting = map[uint64]wait{}
	}
	c.waiting[id] = wait{s, now.Lease + timeout}
	return id
}

// answered settles the request that a client's answer is to. Answers to requests
// that nobody waits for are ignored.
func (c *client) answered(id uint64, ok bool) {
	c.mu.Lock()
	w, found := c.waiting[id]
	delete(c.waiting, id)
	c.mu.Unlock()
	switch {
	case !found:
	case ok:
		w.asker.settle(done)
	default:
		w.asker.settle(refused)
	}
}

// expire settles the requests whose answer is overdue.
func (c *client) expire(now registry.Instant) {
	var late []settler
	c.mu.Lock()
	for id, w := range c.waiting {
		if now.Lease >= w.deadline {
			late = append(late, w.asker)
			delete(c.waiting, id)
		}
	}
	c.mu.Unlock()
	for _, s := range late {
		s.settle(overdue)
	}
}

// Next implements transport.Frames: first what is owed to the stream itself, then
// requests, then pushes.
func (f *frames) Next(m *transport.Message) bool {
	c := f.client
	c.mu.Lock()
	if f.acks > 0 {
		f.acks--
		c.mu.Unlock()
		c.ackSetup(m)
		return true
	}
	if !f.main() {
		c.mu.Unlock()
		return false
	}
	now := c.api.core.Now()
	c.taken = now.Lease
	if len(c.orders) > 0 {
		o := c.orders[0]
		c.orders = c.orders[1:]
		id := c.await(o, o.timeout, now)
		c.mu.Unlock()
		m.Type, m.ClientIP = o.kind, c.local
		m.Buf = o.write(m.Buf, id)
		return true
	}
	d, found := c.nextPush(now)
	c.mu.Unlock()
	// One that is too large for the client is given up, and another takes its turn.
	for found && !d.write(m) {
		c.mu.Lock()
		d, found = c.nextPush(now)
		c.mu.Unlock()
	}
	return found
}
