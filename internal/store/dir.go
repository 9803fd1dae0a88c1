package store

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/gofrs/flock"
)

// lockName is the file whose lock says that a server uses the directory. Its
// content means nothing; the kernel drops the lock when the process ends.
const lockName = "lock"

// Dir is an open, locked data directory. It is safe for concurrent use.
type Dir struct {
	path string
	id   string
	log  *slog.Logger
	lock *flock.Flock
}

// Open takes the data directory at path for this process alone: it creates it
// when absent (mode 0700), locks it, checks its format, migrates an older one
// after copying it, and removes what a crash left half-written.
//
// Errors are one sentence for an operator. [ErrLocked] and [ErrNewer] can be
// told apart with [errors.Is]. The caller must call [Dir.Close].
func Open(path string, logger *slog.Logger) (*Dir, error) {
	return open(path, logger, nil) // format 1 is the first: no steps lead to it
}

// open is [Open] with the migrations that lead to the current format.
func open(path string, logger *slog.Logger, steps migrations) (_ *Dir, err error) {
	path, err = filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("data directory %s: %w", path, err)
	}
	if err := os.MkdirAll(path, dirMode); err != nil {
		return nil, Explain("create data directory", path, err)
	}
	d := &Dir{path: path, log: logger.With("component", "store")}
	if err := d.acquire(); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.Close())
		}
	}()
	removed, err := removeTemps(path)
	if err != nil {
		return nil, err
	}
	if removed > 0 {
		d.log.Info("removed left-over temporary files", "count", removed, "path", path)
	}
	if err := d.loadFormat(steps); err != nil {
		return nil, err
	}
	return d, nil
}

// acquire takes the lock without waiting.
func (d *Dir) acquire() error {
	d.lock = flock.New(filepath.Join(d.path, lockName), flock.SetPermissions(fileMode))
	locked, err := d.lock.TryLock()
	if err != nil {
		return Explain("lock data directory", d.path, err)
	}
	if !locked {
		return fmt.Errorf("%w: %s: stop the other server, or choose another data directory", ErrLocked, d.path)
	}
	return nil
}

// loadFormat reads the format file, or writes it in a new directory, and
// brings an older directory up to date.
func (d *Dir) loadFormat(steps migrations) error {
	current := steps.current()
	have, err := readFormat(d.path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		if err := refuseForeign(d.path); err != nil {
			return err
		}
		have = format{Format: current, ID: newID()}
		if err := have.write(d.path); err != nil {
			return err
		}
	case err != nil:
		return err
	case have.needed() > current:
		return newerError(d.path, have.needed(), current)
	case have.Format < current || have.MigratingTo != 0:
		if err := d.migrate(have, steps); err != nil {
			return err
		}
	}
	d.id = have.ID
	return nil
}

// newID returns the identity of a new directory: 128 random bits in hex.
func newID() string {
	var b [16]byte
	rand.Read(b[:]) // never fails, see crypto/rand
	return hex.EncodeToString(b[:])
}

// refuseForeign returns an error when the directory holds files although it
// has no format file: it belongs to something else, or has lost its head.
func refuseForeign(path string) error {
	entries, err := os.ReadDir(path)
	if err != nil {
		return Explain("read data directory", path, err)
	}
	for _, entry := range entries {
		name := entry.Name()
		// A fresh volume may hold lost+found and dot files.
		if name == lockName || name == lostAndFound || strings.HasPrefix(name, ".") {
			continue
		}
		return fmt.Errorf("%s holds %q but no %s, so it is no data directory of Rollcall: choose an empty one, or restore the missing file",
			path, name, formatName)
	}
	return nil
}

// ID identifies this directory, and with it the server whose data it holds:
// 32 hexadecimal digits, chosen at random when the directory was made.
func (d *Dir) ID() string { return d.id }

// Path returns the path of elem below the directory; without arguments, the
// directory itself. It is absolute.
func (d *Dir) Path(elem ...string) string {
	return filepath.Join(append([]string{d.path}, elem...)...)
}

// Sub returns the path of the sub-directory name, which it creates when absent.
func (d *Dir) Sub(name string) (string, error) {
	return d.Path(name), MakeDir(d.Path(name))
}

// MakeDir creates the directory path (mode 0700) when it is absent, and makes
// its name durable. Its parent must exist.
func MakeDir(path string) error {
	err := os.Mkdir(path, dirMode)
	if errors.Is(err, os.ErrExist) {
		return nil
	}
	if err != nil {
		return Explain("create directory", path, err)
	}
	return SyncDir(filepath.Dir(path))
}

// Close gives the directory free for another server. Files below it must be
// closed before. A second call does nothing.
func (d *Dir) Close() error {
	return Explain("unlock data directory", d.path, d.lock.Close())
}
