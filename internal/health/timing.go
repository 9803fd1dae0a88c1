package health

import (
	"hash/maphash"
	"math"
	"sync"
	"time"

	"github.com/rollcall-registry/rollcall/internal/registry"
)

// RT are the response times of a cluster's probes in milliseconds, as Nacos
// shows them.
type RT struct {
	// BestMillis is 9223372036854775807 before the first probe, WorstMillis 0.
	BestMillis, WorstMillis int64
	// NormalizedMillis is the smoothed one, between 2000 and 7000 before the
	// first probe.
	NormalizedMillis int64
}

// timings keep the response times of the clusters that are probed. It is safe
// for concurrent use.
type timings struct {
	seed maphash.Seed

	mu       sync.Mutex
	services map[registry.ServiceKey][]clusterRT // the probed clusters, few each
}

type clusterRT struct {
	cluster string
	RT
}

func newTimings() *timings {
	return &timings{seed: maphash.MakeSeed(), services: map[registry.ServiceKey][]clusterRT{}}
}

// get returns the times of a cluster, and those before any probe for one that
// was never probed.
func (t *timings) get(key registry.ServiceKey, cluster string) RT {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range t.services[key] {
		if c.cluster == cluster {
			return c.RT
		}
	}
	return t.unprobed(key, cluster)
}

// unprobed is random in Nacos; a hash is as good, and the same at every look.
func (t *timings) unprobed(key registry.ServiceKey, cluster string) RT {
	h := maphash.Comparable(t.seed, struct {
		registry.ServiceKey
		cluster string
	}{key, cluster})
	return RT{BestMillis: math.MaxInt64, NormalizedMillis: 2000 + int64(h%5000)}
}

// record adds a probe of the given cost.
func (t *timings) record(key registry.ServiceKey, cluster string, cost time.Duration, p registry.ProbeParams) {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := t.services[key]
	i := 0
	for i < len(list) && list[i].cluster != cluster {
		i++
	}
	if i == len(list) {
		list = append(list, clusterRT{cluster, t.unprobed(key, cluster)})
		t.services[key] = list
	}
	rt, ms := &list[i].RT, cost.Milliseconds()
	rt.BestMillis = min(rt.BestMillis, ms)
	rt.WorstMillis = max(rt.WorstMillis, ms)
	rt.NormalizedMillis = smooth(time.Duration(rt.NormalizedMillis)*time.Millisecond, cost, p).Milliseconds()
}

// forget drops the times of a service that is not probed any more.
func (t *timings) forget(key registry.ServiceKey) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.services, key)
}
