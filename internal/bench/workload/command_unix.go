//go:build unix

package workload

import (
	"os/exec"
	"syscall"
)

// alone gives a command a process group of its own, so that all that it has started
// ends with it when it is stopped.
func alone(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
