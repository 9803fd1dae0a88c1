package registry

import (
	"slices"
	"strings"
)

// Register makes an owner's registration of an instance. The service and the
// cluster come into being when they are not there. A second registration by the
// same owner replaces the first.
//
// With a durable owner the command is durable, otherwise it is local.
type Register struct {
	Meta
	Service  ServiceKey `json:"service"`
	Owner    Owner      `json:"owner"`
	Instance Instance   `json:"instance"`
	// Kind is what the asking API declares the service to be; a service of the
	// other kind refuses. KindAny asks nothing and declares nothing.
	Kind Kind `json:"serviceKind,omitempty"`
	// TakeHealth: a known owner's health becomes the given one. Without it the
	// health of a known owner stays, as in 1.x.
	TakeHealth bool `json:"takeHealth,omitempty"`
}

func (c *Register) apply(s *Store) (Result, error) {
	sh := s.shard(c.Service)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	svc := sh.services[c.Service]
	if svc != nil {
		if err := svc.accepts(c.Kind); err != nil {
			return Result{}, err
		}
	}
	if c.Owner.Client != "" && !s.clients.hold(c.Owner.Client, c.Service, c.Instance.Key().identity()) {
		return Result{}, Refuse(ClientClosed, "", string(c.Owner.Client), "connection %s is closed", c.Owner.Client)
	}
	if svc == nil {
		svc = s.newService(sh, c.Service, &ServiceInfo{Kind: c.Kind, Selector: Selector{Type: SelectorNone}}, c.Meta)
	}
	if c.Owner.Kind == OwnerDurable {
		svc.durable = true
	}
	r := s.register(sh, svc, c)
	return Result{Touched: []*Instance{r.inst}}, nil
}

// accepts checks a declared kind against the service, and declares it when
// nobody has.
func (svc *service) accepts(kind Kind) error {
	if kind == KindAny || svc.info.Kind == kind {
		return nil
	}
	if svc.info.Kind == KindAny && len(svc.records) == 0 && !svc.durable {
		info := *svc.info
		info.Kind = kind
		svc.info = &info
		return nil
	}
	if svc.info.Kind == KindAny {
		return nil
	}
	is, not := "ephemeral", "persistent"
	if svc.info.Kind == KindPersistent {
		is, not = not, is
	}
	return Refuse(KindMismatch, "ephemeral", svc.grouped,
		"Current service %s is %s service, can't register %s instance.", svc.grouped, is, not)
}

func (s *Store) register(sh *shard, svc *service, c *Register) *record {
	base := c.Instance
	base.Ephemeral = c.Owner.ephemeral()
	base.Beat = beatTimesOf(base.Metadata)
	base.Cluster = sh.interner.intern(base.Cluster)
	base.App = sh.interner.intern(base.App)
	base.Metadata = Metadata(sh.interner.intern(string(base.Metadata)))
	if svc.cluster(base.Cluster) == nil {
		svc.setCluster(NewCluster(base.Cluster))
	}
	key := base.Key().identity()
	i, found := svc.index(key)
	if !found {
		return s.insert(sh, svc, i, key, base, c)
	}
	r := svc.records[i]
	base.Serial = r.inst.Serial
	kind, h := OwnerAdded, r.holding(c.Owner)
	healthy := base.Healthy
	if h != nil {
		kind = InstanceUpdated
		if !c.TakeHealth {
			healthy = h.healthy
		}
	}
	base.IP = keep(r.inst.IP, base.IP)
	r.hold(holding{owner: c.Owner, healthy: healthy, base: &base})
	s.beatOwner(sh, r, c)
	s.refreshFrom(sh, r, c.Meta, kind, c.Owner, r.top.base)
	return r
}

// insert adds the first registration of an instance at its place.
func (s *Store) insert(sh *shard, svc *service, at int, key InstanceKey, base Instance, c *Register) *record {
	base.IP = strings.Clone(base.IP)
	if wantsSerial(base.Metadata) {
		base.Serial = svc.freeSerial()
	}
	r := &record{svc: svc, ip: keep(base.IP, key.IP)}
	r.top = holding{owner: c.Owner, healthy: base.Healthy, base: &base}
	over := sh.overlay(svc.key, key)
	r.inst = r.top.base
	if over != nil {
		over.goneAt = present
		r.inst = r.present(&over.Override)
	}
	svc.records = slices.Insert(svc.records, at, r)
	s.count(r.inst, 1)
	s.beatOwner(sh, r, c)
	s.emit(&Event{
		Kind: InstanceRegistered, At: c.At, Cause: c.Cause, Service: svc.key,
		Instance: r.inst, Base: r.top.base, Owner: c.Owner, Revision: svc.changed(c.At),
	})
	return r
}

// keep returns the first string when both are equal, so that they share memory.
func keep(kept, other string) string {
	if kept == other {
		return kept
	}
	return strings.Clone(other)
}

// freeSerial returns the smallest unused snowflake number, plus one.
func (svc *service) freeSerial() int32 {
	used := map[int32]bool{}
	for _, r := range svc.records {
		used[r.inst.Serial] = true
	}
	n := int32(1)
	for used[n] {
		n++
	}
	return n
}

// beatOwner starts or renews the lease of an HTTP owner.
func (s *Store) beatOwner(sh *shard, r *record, c *Register) {
	if c.Owner.Kind != OwnerHTTP {
		return
	}
	r.lastBeat.Store(max(int64(c.At.Lease), 1))
	sh.wheel.add(r, c.At.Lease+r.inst.BeatTimeout())
}

// refresh recomputes what readers see of r and tells of it. kind is the event
// when something other than health changed or an owner came or went.
func (s *Store) refresh(sh *shard, r *record, m Meta, kind EventKind, owner Owner) {
	s.refreshFrom(sh, r, m, kind, owner, nil)
}

// refreshFrom is refresh for a change whose cause is the registration base.
func (s *Store) refreshFrom(sh *shard, r *record, m Meta, kind EventKind, owner Owner, base *Instance) {
	var over *Override
	if o := sh.overlay(r.svc.key, r.key()); o != nil {
		over = &o.Override
	}
	was, now := r.inst, r.present(over)
	e := Event{Kind: kind, At: m.At, Cause: m.Cause, Service: r.svc.key, Instance: now, Base: base, Owner: owner}
	same, flipped := sameRegistration(was, now), was.Healthy != now.Healthy
	if same && !flipped {
		if kind == InstanceUpdated {
			e.Kind = InstanceRenewed
		}
		e.Instance = was
		r.share(over)
		s.emit(&e)
		return
	}
	s.count(was, -1)
	s.count(now, 1)
	r.inst = now
	r.share(over)
	e.Revision = r.svc.changed(m.At)
	if !same || kind == OwnerAdded || kind == OwnerRemoved {
		s.emit(&e)
	}
	if flipped {
		e.Kind = InstanceUnhealthy
		if now.Healthy {
			e.Kind = InstanceHealthy
		}
		s.emit(&e)
	}
}

// Deregister takes an owner's registration away. The instance goes with its
// last owner. Taking away what is not there does nothing and is no error.
type Deregister struct {
	Meta
	Service  ServiceKey  `json:"service"`
	Owner    Owner       `json:"owner"`
	Instance InstanceKey `json:"instance"`
}

func (c *Deregister) apply(s *Store) (Result, error) {
	sh := s.shard(c.Service)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	svc := sh.services[c.Service]
	if svc == nil {
		return Result{}, nil
	}
	r := svc.find(c.Instance.identity())
	if r == nil || r.holding(c.Owner) == nil {
		return Result{}, nil
	}
	s.release(sh, r, c.Meta, c.Owner)
	return Result{Touched: []*Instance{r.inst}}, nil
}

// release takes one owner away, and the instance with the last.
func (s *Store) release(sh *shard, r *record, m Meta, owner Owner) {
	if owner.Kind == OwnerConnection {
		s.clients.release(owner.Client, r.svc.key, r.key())
	}
	if len(r.below) == 0 {
		s.remove(sh, r, m, owner)
		return
	}
	r.release(owner)
	s.refresh(sh, r, m, OwnerRemoved, owner)
}

// remove takes an instance out of its service.
func (s *Store) remove(sh *shard, r *record, m Meta, owner Owner) {
	svc := r.svc
	i, ok := svc.index(r.key())
	if !ok || svc.records[i] != r {
		panic("registry: a record is not where its service sorts it")
	}
	svc.records = slices.Delete(svc.records, i, i+1)
	r.removed = true
	s.count(r.inst, -1)
	if over := sh.overlay(svc.key, r.key()); over != nil {
		over.goneAt = m.At.Lease
	}
	s.emit(&Event{
		Kind: InstanceRemoved, At: m.At, Cause: m.Cause, Service: svc.key,
		Instance: r.inst, Owner: owner, Revision: svc.changed(m.At),
	})
	s.settle(sh, svc, m)
}

// settle notes when a service has become empty, so that it is cleaned later.
func (s *Store) settle(sh *shard, svc *service, m Meta) {
	if len(svc.records) > 0 || svc.durable {
		return
	}
	svc.emptiedAt = m.At.Lease
	sh.queueEmptied(svc)
}
