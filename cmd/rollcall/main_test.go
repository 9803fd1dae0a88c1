package main

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// runMain makes the test binary the program itself.
const runMain = "RUN_MAIN_INSTEAD_OF_TESTS"

func TestMain(m *testing.M) {
	if os.Getenv(runMain) != "" {
		main() // exits
	}
	os.Exit(m.Run())
}

// program is a command that runs this program with the arguments.
func program(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append(os.Environ(), runMain+"=1")
	return cmd
}

func TestExitCode(t *testing.T) {
	t.Parallel()
	out, err := program(t, "bogus").CombinedOutput()
	if code := program(t, "version").Run(); code != nil {
		t.Errorf("version: %v", code)
	}
	if err == nil || err.Error() != "exit status 2" || !strings.HasPrefix(string(out), "rollcall: unknown command") {
		t.Errorf("bogus: %v, %s", err, out)
	}
}

// TestSignals starts a real process, and stops it as a supervisor would.
func TestSignals(t *testing.T) {
	t.Parallel()
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		cmd := program(t, "serve", "--listen", "127.0.0.1:0", "--udp-host", "127.0.0.1", "--data-dir", filepath.Join(t.TempDir(), "data"))
		stderr, err := cmd.StderrPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(stderr)
		for ready := false; !ready; ready = strings.HasPrefix(lines.Text(), "ready http=127.0.0.1:") {
			if !lines.Scan() {
				t.Fatalf("it ended before it was ready: %v", cmd.Wait())
			}
		}
		if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		for lines.Scan() { // until the process closes it
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("after %v: %v", sig, err)
		}
		if took := time.Since(start); took > 20*time.Second {
			t.Errorf("it took %v to stop", took)
		}
	}
}
