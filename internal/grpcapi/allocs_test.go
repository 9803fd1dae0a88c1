//go:build !race

package grpcapi

import (
	"runtime"
	"runtime/debug"
	"testing"
)

// Runs of an operation that are not counted, and those that are.
const (
	warmRuns    = 100
	countedRuns = 2000
)

// The hot paths allocate no more than they may. The race detector has pools forget at
// random, so it is left out.
func TestAllocations(t *testing.T) {
	for _, p := range hotPaths() {
		t.Run(p.name, func(t *testing.T) {
			operation := p.prepare(newCounted(t), warmRuns+countedRuns)
			for run := range warmRuns {
				operation(run)
			}
			defer debug.SetGCPercent(debug.SetGCPercent(-1)) // it empties pools
			before := mallocs()
			for run := range countedRuns {
				operation(warmRuns + run)
			}
			if got := float64(mallocs()-before) / countedRuns; got > p.most+0.05 {
				t.Errorf("%.2f allocations, want at most %v", got, p.most)
			}
		})
	}
}

func mallocs() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Mallocs
}
