package grpcapi

import (
	"slices"
	"strings"

	"github.com/rollcall-registry/rollcall/api/grpcv2"
)

const (
	// fuzzyBatch and maxMatches are Nacos' limits: services in a batch, and services
	// of one pattern.
	fuzzyBatch = 10
	maxMatches = 500
	// maxFlying bounds the changes that are told to a client at a time.
	maxFlying = 16
)

// fuzzyState is what a fuzzy watcher knows, and what it is to be told: first of the
// services that it does not know, a batch at a time, then of each that comes or goes.
// That is kept as the difference between what the client knows and what is there, so
// it cannot grow beyond the two. The state sends nothing and is not safe for
// concurrent use. The zero value is a watch that has not begun.
type fuzzyState struct {
	// live: the client's request has been answered, and it has not taken it back.
	live bool
	// batches are to be told before all changes, the first of them next; kind says
	// why.
	batches [][]grpcv2.FuzzyChange
	kind    string
	finish  bool // and then that this was all
	syncing bool // one of these is being told
	batch   int  // the number of the next one, from 0
	// told are the services that the client knows. present is what is there now, of
	// those that changed; flying are the changes that are being told.
	told, present, flying map[string]bool
	// stalled: something could not be told, and waits for retry.
	stalled bool
}

// fuzzyMessage is what a fuzzy watcher is told at a time: a batch, that there are no
// more of them, or one change.
type fuzzyMessage struct {
	sync   grpcv2.FuzzySync // without the pattern
	change grpcv2.FuzzyChange
	isSync bool
}

// begin decides what the client is to be told, once the services that match are
// there. known are those that the client says it knows; their memory is the
// request's. It reports whether more match than are told. Changes may have been noted
// before.
func (s *fuzzyState) begin(matching, known []string, initializing bool) (tooMany bool) {
	s.init()
	there := make(map[string]bool, len(matching))
	for _, key := range matching {
		there[key] = true
	}
	for _, key := range known {
		key = strings.Clone(key)
		s.told[key] = true
		if _, changed := s.present[key]; !there[key] && !changed {
			s.present[key] = false
		}
	}
	var missing []grpcv2.FuzzyChange
	for _, key := range matching {
		if s.told[key] {
			continue
		}
		if len(s.told)+len(missing) >= maxMatches {
			tooMany = true
			break
		}
		missing = append(missing, grpcv2.FuzzyChange{Service: key, Change: grpcv2.AddService})
	}
	s.kind, s.finish = grpcv2.SyncDiff, initializing
	if initializing {
		s.kind = grpcv2.SyncInit
	}
	s.batches = slices.Collect(slices.Chunk(missing, fuzzyBatch))
	return tooMany
}

func (s *fuzzyState) init() {
	if s.told == nil {
		s.told, s.present, s.flying = map[string]bool{}, map[string]bool{}, map[string]bool{}
	}
}

// note notes that a service is there, or not any more.
func (s *fuzzyState) note(key string, present bool) {
	s.init()
	s.present[key] = present
}

// next returns what is to be told now, which is being told from then on: the caller
// says with settled or unsent what became of it. ok is false when there is nothing.
func (s *fuzzyState) next() (m fuzzyMessage, ok bool) {
	switch {
	case !s.live || s.syncing || s.stalled:
		return m, false
	case s.batch < len(s.batches):
		m.sync = grpcv2.FuzzySync{Kind: s.kind, Changes: s.batches[s.batch], Batch: s.batch + 1, Batches: len(s.batches)}
	case s.finish:
		m.sync = grpcv2.FuzzySync{Kind: grpcv2.SyncFinish, Batch: 1, Batches: 1}
	default:
		return s.nextChange()
	}
	m.isSync, s.syncing = true, true
	return m, true
}

// nextChange returns a service of which the client does not know that it came or
// went. It forgets those of which it does.
func (s *fuzzyState) nextChange() (m fuzzyMessage, ok bool) {
	if len(s.flying) >= maxFlying {
		return m, false
	}
	for key, present := range s.present {
		switch {
		case s.flying[key]:
		case present == s.told[key], present && len(s.told) >= maxMatches:
			delete(s.present, key)
		default:
			m.change = grpcv2.FuzzyChange{Service: key, Change: grpcv2.DeleteService}
			if present {
				m.change.Change = grpcv2.AddService
			}
			s.flying[key] = true
			return m, true
		}
	}
	return m, false
}

// settled takes what became of a message. One without an answer is told again; one
// that the client refused is, too, but not before retry, or the two would talk of
// nothing else.
func (s *fuzzyState) settled(m fuzzyMessage, how outcome) {
	if how == refused {
		s.stalled = true
	}
	if m.isSync {
		s.syncing = false
		if how == done {
			s.synced()
		}
		return
	}
	key := m.change.Service
	delete(s.flying, key)
	switch {
	case how != done:
	case m.change.Change == grpcv2.AddService:
		s.told[key] = true
	default:
		delete(s.told, key)
	}
}

// synced goes on after a batch or the end of them.
func (s *fuzzyState) synced() {
	if s.batch == len(s.batches) {
		s.batches, s.batch, s.finish = nil, 0, false
		return
	}
	for _, c := range s.batches[s.batch] {
		s.told[c.Service] = true
	}
	s.batch++
}

// unsent takes back a message that could not be sent; it is told after retry.
func (s *fuzzyState) unsent(m fuzzyMessage) {
	s.stalled = true
	if m.isSync {
		s.syncing = false
		return
	}
	delete(s.flying, m.change.Service)
}

// retry lets what could not be told be told again, and reports whether there was
// something.
func (s *fuzzyState) retry() (again bool) {
	again, s.stalled = s.stalled, false
	return again
}
