//go:build unix

package store

import "golang.org/x/sys/unix"

// access tells whether this process may create files in dir.
func access(dir string) error { return unix.Access(dir, unix.W_OK|unix.X_OK) }
