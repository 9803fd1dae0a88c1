package consensus

import (
	"fmt"
	"runtime/debug"
)

// recoverDamage turns a panic of the libraries over impossible file content
// into an error about dir. It must be deferred. Reading a damaged or truncated
// memory-mapped file may fault; see [catchFaults].
func recoverDamage(dir string, err *error) {
	if r := recover(); r != nil {
		*err = damaged(dir, fmt.Errorf("%v", r))
	}
}

// catchFaults makes memory faults of this goroutine panics that can be
// recovered, until the returned function is called.
func catchFaults() (restore func()) {
	was := debug.SetPanicOnFault(true)
	return func() { debug.SetPanicOnFault(was) }
}

// damaged is the error for a directory whose content cannot be trusted.
func damaged(path string, cause error) error {
	return fmt.Errorf("%s is damaged: %w: restore the data directory from a backup", path, cause)
}
