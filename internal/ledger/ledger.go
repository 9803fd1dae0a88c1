package ledger

import (
	"log/slog"
	"math"
	"sync"
	"time"

	"github.com/rollcall-registry/rollcall/internal/registry"
)

// crashLeap is added to the sequence numbers after a crash, so that none of those
// that were only in memory is used twice: someone may have seen them, and a
// snapshot may name one. It is more than a backlog of the largest size holds, as
// no line is shorter than 32 bytes.
const crashLeap = maxBacklog / 32

// querySlots is how many queries read segments at the same time; further ones
// wait. It bounds the memory and the share of the processor that queries take.
const querySlots = 2

// Ledger is the history. Its life is New, [Ledger.Open], [Ledger.Replay],
// [Ledger.Run] until the end. It implements registry.Sink.
type Ledger struct {
	cfg   Config
	log   *slog.Logger
	files fileSystem

	wake   chan struct{} // a record waits; holds one signal, more are not needed
	full   chan struct{} // FlushBytes wait; likewise
	wanted chan struct{} // a snapshot is wanted; likewise
	slots  chan struct{} // one for each query that reads

	// mu guards what follows. It is held for an encoding or a few pointers, never
	// during I/O. No other lock is taken while it is held.
	mu        sync.Mutex
	next      uint64 // sequence number of the next record
	onDisk    uint64 // last one that is in a segment, or missing for good
	floor     uint64 // recovery needs what is after it
	unflushed int    // bytes since the writer last looked
	mem       memory
	segments  []*segment // oldest first; contents guarded too
	stats     Stats      // the counters of it; see Stats for the rest
}

// Stats are figures for metrics.
type Stats struct {
	Appended      uint64 // records since the start
	Written       uint64 // of them, in segments
	Unwritten     uint64 // of them, waiting to be written
	Lost          uint64 // of them, never written
	LastSeq       uint64
	RecoveryFloor uint64
	MemoryBytes   int // history and backlog in memory
	Segments      int
	DiskBytes     int64
	WriteErrors   uint64 // attempts to write that failed
	Failing       bool   // the last attempt to write failed
	Damaged       int    // lines of the present segments known to be damaged
}

// New does no I/O. It returns what is wrong with cfg.
func New(cfg Config, log *slog.Logger) (*Ledger, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return &Ledger{
		cfg:    cfg,
		log:    log.With("component", "history"),
		files:  osFiles{},
		wake:   make(chan struct{}, 1),
		full:   make(chan struct{}, 1),
		wanted: make(chan struct{}, 1),
		slots:  make(chan struct{}, querySlots),
		mem:    memory{chunkBytes: cfg.chunkBytes(), keep: cfg.MemoryBytes, limit: cfg.BacklogBytes},
	}, nil
}

// Emit records e. It neither blocks nor does I/O, and keeps nothing of e. What
// did not change anything ([registry.InstanceRenewed]) is not recorded.
//
// [Ledger.Open] comes first. Records that are emitted after [Ledger.Run] ended
// stay in memory.
func (l *Ledger) Emit(e *registry.Event) {
	if e.Kind == registry.InstanceRenewed {
		return
	}
	l.mu.Lock()
	before := l.unflushed
	l.append(e)
	after := l.unflushed
	l.mu.Unlock()
	if before == 0 {
		signal(l.wake)
	}
	if after >= l.cfg.FlushBytes && before < l.cfg.FlushBytes {
		signal(l.full)
	}
}

// append encodes e into memory. mu is held.
func (l *Ledger) append(e *registry.Event) {
	l.unflushed += l.mem.append(l.next, e)
	l.next++
	l.stats.Appended++
	l.mem.trim(l.settled())
}

// settled returns the last sequence number that need not be kept in memory for
// the writer. mu is held.
func (l *Ledger) settled() uint64 {
	if l.cfg.Dir == "" {
		return math.MaxUint64
	}
	return l.onDisk
}

// note records something about the history itself.
func (l *Ledger) note(kind registry.EventKind, detail string) {
	l.Emit(&registry.Event{
		Kind:   kind,
		At:     registry.Instant{Wall: time.Now().UnixMilli()},
		Detail: detail,
	})
}

// LastSeq returns the sequence number of the newest record. A snapshot that reads
// it before it reads the first service contains the effect of every record up to
// it: an event is emitted under the lock under which its change is made.
func (l *Ledger) LastSeq() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.next - 1
}

// SetRecoveryFloor tells that a snapshot, safely on disk, contains the effect of
// every record up to seq. Segments with newer records are not deleted, whatever
// the bounds say. It never goes back.
func (l *Ledger) SetRecoveryFloor(seq uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.floor = max(l.floor, seq)
}

// SnapshotWanted gets a signal when the log alone no longer covers what happened
// since the last snapshot, because records were lost, or when it outgrew its bound
// because the last snapshot is old.
func (l *Ledger) SnapshotWanted() <-chan struct{} { return l.wanted }

// Stats returns the present figures.
func (l *Ledger) Stats() Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.stats
	s.LastSeq = l.next - 1
	s.RecoveryFloor = l.floor
	s.MemoryBytes = l.mem.bytes
	if l.cfg.Dir != "" {
		s.Unwritten = l.next - 1 - l.onDisk
	}
	s.Segments = len(l.segments)
	for _, seg := range l.segments {
		s.DiskBytes += seg.size
		s.Damaged += seg.damaged
	}
	return s
}

// signal leaves a signal unless one is waiting already.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
