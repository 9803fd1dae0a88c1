package udppush

import (
	"sync"

	"github.com/rollcall-registry/rollcall/internal/registry"
)

// delivery is a packet for one subscriber.
type delivery struct {
	sub    *registry.Subscriber
	packet *packet
	// revision is that of the state in the packet.
	revision int64
	// changed is the time of the change that the packet tells of, zero for none.
	changed registry.Instant
	// again: it was sent before and was not acknowledged.
	again bool
}

// outbox holds what is to be sent, in one lane per service. It holds at most one
// packet per subscriber, so it is bounded by their number. It is safe for
// concurrent use.
type outbox struct {
	ready chan struct{} // holds a token when there is something to send

	mu     sync.Mutex
	lanes  map[registry.ServiceKey]*lane
	turns  []*lane // the lanes, each once, in the order of their turns
	queued int
}

// lane holds what is to be sent for one service. It is never empty.
type lane struct {
	key     registry.ServiceKey
	waiting []delivery
}

func newOutbox() *outbox {
	return &outbox{ready: make(chan struct{}, 1), lanes: map[registry.ServiceKey]*lane{}}
}

// add queues deliveries of one service and takes over the slice. What waits for
// the same subscriber with a lower number is replaced; what comes with a lower
// number is dropped. It returns how many went that way, and how many deliveries
// of all services are queued now.
func (o *outbox) add(key registry.ServiceKey, list []delivery) (replaced, queued int) {
	if len(list) == 0 {
		return 0, o.len()
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	l := o.lanes[key]
	if l == nil {
		l = &lane{key: key}
		o.lanes[key] = l
		o.turns = append(o.turns, l)
	}
	before := len(l.waiting) + len(list)
	o.queued -= len(l.waiting)
	l.waiting = merge(l.waiting, list)
	o.queued += len(l.waiting)
	select {
	case o.ready <- struct{}{}:
	default:
	}
	return before - len(l.waiting), o.queued
}

// merge returns both lists with the newest packet of each subscriber only.
func merge(waiting, list []delivery) []delivery {
	if len(waiting) == 0 {
		return list
	}
	newest := make(map[*registry.Subscriber]delivery, len(list))
	for _, d := range list {
		newest[d.sub] = d
	}
	merged := waiting[:0]
	for _, d := range waiting {
		if n, ok := newest[d.sub]; ok && n.packet.number > d.packet.number {
			d = n
		}
		delete(newest, d.sub)
		merged = append(merged, d)
	}
	for _, d := range list {
		if _, left := newest[d.sub]; left {
			merged = append(merged, d)
		}
	}
	return merged
}

// laneTurn is how many packets of one service are sent before the next has its
// turn.
const laneTurn = 16

// take moves the next deliveries to batch, each service in turn, until there are
// none or they reach a number of packets or of bytes; full tells which.
func (o *outbox) take(batch []delivery, packets, bytes int) (next []delivery, full bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.turns) > 0 && len(batch) < packets && bytes > 0 {
		l := o.turns[0]
		n := 0
		for n < len(l.waiting) && n < laneTurn && len(batch) < packets && bytes > 0 {
			bytes -= len(l.waiting[n].packet.bytes)
			batch = append(batch, l.waiting[n])
			n++
		}
		clear(l.waiting[:n])
		l.waiting = l.waiting[n:]
		o.queued -= n
		o.turns[0] = nil
		o.turns = o.turns[1:]
		if len(l.waiting) > 0 {
			o.turns = append(o.turns, l)
		} else {
			delete(o.lanes, l.key)
		}
	}
	return batch, len(batch) >= packets || bytes <= 0
}

func (o *outbox) len() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.queued
}
