package ledger

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rollcall-registry/rollcall/internal/store"
)

// written is a directory with n records in one segment, as a killed process
// leaves it, and the content of that segment.
func written(t testing.TB, n int) (cfg Config, content []byte) {
	t.Helper()
	cfg = quick(t.TempDir())
	cfg.SegmentBytes = 1 << 20
	b := header(time.Now())
	for i := range n {
		b = appendRecord(b, uint64(i+1), registration(i), 0)
	}
	put(t, cfg.Dir, 1, b)
	return cfg, b
}

func put(t testing.TB, dir string, first uint64, content []byte) {
	t.Helper()
	if err := os.WriteFile(segmentPath(dir, first), content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// Wherever the last line was cut, all before it is there, the cut is logged once,
// and the history goes on behind it.
func TestTornTail(t *testing.T) {
	const records = 5
	cfg, content := written(t, records)
	lastLine := bytes.LastIndexByte(content[:len(content)-1], '\n') + 1
	for cut := lastLine; cut <= len(content); cut++ {
		put(t, cfg.Dir, 1, content[:cut])
		h := newHouse(t, cfg, 0)
		want, torn := uint64(records), 0
		if cut < len(content)-1 { // of a line that lacks its newline alone, nothing is lost
			want--
			torn = min(1, cut-lastLine)
		}
		r := h.replayed(t, 0)
		if r.Records != want+1 || r.LastSeq != want+crashLeap+1 || r.Missing+r.Lost != 0 || r.Damaged != 0 {
			t.Fatalf("cut to %d of %d: %+v, want %d records", cut, len(content), r.Replayed, want)
		}
		if n := h.logs.count("torn line"); n != torn {
			t.Fatalf("cut to %d: %d words of it, want %d", cut, n, torn)
		}
		if err := h.run(t).stop(); err != nil {
			t.Fatal(err)
		}
		again := newHouse(t, cfg, 0).replayed(t, 0)
		if again.Records != want+3 || again.Damaged != 0 || again.Missing != 0 {
			t.Fatalf("cut to %d, next start: %+v", cut, again.Replayed)
		}
	}
}

// A crash right after a segment was begun.
func TestTornHeader(t *testing.T) {
	header := header(time.Now())
	for cut := range len(header) + 1 {
		cfg, _ := written(t, 3)
		put(t, cfg.Dir, 4, header[:cut])
		h := newHouse(t, cfg, 0)
		if r := h.replayed(t, 0); r.Records != 4 || r.Damaged != 0 || r.Missing != 0 {
			t.Fatalf("cut to %d: %+v", cut, r.Replayed)
		}
		if err := h.run(t).stop(); err != nil {
			t.Fatal(err)
		}
		if r := newHouse(t, cfg, 0).replayed(t, 0); r.Records != 6 || r.Damaged != 0 || r.Missing != 0 {
			t.Fatalf("cut to %d, next start: %+v", cut, r.Replayed)
		}
	}
}

// Damage before the end costs the lines that it hit, is counted by everything that
// reads, and is logged.
func TestDamage(t *testing.T) {
	const records = 40
	_, content := written(t, records)
	line := func(n int) int { // offset of record n
		at := 0
		for range n {
			at += bytes.IndexByte(content[at:], '\n') + 1
		}
		return at
	}
	flip := func(at int) func([]byte) { return func(b []byte) { b[at] ^= 1 } }
	tests := []struct {
		name             string
		damage           func([]byte)
		damaged, missing int
	}{
		{"nothing", func([]byte) {}, 0, 0},
		{"header", flip(3), 1, 0},
		{"newline behind the header", flip(line(1) - 1), 1, 1},
		{"sequence number", flip(line(5) + len(`{"q":`)), 1, 1},
		{"a digit of an address", flip(line(5) + bytes.Index(content[line(5):], []byte(`"ip":"`)) + 7), 1, 1},
		{"checksum", flip(line(6) - 4), 1, 1},
		{"newline", flip(line(7) - 1), 1, 2},
		{"newline into a line", func(b []byte) { b[line(7)+20] = '\n' }, 2, 1},
		{"a zeroed page", func(b []byte) { clear(b[4096:8192]) }, 1, bytes.Count(content[4096:8192], []byte{'\n'}) + 1},
		{"two places", func(b []byte) { flip(line(9) + 5)(b); flip(line(30) + 100)(b) }, 2, 2},
	}
	for _, sealed := range []bool{false, true} {
		for _, tt := range tests {
			t.Run(fmt.Sprintf("%s, sealed %t", tt.name, sealed), func(t *testing.T) {
				cfg, b := written(t, records)
				tt.damage(b)
				put(t, cfg.Dir, 1, b)
				if sealed { // a later segment follows
					next := appendRecord(header(time.Now()), records+1, registration(1), 0)
					put(t, cfg.Dir, records+1, next)
				}
				h := newHouse(t, cfg, 0)
				for range 2 {
					r := h.replayed(t, 0)
					if r.Damaged != tt.damaged || r.Missing != uint64(tt.missing) || r.Records < uint64(records-tt.missing) {
						t.Errorf("replay: %+v, want %d damaged, %d missing", r.Replayed, tt.damaged, tt.missing)
					}
					for _, oldestFirst := range []bool{false, true} {
						page, err := h.Query(t.Context(), Filter{OldestFirst: oldestFirst, Limit: 1000})
						if err != nil || page.Damaged != tt.damaged || len(page.Records) != len(r.records) {
							t.Errorf("query: %d records, %d damaged, %v", len(page.Records), page.Damaged, err)
						}
					}
				}
				if got := h.Stats().Damaged; got != tt.damaged {
					t.Errorf("stats tell of %d damaged lines, want %d", got, tt.damaged)
				}
				if got, want := h.logs.count("damaged lines"), min(1, tt.damaged); got != want {
					t.Errorf("%d words of it in the log, want %d", got, want)
				}
			})
		}
	}
}

// Whatever single byte of a segment is damaged, opening it works, and no record is
// lost without being counted.
func TestAnyByteDamaged(t *testing.T) {
	const records = 3
	cfg, content := written(t, records)
	for at := range content {
		b := bytes.Clone(content)
		b[at] ^= 0x08
		put(t, cfg.Dir, 1, b)
		h := newHouse(t, cfg, 0)
		r := h.replayed(t, 0)
		told := r.Damaged > 0 || h.logs.count("torn line") > 0
		if r.Records < records-1 || r.Records < records+1 && !told {
			t.Fatalf("byte %d: %+v, told of it: %t", at, r.Replayed, told)
		}
	}
}

// A zeroed tail, as some file systems leave after a loss of power, is a torn line.
func TestZeroedTail(t *testing.T) {
	cfg, content := written(t, 5)
	put(t, cfg.Dir, 1, append(content, make([]byte, 4096)...))
	h := newHouse(t, cfg, 0)
	if r := h.replayed(t, 0); r.Records != 6 || r.Damaged != 0 {
		t.Errorf("replay: %+v", r.Replayed)
	}
	if h.logs.count("torn line") != 1 {
		t.Error("not a word of it in the log")
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Run("newer format", func(t *testing.T) {
		cfg, content := written(t, 1)
		newer := appendSeal([]byte(headerStart+`"format":2,"begun":"2030-01-01T00:00:00Z"`), 0)
		put(t, cfg.Dir, 1, newer)
		put(t, cfg.Dir, 2, content)
		l, err := New(cfg, discard())
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Open(0); !errors.Is(err, store.ErrNewer) {
			t.Errorf("got %v, want %v", err, store.ErrNewer)
		}
		if got, err := os.ReadFile(segmentPath(cfg.Dir, 1)); err != nil || !bytes.Equal(got, newer) {
			t.Error("the newer file was touched")
		}
	})
	t.Run("no directory", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		l, err := New(quick(filepath.Join(file, "history")), discard())
		if err != nil {
			t.Fatal(err)
		}
		var pathError *fs.PathError
		if err := l.Open(0); !errors.As(err, &pathError) {
			t.Errorf("got %v, want an error that names the path", err)
		}
	})
}

func TestForeignFilesAreLeftAlone(t *testing.T) {
	cfg, _ := written(t, 2)
	foreign := []string{"history-x.ndjson", "history-00000000000000000009.ndjson.bak", "notes.txt"}
	for _, name := range foreign {
		if err := os.WriteFile(filepath.Join(cfg.Dir, name), []byte("mine"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(segmentPath(cfg.Dir, 7), 0o700); err != nil {
		t.Fatal(err)
	}
	h := newHouse(t, cfg, 0)
	if r := h.replayed(t, 0); r.Records != 3 || r.Damaged != 0 {
		t.Errorf("replay: %+v", r.Replayed)
	}
	for _, name := range foreign {
		if got, err := os.ReadFile(filepath.Join(cfg.Dir, name)); err != nil || string(got) != "mine" {
			t.Errorf("%s was touched: %q, %v", name, got, err)
		}
	}
}

// Sequence numbers only grow, whatever happened, and a snapshot's is never given
// again.
func TestSequenceNumbersGrow(t *testing.T) {
	tests := []struct {
		name    string
		records int // on disk, without an orderly end
		stopped bool
		floor   uint64
		want    uint64
		how     string
	}{
		{"first start", 0, false, 0, 1, endedNever},
		{"crash", 5, false, 0, 5 + crashLeap + 1, endedByACrash},
		{"crash with a snapshot", 5, false, 3, 5 + crashLeap + 1, endedByACrash},
		{"crash that lost what a snapshot knows", 5, false, 8, 8 + crashLeap + 1, endedByACrash},
		{"history deleted, snapshot kept", 0, false, 8, 8 + crashLeap + 1, endedByACrash},
		{"orderly stop", 5, true, 6, 7, endedInOrder},
		{"orderly stop, then an older history put back", 5, true, 9, 9 + crashLeap + 1, endedByACrash},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cfg, content := written(t, tt.records)
			if tt.stopped {
				e := registration(1)
				e.Kind = Stopped
				content = appendRecord(content, uint64(tt.records+1), e, 0)
			}
			put(t, cfg.Dir, 1, content)
			if tt.records == 0 {
				if err := os.Remove(segmentPath(cfg.Dir, 1)); err != nil {
					t.Fatal(err)
				}
			}
			h := newHouse(t, cfg, tt.floor)
			if got := h.LastSeq(); got != tt.want {
				t.Errorf("first sequence number %d, want %d", got, tt.want)
			}
			page, err := h.Query(t.Context(), Filter{Limit: 1})
			if err != nil || len(page.Records) != 1 || page.Records[0].Event.Detail != tt.how {
				t.Errorf("got %+v, %v, want %q", page.Records, err, tt.how)
			}
			if got := h.Stats().RecoveryFloor; got != tt.floor {
				t.Errorf("recovery floor %d, want %d", got, tt.floor)
			}
		})
	}
}
