package registry

import (
	"slices"
	"strings"
)

// Register makes an owner's registration of an instance. The service and the
// cluster come into being when they are not there. A second registration by the
// same owner replaces the first.
//
// With a durable owner the command is durable, otherwise it is local. Service
// and Instance may be made of request memory: the store copies what it keeps.
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
	// Agent is what an HTTP client calls itself. It is not durable and in no history.
	Agent string `json:"-"`
	// remembered: it comes from a snapshot, so that its serial is settled.
	remembered bool
}

// Register is Apply for a registration that need not be allocated: the most
// frequent of the commands.
func (s *Store) Register(c *Register) error {
	_, err := c.apply(s)
	return err
}

// Renew is Register for an instance that may be there. If it is not, known is false
// and nothing was changed.
func (s *Store) Renew(c *Register) (known bool, err error) {
	sh := s.shard(c.Service)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	svc := sh.services[c.Service]
	if svc.find(c.Instance.Key().identity()) == nil {
		return false, nil
	}
	if err := c.refusal(svc); err != nil {
		return true, err
	}
	return true, c.enrol(s, sh)
}

func (c *Register) target() ServiceKey { return c.Service }

func (c *Register) refusal(svc *service) error {
	if svc == nil || c.Kind == KindAny || svc.info.Kind == KindAny || svc.info.Kind == c.Kind {
		return nil
	}
	is, not := "ephemeral", "persistent"
	if svc.info.Kind == KindPersistent {
		is, not = not, is
	}
	return Refuse(KindMismatch, "ephemeral", svc.grouped,
		"Current service %s is %s service, can't register %s instance.", svc.grouped, is, not)
}

func (c *Register) apply(s *Store) (Result, error) {
	sh := s.shard(c.Service)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if err := c.refusal(sh.services[c.Service]); err != nil {
		return Result{}, err
	}
	return Result{}, c.enrol(s, sh)
}

// enrol makes the registration. The caller holds the shard's lock, and the service
// does not refuse.
func (c *Register) enrol(s *Store, sh *shard) error {
	key := c.Instance.Key().identity()
	h := holding{kind: c.Owner.Kind, healthy: c.Instance.Healthy}
	if h.kind == OwnerHTTP {
		h.agent = s.agents.number(c.Agent)
	}
	if h.kind == OwnerConnection {
		if h.client = s.clients.enter(c.Owner.Client); h.client == nil {
			return clientClosed(c.Owner.Client)
		}
		defer h.client.mu.Unlock()
	}
	svc := sh.services[c.Service]
	if svc == nil {
		svc = s.newService(sh, c.Service, s.blank[KindAny], c.Meta)
	}
	s.declare(svc, c.Kind)
	i, known := svc.index(key)
	if known {
		s.renew(sh, svc.records[i], key, h, c)
	} else {
		s.insert(sh, svc, i, key, h, c)
	}
	if h.client != nil {
		h.client.hold(svc.records[i])
		if !h.client.recalled {
			s.replaceRecalled(sh, svc.records[i], c.Meta)
		}
	}
	return nil
}

// declare gives a service that holds nothing and that nobody has set up the kind
// that a registration asks for.
func (s *Store) declare(svc *service, kind Kind) {
	if kind == KindAny || svc.info.Kind != KindAny || len(svc.records) > 0 || svc.kept {
		return
	}
	if svc.info == s.blank[KindAny] {
		svc.info = s.blank[kind]
		return
	}
	info := *svc.info
	info.Kind = kind
	svc.info = &info
}

// insert adds the first registration of an instance at its place.
func (s *Store) insert(sh *shard, svc *service, at int, key InstanceKey, h holding, c *Register) {
	h.base = s.registered(sh, svc, c, nil, svc.serial(c))
	r := &record{svc: svc, inst: h.base, top: h}
	r.spell(h.base.IP, key.IP)
	if over := sh.overlay(svc.key, key); over != nil {
		over.goneAt = present
		r.inst = r.present(&over.Override)
	}
	svc.records = slices.Insert(svc.records, at, r)
	s.count(r.inst, 1)
	r.lastBeat.Store(int64(c.At.Lease))
	s.arm(sh, r)
	s.emit(sh, Event{
		Kind: InstanceRegistered, At: c.At, Cause: c.Cause, Service: svc.key,
		Instance: r.inst, Base: h.base, Owner: c.Owner, Revision: svc.changed(c.At),
	})
}

// renew replaces or adds an owner's registration of an instance that is there.
func (s *Store) renew(sh *shard, r *record, key InstanceKey, h holding, c *Register) {
	kind, known := OwnerAdded, r.top.base
	if before := r.holding(c.Owner); before != nil {
		kind, known = InstanceUpdated, before.base
		if !c.TakeHealth {
			h.healthy = before.healthy
		}
	}
	h.base = s.registered(sh, r.svc, c, known, r.inst.Serial)
	r.hold(h)
	r.spell(h.base.IP, key.IP)
	if c.Owner.Kind == OwnerHTTP {
		r.lastBeat.Store(int64(c.At.Lease))
	}
	s.refresh(sh, r, c.Meta, kind, c.Owner)
}

// registered returns what c registers, as an instance that shares no memory with
// the request, but with known where they are equal. It is known itself when that
// says the same; known may be nil.
func (s *Store) registered(sh *shard, svc *service, c *Register, known *Instance, serial int32) *Instance {
	i := c.Instance
	i.Ephemeral = c.Owner.Kind.ephemeral()
	i.Cluster = s.useCluster(svc, i.Cluster)
	i.Serial = serial
	var old Instance
	if known != nil {
		if sameRegistration(known, &i) {
			return known
		}
		old = *known
	}
	if i.IP = old.IP; i.IP != c.Instance.IP {
		i.IP = strings.Clone(c.Instance.IP)
	}
	i.App = sh.interner.intern(i.App)
	id := i.OwnID()
	if i.Metadata == old.Metadata && id == old.OwnID() {
		i.Metadata, i.Rare = old.Metadata, old.Rare
	} else {
		i.Metadata = sh.metadata(svc, i.Metadata)
		i.Rare = rareOf(strings.Clone(id), i.Metadata)
	}
	kept := i // only what is kept is allocated
	return &kept
}

// metadata returns m in memory that is no request's: that of another instance of
// the service when it has the same, as most have, or of one seen lately.
func (sh *shard) metadata(svc *service, m Metadata) Metadata {
	if len(svc.records) > 0 && svc.records[0].inst.Metadata == m {
		return svc.records[0].inst.Metadata
	}
	return Metadata(sh.interner.intern(string(m)))
}

// serial returns the number of a new instance: the one that it had before a
// restart, or else the smallest unused one when its metadata asks for one.
func (svc *service) serial(c *Register) int32 {
	had := c.Instance.Serial
	if had == 0 && (c.remembered || !wantsSerial(c.Instance.Metadata)) {
		return 0
	}
	used := make([]bool, len(svc.records)+2) // the smallest unused one is in it
	taken := had == 0
	for _, r := range svc.records {
		taken = taken || r.inst.Serial == had
		if n := int(r.inst.Serial); n < len(used) {
			used[n] = true
		}
	}
	if !taken {
		return had
	}
	return int32(1 + slices.Index(used[1:], false))
}

// refresh recomputes what readers see of r, has it judged in time, and tells of
// what changed. kind is the event for a change other than of health; without such
// a change an [InstanceUpdated] becomes an [InstanceRenewed], and nothing is said
// when kind is empty.
func (s *Store) refresh(sh *shard, r *record, m Meta, kind EventKind, owner Owner) {
	var over *Override
	if o := sh.overlay(r.svc.key, r.key()); o != nil {
		over = &o.Override
	}
	e := Event{Kind: kind, At: m.At, Cause: m.Cause, Service: r.svc.key, Owner: owner}
	if kind == InstanceUpdated || kind == OwnerAdded {
		e.Base = r.top.base
	}
	was, now := r.inst, r.present(over)
	same, flipped := sameRegistration(was, now), was.Healthy != now.Healthy
	if !same || flipped {
		s.count(was, -1)
		s.count(now, 1)
		r.inst = now
		e.Revision = r.svc.changed(m.At)
	}
	e.Instance = r.inst
	r.share(over)
	s.arm(sh, r)
	if same && kind == InstanceUpdated {
		e.Kind = InstanceRenewed
	}
	if e.Kind != "" && !(flipped && e.Kind == InstanceRenewed) {
		s.emit(sh, e)
	}
	if flipped {
		e.Kind = InstanceUnhealthy
		if now.Healthy {
			e.Kind = InstanceHealthy
		}
		s.emit(sh, e)
	}
}

// Deregister takes an owner's registration away. The instance goes with its
// last owner. Taking away what is not there changes nothing and is no error; for
// an HTTP owner it is an [InstanceRenewed], as 1.x then pushes the list once more
// and a client may wait for it.
//
// With a durable owner the command is durable, otherwise it is local. An override
// of the instance stays for its time; see [DropOverride].
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
	switch r := svc.find(c.Instance.identity()); {
	case r != nil && r.holding(c.Owner) != nil:
		s.release(sh, r, c.Meta, c.Owner)
	case svc != nil && r == nil && c.Owner.Kind == OwnerHTTP:
		s.emitAbsent(sh, InstanceRenewed, svc.key, c.Instance.clone(), c.Meta)
	}
	return Result{}, nil
}

// release takes one owner away, and the instance with the last.
func (s *Store) release(sh *shard, r *record, m Meta, owner Owner) {
	if h := r.holding(owner); h.client != nil {
		h.client.release(r)
	}
	if len(r.below()) == 0 {
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
	sh.wheel.disarm(r)
	s.count(r.inst, -1)
	if over := sh.overlay(svc.key, r.key()); over != nil {
		over.goneAt = m.At.Lease
	}
	s.emit(sh, Event{
		Kind: InstanceRemoved, At: m.At, Cause: m.Cause, Service: svc.key,
		Instance: r.inst, Owner: owner, Revision: svc.changed(m.At),
	})
	sh.settle(svc, m.At, s.cfg.EmptyServiceMemory)
}
