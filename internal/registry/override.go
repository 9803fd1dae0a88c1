package registry

import "time"

// Override is what an operator laid over an instance's registration. Nil fields
// leave the registration's value. It survives re-registrations; an explicit
// deregistration drops it, and so does [Config.OverrideMemory] without the
// instance.
type Override struct {
	Weight   *float64  `json:"weight,omitempty"`
	Enabled  *bool     `json:"enabled,omitempty"`
	App      *string   `json:"app,omitempty"`
	Metadata *Metadata `json:"metadata,omitempty"` // replaces the whole map
	// Extra is laid over the map, entry by entry: 2.x and later merge where 1.x
	// replaces.
	Extra *Metadata `json:"extra,omitempty"`
}

func (o *Override) apply(i *Instance) {
	if o.Weight != nil {
		i.Weight = *o.Weight
	}
	if o.Enabled != nil {
		i.Enabled = *o.Enabled
	}
	if o.App != nil {
		i.App = *o.App
	}
	if o.Metadata == nil && o.Extra == nil {
		return
	}
	if o.Metadata != nil {
		i.Metadata = *o.Metadata
	}
	if o.Extra != nil {
		i.Metadata = i.Metadata.With(*o.Extra)
	}
	i.Rare = rareOf(i.OwnID(), i.Metadata)
}

// Over returns o laid over an earlier override. A map that replaces the whole
// ends what was laid over it before.
func (o Override) Over(earlier Override) Override {
	if o.Weight == nil {
		o.Weight = earlier.Weight
	}
	if o.Enabled == nil {
		o.Enabled = earlier.Enabled
	}
	if o.App == nil {
		o.App = earlier.App
	}
	if o.Metadata == nil {
		o.Metadata = earlier.Metadata
		if o.Extra == nil {
			o.Extra = earlier.Extra
		}
	}
	return o
}

// overlay is a stored override. goneAt is the lease-clock time since when its
// instance has been missing, or present.
type overlay struct {
	Override
	goneAt time.Duration
}

const present time.Duration = -1

// SetOverride is a durable command: it stores the whole override of each
// target, whether or not the instance is there, because a replay after a restart
// comes before the ephemeral instances do. It keeps the memory of Service and of
// the overrides.
type SetOverride struct {
	Meta
	Service ServiceKey       `json:"service"`
	Entries []TargetOverride `json:"entries"`
}

// TargetOverride is the override of one instance.
type TargetOverride struct {
	Target   InstanceKey `json:"target"`
	Override Override    `json:"override"`
}

// apply returns in Touched the instances that are there, in the order of the
// entries.
func (c *SetOverride) apply(s *Store) (Result, error) {
	sh := s.shard(c.Service)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	var res Result
	svc := sh.services[c.Service]
	for _, e := range c.Entries {
		key := e.Target.identity().clone()
		o := &overlay{Override: e.Override, goneAt: c.At.Lease}
		s.setOverlay(sh, c.Service, key, o)
		if r := svc.find(key); r != nil {
			o.goneAt = present
			s.refresh(sh, r, c.Meta, OverrideSet, r.top.owner())
			res.Touched = append(res.Touched, r.inst)
		} else {
			s.emitAbsent(sh, OverrideSet, c.Service, key, c.Meta)
		}
	}
	return res, nil
}

// DropOverride is a durable command: the override of an instance is forgotten.
// Dropping what is not there does nothing.
type DropOverride struct {
	Meta
	Service ServiceKey  `json:"service"`
	Target  InstanceKey `json:"target"`
}

func (c *DropOverride) apply(s *Store) (Result, error) {
	sh := s.shard(c.Service)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	s.dropOverride(sh, c.Service, c.Target.identity(), c.Meta)
	return Result{}, nil
}

func (s *Store) dropOverride(sh *shard, key ServiceKey, target InstanceKey, m Meta) {
	if sh.overlay(key, target) == nil {
		return
	}
	s.dropOverlay(sh, key, target)
	if r := sh.services[key].find(target); r != nil {
		s.refresh(sh, r, m, OverrideDropped, r.top.owner())
	} else {
		s.emitAbsent(sh, OverrideDropped, key, target.clone(), m)
	}
}

// emitAbsent tells of something done to an instance that is not there. target is
// not made of request memory.
func (s *Store) emitAbsent(sh *shard, kind EventKind, key ServiceKey, target InstanceKey, m Meta) {
	s.emit(sh, Event{
		Kind: kind, At: m.At, Cause: m.Cause, Service: key,
		Instance: &Instance{IP: target.IP, Port: target.Port, Cluster: target.Cluster},
	})
}

func (sh *shard) overlay(svc ServiceKey, key InstanceKey) *overlay {
	if len(sh.overlays) == 0 {
		return nil
	}
	return sh.overlays[svc][key]
}

func (s *Store) setOverlay(sh *shard, svc ServiceKey, key InstanceKey, o *overlay) {
	if sh.overlays == nil {
		sh.overlays = map[ServiceKey]map[InstanceKey]*overlay{}
	}
	if sh.overlays[svc] == nil {
		sh.overlays[svc] = map[InstanceKey]*overlay{}
		s.counts.overridden.Add(1)
	}
	sh.overlays[svc][key] = o
}

func (s *Store) dropOverlay(sh *shard, svc ServiceKey, key InstanceKey) {
	delete(sh.overlays[svc], key)
	if len(sh.overlays[svc]) == 0 {
		s.dropOverlays(sh, svc)
	}
}

// dropOverlays forgets all overrides of a service.
func (s *Store) dropOverlays(sh *shard, svc ServiceKey) {
	if _, ok := sh.overlays[svc]; ok {
		delete(sh.overlays, svc)
		s.counts.overridden.Add(-1)
	}
}

// Override returns the stored override of an instance; ok is false when there
// is none.
func (s *Store) Override(svc ServiceKey, instance InstanceKey) (o Override, ok bool) {
	sh := s.shard(svc)
	sh.mu.RLock()
	defer sh.mu.RUnlock()
	if over := sh.overlay(svc, instance.identity()); over != nil {
		return over.Override, true
	}
	return Override{}, false
}
