//go:build unix

package store

import "golang.org/x/sys/unix"

// writable tells whether this process may create files in dir.
func writable(dir string) error { return unix.Access(dir, unix.W_OK|unix.X_OK) }
