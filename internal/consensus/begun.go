package consensus

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/rollcall-registry/rollcall/internal/store"
)

// oldMarkName is where earlier versions kept the mark: in the directory
// itself, with which it could get lost.
const oldMarkName = "begun"

// markOf returns the path of the file that tells of a completed start in dir.
// Without it, a log that was lost would look like one that has yet to begin. It
// lies beside dir, so that it outlives it.
func markOf(dir string) string { return filepath.Clean(dir) + ".begun" }

// readMark tells whether there is a mark for dir, and whether it is in its place.
func readMark(dir string) (begun, marked bool, err error) {
	if marked, err = exists(markOf(dir)); err != nil || marked {
		return marked, marked, err
	}
	begun, err = exists(filepath.Join(dir, oldMarkName))
	return begun, false, err
}

// mark makes the mark after the first start, with the member's ID for who looks.
// Where an older version has left one, a disk without room is no reason to stay
// away: the next start tries again.
func (f findings) mark(cfg Config, logger *slog.Logger) error {
	if f.marked {
		return nil
	}
	err := store.WriteFile(markOf(cfg.Dir), func(w io.Writer) error {
		_, err := fmt.Fprintln(w, cfg.ID)
		return err
	})
	if err != nil && f.begun {
		logger.Warn("the loss of the whole log would not be noticed until the next start", "err", err)
		return nil
	}
	return err
}

// exists tells whether there is a file or directory at path.
func exists(path string) (bool, error) {
	_, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil, store.Explain("open", path, err)
}
