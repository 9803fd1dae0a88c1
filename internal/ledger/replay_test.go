package ledger

import (
	"errors"
	"os"
	"testing"
)

func TestReplayFrom(t *testing.T) {
	cfg, _ := written(t, 50)
	h := newHouse(t, cfg, 0)
	r := h.replayed(t, 30)
	if r.Records != 21 || r.records[0].Seq != 31 || r.LastSeq != h.LastSeq() {
		t.Errorf("got %+v, first %d", r.Replayed, r.records[0].Seq)
	}
	if want := registration(49).Revision; r.MaxRevision != want {
		t.Errorf("highest revision %d, want %d", r.MaxRevision, want)
	}
	if r := h.replayed(t, h.LastSeq()); r.Records != 0 || r.LastSeq != 0 {
		t.Errorf("nothing new: %+v", r.Replayed)
	}
}

func TestReplayStops(t *testing.T) {
	cfg, _ := written(t, 50)
	h := newHouse(t, cfg, 0)
	enough := errors.New("enough")
	n := 0
	r, err := h.Replay(t.Context(), 0, func(*Record) error {
		if n++; n == 3 {
			return enough
		}
		return nil
	})
	if !errors.Is(err, enough) || n != 3 || r.Records != 3 {
		t.Errorf("got %v after %d records, %+v", err, n, r)
	}
}

// Segments that someone deleted are missed.
func TestReplayMissing(t *testing.T) {
	cfg := quick(t.TempDir())
	cfg.BacklogBytes = 16 << 20
	h := newHouse(t, cfg, 0).run(t)
	h.emit(300)
	if err := h.stop(); err != nil {
		t.Fatal(err)
	}
	segments, err := listSegments(cfg.Dir)
	if err != nil {
		t.Fatal(err)
	}
	gone := segments[2]
	if err := os.Remove(gone.path); err != nil {
		t.Fatal(err)
	}
	h = newHouse(t, cfg, 0)
	want := gone.last - gone.first + 1
	if r := h.replayed(t, 0); r.Missing != want || r.Records != 303-want {
		t.Errorf("in the middle: %+v, want %d missing", r.Replayed, want)
	}
	if r := h.replayed(t, gone.last); r.Missing != 0 {
		t.Errorf("behind it: %+v", r.Replayed)
	}
	if r := h.replayed(t, gone.last-5); r.Missing != 5 {
		t.Errorf("from within it: %+v, want 5 missing", r.Replayed)
	}
}

func TestReplayedAdd(t *testing.T) {
	lost := func(seq, count uint64) Record {
		r := Record{Seq: seq, Count: count}
		r.Event.Kind = Lost
		return r
	}
	start := Record{Seq: 1000}
	start.Event.Kind = Started
	tests := []struct {
		name          string
		rec           Record
		lost, missing uint64
	}{
		{"next", Record{Seq: 11}, 0, 0},
		{"after a hole", Record{Seq: 14}, 0, 3},
		{"a gap", lost(20, 10), 10, 0},
		{"a gap after a hole", lost(20, 7), 7, 3},
		{"a gap that began before", lost(20, 15), 10, 0},
		{"a start", start, 0, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var sum Replayed
			sum.add(&tt.rec, 11)
			if sum.Lost != tt.lost || sum.Missing != tt.missing {
				t.Errorf("got %d lost, %d missing, want %d, %d", sum.Lost, sum.Missing, tt.lost, tt.missing)
			}
		})
	}
}
