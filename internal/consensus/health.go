package consensus

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// hungAfter is how long a write may take before the disk counts as hung. A
// write takes milliseconds, on a slow and busy disk a second.
const hungAfter = 5 * time.Second

// diskHealth holds the outcome of the last writes, the beginning of the present
// one, and the end of waiting for a better one. It is safe for concurrent use.
type diskHealth struct {
	err     atomic.Pointer[error]
	since   atomic.Pointer[time.Time] // when the write under way began; nil for none
	stopped chan struct{}
	once    sync.Once
}

func newDiskHealth() *diskHealth { return &diskHealth{stopped: make(chan struct{})} }

// begin records that a write begins.
func (d *diskHealth) begin() {
	now := time.Now()
	d.since.Store(&now)
}

// end records that the write is over, and leaves the outcome of those before.
func (d *diskHealth) end() { d.since.Store(nil) }

// set records how the write went.
func (d *diskHealth) set(err error) {
	d.end()
	switch {
	case err != nil:
		d.err.Store(&err)
	case d.err.Load() != nil:
		d.err.Store(nil)
	}
}

// get returns the error of the last write, or that the present one hangs, or nil.
func (d *diskHealth) get() error {
	if err := d.err.Load(); err != nil {
		return *err
	}
	if since := d.since.Load(); since != nil && time.Since(*since) > hungAfter {
		return fmt.Errorf("the disk has not answered a write for %v", time.Since(*since).Round(time.Second))
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
