package ledger

import (
	"log/slog"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }

// files returns the sizes of the segments on disk.
func files(t testing.TB, dir string) (sizes []int64) {
	t.Helper()
	segments, err := listSegments(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range segments {
		sizes = append(sizes, s.size)
	}
	return sizes
}

func TestRotation(t *testing.T) {
	cfg := quick(t.TempDir())
	cfg.BacklogBytes = 16 << 20
	h := newHouse(t, cfg, 0).run(t)
	h.emit(500)
	if err := h.stop(); err != nil {
		t.Fatal(err)
	}
	sizes := files(t, cfg.Dir)
	if len(sizes) < 10 {
		t.Errorf("%d segments", len(sizes))
	}
	var total int64
	for i, size := range sizes {
		total += size
		if size > cfg.SegmentBytes || i < len(sizes)-1 && size < cfg.SegmentBytes/2 {
			t.Errorf("segment %d has %d bytes, the limit is %d", i, size, cfg.SegmentBytes)
		}
	}
	if s := h.Stats(); s.Segments != len(sizes) || s.DiskBytes != total {
		t.Errorf("stats say %d segments and %d bytes, there are %d and %d", s.Segments, s.DiskBytes, len(sizes), total)
	}
	h = newHouse(t, cfg, 0)
	if r := h.replayed(t, 0); r.Records != 503 || r.Missing != 0 {
		t.Errorf("replay: %+v", r.Replayed)
	}
	if err := h.run(t).stop(); err != nil { // goes on in the newest segment
		t.Fatal(err)
	}
	if again := files(t, cfg.Dir); len(again) != len(sizes) {
		t.Errorf("%d segments after a restart, were %d", len(again), len(sizes))
	}
}

// A record larger than a segment has one of its own, and is found there.
func TestHugeRecord(t *testing.T) {
	cfg := quick(t.TempDir())
	cfg.BacklogBytes = 16 << 20
	h := newHouse(t, cfg, 0).run(t)
	h.emit(3)
	huge := registration(3)
	huge.Detail = string(make([]byte, 200<<10)) // six bytes each when encoded
	h.Emit(huge)
	h.emit(3)
	if err := h.stop(); err != nil {
		t.Fatal(err)
	}
	h = newHouse(t, cfg, 0)
	r := h.replayed(t, 0)
	if r.Records != 10 || r.Damaged != 0 || r.records[4].Event.Detail != huge.Detail {
		t.Errorf("replay: %+v", r.Replayed)
	}
	page, err := h.Query(t.Context(), Filter{})
	if err != nil || len(page.Records) != 10 || page.Records[5].Event.Detail != huge.Detail {
		t.Errorf("query: %d records, %v", len(page.Records), err)
	}
	if got := h.Stats().MemoryBytes; got > cfg.MemoryBytes {
		t.Errorf("memory: %d bytes, the limit is %d", got, cfg.MemoryBytes)
	}
}

func TestTotalSize(t *testing.T) {
	cfg := quick(t.TempDir())
	cfg.BacklogBytes = 16 << 20
	cfg.TotalBytes = 4 * cfg.SegmentBytes
	h := newHouse(t, cfg, 0).run(t)

	// Without a snapshot, nothing may go.
	h.emit(500)
	h.waitFor(t, "first half", func(s Stats) bool { return s.Unwritten == 0 })
	if s := h.Stats(); s.DiskBytes < 2*cfg.TotalBytes {
		t.Errorf("segments that recovery needs were deleted: %+v", s)
	}
	<-h.SnapshotWanted()
	if n := h.logs.count("kept for recovery"); n != 1 {
		t.Errorf("%d words of it in the log, want 1", n)
	}

	// With one, what it covers goes, and no more than that.
	const floor = 300
	h.SetRecoveryFloor(floor)
	h.SetRecoveryFloor(100) // does not go back
	h.emit(50)
	h.waitFor(t, "deletion", func(s Stats) bool { return s.Unwritten == 0 })
	if r := h.replayed(t, floor); r.Missing != 0 || r.Records != 551-floor {
		t.Errorf("replay: %+v", r.Replayed)
	}
	if oldest := h.all(t)[0].Seq; oldest < floor-100 || oldest > floor+1 {
		t.Errorf("oldest record %d, the recovery floor is %d", oldest, floor)
	}

	h.SetRecoveryFloor(551)
	h.emit(100)
	if err := h.stop(); err != nil {
		t.Fatal(err)
	}
	if s := h.Stats(); s.DiskBytes > cfg.TotalBytes+cfg.SegmentBytes || s.Segments != len(files(t, cfg.Dir)) {
		t.Errorf("stats: %+v", s)
	}
}

func TestAge(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		cfg := quick(dir)
		h := newHouse(t, cfg, 0).run(t)
		const day = 24 * time.Hour
		for range 14 {
			h.emit(1)
			time.Sleep(day)
			h.SetRecoveryFloor(h.LastSeq())
		}
		if err := h.stop(); err != nil {
			t.Fatal(err)
		}
		// A segment for each day, and the newest of all ages.
		if n := h.Stats().Segments; n < 7 || n > 9 {
			t.Errorf("%d segments after two weeks", n)
		}
		if n := len(files(t, dir)); n != h.Stats().Segments {
			t.Errorf("%d files, stats say %d", n, h.Stats().Segments)
		}
	})
}

// Age counts from the files after a restart, too.
func TestAgeAfterARestart(t *testing.T) {
	cfg, content := written(t, 3)
	long := time.Now().Add(-2 * cfg.MaxAge)
	old := header(long)
	put(t, cfg.Dir, 1, append(old, content[len(old):]...))
	if err := os.Chtimes(segmentPath(cfg.Dir, 1), long, long); err != nil {
		t.Fatal(err)
	}
	h := newHouse(t, cfg, 3).run(t)
	h.waitFor(t, "a new segment in its place", func(s Stats) bool { return s.Written == 1 })
	if err := h.stop(); err != nil {
		t.Fatal(err)
	}
	if got := newHouse(t, cfg, 3).all(t); got[0].Event.Kind != Started {
		t.Errorf("the history begins with %+v", got[0])
	}
}
