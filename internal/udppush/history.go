package udppush

import (
	"time"

	"github.com/rollcall-registry/rollcall/internal/registry"
)

// problem says for the history why a push did not reach its subscriber; "" for
// outcomes that are none of its failures: a newer push tells more, or nobody is
// left to be told.
func problem(outcome string) string {
	switch outcome {
	case Failed:
		return "sent twice and not acknowledged"
	case Unsent:
		return "the system would not send it"
	case TooLarge:
		return "too large for the client or for a datagram; it polls"
	case Overflow:
		return "given up for newer ones: too many pushes were not acknowledged"
	default:
		return ""
	}
}

// record remembers how a push ended, so long after its change, when that is news
// of its subscriber.
func (s *Sender) record(outcome string, d delivery, since time.Duration) {
	now := s.parts.Clock.Now()
	e := registry.Event{
		Kind: registry.PushAcknowledged, At: now, Service: d.sub.Service, Revision: d.revision,
		Subscriber: d.sub, Took: since,
	}
	if outcome == Acked {
		if !d.sub.Acknowledge(d.revision, now.Wall, since) {
			return
		}
	} else {
		e.Kind, e.Detail = registry.PushFailed, problem(outcome)
		if e.Detail == "" || !d.sub.PushFailed(d.revision, e.Detail) {
			return
		}
	}
	if s.parts.History != nil {
		s.parts.History.Emit(&e)
	}
}
