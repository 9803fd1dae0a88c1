package consensus

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rollcall-registry/rollcall/internal/store"
)

// mountTmpfs mounts a file system of the given size for the test, which is
// skipped when this user may not.
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

// fillDisk takes what room is left with a file, whose path it returns.
func fillDisk(t *testing.T, mount string) string {
	t.Helper()
	path := filepath.Join(mount, "filler")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for err == nil {
		_, err = f.Write(make([]byte, 4096))
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	return path
}

// proposeUntilFull proposes until the disk refuses. It returns the commands
// that were acknowledged and the one that was not.
func proposeUntilFull(t *testing.T, r *running, prefix string) (acked []string, refused string) {
	t.Helper()
	for i := range 100_000 {
		cmd := fmt.Sprint(prefix, i, strings.Repeat(".", 1000))
		_, err := r.Propose(t.Context(), []byte(cmd))
		if err == nil {
			acked = append(acked, cmd)
			continue
		}
		var disk *store.DiskError
		if !errors.As(err, &disk) || !errors.Is(err, syscall.ENOSPC) ||
			!strings.Contains(err.Error(), logName) || !strings.Contains(err.Error(), "free some space") {
			t.Fatalf("Propose on a full disk = %v, want the path and the remedy", err)
		}
		return acked, cmd
	}
	t.Fatal("the disk does not get full")
	return nil, ""
}

func TestFullDisk(t *testing.T) {
	mount := mountTmpfs(t, "4m", 0)
	cfg := DefaultConfig(filepath.Join(mount, "raft"), "member-1")
	r := start(t, cfg)
	r.propose(t, "first")
	var acked, refused []string
	for round := range 2 {
		filler := fillDisk(t, mount)
		got, not := proposeUntilFull(t, r, fmt.Sprint("round ", round, ", "))
		acked, refused = append(acked, got...), append(refused, not)

		if r.Health() == nil || r.Stats().Healthy {
			t.Error("Health does not tell of the full disk")
		}
		if r.state.count("first") != 1 {
			t.Error("reads are not good")
		}
		var backup bytes.Buffer
		if _, err := r.Backup(&backup); err != nil {
			t.Errorf("Backup on a full disk: %v", err)
		}
		if _, err := r.Restore(&backup); !errors.Is(err, syscall.ENOSPC) || errors.Is(err, ErrBadBackup) {
			t.Errorf("Restore on a full disk = %v", err)
		}
		if err := r.Compact(); err == nil {
			t.Error("Compact on a full disk succeeds")
		}
		if round == 1 { // it must close on a full disk
			break
		}
		stays(t, r)
		if err := os.Remove(filler); err != nil {
			t.Fatal(err)
		}
		recovered(t, r)
	}
	if err := r.stop(); err != nil {
		t.Errorf("stop on a full disk: %v", err)
	}
	if err := os.Remove(filepath.Join(mount, "filler")); err != nil {
		t.Fatal(err)
	}
	r = start(t, cfg)
	for _, cmd := range acked {
		if r.state.count(cmd) != 1 {
			t.Fatalf("acknowledged %.20q is there %d times", cmd, r.state.count(cmd))
		}
	}
	for _, cmd := range refused {
		if r.state.count(cmd) != 0 {
			t.Errorf("refused %.20q is there", cmd)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(cfg.Dir, snapshotsName, "*"+unfinished)); len(left) > 0 {
		t.Errorf("unfinished snapshots are left: %v", left)
	}
	if err := r.stop(); err != nil {
		t.Error(err)
	}
}

// stays proposes in vain for as long as the library needs for an election,
// which must neither end the process nor hang.
func stays(t *testing.T, r *running) {
	t.Helper()
	for until := time.Now().Add(5 * heartbeat / 2); time.Now().Before(until); runtime.Gosched() {
		if _, err := r.Propose(t.Context(), make([]byte, 1000)); !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("Propose on a full disk = %v", err)
		}
	}
}

// recovered waits until proposals are taken again.
func recovered(t *testing.T, r *running) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for {
		_, err := r.Propose(t.Context(), []byte("again"))
		if err == nil && r.Health() == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("after making room: %v", err)
		}
	}
}

func TestReadOnlyDisk(t *testing.T) {
	mount := mountTmpfs(t, "4m", 0)
	cfg := DefaultConfig(filepath.Join(mount, "raft"), "member-1")
	r := start(t, cfg)
	r.propose(t, "a")
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("", mount, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{cfg.Dir, filepath.Join(mount, "other")} {
		cfg.Dir = dir
		_, err := tryStart(t, cfg, newCounts())
		if !errors.Is(err, syscall.EROFS) || !strings.Contains(err.Error(), dir) {
			t.Errorf("start in %s = %v, want that it is read-only", dir, err)
		}
	}
}

// TestStartOnAFullDisk starts with less room than the library needs to become
// leader: what is known is served, changes are refused, and it goes on by
// itself when there is room again.
func TestStartOnAFullDisk(t *testing.T) {
	mount := mountTmpfs(t, "4m", 0)
	cfg := DefaultConfig(filepath.Join(mount, "raft"), "member-1")
	r := start(t, cfg)
	r.propose(t, "before the snapshot")
	if err := r.Compact(); err != nil {
		t.Fatal(err)
	}
	proposeMany(t, r, 0, 300)
	filler := fillDisk(t, mount)
	acked, refused := proposeUntilFull(t, r, "")
	for leads := true; leads; leads = r.Stats().Leader { // each start takes some of the room left inside the log
		if err := r.stop(); err != nil {
			t.Fatal(err)
		}
		r = start(t, cfg)
	}
	holds := func() {
		t.Helper()
		if got, want := r.state.total(), uint64(1+300+len(acked)); got != want || r.state.count(refused) != 0 {
			t.Fatalf("the state holds %d commands, want %d, and the refused one %d times", got, want, r.state.count(refused))
		}
	}
	holds()
	stays(t, r)
	var backup bytes.Buffer
	if _, err := r.Backup(&backup); err != nil {
		t.Errorf("Backup on a full disk: %v", err)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	recovered(t, r)
	acked = append(acked, "again")
	holds() // nothing was applied twice
	if err := r.Compact(); err != nil {
		t.Errorf("Compact with room again: %v", err)
	}
	r = restart(t, r)
	holds()
}
