package consensus

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/hashicorp/raft"

	"github.com/rollcall-registry/rollcall/internal/store"
)

// backupKind is the head of a backup. Version 1: the first frame is a
// [BackupInfo] in JSON, the others are the state in order.
var backupKind = store.Kind{Name: "backup", Version: 1}

// backupChunk is the usual size of a frame of state, in bytes.
const backupChunk = 64 << 10

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
	if err := writeBackup(w, info, write); err != nil {
		return BackupInfo{}, fmt.Errorf("write backup: %w", err)
	}
	return info, nil
}

func writeBackup(w io.Writer, info BackupInfo, write func(io.Writer) error) error {
	frames, err := store.NewWriter(w, backupKind)
	if err != nil {
		return err
	}
	head, err := json.Marshal(info)
	if err != nil {
		return err
	}
	if err := frames.WriteFrames(head); err != nil {
		return err
	}
	buf := bufio.NewWriterSize(frameWriter{frames}, backupChunk)
	if err := write(buf); err != nil {
		return err
	}
	if err := buf.Flush(); err != nil {
		return err
	}
	return frames.Finish()
}

// frameWriter makes one frame of each write.
type frameWriter struct{ frames *store.Writer }

func (f frameWriter) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		n := min(len(rest), store.MaxFrame)
		if err := f.frames.WriteFrames(rest[:n]); err != nil {
			return len(p) - len(rest), err
		}
		rest = rest[n:]
	}
	return len(p), nil
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
	info, size, err := readBackup(r, spool)
	if err != nil {
		return BackupInfo{}, fmt.Errorf("this is no sound backup: %w", err)
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
		return fmt.Errorf("the state in this backup is not understood: %w", err)
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

// readBackup verifies the backup in r and writes its state to w. It returns
// the number of bytes of state.
func readBackup(r io.Reader, w io.Writer) (info BackupInfo, size int64, err error) {
	frames, err := store.NewReader(r, backupKind)
	if err != nil {
		return info, 0, err
	}
	head, err := frames.Next()
	if errors.Is(err, io.EOF) {
		return info, 0, errors.New("it is empty")
	}
	if err != nil {
		return info, 0, err
	}
	if err := json.Unmarshal(head, &info); err != nil {
		return info, 0, fmt.Errorf("its description: %w", err)
	}
	for {
		chunk, err := frames.Next()
		if errors.Is(err, io.EOF) {
			return info, size, nil
		}
		if err != nil {
			return info, size, err
		}
		if _, err := w.Write(chunk); err != nil {
			return info, size, err
		}
		size += int64(len(chunk))
	}
}
