package store

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// mountTmpfs mounts a file system of size bytes for the test, which is skipped
// when this user may not.
func mountTmpfs(t *testing.T, size string, flags uintptr) string {
	t.Helper()
	path := t.TempDir()
	if err := syscall.Mount("tmpfs", path, "tmpfs", flags, "size="+size); err != nil {
		t.Skipf("cannot mount a file system here: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(path, 0); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	return path
}

func TestReadOnlyDirectoryIsNamed(t *testing.T) {
	mount := mountTmpfs(t, "1m", syscall.MS_RDONLY)
	for _, path := range []string{mount, filepath.Join(mount, "data")} {
		for name, open := range map[string]func() error{
			"Open":  func() error { _, err := Open(path, quiet()); return err },
			"Check": func() error { _, err := Check(path); return err },
		} {
			err := open()
			if !errors.Is(err, syscall.EROFS) || !strings.Contains(err.Error(), path) ||
				!strings.Contains(err.Error(), "choose another data directory") {
				t.Errorf("%s(%s) = %v, want the path and the remedy", name, path, err)
			}
		}
	}
}

func TestFullDiskKeepsTheOldFile(t *testing.T) {
	path := filepath.Join(mountTmpfs(t, "256k", 0), "mark")
	fill := func(n int) error {
		return WriteFile(path, func(w io.Writer) error {
			_, err := w.Write(bytes.Repeat([]byte("x"), n))
			return err
		})
	}
	if err := fill(100 << 10); err != nil {
		t.Fatal(err)
	}
	err := fill(200 << 10)
	if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "free some space") {
		t.Errorf("WriteFile on a full disk = %v, want the remedy", err)
	}
	if info, err := os.Stat(path); err != nil || info.Size() != 100<<10 {
		t.Errorf("the old file has %v, %v", info, err)
	}
	if err := fill(50 << 10); err != nil {
		t.Errorf("WriteFile after making room: %v", err)
	}
}
