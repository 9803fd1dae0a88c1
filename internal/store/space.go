package store

import (
	"context"
	"time"
)

// Space is the room on the disk of a data directory, in bytes.
type Space struct {
	Free  uint64 // what this user may still write
	Total uint64
}

// SpaceOf asks the file system how much room there is for path.
func SpaceOf(path string) (Space, error) {
	s, err := diskSpace(path)
	return s, Explain("read free space", path, err)
}

// Space asks the file system how much room there is.
func (d *Dir) Space() (Space, error) { return SpaceOf(d.path) }

// WatchSpace measures the room at once and then every interval until ctx ends,
// and hands each measurement to notify, with low true when less than floor
// bytes are free. It logs when that changes, not every time; low ends when a
// quarter more than floor is free, so that it does not flap. It blocks; notify
// runs on the caller's goroutine.
func (d *Dir) WatchSpace(ctx context.Context, interval time.Duration, floor uint64, notify func(s Space, low bool)) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	low := false
	for {
		if s, err := d.Space(); err != nil {
			d.log.Warn("cannot read the free disk space", "err", err)
		} else {
			low = d.judge(s, floor, low)
			notify(s, low)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// judge tells whether s is low, given whether it was before.
func (d *Dir) judge(s Space, floor uint64, was bool) bool {
	low := s.Free < floor || was && s.Free < floor+floor/4
	switch {
	case low && !was:
		d.log.Warn("disk space is low; persistent changes will be refused when it runs out",
			"path", d.path, "free_bytes", s.Free, "floor_bytes", floor)
	case was && !low:
		d.log.Info("disk space is no longer low", "path", d.path, "free_bytes", s.Free)
	}
	return low
}
