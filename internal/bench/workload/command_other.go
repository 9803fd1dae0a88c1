//go:build !unix

package workload

import "os/exec"

// alone does nothing where there are no process groups: what a command has started goes
// on when it is stopped.
func alone(*exec.Cmd) {}
