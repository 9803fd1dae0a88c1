package cli

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// The garbage collector runs when the heap has grown by a percentage of what is
// live. A registry's live heap is large and still, and most requests leave no
// garbage, so the usual 100 % would hold as much memory again for nothing. The
// percentage is chosen so that the heap grows by gcHeadroom, within bounds: more
// often costs processor time on every registration.
const (
	gcHeadroom = 12 << 20
	gcLeast    = 20
	gcMost     = 100
	gcInterval = 2 * time.Second
)

// gcPercent returns the percentage for a live heap of so many bytes.
func gcPercent(live uint64) int {
	if live == 0 {
		return gcMost
	}
	return int(min(max(100*gcHeadroom/live, gcLeast), gcMost))
}

// tuneGC adapts the garbage collector to the live heap until ctx ends, and then
// puts it back. It is for a process that is a server, not for a library.
func tuneGC(ctx context.Context) {
	before := debug.SetGCPercent(gcMost)
	defer debug.SetGCPercent(before)
	ticker := time.NewTicker(gcInterval)
	defer ticker.Stop()
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	last := gcMost
	for {
		metrics.Read(live)
		if percent := gcPercent(live[0].Value.Uint64()); percent != last {
			debug.SetGCPercent(percent)
			last = percent
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}
