package consensus

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
	"go.etcd.io/bbolt"

	"github.com/rollcall-registry/rollcall/internal/store"
)

// Check tells whether [Log.Run] could use the log in dir, whose files no
// server may have open: it reads all of it, verifies the checksums and changes
// nothing. An absent directory is fine.
func Check(dir string) error {
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	_, err := inspect(dir)
	return err
}

// findings are what [inspect] saw in a directory that can be used.
type findings struct {
	newest  snapshotName   // the newest sound snapshot; zero for none
	damaged []snapshotName // newer ones that are not sound; the log makes up for them
	log     span
	faults  []string // of the log file, none of which lost an entry for sure
}

// span is the range of entries in the log.
type span struct {
	exists      bool // the file is there
	first, last uint64
	count       uint64
	lastTerm    uint64
}

// inspect verifies the newest snapshot and every entry of the log. An error
// means that something acknowledged may be missing or cannot be trusted.
func inspect(dir string) (f findings, err error) {
	if f.newest, f.damaged, err = inspectSnapshots(dir); err != nil {
		return f, err
	}
	path := filepath.Join(dir, logName)
	switch info, err := os.Stat(path); {
	case errors.Is(err, os.ErrNotExist):
	case err != nil:
		return f, store.Explain("open", path, err)
	case info.Size() == 0: // a crash at the first start
		f.log.exists = true
	default:
		if f.log, f.faults, err = inspectLog(path, f.newest.index); err != nil {
			return f, err
		}
	}
	if err := f.complete(); err != nil {
		return f, damaged(dir, err)
	}
	return f, nil
}

// complete tells whether the newest snapshot and the log together hold
// everything. Holes after the snapshot are found by [inspectLog].
func (f findings) complete() error {
	switch {
	case f.newest.index == 0 && len(f.damaged) > 0:
		return fmt.Errorf("no snapshot can be read (%s)", f.damaged[0])
	case f.newest.index > 0 && !f.log.exists:
		return fmt.Errorf("%s is missing", logName)
	case f.log.count > 0 && f.log.first > f.newest.index+1:
		return fmt.Errorf("the log begins at entry %d and the newest sound snapshot ends at %d", f.log.first, f.newest.index)
	case len(f.damaged) > 0 && f.log.last < f.damaged[0].index:
		return fmt.Errorf("the snapshot %s cannot be read and the log ends at entry %d", f.damaged[0], f.log.last)
	}
	return nil
}

// settle reports what was found and takes damaged snapshots out of the way.
func (f findings) settle(cfg Config, logger *slog.Logger) error {
	for _, fault := range f.faults {
		logger.Warn("the log file shows damage; no entry is lost that was known to be stored", "path", filepath.Join(cfg.Dir, logName), "fault", fault)
	}
	for _, name := range f.damaged {
		aside := filepath.Join(cfg.Dir, "damaged-"+name.id)
		if err := os.Rename(filepath.Join(cfg.Dir, snapshotsName, name.id), aside); err != nil {
			return store.Explain("rename", aside, err)
		}
		logger.Warn("a snapshot is damaged; the one before it and the log make up for it", "moved_to", aside)
	}
	// A first start that was cut short has left a term but no member, which
	// the library would wait for in vain. A member of a cluster may have voted.
	if f.log.exists && f.log.count == 0 && f.newest.index == 0 && cfg.Transport == nil {
		path := filepath.Join(cfg.Dir, logName)
		return store.Explain("remove", path, os.Remove(path))
	}
	return nil
}

// inspectLog reads every entry of the log at path. Holes are allowed up to
// snapshot, the index of the newest sound one: restoring a backup leaves one.
func inspectLog(path string, snapshot uint64) (s span, faults []string, err error) {
	defer catchFaults()()
	defer recoverDamage(path, &err)
	faults, s, err = inspectFile(path)
	if err != nil || s.count == 0 {
		return s, faults, err
	}
	bolt, err := raftboltdb.New(raftboltdb.Options{Path: path, BoltOptions: boltOptions(true)})
	if err != nil {
		return s, nil, store.Explain("open", path, err)
	}
	defer bolt.Close()
	found := uint64(0)
	entries := &logStore{bolt: bolt, path: path}
	for index := s.first; index <= s.last; index++ {
		var entry raft.Log
		switch err := entries.GetLog(index, &entry); {
		case err == nil:
			found++
			s.lastTerm = entry.Term
		case !errors.Is(err, raft.ErrLogNotFound):
			return s, nil, damaged(path, err)
		case index > snapshot:
			return s, nil, damaged(path, fmt.Errorf("entry %d is missing", index))
		}
	}
	if found != s.count {
		return s, nil, damaged(path, fmt.Errorf("it lists %d entries and holds %d", s.count, found))
	}
	term, err := entries.GetUint64([]byte("CurrentTerm")) // the library's name for it
	if err != nil || term < s.lastTerm {
		return s, nil, damaged(path, fmt.Errorf("it is in term %d, before its last entry (%v)", term, err))
	}
	return s, faults, nil
}

// inspectFile walks every page of the bbolt file that is in use, in key order,
// so that opening it for writing, which finds the free pages on goroutines of
// its own, meets no surprise.
func inspectFile(path string) (faults []string, s span, err error) {
	db, err := bbolt.Open(path, 0, boltOptions(true))
	if err != nil {
		if errors.Is(err, os.ErrPermission) {
			return nil, s, store.Explain("open", path, err)
		}
		return nil, s, damaged(path, err)
	}
	defer db.Close()
	s.exists = true
	if faults, err = inspectHeaders(path, int64(db.Info().PageSize)); err != nil {
		return nil, s, err
	}
	err = db.View(func(tx *bbolt.Tx) error {
		return tx.ForEach(func(name []byte, b *bbolt.Bucket) error {
			return inspectBucket(string(name), b, &s)
		})
	})
	if err != nil {
		return nil, s, damaged(path, err)
	}
	return faults, s, nil
}

// inspectBucket checks the order of a bucket's keys and notes the entries.
func inspectBucket(name string, b *bbolt.Bucket, s *span) error {
	var last []byte
	return b.ForEach(func(key, _ []byte) error {
		if last != nil && string(key) <= string(last) {
			return fmt.Errorf("the keys of %q are out of order", name)
		}
		last = key
		if name != "logs" { // raft-boltdb's name
			return nil
		}
		if len(key) != 8 {
			return fmt.Errorf("an entry has a key of %d bytes", len(key))
		}
		if s.count == 0 {
			s.first = binary.BigEndian.Uint64(key)
		}
		s.last = binary.BigEndian.Uint64(key)
		s.count++
		return nil
	})
}

// inspectHeaders checks the two header pages of a bbolt file, of which one is
// enough. The older one lacks the last write: after a power cut that is a write
// that was never acknowledged, but after a fault of the disk it may be one that
// was, so it must be told.
func inspectHeaders(path string, pageSize int64) (faults []string, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, store.Explain("open", path, err)
	}
	defer f.Close()
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, store.Explain("read", path, err)
	}
	if size%pageSize != 0 {
		faults = append(faults, fmt.Sprintf("its unused tail is cut off at byte %d", size))
	}
	for page := range int64(2) {
		// bbolt's meta page: 16 bytes of page header, 56 of content, their FNV-1a.
		const header, content = 16, 56
		var b [content + 8]byte
		if _, err := f.ReadAt(b[:], page*pageSize+header); err != nil {
			return nil, store.Explain("read", path, err)
		}
		sum := fnv.New64a()
		sum.Write(b[:content])
		if sum.Sum64() != binary.NativeEndian.Uint64(b[content:]) {
			faults = append(faults, fmt.Sprintf("header page %d is damaged; the last write before the stop may be missing", page))
		}
	}
	return faults, nil
}
