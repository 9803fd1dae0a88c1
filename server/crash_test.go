package server_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"testing"

	"go.uber.org/goleak"

	"github.com/rollcall-registry/rollcall/server"
	"github.com/rollcall-registry/rollcall/servertest"
)

// crashDir makes the test binary a server over that data directory, which says
// its address on standard output and runs until it is killed.
const crashDir = "ROLLCALL_TEST_CRASH_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(crashDir); dir != "" {
		os.Exit(crashChild(dir))
	}
	goleak.VerifyTestMain(m)
}

func crashChild(dir string) int {
	cfg := server.DefaultConfig()
	cfg.Listen = []string{"127.0.0.1:0"}
	cfg.UDP.Host = "127.0.0.1"
	cfg.DataDir = dir
	s, err := server.New(cfg, slog.New(slog.NewTextHandler(os.Stderr, nil)))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() { // its end is that of the process
		<-s.Ready()
		fmt.Println(s.Addrs().HTTP[0])
		_, _ = io.Copy(io.Discard, os.Stdin) // ends with the parent
		cancel()
	}()
	if err := s.Run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// TestKillLosesNothingDurable kills a server that is busy, several times over the
// same data, and looks in the next one for each persistent instance that was
// acknowledged. Ephemeral ones may lose what came in the last moment: their
// clients register again with the next beat.
func TestKillLosesNothingDurable(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var storms []*storm
	from := int64(0)
	for range 3 {
		load := killUnderLoad(t, dir, from)
		from = load.next.Load()
		storms = append(storms, load)
		after := servertest.New(t, servertest.WithDataDir(dir))
		for _, s := range storms {
			s.checkKept(t, newCaller(t, after), false)
		}
		after.Stop(t)
	}
}

// killUnderLoad runs a server in a process of its own, registers instances from
// that port on, and kills it while more are under way.
func killUnderLoad(t *testing.T, dir string, from int64) *storm {
	t.Helper()
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), crashDir+"="+dir)
	child.Stderr = os.Stderr
	stdin, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	stdout, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	address := bufio.NewScanner(stdout)
	if !address.Scan() {
		t.Fatalf("the server did not start: %v", child.Wait())
	}
	transport := &http.Transport{MaxIdleConnsPerHost: stormCallers}
	defer transport.CloseIdleConnections()
	load := startStorm(&caller{"http://" + address.Text(), &http.Client{Transport: transport}}, from)
	<-load.enough
	if err := child.Process.Kill(); err != nil {
		t.Error(err)
	}
	load.callers.Wait()
	_ = child.Wait() // it was killed
	return load
}
