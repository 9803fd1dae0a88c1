package registry

import "time"

// Holding is one owner's part in an instance, as [Store.EachHolding] shows it.
type Holding struct {
	Service ServiceKey
	// Instance is as readers see it, whoever owns it besides.
	Instance *Instance
	Owner    Owner
	// LastBeat is the lease-clock time of the latest beat or registration of an
	// HTTP owner, 0 for others.
	LastBeat time.Duration
	// Agent is what an HTTP owner calls itself, empty when it is not known.
	Agent string
}

// EachHolding calls visit for every owner of every instance of the store, in no
// order. visit is called with a shard's read lock held: it must be quick and must
// not call the store. Names and instances may be kept.
func (s *Store) EachHolding(visit func(Holding)) {
	for i := range s.shards {
		sh := &s.shards[i]
		sh.mu.RLock()
		for _, svc := range sh.services {
			for _, r := range svc.records {
				s.eachHolding(r, visit)
			}
		}
		sh.mu.RUnlock()
	}
}

// eachHolding shows r's owners, the latest first.
func (s *Store) eachHolding(r *record, visit func(Holding)) {
	show := func(h *holding) {
		shown := Holding{Service: r.svc.key, Instance: r.inst, Owner: h.owner()}
		if h.kind == OwnerHTTP {
			shown.LastBeat = time.Duration(r.lastBeat.Load())
			shown.Agent = s.agents.text(h.agent)
		}
		visit(shown)
	}
	show(&r.top)
	below := r.below()
	for i := range below {
		show(&below[i])
	}
}
