package server

import (
	"context"
	"errors"
	"fmt"
)

// part is something that runs until its context ends.
type part struct {
	name string
	run  func(context.Context) error
}

// running is a part that was started.
type running struct {
	part
	cancel context.CancelFunc
	ended  chan struct{}
	err    error // set before ended is closed
	told   bool  // its fault has been told of; belongs to the crew's goroutine
}

// fault says why a part ended before it was told to. It is said once: stop does
// not repeat it.
func (r *running) fault() error {
	r.told = true
	if r.err == nil {
		return fmt.Errorf("%s ended by itself", r.name)
	}
	return fmt.Errorf("%s: %w", r.name, r.err)
}

// crew are the parts that run, in the order of their start. It belongs to one
// goroutine.
type crew struct {
	parts []*running
	// first has room for the first part that ends, which brings the others down.
	// What becomes of those is for stop to tell.
	first chan *running
}

func newCrew() *crew { return &crew{first: make(chan *running, 1)} }

// start runs p in a goroutine of its own. Its context does not end with that of
// the server, so that parts can be stopped one after the other.
func (c *crew) start(p part) {
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{part: p, cancel: cancel, ended: make(chan struct{})}
	c.parts = append(c.parts, r)
	go func() {
		r.err = p.run(ctx)
		close(r.ended)
		select {
		case c.first <- r:
		default:
		}
	}()
}

// wait returns nil when ctx ends, or why a part ended before that.
func (c *crew) wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case r := <-c.first:
		return r.fault()
	}
}

// stop ends the parts, the last started first, each when the one before has
// ended, and returns what went wrong and has not been told.
func (c *crew) stop() error {
	var errs []error
	for i := len(c.parts) - 1; i >= 0; i-- {
		r := c.parts[i]
		r.cancel()
		<-r.ended
		if r.err != nil && !r.told {
			errs = append(errs, fmt.Errorf("stop %s: %w", r.name, r.err))
		}
	}
	return errors.Join(errs...)
}
