package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"
)

// Report is what [Check] found.
type Report struct {
	Exists bool // false: a server would create the directory
	InUse  bool // a running server holds the lock; its files must not be read
	Format int  // 0 when there is none yet
	// Migrates is true when a server would migrate the directory to the
	// current format, after copying it.
	Migrates bool
}

// Check tells whether [Open] could use the directory at path, without changing
// anything. A directory in use by a running server is no error.
func Check(path string) (Report, error) { return check(path, nil) }

func check(path string, steps migrations) (Report, error) {
	info, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return Report{}, checkCreatable(path)
	}
	if err != nil {
		return Report{}, Explain("open data directory", path, err)
	}
	if !info.IsDir() {
		return Report{}, fmt.Errorf("the data directory %s is a file: choose another path", path)
	}
	report := Report{Exists: true}
	if report.InUse, err = inUse(path); err != nil {
		return report, err
	}
	if err := Writable(path); err != nil {
		return report, err
	}
	have, err := readFormat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return report, refuseForeign(path)
	case err != nil:
		return report, err
	case have.needed() > steps.current():
		return report, newerError(path, have.needed(), steps.current())
	}
	report.Format = have.Format
	report.Migrates = have.Format < steps.current() || have.MigratingTo != 0
	return report, nil
}

// checkCreatable tells whether the absent directory at path could be created:
// this process must be able to write to its nearest ancestor.
func checkCreatable(path string) error {
	parent, err := filepath.Abs(path)
	if err != nil {
		return fmt.Errorf("data directory %s: %w", path, err)
	}
	for {
		parent = filepath.Dir(parent)
		_, err := os.Stat(parent)
		if errors.Is(err, os.ErrNotExist) {
			continue // ends at the root, which exists
		}
		if err == nil {
			err = access(parent)
		}
		return Explain("create data directory", path, err)
	}
}

// inUse tells whether a server holds the lock. It takes a shared lock for a
// moment, and none when there is no lock file yet.
func inUse(path string) (bool, error) {
	name := filepath.Join(path, lockName)
	if _, err := os.Stat(name); errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	lock := flock.New(name, flock.SetFlag(os.O_RDONLY))
	free, err := lock.TryRLock()
	return !free && err == nil, Explain("lock data directory", path, errors.Join(err, lock.Close()))
}

// Writable returns nil when this process may create files in dir, as far as
// that can be told without trying.
func Writable(dir string) error { return Explain("write to", dir, access(dir)) }
