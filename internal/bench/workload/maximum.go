package workload

import "sync/atomic"

// maximum is the greatest of the values that it was given, 0 before the first. It is safe
// for concurrent use.
type maximum struct{ value atomic.Int64 }

func (m *maximum) take(v int64) {
	for {
		have := m.value.Load()
		if v <= have || m.value.CompareAndSwap(have, v) {
			return
		}
	}
}

func (m *maximum) load() int64 { return m.value.Load() }
