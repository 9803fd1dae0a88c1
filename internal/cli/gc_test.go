package cli

import (
	"context"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"testing"
)

func TestGCPercent(t *testing.T) {
	for _, tt := range []struct {
		live uint64
		want int
	}{
		{0, 100}, {1 << 20, 100}, {8 << 20, 100}, {16 << 20, 50}, {32 << 20, 25}, {1 << 30, 15},
	} {
		if got := gcPercent(tt.live); got != tt.want {
			t.Errorf("live heap of %d bytes: got %d %%, want %d %%", tt.live, got, tt.want)
		}
	}
}

func TestCollectionIsSeen(t *testing.T) {
	collected := collection()
	runtime.GC()
	<-collected
}

func TestTuneGCPutsBack(t *testing.T) {
	const mine = 77
	before := debug.SetGCPercent(mine)
	defer debug.SetGCPercent(before)
	ctx, cancel := context.WithCancel(context.Background())
	ready := make(chan struct{})
	var tuning sync.WaitGroup
	tuning.Go(func() { tuneGC(ctx, ready) })
	close(ready)
	percent := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	for metrics.Read(percent); percent[0].Value.Uint64() == mine; metrics.Read(percent) {
		runtime.Gosched()
	}
	cancel()
	tuning.Wait()
	if got := debug.SetGCPercent(mine); got != mine {
		t.Errorf("got GC percentage %d after the end, want %d as before", got, mine)
	}
}
