package consensus

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/hashicorp/raft"

	"github.com/rollcall-registry/rollcall/internal/store"
)

// backupKind is what a backup is called in its header. In version 1 the head is
// a [BackupInfo] and the body is what [FSM].Snapshot wrote.
var backupKind = store.Kind{Name: "backup", Version: 1}

// ErrBadBackup is wrapped by the errors of [Log.Restore] that are the fault of the
// backup: nothing has happened then.
var ErrBadBackup = errors.New("this is no sound backup")

// BackupInfo describes a backup.
type BackupInfo struct {
	Index uint64    `json:"index"` // the last entry it holds
	Term  uint64    `json:"term"`
	ID    string    `json:"id"`   // the member that made it
	Time  time.Time `json:"time"` // when it was made
}

// Backup writes the state as it is now to w: checksummed, with an end mark, so
// that a cut or changed copy is known as such. It needs no disk space and no
// leader, and proposals go on meanwhile; what was captured stays in memory
// until w has taken it.
func (l *Log) Backup(w io.Writer) (BackupInfo, error) {
	_, leave, err := l.enter()
	if err != nil {
		return BackupInfo{}, err
	}
	defer leave()
	write, info, err := l.fsm.capture()
	if err != nil {
		return BackupInfo{}, fmt.Errorf("capture the state: %w", err)
	}
	info.ID, info.Time = l.cfg.ID, time.Now().UTC()
	if err := store.WriteStream(w, backupKind, info, write); err != nil {
		return BackupInfo{}, fmt.Errorf("write backup: %w", err)
	}
	return info, nil
}

// Restore puts the state of a backup in the place of the present one, durably.
// It reads and verifies all of r first, on the disk, and lets the state machine
// try it; a stream that is cut, changed, foreign or not understood is refused
// and nothing has happened. Proposals under way fail. It blocks until done.
func (l *Log) Restore(r io.Reader) (BackupInfo, error) {
	n, leave, err := l.enter()
	if err != nil {
		return BackupInfo{}, err
	}
	defer leave()
	spool, err := os.CreateTemp(l.cfg.Dir, store.TempPattern("restore"))
	if err != nil {
		return BackupInfo{}, store.Explain("create a file in", l.cfg.Dir, err)
	}
	defer os.Remove(spool.Name())
	defer spool.Close()
	info, size, err := readBackup(r, diskWriter{spool})
	if err != nil {
		return BackupInfo{}, err
	}
	if err := l.replace(n, spool, info, size); err != nil {
		return BackupInfo{}, err
	}
	l.log.Info("restored a backup", "index", info.Index, "made_by", info.ID, "made_at", info.Time)
	return info, nil
}

// replace takes over the verified state in spool, of size bytes.
func (l *Log) replace(n *node, spool *os.File, info BackupInfo, size int64) error {
	if _, err := spool.Seek(0, io.SeekStart); err != nil {
		return store.Explain("read", spool.Name(), err)
	}
	if err := l.fsm.try(bufio.NewReader(spool)); err != nil {
		return fmt.Errorf("%w: the state in it is not understood: %w", ErrBadBackup, err)
	}
	if _, err := spool.Seek(0, io.SeekStart); err != nil {
		return store.Explain("read", spool.Name(), err)
	}
	// The index goes on from the greater of the backup's and ours.
	meta := &raft.SnapshotMeta{Version: raft.SnapshotVersionMax, Index: info.Index, Size: size}
	if err := n.raft.Restore(meta, spool, 0); err != nil {
		return fmt.Errorf("restore backup: %w", l.explain(err))
	}
	return nil
}

// readBackup verifies the backup in r and writes its state to w. It returns the
// number of bytes of state. An error of w is a [*store.DiskError].
func readBackup(r io.Reader, w io.Writer) (info BackupInfo, size int64, err error) {
	body, err := store.ReadStream(r, backupKind, &info)
	if err != nil {
		return info, 0, fmt.Errorf("%w: %w", ErrBadBackup, err)
	}
	size, err = io.Copy(w, body)
	if disk, ok := errors.AsType[*store.DiskError](err); ok {
		return info, size, disk
	}
	if err != nil {
		return info, size, fmt.Errorf("%w: %w", ErrBadBackup, err)
	}
	return info, size, nil
}

// diskWriter tells the errors of a file from those of what is copied to it.
type diskWriter struct{ f *os.File }

func (w diskWriter) Write(p []byte) (int, error) {
	n, err := w.f.Write(p)
	return n, store.Explain("write", w.f.Name(), err)
}
