package registry

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// model is the registry again, as plainly as it can be written: maps and slices,
// and expiry by looking at everything. TestModel holds the store to it. It shares
// the types of the store and none of its ways.
type model struct {
	cfg       Config
	services  map[ServiceKey]*modelService
	overrides map[ServiceKey]map[InstanceKey]*modelOverride
	open      map[ClientID]bool
	subs      map[ServiceKey]map[SubscriberKey]*modelSubscriber
	checks    bool
}

type modelService struct {
	instances    []*modelInstance // in no order
	info         ServiceInfo
	clusters     map[string]bool
	kept         bool
	emptied      time.Duration
	held         bool
	until, rearm time.Duration
}

type modelInstance struct {
	key    InstanceKey  // canonical
	owners []modelOwner // latest first
	beat   time.Duration
	serial int32
}

type modelOwner struct {
	owner   Owner
	healthy bool
	base    Instance
}

type modelOverride struct {
	Override
	there bool
	gone  time.Duration
}

type modelSubscriber struct {
	seen    time.Duration
	udp     bool
	refused string
}

func newModel(cfg Config) *model {
	return &model{
		cfg: cfg, services: map[ServiceKey]*modelService{}, overrides: map[ServiceKey]map[InstanceKey]*modelOverride{},
		open: map[ClientID]bool{}, subs: map[ServiceKey]map[SubscriberKey]*modelSubscriber{}, checks: true,
	}
}

// modelTimes are the life times that the metadata of the test ask for.
func modelTimes(m Metadata) (timeout, remove time.Duration) {
	if m == modelExtra {
		m = ""
	}
	m = Metadata(strings.Replace(string(m), `,"x":"1"}`, "}", 1))
	for _, v := range metadataChoices() {
		if v.m == m {
			return v.timeout, v.remove
		}
	}
	panic("the model does not know the metadata " + m)
}

// modelExtra is what the test's overrides lay over metadata: it sorts last.
const modelExtra Metadata = `{"x":"1"}`

// modelKey is the identity of a key: the test uses two spellings of one address.
func modelKey(k InstanceKey) InstanceKey {
	if k.IP == "[2001:DB8:0::1]" {
		k.IP = "2001:db8::1"
	}
	k.Port = max(k.Port, 0)
	return k
}

func (s *modelService) find(k InstanceKey) *modelInstance {
	for _, i := range s.instances {
		if i.key == modelKey(k) {
			return i
		}
	}
	return nil
}

func (i *modelInstance) ownerOf(kind OwnerKind) *modelOwner {
	for n := range i.owners {
		if i.owners[n].owner.Kind == kind {
			return &i.owners[n]
		}
	}
	return nil
}

func (i *modelInstance) take(o Owner) (mine *modelOwner) {
	for n := range i.owners {
		if i.owners[n].owner == o {
			owner := i.owners[n]
			i.owners = slices.Delete(i.owners, n, n+1)
			return &owner
		}
	}
	return nil
}

// shown is what readers see of an instance.
func (m *model) shown(key ServiceKey, i *modelInstance) Instance {
	s := i.owners[0].base
	s.Serial, s.Healthy = i.serial, false
	for _, o := range i.owners {
		s.Healthy = s.Healthy || o.healthy
	}
	o := m.overrides[key][i.key]
	if o == nil {
		return s
	}
	if o.Weight != nil {
		s.Weight = *o.Weight
	}
	if o.Enabled != nil {
		s.Enabled = *o.Enabled
	}
	if o.Metadata != nil {
		s.Metadata = *o.Metadata
	}
	if o.Extra != nil && s.Metadata == "" {
		s.Metadata = modelExtra
	} else if o.Extra != nil {
		s.Metadata = Metadata(strings.TrimSuffix(string(s.Metadata), "}")) + `,"x":"1"}`
	}
	return s
}

func (m *model) register(c *Register, now time.Duration) Code {
	svc := m.services[c.Service]
	if svc != nil && c.Kind != KindAny && svc.info.Kind != KindAny && svc.info.Kind != c.Kind {
		return KindMismatch
	}
	if c.Owner.Kind == OwnerConnection && !m.open[c.Owner.Client] {
		return ClientClosed
	}
	if svc == nil {
		svc = m.create(c.Service)
	}
	if svc.info.Kind == KindAny && !svc.kept && len(svc.instances) == 0 {
		svc.info.Kind = c.Kind
	}
	svc.clusters[c.Instance.Cluster] = true
	base := c.Instance
	base.Ephemeral = c.Owner.Kind != OwnerDurable
	i := svc.find(c.Instance.Key())
	if i == nil {
		i = &modelInstance{key: modelKey(c.Instance.Key()), serial: svc.serial(c)}
		svc.instances = append(svc.instances, i)
		if o := m.overrides[c.Service][i.key]; o != nil {
			o.there = true
		}
	}
	owner := modelOwner{owner: c.Owner, healthy: c.Instance.Healthy, base: base}
	if before := i.take(c.Owner); before != nil && !c.TakeHealth {
		owner.healthy = before.healthy
	}
	i.owners = slices.Insert(i.owners, 0, owner)
	if c.Owner.Kind == OwnerHTTP {
		i.beat = now
	}
	return 0
}

func (m *model) create(key ServiceKey) *modelService {
	svc := &modelService{clusters: map[string]bool{}, info: ServiceInfo{Selector: Selector{Type: SelectorNone}}}
	m.services[key] = svc
	return svc
}

func (s *modelService) serial(c *Register) int32 {
	if c.Instance.Serial == 0 {
		if !strings.Contains(string(c.Instance.Metadata), "snowflake") {
			return 0
		}
		c.Instance.Serial = 1
	}
	n := c.Instance.Serial
	if !s.used(n) {
		return n
	}
	for n = 1; s.used(n); n++ {
	}
	return n
}

func (s *modelService) used(serial int32) bool {
	return slices.ContainsFunc(s.instances, func(i *modelInstance) bool { return i.serial == serial })
}

// release takes an owner away, and the instance with the last.
func (m *model) release(key ServiceKey, k InstanceKey, o Owner, now time.Duration) {
	svc := m.services[key]
	if svc == nil {
		return
	}
	i := svc.find(k)
	if i == nil || i.take(o) == nil || len(i.owners) > 0 {
		return
	}
	svc.instances = slices.DeleteFunc(svc.instances, func(other *modelInstance) bool { return other == i })
	svc.emptied = now
	if over := m.overrides[key][i.key]; over != nil {
		over.there, over.gone = false, now
	}
}

func (m *model) beat(key ServiceKey, k InstanceKey, now time.Duration) (known bool) {
	svc := m.services[key]
	if svc == nil {
		return false
	}
	i := svc.find(k)
	if i == nil {
		return false
	}
	if o := i.ownerOf(OwnerHTTP); o != nil {
		i.beat = now
		o.healthy = o.healthy || !i.owners[0].base.Marked
	}
	return true
}

func (m *model) setHealth(c *SetHealth) Code {
	svc := m.services[c.Service]
	if svc == nil {
		return ServiceNotFound
	}
	if i := svc.find(c.Instance); i != nil {
		for n := range i.owners {
			if c.All || i.owners[n].owner.Kind == c.Kind {
				i.owners[n].healthy = c.Healthy
			}
		}
	}
	return 0
}

func (m *model) setOverride(c *SetOverride, now time.Duration) {
	for _, e := range c.Entries {
		k := modelKey(e.Target)
		if m.overrides[c.Service] == nil {
			m.overrides[c.Service] = map[InstanceKey]*modelOverride{}
		}
		there := m.services[c.Service] != nil && m.services[c.Service].find(k) != nil
		m.overrides[c.Service][k] = &modelOverride{Override: e.Override, there: there, gone: now}
	}
}

func (m *model) setService(key ServiceKey, info ServiceInfo) {
	svc := m.services[key]
	if svc == nil {
		svc = m.create(key)
	}
	info.Set = true
	svc.info, svc.kept = info, true
}

func (m *model) deleteService(c *DeleteService) Code {
	svc := m.services[c.Service]
	switch {
	case svc == nil:
		return ServiceNotFound
	case c.IfEmpty && len(svc.instances) > 0:
		return ServiceNotEmpty
	}
	delete(m.services, c.Service)
	delete(m.overrides, c.Service)
	return 0
}

func (m *model) closeClient(id ClientID, now time.Duration) {
	if !m.open[id] {
		return
	}
	delete(m.open, id)
	for key, svc := range m.services {
		for _, i := range slices.Clone(svc.instances) {
			m.release(key, i.key, Owner{Kind: OwnerConnection, Client: id}, now)
		}
	}
	for key, subs := range m.subs {
		for k := range subs {
			if k.Client == id {
				m.unsubscribe(key, k)
			}
		}
	}
}

func (m *model) subscribe(s *Subscriber, now time.Duration) Code {
	known := m.subs[s.Service][s.SubscriberKey]
	if known == nil && s.Client != "" && !m.open[s.Client] {
		return ClientClosed
	}
	if m.subs[s.Service] == nil {
		m.subs[s.Service] = map[SubscriberKey]*modelSubscriber{}
	}
	m.subs[s.Service][s.SubscriberKey] = &modelSubscriber{seen: now, udp: s.Protocol == ProtocolUDP, refused: s.Refused}
	return 0
}

func (m *model) unsubscribe(key ServiceKey, k SubscriberKey) {
	delete(m.subs[key], k)
	if len(m.subs[key]) == 0 {
		delete(m.subs, key)
	}
}

func (m *model) expireSubscribers(now, ttl time.Duration) {
	for key, subs := range m.subs {
		for k, s := range subs {
			if s.udp && now-s.seen > ttl {
				m.unsubscribe(key, k)
			}
		}
	}
}

// expire looks at everything. The overrides that are due are dropped at once.
func (m *model) expire(now time.Duration) {
	for key, svc := range m.services {
		if svc.held && now >= svc.until {
			svc.held = false
		}
		if m.checks {
			m.expireService(key, svc, now)
		}
		if len(svc.instances) == 0 && !svc.kept && now-svc.emptied >= m.cfg.EmptyServiceMemory {
			delete(m.services, key)
		}
	}
	for key, overs := range m.overrides {
		for k, o := range overs {
			if !o.there && now-o.gone >= m.cfg.OverrideMemory {
				m.dropOverride(key, k)
			}
		}
	}
}

func (m *model) dropOverride(key ServiceKey, k InstanceKey) {
	delete(m.overrides[key], modelKey(k))
	if len(m.overrides[key]) == 0 {
		delete(m.overrides, key)
	}
}

func (m *model) expireService(key ServiceKey, svc *modelService, now time.Duration) {
	var due []*modelInstance
	beating, silent, shortest := 0, 0, time.Duration(1<<62)
	for _, i := range svc.instances {
		o, s := i.ownerOf(OwnerHTTP), m.shown(key, i)
		if o == nil || s.Marked {
			continue
		}
		beating++
		timeout, remove := modelTimes(s.Metadata)
		if now-i.beat > timeout {
			o.healthy = false
			silent++
			shortest = min(shortest, remove)
		}
		if now-i.beat > remove && m.cfg.Expire {
			due = append(due, i)
		}
	}
	if len(due) == 0 || svc.held {
		return
	}
	brake := m.cfg.Brake
	if brake.Enabled && now >= svc.rearm && silent >= brake.MinInstances && float64(silent) >= brake.MinShare*float64(beating) {
		svc.held, svc.until, svc.rearm = true, now+shortest, now+2*shortest
		return
	}
	for _, i := range due {
		m.release(key, i.key, httpOwner, now)
	}
}

// restart forgets what a server forgets when it starts again.
func (m *model) restart() {
	m.subs = map[ServiceKey]map[SubscriberKey]*modelSubscriber{}
	m.open = map[ClientID]bool{}
	for key, svc := range m.services {
		durable := svc.kept
		clusters := map[string]bool{}
		for _, i := range svc.instances {
			i.beat = 0
			clusters[i.key.Cluster] = true
			slices.SortStableFunc(i.owners, func(a, b modelOwner) int { // the durable owner was there first
				return cmp.Compare(a.owner.Kind/OwnerDurable, b.owner.Kind/OwnerDurable)
			})
			for _, o := range i.owners {
				durable = durable || o.owner.Kind == OwnerDurable
				if o.owner.Client != "" {
					m.open[o.owner.Client] = true
				}
			}
		}
		svc.held, svc.until, svc.rearm = false, 0, 0
		if !durable {
			svc.clusters, svc.info = clusters, ServiceInfo{Selector: Selector{Type: SelectorNone}}
		}
		if !svc.kept && len(svc.instances) == 0 {
			delete(m.services, key)
		}
	}
	for _, overs := range m.overrides {
		for _, o := range overs {
			o.gone = 0
		}
	}
}

// state prints the whole model as [storeState] prints a store.
func (m *model) state(now time.Duration) string {
	var b strings.Builder
	var n Counts
	for _, key := range sortedKeys(m.services) {
		svc := m.services[key]
		n.Services++
		fmt.Fprintf(&b, "service %s kind %d set %v threshold %v clusters %v held %v\n",
			key, svc.info.Kind, svc.info.Set, svc.info.ProtectThreshold, sortedStrings(svc.clusters), svc.held)
		slices.SortFunc(svc.instances, func(a, b *modelInstance) int { return a.key.compare(b.key) })
		for _, i := range svc.instances {
			s := m.shown(key, i)
			var owners []Holder
			for _, o := range i.owners {
				owners = append(owners, Holder{Owner: o.owner, Healthy: o.healthy})
			}
			since := time.Duration(-1)
			if i.ownerOf(OwnerHTTP) != nil {
				since = now - i.beat
			}
			b.WriteString(stateLine(&s, owners, since))
			n.Healthy += int64(boolInt(s.Healthy))
			n.Ephemeral += int64(boolInt(s.Ephemeral))
			n.Persistent += int64(boolInt(!s.Ephemeral))
		}
	}
	for _, key := range sortedKeys(m.subs) {
		var lines []string
		for k, s := range m.subs[key] {
			lines = append(lines, fmt.Sprintf("subscriber %s %s %q %q %v\n", key, k.Addr, k.Client, s.refused, s.seen))
		}
		slices.Sort(lines)
		n.Subscribers += int64(len(lines))
		b.WriteString(strings.Join(lines, ""))
	}
	n.Overridden = int64(len(m.overrides))
	fmt.Fprintf(&b, "%+v\n", n)
	return b.String()
}
