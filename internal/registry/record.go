package registry

import (
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// record is one instance with its owners. Everything but lastBeat is guarded by
// the lock of the service's shard; lastBeat is stored under its read lock. There
// is one for each instance, so what few of them need is behind one pointer.
type record struct {
	svc  *service
	inst *Instance // as readers see it
	// lastBeat is the lease-clock time of the latest beat or registration of
	// the HTTP owner, in nanoseconds.
	lastBeat atomic.Int64
	top      holding // the latest registration
	rare     *rarity // nil for almost all
	timer    timer   // in the shard's wheel
}

// rarity is what few records have.
type rarity struct {
	ip    string    // the canonical address, when it was ever registered in another spelling
	below []holding // earlier owners, latest first
}

// holding is one owner's registration.
type holding struct {
	base    *Instance // as this owner registered it, before any override
	client  *client   // the owner's connection; nil for the other kinds of owner
	kind    OwnerKind
	healthy bool
	agent   agent // what an HTTP owner calls itself
}

func (h *holding) owner() Owner {
	if h.client == nil {
		return Owner{Kind: h.kind}
	}
	return Owner{Kind: h.kind, Client: h.client.id}
}

// of reports whether the registration is o's.
func (h *holding) of(o Owner) bool {
	return h.kind == o.Kind && (h.client == nil || h.client.id == o.Client)
}

// address returns the canonical address.
func (r *record) address() string {
	if r.rare != nil && r.rare.ip != "" {
		return r.rare.ip
	}
	return r.inst.IP
}

// below returns the earlier owners, latest first.
func (r *record) below() []holding {
	if r.rare == nil {
		return nil
	}
	return r.rare.below
}

// uncommon returns r.rare, and makes it when it is not there.
func (r *record) uncommon() *rarity {
	if r.rare == nil {
		r.rare = &rarity{}
	}
	return r.rare
}

// spell notes the canonical address when one of another spelling is registered.
func (r *record) spell(registered, canonical string) {
	if registered != canonical && r.uncommon().ip == "" {
		r.rare.ip = strings.Clone(canonical)
	}
}

// compare orders records by address, port and cluster.
func (r *record) compare(k InstanceKey) int {
	if c := strings.Compare(r.address(), k.IP); c != 0 {
		return c
	}
	if c := int(max(r.inst.Port, 0)) - int(k.Port); c != 0 {
		return c
	}
	return strings.Compare(r.inst.Cluster, k.Cluster)
}

// key returns the identity by which the record is sorted.
func (r *record) key() InstanceKey {
	return InstanceKey{IP: r.address(), Port: max(r.inst.Port, 0), Cluster: r.inst.Cluster}
}

// holding returns the registration of owner, nil when it has none.
func (r *record) holding(o Owner) *holding {
	if r.top.of(o) {
		return &r.top
	}
	below := r.below()
	for i := range below {
		if below[i].of(o) {
			return &below[i]
		}
	}
	return nil
}

// holdingOf returns the latest registration of a kind, nil when there is none.
func (r *record) holdingOf(kind OwnerKind) *holding {
	if r.top.kind == kind {
		return &r.top
	}
	below := r.below()
	for i := range below {
		if below[i].kind == kind {
			return &below[i]
		}
	}
	return nil
}

// hold makes h the latest registration.
func (r *record) hold(h holding) {
	if owner := h.owner(); !r.top.of(owner) {
		rare := r.uncommon()
		rare.below = slices.DeleteFunc(rare.below, func(have holding) bool { return have.of(owner) })
		rare.below = slices.Insert(rare.below, 0, r.top)
	}
	r.top = h
}

// release drops the registration of owner, which is not the only one.
func (r *record) release(o Owner) {
	below := r.below()
	if r.top.of(o) {
		r.top = below[0]
		r.rare.below = slices.Delete(below, 0, 1)
	} else {
		r.rare.below = slices.DeleteFunc(below, func(h holding) bool { return h.of(o) })
	}
	if len(r.rare.below) == 0 {
		r.rare.below = nil
		if r.rare.ip == "" {
			r.rare = nil
		}
	}
}

// healthy reports the instance's health: any owner's word is enough.
func (r *record) healthy() bool {
	return r.top.healthy || slices.ContainsFunc(r.below(), func(h holding) bool { return h.healthy })
}

// silence returns for how long the HTTP owner has not beaten.
func (r *record) silence(now time.Duration) time.Duration {
	return now - time.Duration(r.lastBeat.Load())
}

// present computes what readers see: the latest registration, the override
// over it, and the health.
func (r *record) present(o *Override) *Instance {
	healthy := r.healthy()
	if o == nil && r.top.base.Healthy == healthy {
		return r.top.base
	}
	inst := *r.top.base
	inst.Healthy = healthy
	if o != nil {
		o.apply(&inst)
	}
	return &inst
}

// share lets a sole owner's registration be the instance that readers see, so
// that the common record holds one copy. Health is kept apart in the holding.
func (r *record) share(o *Override) {
	if o == nil && len(r.below()) == 0 {
		r.top.base = r.inst
	}
}
