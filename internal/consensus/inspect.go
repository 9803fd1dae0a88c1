package consensus

import (
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/hashicorp/go-msgpack/v2/codec"
	"github.com/hashicorp/raft"

	"github.com/rollcall-registry/rollcall/internal/store"
)

// Check tells whether [Log.Run] could use the log in dir, whose files no
// server may have open: it reads all of it, verifies the checksums and changes
// nothing. An absent directory is fine if there never was one.
func Check(dir string) error {
	_, err := inspect(dir)
	return err
}

// findings are what [inspect] saw in a directory that can be used.
type findings struct {
	begun   bool           // a start has been completed here: there must be a log
	marked  bool           // begun, and the mark of it is where it belongs
	newest  snapshotName   // the newest sound snapshot; zero for none
	damaged []snapshotName // newer ones that are not sound; the log makes up for them
	log     logFindings
}

// logFindings are what [inspectLog] saw in the log file.
type logFindings struct {
	exists      bool
	cut         bool   // the file ends inside a page, which is then not in use
	first, last uint64 // 0 when it has no entries
	lastTerm    uint64 // of the last entry
	term        uint64 // that the member is in; 0 when it never was in one
	recent      recentEntries
}

// inspect verifies the newest snapshot and every entry of the log. An error
// means that something acknowledged may be missing or cannot be trusted.
func inspect(dir string) (f findings, err error) {
	if f.begun, f.marked, err = readMark(dir); err != nil {
		return f, err
	}
	switch there, err := exists(dir); {
	case err != nil:
		return f, err
	case !there && f.begun:
		return f, lost(dir)
	case !there:
		return f, nil
	}
	if err := store.Writable(dir); err != nil {
		return f, err
	}
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
		if f.log, err = inspectLog(path, f.newest.index); err != nil {
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
	case f.newest.index > 0 && f.log.term == 0, f.begun && f.empty():
		return fmt.Errorf("%s is missing or empty", logName)
	case f.log.first > f.newest.index+1:
		return fmt.Errorf("the log begins at entry %d and the newest sound snapshot ends at %d", f.log.first, f.newest.index)
	case len(f.damaged) > 0 && f.log.last < f.damaged[0].index:
		return fmt.Errorf("the snapshot %s cannot be read and the log ends at entry %d", f.damaged[0], f.log.last)
	}
	return nil
}

// empty tells whether nothing was ever stored, or nothing of it is left.
func (f findings) empty() bool { return f.newest.index == 0 && f.log.last == 0 }

// settle reports what was found and takes damaged snapshots out of the way.
func (f findings) settle(cfg Config, logger *slog.Logger) error {
	if f.log.cut {
		logger.Warn("the end of the log file is cut off; it was not in use and nothing is lost", "path", filepath.Join(cfg.Dir, logName))
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
	if f.log.exists && f.empty() && cfg.Transport == nil {
		path := filepath.Join(cfg.Dir, logName)
		return store.Explain("remove", path, os.Remove(path))
	}
	return nil
}

// The names that raft-boltdb and the library give; a test holds us to them.
const (
	entriesBucket = "logs"
	valuesBucket  = "conf"
	termKey       = "CurrentTerm"
)

// inspectLog reads every entry of the log at path. Holes are allowed up to
// snapshot, the index of the newest sound one: restoring a backup leaves one.
func inspectLog(path string, snapshot uint64) (logFindings, error) {
	f := logFindings{exists: true}
	file, err := os.Open(path)
	if err != nil {
		return f, store.Explain("open", path, err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return f, store.Explain("read", path, err)
	}
	bolt, err := openBoltFile(file, info.Size())
	if err != nil {
		return f, damaged(path, err)
	}
	f.cut = bolt.cut()
	err = bolt.walk(map[string]func(key, value []byte) error{
		entriesBucket: f.entries(snapshot),
		valuesBucket: func(key, value []byte) error {
			if string(key) == termKey && len(value) == 8 {
				f.term = binary.BigEndian.Uint64(value)
			}
			return nil
		},
	})
	if err == nil && f.term < f.lastTerm {
		err = fmt.Errorf("it is in term %d and its last entry is of term %d", f.term, f.lastTerm)
	}
	if err != nil {
		return f, damaged(path, err)
	}
	return f, nil
}

// entries returns the function that takes in the entries, in order.
func (f *logFindings) entries(snapshot uint64) func(key, value []byte) error {
	decoder := codec.NewDecoderBytes(nil, &codec.MsgpackHandle{})
	return func(key, value []byte) error {
		if len(key) != 8 {
			return fmt.Errorf("an entry has a key of %d bytes", len(key))
		}
		index := binary.BigEndian.Uint64(key)
		decoder.ResetBytes(value)
		var entry raft.Log
		if err := decoder.Decode(&entry); err != nil {
			return fmt.Errorf("entry %d: %w", index, err)
		}
		if err := unseal(index, &entry); err != nil {
			return err
		}
		return f.add(&entry, snapshot)
	}
}

// add takes in the next entry.
func (f *logFindings) add(entry *raft.Log, snapshot uint64) error {
	index := entry.Index
	if f.last != 0 && index != f.last+1 && index > snapshot+1 {
		return fmt.Errorf("entry %d is missing", max(f.last, snapshot)+1)
	}
	if f.first == 0 {
		f.first = index
	}
	f.last, f.lastTerm = index, entry.Term
	if index > snapshot {
		f.recent.add(entry)
	}
	return nil
}

// lost is the error for a directory that was removed.
func lost(dir string) error {
	return fmt.Errorf("%s is missing and with it all persistent data: put it back, or move %s away to start empty and restore a backup then",
		dir, filepath.Dir(dir))
}

// damaged is the error for content that cannot be trusted.
func damaged(path string, cause error) error {
	return fmt.Errorf("%s is damaged: %w: restore the data directory from a backup", path, cause)
}
