package registry

import (
	"runtime"
	"testing"
)

// A map that held much gives its memory back, and never what is in it.
func TestRemoveShrinks(t *testing.T) {
	const most, left = 100_000, 10
	m, peak := map[int]int{}, 0
	for i := range most {
		m[i] = -i
	}
	full := heapInUse()
	for i := range most - left {
		m = remove(m, i, &peak)
		if i%997 == 0 && len(m) != most-1-i {
			t.Fatalf("%d entries are left after %d of %d were removed", len(m), i+1, most)
		}
	}
	for i := most - left; i < most; i++ {
		if m[i] != -i {
			t.Errorf("entry %d is %d", i, m[i])
		}
	}
	if after := heapInUse(); full-min(after, full) < most*8 {
		t.Errorf("%d bytes are in use with %d entries and %d with %d", full, most, after, len(m))
	}
	runtime.KeepAlive(m)
}

func heapInUse() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
