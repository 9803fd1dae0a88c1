package consensus

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
	"go.etcd.io/bbolt"

	"github.com/rollcall-registry/rollcall/internal/store"
)

// logName is the file of the log, a bbolt database.
const logName = "log.db"

// retryPersist is the pause between attempts to store a term or a vote.
const retryPersist = 250 * time.Millisecond

// logStore keeps the library's log and its own few values (term, vote) in one
// bbolt file. It adds to raft-boltdb a checksum on every entry (bbolt has them
// on its header pages only), errors that name the path and the remedy, and
// patience when the disk is full.
//
// The library writes from one goroutine and reads from several.
type logStore struct {
	bolt    *raftboltdb.BoltStore
	path    string
	disk    *diskHealth
	onWrite func(int, time.Duration)
	serving atomic.Bool // the library runs: it panics if a term cannot be stored

	recent atomic.Pointer[recentEntries] // what inspect has read, until the start is over

	stale uint64 // first index that a failed write may have left; 0 for none; the writer's own

	writes    atomic.Uint64 // successful StoreLogs
	writeTime atomic.Int64  // nanoseconds they took together
}

// boltOptions returns how the file is used. The list of free pages is not
// stored but found anew at each start, which makes writes cheaper: after a
// burst it would be long.
func boltOptions() *bbolt.Options {
	return &bbolt.Options{
		Timeout:        time.Second, // for the file's own lock; the directory is locked already
		NoFreelistSync: true,
		FreelistType:   bbolt.FreelistMapType,
	}
}

// openLogStore opens the log, which [inspect] has found sound, or makes one.
func openLogStore(cfg Config, disk *diskHealth) (*logStore, error) {
	path := filepath.Join(cfg.Dir, logName)
	bolt, err := raftboltdb.New(raftboltdb.Options{Path: path, BoltOptions: boltOptions()})
	if err != nil {
		return nil, store.Explain("open", path, err)
	}
	if err := store.SyncDir(cfg.Dir); err != nil {
		return nil, errors.Join(err, bolt.Close())
	}
	return &logStore{bolt: bolt, path: path, disk: disk, onWrite: cfg.OnWrite}, nil
}

func (s *logStore) close() error { return store.Explain("close", s.path, s.bolt.Close()) }

// recentEntries are the entries after the newest snapshot, in order and without
// a hole. The library reads each of them twice at a start, and inspect once
// before; decoding them takes most of the time.
type recentEntries struct {
	entries []raft.Log
	bytes   int
}

// maxRecent bounds the memory of recentEntries, in bytes of commands. What is
// above is read from the file again.
const maxRecent = 64 << 20

func (r *recentEntries) add(entry *raft.Log) {
	if r.bytes += len(entry.Data); r.bytes <= maxRecent {
		r.entries = append(r.entries, *entry)
	}
}

func (r *recentEntries) get(index uint64, entry *raft.Log) bool {
	if len(r.entries) == 0 || index < r.entries[0].Index || index-r.entries[0].Index >= uint64(len(r.entries)) {
		return false
	}
	*entry = r.entries[index-r.entries[0].Index]
	return true
}

// FirstIndex implements [raft.LogStore].
func (s *logStore) FirstIndex() (uint64, error) { return s.bolt.FirstIndex() }

// LastIndex implements [raft.LogStore].
func (s *logStore) LastIndex() (uint64, error) { return s.bolt.LastIndex() }

// GetLog implements [raft.LogStore].
func (s *logStore) GetLog(index uint64, entry *raft.Log) error {
	if recent := s.recent.Load(); recent != nil && recent.get(index, entry) {
		return nil
	}
	if err := s.bolt.GetLog(index, entry); err != nil {
		return err // raft.ErrLogNotFound is compared with ==
	}
	return unseal(index, entry)
}

// StoreLog implements [raft.LogStore].
func (s *logStore) StoreLog(entry *raft.Log) error { return s.StoreLogs([]*raft.Log{entry}) }

// StoreLogs implements [raft.LogStore]: it returns when the entries are on the
// disk, all of them or none.
func (s *logStore) StoreLogs(entries []*raft.Log) error {
	// On one processor the first of many callers has the library write at once,
	// and the others cannot run while it waits for the disk, so that each would
	// have a write of his own. Those that can run queue up now, for the next write.
	runtime.Gosched()
	start := time.Now()
	s.disk.begin()
	if err := s.store(entries); err != nil {
		err = store.Explain("write", s.path, err)
		s.disk.set(err)
		return err
	}
	s.disk.set(nil)
	took := time.Since(start)
	s.writes.Add(1)
	s.writeTime.Add(int64(took))
	if s.onWrite != nil {
		s.onWrite(len(entries), took)
	}
	return nil
}

func (s *logStore) store(entries []*raft.Log) error {
	// A write whose last sync failed may be in the file although it was
	// refused. Its entries must not follow ours after a restart.
	if s.stale != 0 {
		if err := s.bolt.DeleteRange(s.stale, math.MaxUint64); err != nil {
			return err
		}
		s.stale = 0
	}
	sealed := make([]raft.Log, len(entries))
	refs := make([]*raft.Log, len(entries))
	for i, entry := range entries {
		sealed[i] = *entry
		sealed[i].Extensions = seal(entry)
		refs[i] = &sealed[i]
	}
	err := s.bolt.StoreLogs(refs)
	if err != nil {
		s.stale = entries[0].Index
	}
	return err
}

// DeleteRange implements [raft.LogStore].
func (s *logStore) DeleteRange(first, last uint64) error {
	return store.Explain("compact", s.path, s.bolt.DeleteRange(first, last))
}

// Set implements [raft.StableStore].
func (s *logStore) Set(key, value []byte) error {
	return s.persist(func() error { return s.bolt.Set(key, value) })
}

// Get implements [raft.StableStore].
func (s *logStore) Get(key []byte) ([]byte, error) { return s.bolt.Get(key) }

// SetUint64 implements [raft.StableStore].
func (s *logStore) SetUint64(key []byte, value uint64) error {
	return s.persist(func() error { return s.bolt.SetUint64(key, value) })
}

// GetUint64 implements [raft.StableStore].
func (s *logStore) GetUint64(key []byte) (uint64, error) { return s.bolt.GetUint64(key) }

// persist stores a term or a vote. While the library runs it waits for the
// disk to take the value rather than fail, because the library panics without
// a stored term, and a full disk must not end a server that can still answer
// reads. Nothing is lost by waiting: a member that cannot store its vote has
// none. When the log closes, the wait ends without the value; the library has
// been told to stop by then and no longer acts on it.
func (s *logStore) persist(write func() error) error {
	for {
		s.disk.begin()
		err := store.Explain("write", s.path, write())
		if err == nil {
			// A few bytes have found room; whether entries do is not known.
			s.disk.end()
			return nil
		}
		s.disk.set(err)
		if !s.serving.Load() {
			return err
		}
		if !s.disk.wait(retryPersist) {
			return nil // nobody acts on it, see above
		}
	}
}

// size returns the length of the file in bytes.
func (s *logStore) size() int64 {
	info, err := os.Stat(s.path)
	if err != nil {
		return 0
	}
	return info.Size()
}

// seal returns the checksum of an entry, to be kept in its Extensions.
func seal(entry *raft.Log) []byte {
	var head [17]byte
	binary.LittleEndian.PutUint64(head[:], entry.Index)
	binary.LittleEndian.PutUint64(head[8:], entry.Term)
	head[16] = byte(entry.Type)
	table := crc32.MakeTable(crc32.Castagnoli)
	crc := crc32.Update(crc32.Checksum(head[:], table), table, entry.Data)
	return binary.LittleEndian.AppendUint32(nil, crc)
}

// unseal checks an entry read as number index, and takes the checksum off.
func unseal(index uint64, entry *raft.Log) error {
	if entry.Index != index || string(entry.Extensions) != string(seal(entry)) {
		return fmt.Errorf("the checksum of entry %d is wrong", index)
	}
	entry.Extensions = nil
	return nil
}
