package grpcapi

import (
	"context"
	"maps"
	"sync"
	"sync/atomic"

	"github.com/rollcall-registry/rollcall/internal/registry"
)

// maxPatterns is how many different patterns are watched on a server, as in Nacos.
const maxPatterns = 20

// fuzzies are the fuzzy watches of all clients.
type fuzzies struct {
	// active counts the patterns, so that an event costs nothing without any.
	active atomic.Int32

	mu        sync.Mutex
	byPattern map[string]map[*client]*fuzzy // none is empty

	// changed are the services whose instances changed, each once; signal has a
	// token while there are some.
	changing sync.Mutex
	changed  map[registry.ServiceKey]struct{}
	signal   chan struct{}
}

func (fs *fuzzies) init() {
	fs.byPattern = map[string]map[*client]*fuzzy{}
	fs.changed = map[registry.ServiceKey]struct{}{}
	fs.signal = make(chan struct{}, 1)
}

// add adds a watch in the place of the client's earlier one of that pattern. It
// returns false when there are too many patterns.
func (fs *fuzzies) add(f *fuzzy) bool {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	watches := fs.byPattern[f.pattern.text]
	if watches == nil {
		if len(fs.byPattern) >= maxPatterns {
			return false
		}
		watches = map[*client]*fuzzy{}
		fs.byPattern[f.pattern.text] = watches
		fs.active.Add(1)
	}
	if earlier := watches[f.client]; earlier != nil {
		earlier.stop()
	}
	watches[f.client] = f
	return true
}

// drop ends a client's watch of a pattern.
func (fs *fuzzies) drop(text string, c *client) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	watches := fs.byPattern[text]
	f := watches[c]
	if f == nil {
		return
	}
	f.stop()
	delete(watches, c)
	if len(watches) == 0 {
		delete(fs.byPattern, text)
		fs.active.Add(-1)
	}
}

// dropAll ends all watches of a client.
func (fs *fuzzies) dropAll(c *client) {
	if fs.active.Load() == 0 {
		return
	}
	fs.mu.Lock()
	texts := maps.Keys(maps.Clone(fs.byPattern))
	fs.mu.Unlock()
	for text := range texts {
		fs.drop(text, c)
	}
}

// all returns the watches that match returns true for.
func (fs *fuzzies) all(match func(*pattern) bool) (list []*fuzzy) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	for _, watches := range fs.byPattern {
		for _, f := range watches {
			if !match(&f.pattern) {
				break // they have one pattern
			}
			list = append(list, f)
		}
	}
	return list
}

// Emit implements registry.Sink: it notes which services may have got their first
// instance or lost their last.
func (a *API) Emit(e *registry.Event) {
	fs := &a.fuzzies
	if fs.active.Load() == 0 || e.Kind != registry.InstanceRegistered && e.Kind != registry.InstanceRemoved {
		return
	}
	fs.changing.Lock()
	fs.changed[e.Service] = struct{}{}
	fs.changing.Unlock()
	select {
	case fs.signal <- struct{}{}:
	default:
	}
}

// take returns the services that changed, and leaves none.
func (fs *fuzzies) take() map[registry.ServiceKey]struct{} {
	fs.changing.Lock()
	defer fs.changing.Unlock()
	changed := fs.changed
	fs.changed = map[registry.ServiceKey]struct{}{}
	return changed
}

// watchServices tells fuzzy watches of changes until ctx ends.
func (a *API) watchServices(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-a.fuzzies.signal:
		}
		for key := range a.fuzzies.take() {
			present := a.inhabited(key)
			for _, f := range a.fuzzies.all(func(p *pattern) bool { return p.matches(key) }) {
				f.change(fuzzyKey(key), present)
			}
		}
	}
}
