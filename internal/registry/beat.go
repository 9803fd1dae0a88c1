package registry

import "time"

// Beat renews the lease of an instance's HTTP owner. It is the one change of
// state that is no command: on the common path it is a look-up under a read
// lock and an atomic store. A beat never changes weight or metadata, and never
// takes an instance away from a connection or from the durable store.
type Beat struct {
	Meta
	Service  ServiceKey
	Instance InstanceKey
}

// BeatState is what became of a beat.
type BeatState struct {
	// Known: the instance is there. Otherwise nothing was changed.
	Known bool
	// Interval is what the instance's metadata asks for; 0 when it does not.
	Interval time.Duration
	// Unnamed: nobody has said what the HTTP owner calls itself; see
	// [Store.Introduce].
	Unnamed bool
}

// Beat applies b. It does not block but for the shard's lock.
func (s *Store) Beat(b *Beat) BeatState {
	sh := s.shard(b.Service)
	sh.mu.RLock()
	state, revive := sh.beat(b)
	sh.mu.RUnlock()
	if revive {
		s.revive(sh, b)
	}
	return state
}

// beat renews the lease and reports whether the owner must become healthy.
func (sh *shard) beat(b *Beat) (state BeatState, revive bool) {
	r := sh.services[b.Service].find(b.Instance.identity())
	if r == nil {
		return BeatState{}, false
	}
	state.Known = true
	state.Interval = r.inst.BeatTimes().Interval
	h := r.holdingOf(OwnerHTTP)
	if h == nil {
		return state, false
	}
	r.lastBeat.Store(int64(b.At.Lease))
	state.Unnamed = h.agent == noAgent
	return state, !h.healthy && !r.inst.Marked
}

// revive makes the HTTP owner healthy again, if it still is not.
func (s *Store) revive(sh *shard, b *Beat) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	r := sh.services[b.Service].find(b.Instance.identity())
	if r == nil {
		return
	}
	if h := r.holdingOf(OwnerHTTP); h != nil && !h.healthy {
		h.healthy = true
		s.refresh(sh, r, b.Meta, "", h.owner())
	}
}

// SetHealth is a local command: it sets the health of an instance's owners of
// one kind, or of all. Who may do so is for the caller to decide. Setting it for
// an instance that is not there does nothing.
type SetHealth struct {
	Meta
	Service  ServiceKey
	Instance InstanceKey
	Healthy  bool
	// All sets the health of every owner; otherwise only that of Kind.
	All  bool
	Kind OwnerKind
}

func (c *SetHealth) apply(s *Store) (Result, error) {
	sh := s.shard(c.Service)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	svc := sh.services[c.Service]
	if svc == nil {
		return Result{}, serviceNotFound(c.Service)
	}
	r := svc.find(c.Instance.identity())
	if r == nil {
		return Result{}, nil
	}
	set := func(h *holding) {
		if c.All || h.kind == c.Kind {
			h.healthy = c.Healthy
		}
	}
	set(&r.top)
	below := r.below()
	for i := range below {
		set(&below[i])
	}
	s.refresh(sh, r, c.Meta, InstanceRenewed, r.top.owner())
	return Result{}, nil
}

func serviceNotFound(key ServiceKey) *Error {
	return Refuse(ServiceNotFound, "serviceName", key.Grouped(), "service not found: %s", key.Grouped())
}
