package cli

import (
	"context"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// The garbage collector runs when the heap has grown by a percentage of what is
// live. A registry's live heap is large and still, and most requests leave no
// garbage, so the usual 100 % would hold as much memory again for nothing. The
// percentage is chosen after each collection so that the heap grows by gcHeadroom,
// within bounds: more often costs processor time on every registration.
const (
	gcHeadroom = 8 << 20
	gcLeast    = 15
	gcMost     = 100
	// gcStart holds until the server is ready: while it reads its data the heap
	// only grows, and most collections would be for nothing.
	gcStart = 200
)

// What a burst of load leaves behind goes back to the system once it is over: when
// the heap has more than gcSpare to give, and no collection was needed within
// gcQuiet. The runtime itself keeps the heap at the size of its last goal. Giving
// back costs a collection, so it is not done again before gcRest.
const (
	gcSpare = 4 << 20
	gcQuiet = 2 * time.Second
	gcRest  = 10 * time.Second
)

// gcPercent returns the percentage for a live heap of so many bytes.
func gcPercent(live uint64) int {
	if live == 0 {
		return gcMost
	}
	return int(min(max(100*gcHeadroom/live, gcLeast), gcMost))
}

// tuneGC adapts the garbage collector to the live heap, from ready on, until ctx
// ends, and then puts it back. It is for a process that is a server, not for a
// library.
func tuneGC(ctx context.Context, ready <-chan struct{}) {
	before := debug.SetGCPercent(gcStart)
	defer debug.SetGCPercent(before)
	select {
	case <-ctx.Done():
		return
	case <-ready:
	}
	debug.SetGCPercent(gcMost)
	ticker := time.NewTicker(gcQuiet)
	defer ticker.Stop()
	heap := newHeapFigures()
	var cycles uint64
	var released time.Time
	percent, collected := gcMost, collection()
	for {
		select {
		case <-ctx.Done():
			return
		case <-collected:
			heap.read()
			if next := gcPercent(heap.live()); next != percent {
				percent = next
				debug.SetGCPercent(percent)
			}
			collected = collection()
		case now := <-ticker.C:
			heap.read()
			if heap.cycles() == cycles && heap.spare() > gcSpare && now.Sub(released) >= gcRest {
				debug.FreeOSMemory()
				released = now
			}
			cycles = heap.cycles()
		}
	}
}

// collection returns a channel that is closed after the next collection.
func collection() <-chan struct{} {
	done := make(chan struct{})
	// The object has a pointer, so that it shares memory with no other.
	runtime.AddCleanup(new(*byte), func(done chan struct{}) { close(done) }, done)
	return done
}

// heapFigures are figures of the runtime.
type heapFigures []metrics.Sample

func newHeapFigures() heapFigures {
	return heapFigures{
		{Name: "/gc/heap/live:bytes"},
		{Name: "/gc/cycles/total:gc-cycles"},
		{Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/heap/free:bytes"},
	}
}

func (f heapFigures) read() { metrics.Read(f) }

// live returns the bytes that the latest collection left.
func (f heapFigures) live() uint64 { return f[0].Value.Uint64() }

// cycles returns the number of collections so far.
func (f heapFigures) cycles() uint64 { return f[1].Value.Uint64() }

// spare returns the bytes that could go back to the system: what is free, and what
// was allocated since the latest collection, as far as that is garbage.
func (f heapFigures) spare() uint64 {
	objects, free := f[2].Value.Uint64(), f[3].Value.Uint64()
	return free + objects - min(objects, f.live())
}
