package sdk

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"github.com/rollcall-registry/rollcall/server"
)

// The environment that makes the test binary a server over that directory, at that
// address.
const (
	serverDir     = "ROLLCALL_TEST_SERVER_DIR"
	serverAddress = "ROLLCALL_TEST_SERVER_ADDRESS"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(serverDir); dir != "" {
		os.Exit(serve(dir, os.Getenv(serverAddress)))
	}
	os.Exit(m.Run())
}

// serve runs a server until SIGTERM or the end of the parent. It writes a line when it is
// ready.
func serve(dir, address string) int {
	cfg := server.DefaultConfig()
	cfg.Listen, cfg.UDP.Host, cfg.DataDir = []string{address}, "127.0.0.1", dir
	s, err := server.New(cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	go func() { // its end is that of the process
		<-s.Ready()
		fmt.Println("ready")
		_, _ = io.Copy(io.Discard, os.Stdin) // ends with the parent
		cancel()
	}()
	if err := s.Run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// process is a server in a process of its own, over a directory and at an address that
// outlive it.
type process struct {
	dir, addr string
	cmd       *exec.Cmd
	alive     io.Closer // its standard input
}

// newProcess starts a server, which is killed with the test.
func newProcess(t *testing.T) *process {
	t.Helper()
	p := &process{dir: t.TempDir(), addr: freeAddress(t)}
	p.start(t)
	t.Cleanup(func() { p.stop(t, syscall.SIGKILL) })
	return p
}

// freeAddress returns a loopback address that is free, and stays so while the server is
// away: its port is below those that systems give to whoever asks for any.
func freeAddress(t *testing.T) string {
	t.Helper()
	for range 100 {
		l, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", 10000+rand.N(20000)))
		if err == nil {
			defer l.Close()
			return l.Addr().String()
		}
	}
	t.Fatal("no port is free")
	return ""
}

// start starts the server and waits until it says that it is ready.
func (p *process) start(t *testing.T) {
	t.Helper()
	p.cmd = exec.Command(os.Args[0])
	p.cmd.Env = append(os.Environ(), serverDir+"="+p.dir, serverAddress+"="+p.addr)
	p.cmd.Stderr = os.Stderr
	stdin, err := p.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.alive = stdin
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(stdout).ReadString('\n'); err != nil {
		p.stop(t, syscall.SIGKILL)
		t.Fatalf("the server did not start: %q, %v", line, err)
	}
}

// stop ends the server with a signal and waits for it.
func (p *process) stop(t *testing.T, signal syscall.Signal) {
	if p.cmd == nil {
		return
	}
	if err := p.cmd.Process.Signal(signal); err != nil {
		t.Error(err)
	}
	if err := p.cmd.Wait(); err != nil && signal != syscall.SIGKILL {
		t.Errorf("the server ended with %v", err)
	}
	_ = p.alive.Close()
	p.cmd = nil
}

// pause waits where there is no condition to wait for: for a moment relative to which
// something is to happen.
func pause(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	<-timer.C
}

// slowTests is the environment variable that asks for the tests that take minutes.
const slowTests = "ROLLCALL_SLOW_TESTS"

// slow skips a test that takes a minute or more, unless it is asked for.
func slow(t *testing.T) {
	t.Helper()
	if testing.Short() || os.Getenv(slowTests) == "" {
		t.Skipf("it takes a minute or more; set %s=1 to run it", slowTests)
	}
}
