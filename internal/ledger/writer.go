package ledger

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"time"

	"github.com/rollcall-registry/rollcall/internal/registry"
	"github.com/rollcall-registry/rollcall/internal/store"
)

const (
	// retryInterval is the pause after a write that failed.
	retryInterval = time.Second
	// upkeepInterval is how often segments are checked for age and presence.
	upkeepInterval = time.Minute
	// complaintInterval is the least time between two log lines about writes that
	// keep failing, or about segments that cannot be deleted.
	complaintInterval = time.Minute
)

// fileSystem opens segments for writing. Tests put a full or slow disk in its
// place.
type fileSystem interface {
	// create makes or empties the file, open takes an existing one.
	create(path string) (segmentFile, error)
	open(path string) (segmentFile, error)
}

// segmentFile is written at increasing offsets; a failed write is repeated at
// the same offset.
type segmentFile interface {
	WriteAt(b []byte, off int64) (int, error)
	Sync() error
	Close() error
}

type osFiles struct{}

func (osFiles) create(path string) (segmentFile, error) {
	return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
}

func (osFiles) open(path string) (segmentFile, error) {
	return os.OpenFile(path, os.O_WRONLY, 0)
}

// writer moves chunks to segments. It belongs to the goroutine of Run.
type writer struct {
	*Ledger
	file         segmentFile // nil until the next write needs it
	active       *segment    // the newest segment while records still go to it
	looked       time.Time   // when it last wrote what waited
	complained   time.Time   // about failing writes
	complainedOf time.Time   // about segments that stay
}

// Run writes what is emitted, until ctx ends; then it writes and syncs the rest
// and returns the error of that. End it after whatever emits events. Errors
// before that are logged, counted and retried.
func (l *Ledger) Run(ctx context.Context) error {
	if l.cfg.Dir == "" {
		<-ctx.Done()
		return nil
	}
	w := &writer{Ledger: l, active: l.newestSegment()}
	upkeep := time.NewTicker(upkeepInterval)
	defer upkeep.Stop()
	wake := l.wake
	var retry <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return w.finish()
		case <-upkeep.C:
			w.upkeep()
			continue
		case <-wake:
			w.gather(ctx)
		case <-retry:
		}
		wake, retry = l.wake, nil
		if !w.flushed() {
			wake, retry = nil, time.After(retryInterval)
		}
	}
}

// gather waits for more to write at once, until the flush interval since the last write
// is over. What comes to a quiet ledger is written at once: a kill takes nothing of it.
func (w *writer) gather(ctx context.Context) {
	wait := w.cfg.FlushInterval - time.Since(w.looked)
	if wait <= 0 {
		return
	}
	select {
	case <-ctx.Done():
	case <-w.full:
	case <-time.After(wait):
	}
}

// finish writes the end of the history.
func (w *writer) finish() error {
	w.note(Stopped, "")
	if err := w.flush(); err != nil {
		return err
	}
	return w.closeFile()
}

// flushed writes all that waits and reports whether it could.
func (w *writer) flushed() bool {
	err := w.flush()
	w.looked = time.Now()
	w.mu.Lock()
	was := w.stats.Failing
	w.stats.Failing = err != nil
	if err != nil {
		w.stats.WriteErrors++
	}
	w.mu.Unlock()
	switch {
	case err != nil && time.Since(w.complained) >= complaintInterval:
		w.complained = time.Now()
		w.log.Error("history cannot be written, it goes on in memory", "err", err)
	case err == nil && was:
		w.complained = time.Time{}
		w.log.Info("history is written again")
	}
	return err == nil
}

func (w *writer) flush() error {
	for {
		p, ok := w.nextPiece()
		if !ok {
			return nil
		}
		err := w.write(p)
		w.release(p.chunk)
		if err != nil {
			return err
		}
	}
}

// piece is what one write moves to a segment.
type piece struct {
	chunk *chunk // held; nil for a record of kind Lost
	data  []byte
	first uint64 // the first record that it stands for
	last  uint64
	times span
	lost  uint64 // how many records it says are missing
}

// nextPiece returns the oldest unwritten records. A run of records that were
// dropped before they were written makes a piece of its own.
func (l *Ledger) nextPiece() (piece, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unflushed = 0
	for _, c := range l.mem.chunks {
		if c.first == 0 || c.last <= l.onDisk {
			continue
		}
		if c.written == 0 && c.first > l.onDisk+1 {
			return lostPiece(l.onDisk+1, c.first-1), true
		}
		c.holders++
		return piece{chunk: c, data: c.buf[c.written:], first: l.onDisk + 1, last: c.last, times: c.times}, true
	}
	return piece{}, false
}

// lostPiece makes the record that stands for the missing ones from first to last.
func lostPiece(first, last uint64) piece {
	now := time.Now().UnixMilli()
	e := registry.Event{Kind: Lost, At: registry.Instant{Wall: now}}
	p := piece{first: first, last: last, lost: last - first + 1}
	p.data = appendRecord(nil, last, &e, p.lost)
	p.times.add(now)
	return p
}

// release lets go of chunks that were held.
func (l *Ledger) release(chunks ...*chunk) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range chunks {
		if c != nil {
			c.holders--
		}
	}
}

// write appends p to the newest segment, or to a new one.
func (w *writer) write(p piece) error {
	if w.active != nil && w.due(w.active, len(p.data)) {
		if err := w.rotate(); err != nil {
			return err
		}
	}
	if err := w.openFile(p.first); err != nil {
		return err
	}
	if _, err := w.file.WriteAt(p.data, w.active.size); err != nil {
		w.abandonFile()
		return store.Explain("write", w.active.path, err)
	}
	w.settle(p)
	if p.lost > 0 {
		w.log.Error("history lost records, the disk did not keep up", "records", p.lost)
		signal(w.wanted)
	}
	return nil
}

// due reports whether n more bytes want a new segment.
func (w *writer) due(s *segment, n int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s.last < s.first { // still empty
		return false
	}
	return time.Since(s.begun) > w.cfg.MaxAge/8 || s.size+int64(n) > w.cfg.SegmentBytes
}

// settle notes that p is in the newest segment.
func (w *writer) settle(p piece) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.active
	s.size += int64(len(p.data))
	s.last = p.last
	s.touched = time.Now()
	s.times.add(p.times.min)
	s.times.add(p.times.max)
	if p.chunk != nil {
		p.chunk.written += len(p.data)
	}
	w.onDisk = p.last
	w.stats.Lost += p.lost
	w.stats.Written += p.last - p.first + 1 - p.lost
	w.mem.trim(w.settled())
}

// openFile sees to it that there is an open file for the newest segment.
func (w *writer) openFile(first uint64) error {
	if w.active != nil && w.file == nil {
		f, err := w.files.open(w.active.path)
		switch {
		case err == nil:
			w.file = f
		case errors.Is(err, fs.ErrNotExist):
			w.forget(w.active)
			w.active = nil
		default:
			return store.Explain("open", w.active.path, err)
		}
	}
	if w.active != nil {
		return nil
	}
	return w.begin(first)
}

// begin makes a new segment. A file of that name can only be the remains of an
// earlier attempt, as none of its records would be on disk.
func (w *writer) begin(first uint64) error {
	now := time.Now()
	s := &segment{path: segmentPath(w.cfg.Dir, first), first: first, last: first - 1, begun: now, touched: now}
	header := header(now)
	f, err := w.files.create(s.path)
	if err != nil {
		return store.Explain("create", s.path, err)
	}
	if _, err := f.WriteAt(header, 0); err != nil {
		return errors.Join(store.Explain("write", s.path, err), f.Close(), os.Remove(s.path))
	}
	s.size = int64(len(header))
	w.file, w.active = f, s
	w.mu.Lock()
	w.segments = append(w.segments, s)
	w.mu.Unlock()
	w.prune(now)
	return nil
}

// rotate ends the newest segment. What it holds is synced, so that a machine that
// loses power loses the newest segment's records at most.
func (w *writer) rotate() error {
	if err := w.closeFile(); err != nil {
		return err
	}
	w.active = nil
	return nil
}

func (w *writer) closeFile() error {
	if w.file == nil {
		return nil
	}
	f := w.file
	w.file = nil
	return store.Explain("sync", w.active.path, errors.Join(f.Sync(), f.Close(), store.SyncDir(w.cfg.Dir)))
}

// abandonFile closes a file that refused a write: a fresh handle may fare better.
// The error of that says no more than the one before.
func (w *writer) abandonFile() {
	_ = w.file.Close()
	w.file = nil
}

func (l *Ledger) newestSegment() *segment {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.segments) == 0 {
		return nil
	}
	return l.segments[len(l.segments)-1]
}
