package registry

import (
	"slices"
	"sync/atomic"
	"time"
)

// View is the state of one service at one revision. It is immutable and may be
// kept and shared; nothing in it may be changed.
type View struct {
	Key     ServiceKey
	Grouped string // group@@service
	Info    *ServiceInfo
	// Clusters are sorted by name, Instances by address, port and cluster.
	Clusters  []*Cluster
	Instances []*Instance
	// Revision grows strictly with every change of the service. It is the wall
	// clock in milliseconds where that allows, and is what clients get as
	// lastRefTime.
	Revision int64
	// Encodings belongs to whoever caches wire forms of this view.
	Encodings Encodings
	stale     atomic.Bool
}

// Stale reports whether the service has changed since.
func (v *View) Stale() bool { return v.stale.Load() }

// Encodings holds wire forms of one view by name: a short list, since a view is
// asked for in few forms. It is safe for concurrent use and must not be copied.
type Encodings struct {
	head  atomic.Pointer[encoding]
	asked atomic.Uint32 // a bit of each form that was asked for, by its name's hash
}

type encoding struct {
	key   string
	value any
	next  *encoding
}

// Get returns what was stored under key, nil when nothing was.
func (e *Encodings) Get(key string) any {
	for n := e.head.Load(); n != nil; n = n.next {
		if n.key == key {
			return n.value
		}
	}
	return nil
}

// Add stores v under key; the latest of several wins.
func (e *Encodings) Add(key string, v any) {
	n := &encoding{key: key, value: v}
	for {
		n.next = e.head.Load()
		if e.head.CompareAndSwap(n.next, n) {
			return
		}
	}
}

// Again notes that the form key was asked for, and reports whether it had been
// before. It may say so of one that had not, when two names share a bit.
func (e *Encodings) Again(key string) bool {
	hash := uint32(2166136261) // FNV-1a
	for i := range len(key) {
		hash = (hash ^ uint32(key[i])) * 16777619
	}
	bit := uint32(1) << (hash >> 27)
	return e.asked.Or(bit)&bit != 0
}

// Remove forgets what was stored under key.
func (e *Encodings) Remove(key string) {
	for {
		old := e.head.Load()
		if e.head.CompareAndSwap(old, old.without(key)) {
			return
		}
	}
}

func (n *encoding) without(key string) *encoding {
	if n == nil {
		return nil
	}
	if n.key == key {
		return n.next.without(key)
	}
	return &encoding{key: n.key, value: n.value, next: n.next.without(key)}
}

// Len returns how many forms are stored.
func (e *Encodings) Len() int {
	count := 0
	for n := e.head.Load(); n != nil; n = n.next {
		count++
	}
	return count
}

// View returns the present view of a service, nil when there is no such service.
// It costs a look-up; the first call after a change also copies one pointer per
// instance.
func (s *Store) View(key ServiceKey) *View {
	sh := s.shard(key)
	sh.mu.RLock()
	defer sh.mu.RUnlock()
	svc := sh.services[key]
	if svc == nil {
		return nil
	}
	if v := svc.view.Load(); v != nil {
		return v
	}
	// Several readers may build the same view at once; all but one are dropped.
	// Nobody can change the service meanwhile, as that needs the write lock.
	v := svc.build()
	if !svc.view.CompareAndSwap(nil, v) {
		return svc.view.Load()
	}
	return v
}

func (svc *service) build() *View {
	v := &View{
		Key: svc.key, Grouped: svc.grouped, Info: svc.info, Clusters: svc.clusters,
		Instances: make([]*Instance, len(svc.records)), Revision: svc.revision,
	}
	for i, r := range svc.records {
		v.Instances[i] = r.inst
	}
	return v
}

// Cluster returns a cluster of the view, nil when there is none of that name.
func (v *View) Cluster(name string) *Cluster {
	if i, ok := v.clusterIndex(name); ok {
		return v.Clusters[i]
	}
	return nil
}

func (v *View) clusterIndex(name string) (int, bool) {
	return slices.BinarySearchFunc(v.Clusters, name, compareCluster)
}

// Holder is one owner of an instance, for explanations.
type Holder struct {
	Owner
	Healthy bool `json:"healthy"`
	// Agent is what an HTTP owner calls itself, empty when it is not known.
	Agent string `json:"agent,omitempty"`
}

// Standing is what is known of an instance beyond what readers of a view see.
type Standing struct {
	Instance *Instance
	Owners   []Holder // latest first
	// SinceBeat is the age of the last beat; negative when no HTTP client owns
	// the instance.
	SinceBeat time.Duration
	Override  *Override // nil when there is none
}

// Standings returns every instance of a service with its owners, in the order of
// [View.Instances]; nil when there is no such service.
func (s *Store) Standings(key ServiceKey, now Instant) []Standing {
	sh := s.shard(key)
	sh.mu.RLock()
	defer sh.mu.RUnlock()
	svc := sh.services[key]
	if svc == nil {
		return nil
	}
	out := make([]Standing, len(svc.records))
	for i, r := range svc.records {
		st := Standing{Instance: r.inst, SinceBeat: -1, Owners: []Holder{s.holder(&r.top)}}
		for _, h := range r.below() {
			st.Owners = append(st.Owners, s.holder(&h))
		}
		if r.holdingOf(OwnerHTTP) != nil {
			st.SinceBeat = r.silence(now.Lease)
		}
		if o := sh.overlay(key, r.key()); o != nil {
			over := o.Override
			st.Override = &over
		}
		out[i] = st
	}
	return out
}

func (s *Store) holder(h *holding) Holder {
	return Holder{Owner: h.owner(), Healthy: h.healthy, Agent: s.agents.text(h.agent)}
}

// Presence says what there is already of an instance.
type Presence struct{ Service, Cluster, Instance bool }

// Presence looks an instance up without building a view of its service.
func (s *Store) Presence(key ServiceKey, instance InstanceKey) Presence {
	sh := s.shard(key)
	sh.mu.RLock()
	defer sh.mu.RUnlock()
	svc := sh.services[key]
	if svc == nil {
		return Presence{}
	}
	return Presence{
		Service: true, Cluster: svc.cluster(instance.Cluster) != nil, Instance: svc.find(instance.identity()) != nil,
	}
}

// InstancesAt returns the instances of an address and port, in whatever cluster, in
// the order of [View.Instances] and without building a view.
func (s *Store) InstancesAt(key ServiceKey, ip string, port int32) []*Instance {
	k := InstanceKey{IP: ip, Port: port}.identity()
	sh := s.shard(key)
	sh.mu.RLock()
	defer sh.mu.RUnlock()
	svc := sh.services[key]
	if svc == nil {
		return nil
	}
	var list []*Instance
	from, _ := svc.index(k) // no cluster sorts before k's
	for _, r := range svc.records[from:] {
		if at := r.key(); at.IP != k.IP || at.Port != k.Port {
			break
		}
		list = append(list, r.inst)
	}
	return list
}

// HasOwner reports whether an instance is there with an owner of a kind.
func (s *Store) HasOwner(key ServiceKey, instance InstanceKey, kind OwnerKind) bool {
	sh := s.shard(key)
	sh.mu.RLock()
	defer sh.mu.RUnlock()
	r := sh.services[key].find(instance.identity())
	return r != nil && r.holdingOf(kind) != nil
}

// Find returns the instance of an identity, nil when it is not in the view.
func (v *View) Find(key InstanceKey) *Instance {
	i, ok := slices.BinarySearchFunc(v.Instances, key.identity(), func(i *Instance, k InstanceKey) int {
		return i.Key().identity().compare(k)
	})
	if !ok {
		return nil
	}
	return v.Instances[i]
}

// At returns the instances of an address and port, in whatever cluster. The slice
// shares memory with the view.
func (v *View) At(ip string, port int32) []*Instance {
	k := InstanceKey{IP: ip, Port: port}.identity()
	from, _ := slices.BinarySearchFunc(v.Instances, k, func(i *Instance, k InstanceKey) int {
		return i.Key().identity().compare(k)
	})
	to := from
	for to < len(v.Instances) {
		at := v.Instances[to].Key().identity()
		if at.IP != k.IP || at.Port != k.Port {
			break
		}
		to++
	}
	return v.Instances[from:to:to]
}
