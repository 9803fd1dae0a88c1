package health

import (
	"sync"

	"github.com/rollcall-registry/rollcall/internal/registry"
)

// changes are the services that must be read again. Each is in it once, so it
// holds at most one key per service and never blocks who adds to it.
type changes struct {
	wake chan struct{} // has a token when there may be something to take

	mu     sync.Mutex
	keys   map[registry.ServiceKey]struct{}
	closed bool
}

func newChanges() *changes { return &changes{wake: make(chan struct{}, 1)} }

func (c *changes) add(key registry.ServiceKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	if c.keys == nil {
		c.keys = map[registry.ServiceKey]struct{}{}
	}
	c.keys[key] = struct{}{}
	select {
	case c.wake <- struct{}{}:
	default: // it is awake already
	}
}

// take returns the services and forgets them.
func (c *changes) take() map[registry.ServiceKey]struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	keys := c.keys
	c.keys = nil
	return keys
}

// close forgets the services, and those that are added from now on.
func (c *changes) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.keys, c.closed = nil, true
}
