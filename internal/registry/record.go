package registry

import (
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// record is one instance with its owners. Everything but lastBeat is guarded by
// the lock of the service's shard; lastBeat is stored under its read lock.
type record struct {
	svc  *service
	ip   string    // canonical address; port and cluster come from inst
	inst *Instance // as readers see it
	// lastBeat is the lease-clock time of the latest beat or registration of
	// the HTTP owner, in nanoseconds.
	lastBeat atomic.Int64
	top      holding   // the latest registration
	below    []holding // earlier owners, latest first; nil for almost all
	removed  bool      // no longer in the service; the wheel drops it
	wheeled  bool      // in the shard's wheel
}

// holding is one owner's registration.
type holding struct {
	owner   Owner
	healthy bool
	base    *Instance // as this owner registered it, before any override
}

// compare orders records by address, port and cluster.
func (r *record) compare(k InstanceKey) int {
	if c := strings.Compare(r.ip, k.IP); c != 0 {
		return c
	}
	if c := int(max(r.inst.Port, 0)) - int(k.Port); c != 0 {
		return c
	}
	return strings.Compare(r.inst.Cluster, k.Cluster)
}

// key returns the identity by which the record is sorted.
func (r *record) key() InstanceKey {
	return InstanceKey{IP: r.ip, Port: max(r.inst.Port, 0), Cluster: r.inst.Cluster}
}

// holding returns the registration of owner, nil when it has none.
func (r *record) holding(o Owner) *holding {
	if r.top.owner == o {
		return &r.top
	}
	for i := range r.below {
		if r.below[i].owner == o {
			return &r.below[i]
		}
	}
	return nil
}

// holdingOf returns the first registration of a kind, nil when there is none.
func (r *record) holdingOf(kind OwnerKind) *holding {
	if r.top.owner.Kind == kind {
		return &r.top
	}
	for i := range r.below {
		if r.below[i].owner.Kind == kind {
			return &r.below[i]
		}
	}
	return nil
}

// hold makes h the latest registration.
func (r *record) hold(h holding) {
	r.release(h.owner)
	if r.top.base != nil {
		r.below = slices.Insert(r.below, 0, r.top)
	}
	r.top = h
}

// release drops the registration of owner and reports whether any is left.
func (r *record) release(o Owner) bool {
	if r.top.base != nil && r.top.owner == o {
		r.top = holding{}
		if len(r.below) > 0 {
			r.top, r.below = r.below[0], slices.Delete(r.below, 0, 1)
		}
	} else {
		r.below = slices.DeleteFunc(r.below, func(h holding) bool { return h.owner == o })
	}
	if len(r.below) == 0 {
		r.below = nil
	}
	return r.top.base != nil
}

// healthy reports the instance's health: any owner's word is enough.
func (r *record) healthy() bool {
	return r.top.healthy || slices.ContainsFunc(r.below, func(h holding) bool { return h.healthy })
}

// silence returns for how long the HTTP owner has not beaten.
func (r *record) silence(now time.Duration) time.Duration {
	return now - time.Duration(r.lastBeat.Load())
}

// present computes what readers see: the latest registration, the override
// over it, and the health.
func (r *record) present(o *Override) *Instance {
	inst := *r.top.base
	inst.Healthy = r.healthy()
	if o != nil {
		o.apply(&inst)
	}
	return &inst
}

// share lets a sole owner's registration be the instance that readers see, so
// that the common record holds one copy. Health is kept apart in the holding.
func (r *record) share(o *Override) {
	if o == nil && len(r.below) == 0 {
		r.top.base = r.inst
	}
}
