package server_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/rollcall-registry/rollcall/server"
	"github.com/rollcall-registry/rollcall/servertest"
)

// TestCheckWarnsOfASmallDisk checks a directory on a disk with less room than
// the server's log would warn of, and on one with enough.
func TestCheckWarnsOfASmallDisk(t *testing.T) {
	t.Parallel()
	for size, warns := range map[string]bool{"8m": true, "1g": false} {
		mount := t.TempDir()
		if err := syscall.Mount("tmpfs", mount, "tmpfs", 0, "size="+size); err != nil {
			t.Skipf("cannot mount a file system here: %v", err)
		}
		t.Cleanup(func() {
			if err := syscall.Unmount(mount, 0); err != nil {
				t.Errorf("unmount: %v", err)
			}
		})
		cfg := local(t)
		cfg.DataDir = filepath.Join(mount, "data")
		servertest.New(t, servertest.WithDataDir(cfg.DataDir)).Stop(t)
		got, err := server.Check(cfg)
		if err != nil || !strings.Contains(got, cfg.DataDir+" can be used") || strings.Contains(got, "bytes are free") != warns {
			t.Errorf("Check on a disk of %s = %q, %v", size, got, err)
		}
		if err := os.RemoveAll(filepath.Join(cfg.DataDir, "raft")); err != nil {
			t.Fatal(err)
		}
		if got, err := server.Check(cfg); err == nil || !strings.Contains(err.Error(), "is missing") {
			t.Errorf("Check without the log = %q, %v", got, err)
		}
	}
}
