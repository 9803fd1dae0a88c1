package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	proc "github.com/rollcall-registry/rollcall/internal/bench/process"
	"github.com/rollcall-registry/rollcall/internal/bench/target"
)

// process is a server that runs as a child.
type process struct {
	cmd     *exec.Cmd
	address string // of HTTP
	target  *target.Target
	log     chan struct{} // closed when the child's standard error has ended
}

// startTimeout is how long a server may take until it is ready.
const startTimeout = 60 * time.Second

// startServer starts the binary that is measured on a data directory.
func (b *suite) startServer(ctx context.Context, dataDir string, args ...string) (*process, error) {
	return b.start(ctx, "rollcall", b.serverCPU, b.server, append([]string{
		"serve", "--listen", "127.0.0.1:0", "--udp-host", "127.0.0.1", "--data-dir", dataDir, "--log-level", "error",
	}, args...)...)
}

// newServer starts the binary on a data directory of its own.
func (b *suite) newServer(ctx context.Context, args ...string) (*process, error) {
	dir, err := os.MkdirTemp(b.dir, "data-")
	if err != nil {
		return nil, err
	}
	return b.startServer(ctx, dir, args...)
}

// startNothing starts a server on a stack that answers everything with one of so many
// copies of body.
func (b *suite) startNothing(ctx context.Context, stack string, body []byte, copies int) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	file := filepath.Join(b.dir, "body-"+strconv.Itoa(len(body)))
	if err := os.WriteFile(file, body, 0o600); err != nil {
		return nil, err
	}
	p, err := b.start(ctx, stack, b.serverCPU, self, "-role", "nothing", "-stack", stack, "-body", file, "-copies", strconv.Itoa(copies))
	if err == nil {
		p.target.Yardstick = true
	}
	return p, err
}

// start starts a program on a core, if cpu names one, and returns when it says
// that it is ready. The child is killed when ctx ends.
func (b *suite) start(ctx context.Context, name, cpu, program string, args ...string) (*process, error) {
	if _, err := exec.LookPath("taskset"); cpu != "" && err == nil {
		args = append([]string{"-c", cpu, program}, args...)
		program = "taskset"
	} else if os.Getenv(pinned) != "" {
		// Children inherit our core: give them all of them.
		args = append([]string{"-c", "0-1023", program}, args...)
		program = "taskset"
	}
	cmd := exec.CommandContext(ctx, program, args...)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, log: make(chan struct{})}
	timer := time.AfterFunc(startTimeout, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	lines := bufio.NewReader(stderr)
	p.address, err = readyAddress(lines)
	if err == nil {
		// Our server speaks gRPC on the same port, and so do those that do nothing.
		p.target, err = target.New(name, p.address, p.address)
	}
	if err != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	p.target.PID = cmd.Process.Pid
	go func() {
		defer close(p.log)
		_, _ = io.Copy(os.Stderr, lines)
	}()
	return p, nil
}

// readyAddress reads the log of a server up to its ready line, and returns the
// first address that this names.
func readyAddress(lines *bufio.Reader) (string, error) {
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return "", fmt.Errorf("it ended before it was ready: %q", line)
		}
		if _, rest, ok := strings.Cut(line, "http="); ok && strings.HasPrefix(line, "ready") {
			address, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
			address, _, _ = strings.Cut(address, ",")
			return address, nil
		}
	}
}

// stop ends the server with a signal and waits for it.
func (p *process) stop(signal syscall.Signal) error {
	if err := p.cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-p.log
	err := p.cmd.Wait()
	var exit *exec.ExitError
	if signal == syscall.SIGKILL && errors.As(err, &exit) {
		return nil
	}
	return err
}

// end kills the server, for defer.
func (p *process) end() { _ = p.stop(syscall.SIGKILL) }

// usage returns what the server uses now.
func (p *process) usage() (proc.Usage, error) { return proc.Read(p.cmd.Process.Pid) }
