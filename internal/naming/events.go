package naming

import (
	"sync/atomic"

	"github.com/rollcall-registry/rollcall/internal/registry"
)

// Sinks passes every event to each of its sinks in turn. It is the store's sink;
// see [registry.Sink] for what a sink may do.
type Sinks []registry.Sink

// Emit implements [registry.Sink].
func (s Sinks) Emit(e *registry.Event) {
	for _, sink := range s {
		sink.Emit(e)
	}
}

// Gate holds events back from its sink until it is opened: what the durable log
// replays at the start of a server happened long ago.
type Gate struct {
	Sink registry.Sink
	open atomic.Bool
}

// Open lets events through from now on.
func (g *Gate) Open() { g.open.Store(true) }

// Emit implements [registry.Sink].
func (g *Gate) Emit(e *registry.Event) {
	if g.open.Load() {
		g.Sink.Emit(e)
	}
}
