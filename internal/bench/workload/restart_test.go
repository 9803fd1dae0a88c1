//go:build unix

package workload

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// What a command has started ends with it when the run does.
func TestCommandEndsWithItsChildren(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "child")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	child := make(chan int, 1)
	go func() {
		defer cancel()
		for end := time.Now().Add(time.Minute); time.Now().Before(end); <-time.After(10 * time.Millisecond) {
			text, _ := os.ReadFile(file)
			if pid, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil {
				child <- pid
				return
			}
		}
		child <- 0
	}()
	if err := runShell(ctx, "sleep 600 & echo $! >"+file+"; wait"); err == nil {
		t.Error("it came to its end")
	}
	pid := <-child
	if pid == 0 {
		t.Fatal("the child did not begin")
	}
	for end := time.Now().Add(10 * time.Second); !ended(pid); <-time.After(10 * time.Millisecond) {
		if time.Now().After(end) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
			t.Fatal("the child goes on")
		}
	}
}

// ended reports whether a process is gone, or waits for a parent to take note.
func ended(pid int) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return true
	}
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err == nil && strings.Contains(string(stat), ") Z ")
}
