package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

var (
	// ErrLocked is returned when another process uses the data directory.
	ErrLocked = errors.New("the data directory is in use by another server")
	// ErrNewer is returned when a newer version wrote the data directory.
	ErrNewer = errors.New("the data directory was written by a newer version of Rollcall")
)

const (
	formatName = "format.json"
	// copyPrefix begins the name of the copy made before a migration. It is
	// inside the directory, not beside it: a data directory is often a mounted
	// volume, whose parent is another file system, small or read-only.
	copyPrefix = "before-format-"
	// lostAndFound is made by mkfs at the root of a volume, for root alone.
	lostAndFound = "lost+found"
)

// format is the content of format.json.
type format struct {
	Format int    `json:"format"` // 1 or more
	ID     string `json:"id"`     // see [Dir.ID]
	// MigratingTo is set while a migration runs. A version that does not know
	// that format must not touch what is half-way there.
	MigratingTo int `json:"migrating_to,omitempty"`
}

// needed is the format that a version must understand to open the directory.
func (f format) needed() int { return max(f.Format, f.MigratingTo) }

// readFormat reads the format file in dir. The error is [os.ErrNotExist] when
// there is none.
func readFormat(dir string) (format, error) {
	path := filepath.Join(dir, formatName)
	raw, err := os.ReadFile(path)
	if err != nil {
		return format{}, Explain("read", path, err)
	}
	// Only the number is sure to be understood in a file of a newer format.
	var f format
	if err := json.NewDecoder(bytes.NewReader(raw)).Decode(&f); err != nil {
		return format{}, fmt.Errorf("%s is damaged (%w): restore the data directory from a backup", path, err)
	}
	if f.Format < 1 || f.ID == "" {
		return format{}, fmt.Errorf("%s is damaged (format %d, id %q): restore the data directory from a backup", path, f.Format, f.ID)
	}
	return f, nil
}

// write replaces the format file in dir.
func (f format) write(dir string) error {
	return WriteFile(filepath.Join(dir, formatName), func(w io.Writer) error {
		return json.NewEncoder(w).Encode(f)
	})
}

func newerError(path string, have, current int) error {
	return fmt.Errorf("%w: %s has format %d and this version understands up to %d: start the newer version, or choose another data directory",
		ErrNewer, path, have, current)
}

// migrations lead from format 1 to the current one: element i takes a
// directory from format i+1 to i+2, in place. A step that was interrupted runs
// again from its beginning on what it left, so it must bear that.
type migrations []func(dir string) error

// current is the format that the migrations lead to.
func (m migrations) current() int { return len(m) + 1 }

// migrate copies the directory as it is, then takes it step by step to the
// current format. The format file follows each step, so that after a crash the
// work goes on where it was; the copy is made before the first step, and kept.
func (d *Dir) migrate(have format, steps migrations) error {
	saved := d.Path(fmt.Sprint(copyPrefix, steps.current()))
	if have.MigratingTo == 0 {
		if err := d.saveCopy(saved); err != nil {
			return fmt.Errorf("copy the data directory before migrating it: %w", err)
		}
	}
	for have.Format < steps.current() {
		have.MigratingTo = steps.current()
		if err := have.write(d.path); err != nil {
			return err
		}
		if err := steps[have.Format-1](d.path); err != nil {
			return fmt.Errorf("migrate %s from format %d to %d: %w (the data as it was is in %s)",
				d.path, have.Format, have.Format+1, err, saved)
		}
		have.Format++
	}
	have.MigratingTo = 0
	if err := have.write(d.path); err != nil {
		return err
	}
	d.log.Info("migrated the data directory", "path", d.path, "format", have.Format, "copy", saved)
	return nil
}

// saveCopy copies the directory to saved, in place of any copy that an earlier
// migration left there. The copy gets its name when it is complete.
func (d *Dir) saveCopy(saved string) error {
	partial := saved + ".partial"
	for _, old := range []string{partial, saved} {
		if err := os.RemoveAll(old); err != nil {
			return Explain("remove", old, err)
		}
	}
	if err := copyTree(d.path, partial, notCopied); err != nil {
		return errors.Join(Explain("copy", d.path, err), os.RemoveAll(partial))
	}
	if err := os.Rename(partial, saved); err != nil {
		return Explain("rename", partial, err)
	}
	return SyncDir(d.path)
}

// notCopied tells what the copy before a migration leaves out.
func notCopied(rel string) bool {
	return rel == lockName || rel == lostAndFound || strings.HasPrefix(rel, copyPrefix)
}
