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
}

// crew are the parts that run, in the order of their start. It belongs to one
// goroutine.
type crew struct {
	parts  []*running
	failed chan *running // gets each part that ends, once
}

// crewSize is more than there are parts, so that none waits to say it ended.
const crewSize = 64

func newCrew() *crew { return &crew{failed: make(chan *running, crewSize)} }

// start runs p in a goroutine of its own. Its context does not end with that of
// the server, so that parts can be stopped one after the other.
func (c *crew) start(p part) {
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{part: p, cancel: cancel, ended: make(chan struct{})}
	c.parts = append(c.parts, r)
	go func() {
		r.err = p.run(ctx)
		close(r.ended)
		c.failed <- r
	}()
}

// wait returns nil when ctx ends, or why a part ended before that.
func (c *crew) wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case r := <-c.failed:
		if r.err == nil {
			return fmt.Errorf("%s ended by itself", r.name)
		}
		return fmt.Errorf("%s: %w", r.name, r.err)
	}
}

// stop ends the parts, the last started first, each when the one before has
// ended, and returns what went wrong.
func (c *crew) stop() error {
	var errs []error
	for i := len(c.parts) - 1; i >= 0; i-- {
		r := c.parts[i]
		r.cancel()
		<-r.ended
		if r.err != nil {
			errs = append(errs, fmt.Errorf("stop %s: %w", r.name, r.err))
		}
	}
	return errors.Join(errs...)
}
