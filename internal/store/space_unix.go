//go:build unix

package store

import "golang.org/x/sys/unix"

func diskSpace(path string) (Space, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		return Space{}, err
	}
	block := uint64(s.Bsize)
	return Space{Free: uint64(s.Bavail) * block, Total: s.Blocks * block}, nil //nolint:unconvert // signed on other systems
}
