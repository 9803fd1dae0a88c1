package consensus

import (
	"sync"
	"sync/atomic"
	"time"
)

// diskHealth holds the outcome of the last write and the end of waiting for a
// better one. It is safe for concurrent use.
type diskHealth struct {
	err     atomic.Pointer[error]
	stopped chan struct{}
	once    sync.Once
}

func newDiskHealth() *diskHealth { return &diskHealth{stopped: make(chan struct{})} }

// set records how a write went.
func (d *diskHealth) set(err error) {
	switch {
	case err != nil:
		d.err.Store(&err)
	case d.err.Load() != nil:
		d.err.Store(nil)
	}
}

// get returns the error of the last write, or nil.
func (d *diskHealth) get() error {
	if err := d.err.Load(); err != nil {
		return *err
	}
	return nil
}

// wait pauses; it returns false when the waiting is over for good.
func (d *diskHealth) wait(pause time.Duration) bool {
	select {
	case <-d.stopped:
		return false
	case <-time.After(pause):
		return true
	}
}

// stop ends all waits.
func (d *diskHealth) stop() { d.once.Do(func() { close(d.stopped) }) }
