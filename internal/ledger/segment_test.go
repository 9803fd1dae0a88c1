package ledger

import (
	"bytes"
	"slices"
	"testing"
	"time"
)

// FuzzBlocks holds reading in blocks, in either direction, to a plain split.
func FuzzBlocks(f *testing.F) {
	f.Add([]byte("a\nbc\n\ndef\n"), uint8(3))
	f.Add([]byte("a line that is longer than a block\nx\nand no end"), uint8(2))
	f.Add([]byte("\n\n\n"), uint8(1))
	f.Fuzz(func(t *testing.T, content []byte, n uint8) {
		if n == 0 {
			n = 1
		}
		var want []string
		for line := range bytes.SplitSeq(bytes.TrimSuffix(content, []byte{'\n'}), []byte{'\n'}) {
			want = append(want, string(line))
		}
		if len(content) == 0 {
			want = nil
		}
		for _, backwards := range []bool{false, true} {
			cutter := liner{backwards: backwards}
			var got []string
			total := 0
			for block, err := range blocks(bytes.NewReader(content), int64(len(content)), int64(n), backwards) {
				if err != nil {
					t.Fatal(err)
				}
				total += len(block)
				for line := range cutter.lines(block) {
					got = append(got, string(line))
				}
			}
			if backwards {
				slices.Reverse(got)
			}
			if total != len(content) || !slices.Equal(got, want) {
				t.Errorf("backwards %t: got %q, want %q", backwards, got, want)
			}
		}
	})
}

// FuzzOpen opens whatever may lie in the directory as a segment. Its coverage
// varies with the time of writes, so fuzz it with -fuzzminimizetime=1x.
func FuzzOpen(f *testing.F) {
	good := header(time.Now())
	for i := range 3 {
		good = appendRecord(good, uint64(i+1), registration(i), 0)
	}
	f.Add(good)
	f.Add(good[:len(good)-7])
	f.Add(append(slices.Clone(good), lostPiece(4, 1<<63).data...))
	f.Add(appendRecord(appendRecord(nil, 9, removal(1), 0), 5, removal(2), 1<<62)) // out of order
	f.Add(appendSeal([]byte(headerStart+`"format":"x","begun":5`), 0))
	f.Fuzz(func(t *testing.T, content []byte) {
		cfg := quick(t.TempDir())
		put(t, cfg.Dir, 1, content)
		h := newHouse(t, cfg, 0)
		var last uint64
		for _, r := range h.all(t) {
			if r.Seq <= last {
				t.Fatalf("record %d after %d", r.Seq, last)
			}
			last = r.Seq
		}
		if last != h.LastSeq() {
			t.Errorf("the last record is %d, want %d", last, h.LastSeq())
		}
		for _, f := range []Filter{{}, {OldestFirst: true, Service: "orders-0", IP: "10.0.0.1"}} {
			if _, err := h.Query(t.Context(), f); err != nil {
				t.Error(err)
			}
		}
	})
}
