package metrics

import (
	"maps"
	"sync"
	"sync/atomic"
)

// memo holds what was made for each key, so that counting hashes no labels, takes no
// lock and allocates nothing. Keys are of small variety.
type memo[K comparable, V any] struct {
	make   func(K) V
	known  atomic.Pointer[map[K]V] // immutable
	making sync.Mutex              // held while a key is added
}

func newMemo[K comparable, V any](f func(K) V) *memo[K, V] {
	m := &memo[K, V]{make: f}
	m.known.Store(&map[K]V{})
	return m
}

func (m *memo[K, V]) of(key K) V {
	if v, ok := (*m.known.Load())[key]; ok {
		return v
	}
	m.making.Lock()
	defer m.making.Unlock()
	known := *m.known.Load()
	if v, ok := known[key]; ok {
		return v
	}
	v := m.make(key)
	known = maps.Clone(known)
	known[key] = v
	m.known.Store(&known)
	return v
}
