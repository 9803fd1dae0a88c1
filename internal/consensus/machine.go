package consensus

import (
	"errors"
	"io"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/raft"
)

// machine puts an [FSM] behind the library's interface.
type machine struct {
	applied atomic.Uint64  // index of the last entry that the FSM holds
	snaps   *snapshotStore // where Restore's snapshots come from; set before the library runs

	mu         sync.Mutex // one caller of fsm at a time: the library's goroutine, or a backup
	fsm        FSM
	term       uint64 // of the last entry that the FSM holds
	replayed   uint64 // index up to which replay has run ahead of the library; 0 once that has caught up
	restoreErr error  // the last failed Restore; the library keeps it to itself
}

// errBehind refuses a snapshot that would hold more than its index says.
var errBehind = errors.New("the library has yet to apply what the state holds already")

// replay applies a command before the library does, which will be told of it
// once more.
func (m *machine) replay(entry *raft.Log) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.apply(entry)
	m.replayed = entry.Index
}

// Apply implements [raft.FSM].
func (m *machine) Apply(entry *raft.Log) any {
	m.mu.Lock()
	defer m.mu.Unlock()
	if entry.Index > m.replayed {
		return m.apply(entry)
	}
	if entry.Index == m.replayed {
		m.replayed = 0
	}
	return nil // nobody waits: it was proposed before the start
}

// apply hands one command to the FSM. The caller holds mu.
func (m *machine) apply(entry *raft.Log) any {
	answer := m.fsm.Apply(entry.Data, entry.Index)
	m.term = entry.Term
	m.applied.Store(entry.Index)
	return answer
}

// Snapshot implements [raft.FSM].
func (m *machine) Snapshot() (raft.FSMSnapshot, error) {
	if m.ahead() {
		return nil, errBehind
	}
	write, _, err := m.capture()
	if err != nil {
		return nil, err
	}
	return captured(write), nil
}

// ahead tells whether replay is ahead of the library. Only the library's
// goroutine, which asks, brings that to an end.
func (m *machine) ahead() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.replayed != 0
}

// capture takes the state and says up to where it goes.
func (m *machine) capture() (write func(io.Writer) error, at BackupInfo, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	write, err = m.fsm.Snapshot()
	return write, BackupInfo{Index: m.applied.Load(), Term: m.term}, err
}

// Restore implements [raft.FSM].
func (m *machine) Restore(r io.ReadCloser) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	install, err := m.fsm.Restore(r)
	m.restoreErr = err
	if err != nil {
		return err
	}
	install()
	m.replayed = 0
	// The library restores the newest snapshot only, and does not say its index.
	if info := m.snaps.last.Load(); info != nil && info.index > m.applied.Load() {
		m.applied.Store(info.index)
		m.term = info.term
	}
	return nil
}

// try reads a snapshot as Restore would, and leaves the state alone.
func (m *machine) try(r io.Reader) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, err := m.fsm.Restore(r)
	return err
}

// captured is a state on its way to the disk.
type captured func(io.Writer) error

// Persist implements [raft.FSMSnapshot]. The library closes or cancels sink.
func (c captured) Persist(sink raft.SnapshotSink) error { return c(sink) }

// Release implements [raft.FSMSnapshot].
func (captured) Release() {}
