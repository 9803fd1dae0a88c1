package store

import (
	"bufio"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// File modes: the directory holds what only the server's user may see.
const (
	dirMode  = 0o700
	fileMode = 0o600
)

// tempMark is in the name of every file that is being written and has not yet
// got its final name. [Open] removes what a crash left behind.
const tempMark = ".tmp-"

// TempPattern returns the [os.CreateTemp] pattern for a file that will later
// be named name, or thrown away. Left-over files with such a name are removed
// by the next [Open].
func TempPattern(name string) string { return name + tempMark + "*" }

// WriteFile replaces the file at path by what write writes, so that after a
// crash at any moment the file holds either the old content or the new.
// The content is synced before the rename and the directory after it.
// An error leaves the old file in place.
func WriteFile(path string, write func(io.Writer) error) (err error) {
	dir, name := filepath.Split(path)
	f, err := os.CreateTemp(dir, TempPattern(name)) // mode 0600
	if err != nil {
		return Explain("create", path, err)
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
			err = Explain("write", path, err)
		}
	}()
	buf := bufio.NewWriterSize(f, 64<<10)
	if err := write(buf); err != nil {
		return err
	}
	if err := errors.Join(buf.Flush(), f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	return SyncDir(dir)
}

// SyncDir makes the names of newly created, renamed or removed files in dir
// durable. It does nothing on Windows, which has no such call.
func SyncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	f, err := os.Open(filepath.Clean(dir))
	if err != nil {
		return Explain("open", dir, err)
	}
	defer f.Close()
	return Explain("sync", dir, f.Sync())
}

// removeTemps deletes the left-over temporary files below dir and returns how
// many there were.
func removeTemps(dir string) (int, error) {
	removed := 0
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if entry != nil && entry.Name() == lostAndFound {
			return fs.SkipDir
		}
		if err != nil {
			return err
		}
		if !entry.Type().IsRegular() || !strings.Contains(entry.Name(), tempMark) {
			return nil
		}
		removed++
		return os.Remove(path)
	})
	return removed, Explain("clean up", dir, err)
}

// copyTree copies the directories and regular files below src to dst, which
// it creates, and syncs them. Paths for which skip returns true are left out;
// they are relative to src.
func copyTree(src, dst string, skip func(rel string) bool) error {
	return filepath.WalkDir(src, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(src, path)
		if err != nil {
			return err
		}
		target := filepath.Join(dst, rel)
		switch {
		case skip(rel) && entry.IsDir():
			return fs.SkipDir
		case skip(rel) || !entry.IsDir() && !entry.Type().IsRegular():
			return nil
		case entry.IsDir():
			return os.MkdirAll(target, dirMode)
		}
		return copyFile(path, target)
	})
}

func copyFile(src, dst string) error {
	in, err := os.Open(src)
	if err != nil {
		return err
	}
	defer in.Close()
	return WriteFile(dst, func(w io.Writer) error {
		_, err := io.Copy(w, in)
		return err
	})
}
