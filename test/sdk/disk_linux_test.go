package sdk

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	rollcall "github.com/rollcall-registry/rollcall/client"
	"github.com/rollcall-registry/rollcall/servertest"
)

// lines is what was logged.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lines) count(what string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), what)
}

// smallDisk mounts a file system with room for so many bytes.
func smallDisk(t *testing.T, size int) string {
	t.Helper()
	dir := t.TempDir()
	err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d", size))
	if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EACCES) {
		t.Skip("only root may mount a file system")
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// fill fills a disk and returns the file that does.
func fill(t *testing.T, dir string) string {
	t.Helper()
	name := filepath.Join(dir, "filler")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	page := make([]byte, 4096)
	for err == nil {
		_, err = f.Write(page)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	return name
}

// TestFullDisk: a client whose disk is full says so once, works on, and writes again when
// there is room.
func TestFullDisk(t *testing.T) {
	dir := smallDisk(t, 64<<10)
	filler := fill(t, dir)
	log := new(lines)
	server := servertest.New(t)
	c := dial(t, append(onePort(rollcall.GRPC, server.Addr()),
		rollcall.WithDiskCache(dir, 0), rollcall.WithLogger(slog.New(slog.NewTextHandler(log, nil))))...)
	w, err := c.Watch(within(t), orders)
	if err != nil {
		t.Fatal(err)
	}
	for n := range 3 { // each is written of its own
		register(t, c, 8080+n)
		see(t, w, "the instance", count(n+1))
		pause(1500 * time.Millisecond)
	}
	if n := log.count("disk cache cannot be written"); n != 1 {
		t.Errorf("%d warnings, want 1:\n%s", n, log.text.String())
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	register(t, c, 8083)
	see(t, w, "the last", count(4))
	path := filepath.Join(dir, "naming", "public", "DEFAULT_GROUP%40%40orders")
	for ctx := within(t); ; pause(20 * time.Millisecond) {
		text, err := os.ReadFile(path)
		if err == nil && strings.Contains(string(text), "8083") {
			break
		}
		if ctx.Err() != nil {
			t.Fatalf("on disk: %s, %v", text, err)
		}
	}
}
