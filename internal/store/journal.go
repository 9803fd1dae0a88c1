package store

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
)

// Journal is an append-only file of frames that is readable after a crash at
// any moment. A write reaches the operating system before Append returns, so
// it survives the death of the process; it survives a power cut once Sync has
// returned. It is not safe for concurrent use.
type Journal struct {
	path string
	f    *os.File
	w    *Writer
	size int64 // bytes of good frames; the file is never longer between calls
	err  error // set when the file could not be brought back to size
}

// OpenJournal opens the journal at path, or creates it, and calls replay for
// each frame in it, in order; the payload is valid during the call only.
// A torn tail, as a crash leaves it, is cut off with one line in the log.
// Damage before the tail is an error that names the place ([*DamageError]),
// never skipped over. The kind's version must be the file's own, since frames
// of two encodings cannot share a file. An error of replay is returned as it is.
func OpenJournal(path string, kind Kind, replay func(payload []byte) error, logger *slog.Logger) (*Journal, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, fileMode)
	if err != nil {
		return nil, Explain("open", path, err)
	}
	j := &Journal{path: path, f: f}
	if err := j.load(kind, replay, logger); err != nil {
		f.Close()
		return nil, err
	}
	return j, nil
}

func (j *Journal) load(kind Kind, replay func([]byte) error, logger *slog.Logger) error {
	info, err := j.f.Stat()
	if err != nil {
		return Explain("read", j.path, err)
	}
	r, err := NewReader(j.f, kind)
	if errors.Is(err, ErrUnfinished) {
		return j.create(kind, info.Size(), logger) // new, or cut inside its first bytes
	}
	if err != nil {
		return fmt.Errorf("%s: %w", j.path, err)
	}
	if r.Version() != kind.Version {
		return fmt.Errorf("%s: it has version %d of %q and cannot go on with %d", j.path, r.Version(), kind.Name, kind.Version)
	}
	if err := j.replay(r, replay); err != nil {
		return err
	}
	j.size = r.Offset()
	j.w = &Writer{w: j.f, crc: r.crc}
	return j.cut(info.Size()-j.size, logger)
}

// replay feeds every frame to fn. A journal has no end mark.
func (j *Journal) replay(r *Reader, fn func([]byte) error) error {
	for {
		payload, err := r.Next()
		switch {
		case errors.Is(err, ErrUnfinished):
			return nil
		case errors.Is(err, io.EOF):
			return fmt.Errorf("%s: it is a finished stream, not a journal", j.path)
		case err != nil:
			return fmt.Errorf("%s: %w", j.path, err)
		}
		if err := fn(payload); err != nil {
			return err
		}
	}
}

// create begins the journal anew; torn bytes of an unfinished header go.
func (j *Journal) create(kind Kind, torn int64, logger *slog.Logger) error {
	if err := j.cut(torn, logger); err != nil {
		return err
	}
	w, err := NewWriter(j.f, kind)
	if err != nil {
		return Explain("write", j.path, err)
	}
	j.w, j.size = w, int64(len(w.buf))
	if err := j.Sync(); err != nil {
		return err
	}
	return SyncDir(filepath.Dir(j.path))
}

// cut drops the torn bytes after the good ones and moves to the end.
func (j *Journal) cut(torn int64, logger *slog.Logger) error {
	if torn > 0 {
		logger.Warn("cut the torn tail of a journal", "path", j.path, "bytes", torn, "at", j.size)
	}
	return j.rewind()
}

// rewind brings the file back to its good bytes.
func (j *Journal) rewind() error {
	if err := j.f.Truncate(j.size); err != nil {
		return Explain("truncate", j.path, err)
	}
	_, err := j.f.Seek(j.size, io.SeekStart)
	return Explain("write", j.path, err)
}

// Append writes each payload as a frame, all with one system call. It does not
// keep the payloads. On an error none of them is in the journal, and the next
// Append may succeed again, as when a full disk has room once more.
func (j *Journal) Append(payloads ...[]byte) error {
	if j.err != nil {
		return j.err
	}
	crc := j.w.crc
	if err := j.w.WriteFrames(payloads...); err != nil {
		j.w.crc = crc
		if errors.Is(err, ErrFrameSize) {
			return err
		}
		// Part of the frames may be in the file; what came after them would be lost.
		j.err = j.rewind()
		return Explain("write", j.path, err)
	}
	for _, p := range payloads {
		j.size += headSize + int64(len(p))
	}
	return nil
}

// Sync makes all appended frames survive a power cut.
func (j *Journal) Sync() error { return Explain("sync", j.path, j.f.Sync()) }

// Size returns the length of the journal in bytes.
func (j *Journal) Size() int64 { return j.size }

// Close syncs and closes the file.
func (j *Journal) Close() error {
	return Explain("close", j.path, errors.Join(j.f.Sync(), j.f.Close()))
}
