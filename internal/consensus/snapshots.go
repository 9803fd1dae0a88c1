package consensus

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/rollcall-registry/rollcall/internal/store"
)

// The names that the library gives; a test holds us to them.
const (
	snapshotsName = "snapshots" // the directory of snapshots below the log's own
	unfinished    = ".tmp"      // the suffix of one being written
)

// snapshotMargin is the room beyond its own size that a snapshot must leave on
// the disk, in bytes.
const snapshotMargin = 1 << 20

// snapshotStore is the library's file store, which syncs and checksums, minus
// its habit of leaving unfinished snapshots on a disk that is full.
type snapshotStore struct {
	*raft.FileSnapshotStore
	dir    string // where the snapshots are
	last   atomic.Pointer[snapshotInfo]
	active atomic.Int32 // snapshots being written
}

// snapshotInfo describes the newest snapshot.
type snapshotInfo struct {
	index, term uint64
	time        time.Time
	size        int64 // bytes
}

// openSnapshots opens the snapshots below dir and removes unfinished ones.
func openSnapshots(dir string, logger hclog.Logger) (*snapshotStore, error) {
	s := &snapshotStore{dir: filepath.Join(dir, snapshotsName)}
	if err := store.MakeDir(s.dir); err != nil {
		return nil, err
	}
	if err := s.sweep(); err != nil {
		return nil, err
	}
	var err error
	s.FileSnapshotStore, err = raft.NewFileSnapshotStoreWithLogger(dir, keptSnapshots, logger)
	if err != nil {
		return nil, store.Explain("open", s.dir, err)
	}
	list, err := s.List()
	if err != nil || len(list) == 0 {
		return s, err
	}
	info := &snapshotInfo{index: list[0].Index, term: list[0].Term, size: list[0].Size}
	if stat, err := os.Stat(filepath.Join(s.dir, list[0].ID)); err == nil {
		info.time = stat.ModTime()
	}
	s.last.Store(info)
	return s, nil
}

// sweep removes unfinished snapshots.
func (s *snapshotStore) sweep() error {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return store.Explain("read", s.dir, err)
	}
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), unfinished) {
			continue
		}
		if err := os.RemoveAll(filepath.Join(s.dir, entry.Name())); err != nil {
			return store.Explain("remove", s.dir, err)
		}
	}
	return nil
}

// List implements [raft.SnapshotStore]. It returns the newest one alone: the
// library would go back to an older one when the state machine refuses the
// newest, but its log need not reach back that far. Damage has been looked for
// by [inspect] before.
func (s *snapshotStore) List() ([]*raft.SnapshotMeta, error) {
	list, err := s.FileSnapshotStore.List()
	return list[:min(len(list), 1)], err
}

// finished notes a snapshot, unless a newer one was finished meanwhile.
func (s *snapshotStore) finished(info *snapshotInfo) {
	for {
		last := s.last.Load()
		if last != nil && last.index >= info.index || s.last.CompareAndSwap(last, info) {
			return
		}
	}
}

// Create implements [raft.SnapshotStore].
func (s *snapshotStore) Create(version raft.SnapshotVersion, index, term uint64,
	servers raft.Configuration, serversIndex uint64, transport raft.Transport,
) (raft.SnapshotSink, error) {
	if err := s.checkRoom(); err != nil {
		return nil, err
	}
	sink, err := s.FileSnapshotStore.Create(version, index, term, servers, serversIndex, transport)
	if err != nil {
		if s.active.Load() == 0 {
			_ = s.sweep() // the cause is told already
		}
		return nil, store.Explain("create a snapshot in", s.dir, err)
	}
	s.active.Add(1)
	return &sinkGuard{SnapshotSink: sink, store: s, index: index, term: term}, nil
}

// checkRoom refuses a snapshot that would fill the disk: it is tried again and
// again, and must not take what room the log still has.
func (s *snapshotStore) checkRoom() error {
	last := s.last.Load()
	if last == nil {
		return nil
	}
	space, err := store.SpaceOf(s.dir)
	if err != nil {
		return err
	}
	if need := uint64(last.size + last.size/4 + snapshotMargin); space.Free < need {
		return fmt.Errorf("no snapshot, so the log grows: %s has %d bytes free and needs %d", s.dir, space.Free, need)
	}
	return nil
}

// sinkGuard is one snapshot being written.
type sinkGuard struct {
	raft.SnapshotSink
	store       *snapshotStore
	index, term uint64
	size        int64
	done        bool
}

// Write implements [io.Writer].
func (g *sinkGuard) Write(p []byte) (int, error) {
	n, err := g.SnapshotSink.Write(p)
	g.size += int64(n)
	return n, err
}

// Close implements [raft.SnapshotSink]: the snapshot is complete and durable.
func (g *sinkGuard) Close() error {
	err := g.SnapshotSink.Close()
	if err == nil {
		err = store.SyncDir(filepath.Join(g.store.dir, g.ID()))
	}
	g.end()
	if err != nil {
		return store.Explain("write a snapshot in", g.store.dir, err)
	}
	g.store.finished(&snapshotInfo{index: g.index, term: g.term, time: time.Now(), size: g.size})
	return nil
}

// Cancel implements [raft.SnapshotSink].
func (g *sinkGuard) Cancel() error {
	err := g.SnapshotSink.Cancel()
	g.end()
	return err
}

// end removes what is left of an unfinished snapshot.
func (g *sinkGuard) end() {
	if g.done {
		return
	}
	g.done = true
	g.store.active.Add(-1)
	_ = os.RemoveAll(filepath.Join(g.store.dir, g.ID()+unfinished)) // the next start tries again
}
