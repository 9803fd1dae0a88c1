package consensus

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// Variables that make the test binary a server of a log for a parent test.
const (
	crashDir   = "ROLLCALL_CRASH_DIR"
	crashRound = "ROLLCALL_CRASH_ROUND"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(crashDir); dir != "" {
		os.Exit(crashChild(dir, os.Getenv(crashRound)))
	}
	goleak.VerifyTestMain(m)
}

// crashChild proposes from several callers for ever and prints each command
// once it is acknowledged. It compacts all the time, so that kills meet
// snapshots, too.
func crashChild(dir, round string) int {
	cfg := DefaultConfig(dir, "member-1")
	cfg.SnapshotEvery = 100
	log, err := New(cfg, newCounts(), slog.New(slog.DiscardHandler))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	go func() {
		<-log.Ready()
		go func() {
			for {
				if err := log.Compact(); err != nil {
					panic(err)
				}
			}
		}()
		var out sync.Mutex
		for caller := range 8 {
			go func() {
				for i := 0; ; i++ {
					cmd := fmt.Sprintf("%s-%d-%d", round, caller, i)
					if _, err := log.Propose(context.Background(), []byte(cmd)); err != nil {
						panic(err)
					}
					out.Lock()
					fmt.Println(cmd)
					out.Unlock()
				}
			}()
		}
	}()
	fmt.Fprintln(os.Stderr, log.Run(context.Background()))
	return 1
}

// TestKillLosesNothingAcknowledged kills a server ten times while it writes,
// and looks after each time for every command it had acknowledged.
func TestKillLosesNothingAcknowledged(t *testing.T) {
	cfg := testConfig(t)
	acked := map[string]bool{}
	for round := range 10 {
		for _, cmd := range killWhileWriting(t, cfg.Dir, round) {
			acked[cmd] = true
		}
		if err := Check(cfg.Dir); err != nil {
			t.Fatalf("round %d: Check: %v", round, err)
		}
		r := start(t, cfg)
		for cmd := range acked {
			if n := r.state.count(cmd); n != 1 {
				t.Errorf("round %d: acknowledged %q is there %d times", round, cmd, n)
			}
		}
		if err := r.stop(); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d acknowledged", len(acked))
}

// killWhileWriting runs a child until it has acknowledged some commands and a
// moment more, which differs by round, kills it, and returns all that it
// acknowledged.
func killWhileWriting(t *testing.T, dir string, round int) []string {
	t.Helper()
	const enough = 300
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), crashDir+"="+dir, fmt.Sprint(crashRound, "=", round))
	var stderr strings.Builder
	child.Stderr = &stderr
	stdout, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	var acked []string
	lines := bufio.NewScanner(stdout) // each line was one write, so none is cut
	for lines.Scan() {
		acked = append(acked, lines.Text())
		if len(acked) == enough {
			defer time.AfterFunc(time.Duration(round)*3*time.Millisecond, func() { _ = child.Process.Kill() }).Stop()
		}
	}
	if err := child.Wait(); len(acked) < enough {
		t.Fatalf("the child ended after %d commands: %v\n%s", len(acked), err, stderr.String())
	}
	return acked
}
