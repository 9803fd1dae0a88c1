package metrics

import (
	"sync"
	"sync/atomic"
	"testing"
)

// What belongs to a key is made once, whoever asks for it at the same time.
func TestMemo(t *testing.T) {
	var made atomic.Int64
	m := newMemo(func(key int) *atomic.Int64 { made.Add(1); return &atomic.Int64{} })
	const workers, keys = 8, 100
	var asking sync.WaitGroup
	for range workers {
		asking.Go(func() {
			for key := range keys {
				m.of(key).Add(1)
			}
		})
	}
	asking.Wait()
	if made.Load() != keys {
		t.Errorf("%d were made of %d keys", made.Load(), keys)
	}
	for key := range keys {
		if n := m.of(key).Load(); n != workers {
			t.Errorf("key %d was counted %d times, want %d", key, n, workers)
		}
	}
	if n := testing.AllocsPerRun(100, func() { m.of(7) }); n != 0 {
		t.Errorf("finding it allocates %v times", n)
	}
}
