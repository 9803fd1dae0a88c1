package ledger

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollcall-registry/rollcall/internal/registry"
)

// logs gathers what a ledger logs.
type logs struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logs) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

func (l *logs) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.buf.String(), text)
}

// house is a ledger under test with what is around it.
type house struct {
	*Ledger
	logs *logs
	stop func() error // ends Run and returns its error
}

func newHouse(t testing.TB, cfg Config, floor uint64) *house {
	t.Helper()
	h := &house{logs: &logs{}}
	var err error
	if h.Ledger, err = New(cfg, slog.New(slog.NewTextHandler(h.logs, nil))); err != nil {
		t.Fatal(err)
	}
	if err := h.Open(floor); err != nil {
		t.Fatal(err)
	}
	return h
}

// run starts the writer; the test's end stops it.
func (h *house) run(t testing.TB) *house {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- h.Run(ctx) }()
	h.stop = sync.OnceValue(func() error {
		cancel()
		return <-done
	})
	t.Cleanup(func() { _ = h.stop() })
	return h
}

func (h *house) emit(n int) {
	for i := range n {
		h.Emit(registration(i))
	}
}

// waitFor polls the figures until ok holds.
func (h *house) waitFor(t testing.TB, what string, ok func(Stats) bool) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for !ok(h.Stats()) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within 10 s: %+v", what, h.Stats())
		}
		<-time.After(time.Millisecond)
	}
}

// all returns every record in order.
func (h *house) all(t testing.TB) []Record {
	t.Helper()
	return h.replayed(t, 0).records
}

type replayed struct {
	Replayed
	records []Record
}

func (h *house) replayed(t testing.TB, after uint64) replayed {
	t.Helper()
	var r replayed
	var err error
	r.Replayed, err = h.Replay(t.Context(), after, func(rec *Record) error {
		r.records = append(r.records, *rec)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func kinds(records []Record) string {
	var b strings.Builder
	for _, r := range records {
		fmt.Fprintf(&b, "%d %s", r.Seq, r.Event.Kind)
		if r.Event.Detail != "" {
			fmt.Fprintf(&b, " (%s)", r.Event.Detail)
		}
		if r.Count > 0 {
			fmt.Fprintf(&b, " x%d", r.Count)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// quick is a config for tests: small files, written at once.
func quick(dir string) Config {
	cfg := DefaultConfig(dir)
	cfg.MemoryBytes = 16 << 10
	cfg.BacklogBytes = 64 << 10
	cfg.SegmentBytes = 16 << 10
	cfg.TotalBytes = 1 << 20
	cfg.FlushInterval = time.Millisecond
	return cfg
}

func TestConfigValidate(t *testing.T) {
	if err := DefaultConfig("d").Validate(); err != nil {
		t.Fatalf("the default is refused: %v", err)
	}
	_, err := New(Config{BacklogBytes: 2 << 30}, slog.New(slog.DiscardHandler))
	if err == nil {
		t.Fatal("an empty config is accepted")
	}
	for _, want := range []string{
		"history.memory: 0 is below", "history.backlog: 2147483648 is above", "history.segment: 0",
		"history.max-age: 0s", "history.flush-interval: 0s", "flush bytes: 0",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no word of %q in: %v", want, err)
		}
	}
	small := DefaultConfig("d")
	small.BacklogBytes, small.TotalBytes = small.MemoryBytes-1, small.SegmentBytes-1
	if err := small.Validate(); err == nil || !strings.Contains(err.Error(), "history.backlog: ") || !strings.Contains(err.Error(), "history.total: ") {
		t.Errorf("bounds that exclude each other: got %v", err)
	}
}

func TestRecordsSurviveAnOrderlyStop(t *testing.T) {
	cfg := quick(t.TempDir())
	h := newHouse(t, cfg, 0).run(t)
	h.emit(3)
	if err := h.stop(); err != nil {
		t.Fatal(err)
	}
	if s := h.Stats(); s.Appended != 5 || s.Written != 5 || s.Unwritten != 0 || s.Lost != 0 || s.Segments != 1 {
		t.Errorf("stats: %+v", s)
	}

	h = newHouse(t, cfg, 0)
	got := kinds(h.all(t))
	want := "1 history started (first start)\n2 registered\n3 registered\n4 registered\n5 history stopped\n" +
		"6 history started (after an orderly stop)\n"
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if rec := h.all(t)[2]; rec.Event.Instance.Metadata != registration(1).Instance.Metadata {
		t.Errorf("metadata: %s", rec.Event.Instance.Metadata)
	}
}

func TestRenewalsAreNotKept(t *testing.T) {
	h := newHouse(t, quick(""), 0)
	e := registration(1)
	e.Kind = registry.InstanceRenewed
	h.Emit(e)
	if got := h.LastSeq(); got != 1 {
		t.Errorf("last sequence number %d, want 1", got)
	}
}

func TestMemoryOnly(t *testing.T) {
	cfg := quick("")
	h := newHouse(t, cfg, 0).run(t)
	h.emit(1000)
	s := h.Stats()
	if s.MemoryBytes > cfg.MemoryBytes || s.Unwritten != 0 || s.Lost != 0 || s.DiskBytes != 0 {
		t.Errorf("stats: %+v", s)
	}
	page, err := h.Query(t.Context(), Filter{Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(page.Records); n < 10 || page.Truncated || page.Records[0].Seq != 1001 {
		t.Errorf("got %d records, truncated %t", n, page.Truncated)
	}
	if err := h.stop(); err != nil {
		t.Error(err)
	}
}

// A record that comes to a quiet ledger is written at once. One that follows waits for the
// flush interval, and no longer; FlushBytes end the wait.
func TestFlushInterval(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		cfg := DefaultConfig(dir)
		h := newHouse(t, cfg, 0).run(t)
		synctest.Wait()
		if s := h.Stats(); s.Written != 1 || s.Unwritten != 0 {
			t.Errorf("the first is not written at once: %+v", s)
		}
		time.Sleep(time.Millisecond)
		h.Emit(registration(1))
		time.Sleep(cfg.FlushInterval - 2*time.Millisecond)
		synctest.Wait()
		if s := h.Stats(); s.Written != 1 {
			t.Errorf("written early: %+v", s)
		}
		time.Sleep(2 * time.Millisecond)
		synctest.Wait()
		if s := h.Stats(); s.Written != 2 || s.Unwritten != 0 {
			t.Errorf("not written in time: %+v", s)
		}
		time.Sleep(time.Hour)
		h.Emit(registration(1))
		synctest.Wait()
		if s := h.Stats(); s.Written != 3 {
			t.Errorf("not written at once after a quiet hour: %+v", s)
		}
		for range cfg.FlushBytes / 300 { // a registration is longer
			h.Emit(registration(1))
		}
		synctest.Wait()
		if s := h.Stats(); s.DiskBytes < int64(cfg.FlushBytes) {
			t.Errorf("%d bytes were not written at once: %+v", cfg.FlushBytes, s)
		}
		if err := h.stop(); err != nil {
			t.Error(err)
		}
	})
}

// A disk under test: it may be full, cut a write short, or not answer.
type disk struct {
	mu      sync.Mutex
	room    int // bytes until it is full; negative for no limit
	stalled chan struct{}
	writes  int
}

func newDisk() *disk { return &disk{room: -1} }

func (d *disk) create(path string) (segmentFile, error) { return d.wrap(osFiles{}.create(path)) }
func (d *disk) open(path string) (segmentFile, error)   { return d.wrap(osFiles{}.open(path)) }

func (d *disk) wrap(f segmentFile, err error) (segmentFile, error) {
	if err != nil {
		return nil, err
	}
	return &diskFile{segmentFile: f, disk: d}, nil
}

func (d *disk) setRoom(n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.room = n
}

// stall makes writes wait until the returned function is called.
func (d *disk) stall() (release func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := make(chan struct{})
	d.stalled = c
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.stalled = nil
		close(c)
	}
}

func (d *disk) admit(n int) (int, <-chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.writes++
	if d.room >= 0 {
		n = min(n, d.room)
		d.room -= n
	}
	return n, d.stalled
}

type diskFile struct {
	segmentFile
	disk *disk
}

func (f *diskFile) WriteAt(b []byte, off int64) (int, error) {
	n, stalled := f.disk.admit(len(b))
	if stalled != nil {
		<-stalled
	}
	written, err := f.segmentFile.WriteAt(b[:n], off)
	if err == nil && n < len(b) {
		err = syscall.ENOSPC
	}
	return written, err
}

// While the disk is full the history goes on in memory, and all of it reaches the
// disk once there is room.
func TestFullDisk(t *testing.T) {
	for _, room := range []int{0, 50, 500} { // in the header, in the first record, later
		t.Run(fmt.Sprint(room), func(t *testing.T) {
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				cfg := quick(dir)
				d := newDisk()
				d.setRoom(room)
				h := newHouse(t, cfg, 0)
				h.files = d
				h.run(t)
				h.emit(20)
				time.Sleep(3*complaintInterval - time.Second)
				s := h.Stats()
				if !s.Failing || s.WriteErrors < 100 || s.Lost != 0 {
					t.Errorf("full: %+v", s)
				}
				if n := h.logs.count("cannot be written"); n != 3 {
					t.Errorf("%d complaints in 3 minutes, want 3", n)
				}
				if page, err := h.Query(t.Context(), Filter{Limit: 50}); err != nil || len(page.Records) != 21 {
					t.Errorf("full: %d records, %v", len(page.Records), err)
				}
				d.setRoom(-1)
				time.Sleep(2 * retryInterval)
				synctest.Wait()
				if s := h.Stats(); s.Failing || s.Unwritten != 0 || s.Written != 21 {
					t.Errorf("with room again: %+v", s)
				}
				if h.logs.count("written again") != 1 {
					t.Error("not a word of the recovery")
				}
				if err := h.stop(); err != nil {
					t.Error(err)
				}
				h = newHouse(t, cfg, 0)
				if r := h.replayed(t, 0); r.Records != 23 || r.Damaged+int(r.Missing) != 0 {
					t.Errorf("after a restart: %+v", r.Replayed)
				}
			})
		})
	}
}

func TestStopOnAFullDisk(t *testing.T) {
	d := newDisk()
	d.setRoom(0)
	h := newHouse(t, quick(t.TempDir()), 0)
	h.files = d
	h.run(t)
	if err := h.stop(); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("got %v, want %v", err, syscall.ENOSPC)
	}
}

// A disk that does not answer costs the oldest records, never the newest, and says
// how many.
func TestBacklogOverflow(t *testing.T) {
	cfg := quick(t.TempDir())
	d := newDisk()
	h := newHouse(t, cfg, 0)
	h.files = d
	h.run(t)
	h.waitFor(t, "first flush", func(s Stats) bool { return s.Written == 1 })
	release := d.stall()
	h.emit(1000)
	if s := h.Stats(); s.MemoryBytes > cfg.BacklogBytes+cfg.chunkBytes() {
		t.Errorf("the backlog has %d bytes, want at most %d", s.MemoryBytes, cfg.BacklogBytes)
	}
	page, err := h.Query(t.Context(), Filter{Limit: 2000, OldestFirst: true})
	if err != nil {
		t.Fatal(err)
	}
	gap := slices.IndexFunc(page.Records, func(r Record) bool { return r.Event.Kind == Lost })
	if gap != 1 || page.Records[2].Seq != page.Records[1].Seq+1 {
		t.Errorf("during the stall the gap is record %d, want 1", gap)
	}
	select {
	case <-h.SnapshotWanted():
		t.Error("a snapshot is wanted before the disk answers")
	default:
	}

	release()
	h.waitFor(t, "catching up", func(s Stats) bool { return s.Unwritten == 0 })
	<-h.SnapshotWanted()
	s := h.Stats()
	if s.Lost == 0 || s.Written+s.Lost != s.Appended || s.MemoryBytes > cfg.MemoryBytes {
		t.Errorf("stats: %+v", s)
	}
	if err := h.stop(); err != nil {
		t.Fatal(err)
	}
	r := newHouse(t, cfg, 0).replayed(t, 0)
	if r.Lost != s.Lost || r.Missing != 0 || r.LastSeq != s.LastSeq+2 { // stop and start
		t.Errorf("replay: %+v, stats were %+v", r.Replayed, s)
	}
	var told uint64
	for i, rec := range r.records {
		if rec.Event.Kind == Lost {
			told += rec.Count
			if rec.Seq != r.records[i-1].Seq+rec.Count {
				t.Errorf("gap of %d: from %d to %d", rec.Count, r.records[i-1].Seq, rec.Seq)
			}
		}
	}
	if told != s.Lost {
		t.Errorf("gaps of %d records in all, want %d", told, s.Lost)
	}
}

// A directory emptied under the running server costs what was in it, not what
// comes after.
func TestVanishedSegment(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, quick(dir), 0).run(t)
		h.emit(5)
		time.Sleep(time.Second)
		if err := os.Remove(h.newestSegment().path); err != nil {
			t.Fatal(err)
		}
		time.Sleep(upkeepInterval)
		h.emit(5)
		if err := h.stop(); err != nil {
			t.Fatal(err)
		}
		r := newHouse(t, quick(dir), 0).replayed(t, 6)
		if r.Records != 7 || r.Missing != 0 {
			t.Errorf("replay: %+v", r.Replayed)
		}
	})
}

func TestEmitAndQueryAtOnce(t *testing.T) {
	cfg := quick(t.TempDir())
	cfg.BacklogBytes = 16 << 20
	h := newHouse(t, cfg, 0).run(t)
	var emitters sync.WaitGroup
	for range 4 {
		emitters.Go(func() { h.emit(2000) })
	}
	var readers sync.WaitGroup
	stop := make(chan struct{})
	for i := range 3 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				page, err := h.Query(context.Background(), Filter{Service: "orders-7", OldestFirst: i == 0})
				if err != nil || page.Damaged != 0 {
					t.Errorf("query: %v, %d damaged lines", err, page.Damaged)
					return
				}
				h.SetRecoveryFloor(h.LastSeq() / 2)
			}
		})
	}
	emitters.Wait()
	close(stop)
	readers.Wait()
	if err := h.stop(); err != nil {
		t.Fatal(err)
	}
	stats := h.Stats()
	r := newHouse(t, cfg, stats.RecoveryFloor).replayed(t, stats.RecoveryFloor)
	if want := stats.LastSeq - stats.RecoveryFloor + 1; r.Records != want || r.Missing+r.Lost != 0 || r.Damaged != 0 {
		t.Errorf("replay: %+v, want %d records", r.Replayed, want)
	}
}
