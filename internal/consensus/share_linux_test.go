package consensus

import (
	"path/filepath"
	"runtime"
	"sync"
	"testing"
)

// TestProposalsShareWrites has callers propose at the same time on one processor
// and a disk so fast that the runtime gives the processor to nobody else while it
// is waited for.
func TestProposalsShareWrites(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	const callers, rounds = 64, 10
	r := start(t, DefaultConfig(filepath.Join(mountTmpfs(t, "32m", 0), "raft"), "member-1"))
	before := r.Stats().Writes
	for range rounds {
		var group sync.WaitGroup
		for range callers {
			group.Go(func() { r.propose(t, "a") })
		}
		group.Wait()
	}
	if writes := r.Stats().Writes - before; writes > callers*rounds/4 {
		t.Errorf("%d writes for %d proposals, %d at a time", writes, callers*rounds, callers)
	}
	if err := r.stop(); err != nil {
		t.Error(err)
	}
}
