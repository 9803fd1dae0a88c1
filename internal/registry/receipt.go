package registry

import "time"

// Receipt is how far the pushes to one subscriber have come.
type Receipt struct {
	// Revision is the newest state of the service that the subscriber
	// acknowledged, 0 when there is none. At is when it did, in wall-clock
	// milliseconds; Took is how long that was after the change, 0 when the push
	// told of none.
	Revision, At int64
	Took         time.Duration
	// Failed is the newest state that could not be brought to it, and Problem says
	// why; 0 when there is none.
	Failed  int64
	Problem string
}

// Receipt returns how far the pushes to s have come.
func (s *Subscriber) Receipt() Receipt {
	if r := s.receipt.Load(); r != nil {
		return *r
	}
	return Receipt{}
}

// Acknowledge notes that s acknowledged a state, and reports whether that is news:
// it had not acknowledged this state or a later one.
func (s *Subscriber) Acknowledge(revision, at int64, took time.Duration) bool {
	return s.note(func(r *Receipt) bool {
		if revision <= r.Revision {
			return false
		}
		r.Revision, r.At, r.Took = revision, at, took
		return true
	})
}

// PushFailed notes that a state could not be brought to s, and reports whether
// that is news: neither did that happen with this state or a later one, nor has s
// acknowledged it. problem is a constant.
func (s *Subscriber) PushFailed(revision int64, problem string) bool {
	return s.note(func(r *Receipt) bool {
		if revision <= max(r.Revision, r.Failed) {
			return false
		}
		r.Failed, r.Problem = revision, problem
		return true
	})
}

// note replaces the receipt by a changed copy, unless change finds no news.
func (s *Subscriber) note(change func(*Receipt) bool) bool {
	for {
		old := s.receipt.Load()
		next := &Receipt{}
		if old != nil {
			*next = *old
		}
		if !change(next) {
			return false
		}
		if s.receipt.CompareAndSwap(old, next) {
			return true
		}
	}
}
