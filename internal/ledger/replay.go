package ledger

import (
	"context"
	"fmt"
	"math"
)

// Replayed sums up a replay.
type Replayed struct {
	Records uint64
	LastSeq uint64 // the newest record, 0 when there is none
	// MaxRevision is the highest revision in the records. Together with that of
	// the snapshot it is the mark that no new revision may fall below.
	MaxRevision int64
	// Lost records were never written; Missing ones were, and are gone or
	// damaged. The registry is not fully rebuilt when either is set.
	Lost, Missing uint64
	Damaged       int // lines that were skipped
}

// Replay passes every record after the sequence number to fn, oldest first,
// until fn returns an error, which it returns. The record is valid during the call,
// what it points to for longer; see [Record]. Records of all kinds come, those of the
// ledger itself too.
//
// A record may be older than the state that a snapshot shows: a snapshot is not
// taken in one instant. Applying all records in order comes to the right end.
func (l *Ledger) Replay(ctx context.Context, after uint64, fn func(*Record) error) (Replayed, error) {
	var sum Replayed
	var failed error
	var rec Record
	expected := after + 1
	end, err := l.scan(ctx, scan{
		after: after, before: math.MaxUint64,
		since: math.MinInt64, until: math.MaxInt64,
		budget: math.MaxInt64,
		visit: func(line []byte, h head) bool {
			var err error
			if rec, err = parseRecord(line); err != nil || h.seq < expected { // out of order: not a line of ours
				sum.Damaged++
				return true
			}
			sum.add(&rec, expected)
			expected = rec.Seq + 1
			if err := fn(&rec); err != nil {
				failed = fmt.Errorf("replay record %d: %w", rec.Seq, err)
			}
			return failed == nil
		},
	})
	sum.Damaged += end.damaged
	if err == nil {
		err = failed
	}
	return sum, err
}

// add counts rec, and what is missing before it. A start may leap.
func (s *Replayed) add(rec *Record, expected uint64) {
	s.Records++
	s.LastSeq = rec.Seq
	s.MaxRevision = max(s.MaxRevision, rec.Event.Revision)
	gap := rec.Seq - expected
	if rec.Event.Kind == Lost {
		gap++
		s.Lost += min(rec.Count, gap)
		gap -= min(rec.Count, gap)
	}
	if rec.Event.Kind != Started {
		s.Missing += gap
	}
}
