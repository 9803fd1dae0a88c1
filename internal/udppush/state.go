package udppush

import (
	"sync"
	"time"

	"github.com/rollcall-registry/rollcall/internal/registry"
)

// State is what 1.x tells of pushes.
type State struct {
	// Total is how many packets there were, without repetitions; Succeed how many
	// of them were acknowledged.
	Total, Succeed int64
	// Unacked are the texts of packets that wait for an acknowledgement.
	Unacked []string
}

// Ratio is the share of packets that were acknowledged; 0 when there were none.
func (s State) Ratio() float64 {
	if s.Total == 0 {
		return 0
	}
	return float64(s.Succeed) / float64(s.Total)
}

// State returns the counts since the start, with the texts of at most so many
// packets.
func (s *Sender) State(texts int) State {
	st := State{Total: s.total.Load(), Succeed: s.succeeded.Load()}
	for _, p := range s.acks.some(texts) {
		text, err := p.text()
		if err != nil {
			s.log.Error("cannot read back a packet", "err", err)
			continue
		}
		st.Unacked = append(st.Unacked, text)
	}
	return st
}

// Waiting reports whether a packet to a subscriber has not been acknowledged, and
// when the change in it was made; zero when it tells of none. One that has not left
// yet is not counted: that takes milliseconds.
func (s *Sender) Waiting(sub *registry.Subscriber) (changed registry.Instant, waiting bool) {
	return s.acks.waiting(sub)
}

// Reset forgets the packets that wait for an acknowledgement, as 1.x does: they
// are not sent again. The counts stay.
func (s *Sender) Reset() {
	for range s.acks.clear() {
		s.parts.Observer.Settled(Forgotten, 0)
	}
}

// complaints remembers of which services something was logged lately. It is safe
// for concurrent use.
type complaints struct {
	mu   sync.Mutex
	last map[registry.ServiceKey]time.Time
}

const (
	complaintPeriod = 10 * time.Minute
	// maxComplaints bounds the memory; when it is full, everything is forgotten.
	maxComplaints = 1024
)

// first reports whether nothing was logged of a service for ten minutes.
func (c *complaints) first(key registry.ServiceKey, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at, ok := c.last[key]; ok && now.Sub(at) < complaintPeriod {
		return false
	}
	if c.last == nil || len(c.last) >= maxComplaints {
		c.last = map[registry.ServiceKey]time.Time{}
	}
	c.last[key] = now
	return true
}
