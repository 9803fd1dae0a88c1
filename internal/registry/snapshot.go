package registry

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"maps"
	"slices"
)

// entry is one line of a snapshot. Exactly one field is set.
type entry struct {
	Switches  *Switches      `json:"switches,omitempty"`
	Namespace *Namespace     `json:"namespace,omitempty"`
	Service   *serviceEntry  `json:"service,omitempty"`
	Instance  *instanceEntry `json:"instance,omitempty"`
	Override  *overrideEntry `json:"override,omitempty"`
	Unhealthy *healthEntry   `json:"unhealthy,omitempty"`
}

type serviceEntry struct {
	ServiceKey
	Info     *ServiceInfo `json:"info"`
	Clusters []*Cluster   `json:"clusters,omitempty"`
	Revision int64        `json:"revision"`
	Kept     bool         `json:"kept,omitempty"`
}

type instanceEntry struct {
	ServiceKey
	Owner    Owner     `json:"owner"`
	Healthy  bool      `json:"healthy"` // in the eyes of this owner
	Instance *Instance `json:"instance"`
}

// healthEntry are the persistent instances of a service whose probes fail: soft
// state, which the durable log does not have.
type healthEntry struct {
	ServiceKey
	Instances []InstanceKey `json:"instances"`
}

type overrideEntry struct {
	ServiceKey
	TargetOverride
}

// Durable returns what the durable log has made so far, as a function that
// writes it. The returned function may run later, while the store changes: what
// it writes is the state at the time of the call. The form is one JSON object a
// line in a stable order, so that it serves as an export too.
func (s *Store) Durable() func(io.Writer) error {
	var services []entry
	var held registrations
	s.eachService(func(svc *service) {
		held.begin(svc)
		for _, r := range svc.records {
			if h := r.holdingOf(OwnerDurable); h != nil {
				held.add(h)
			}
		}
		if held.end() || svc.kept {
			services = append(services, entry{Service: svc.entry()})
		}
	})
	overrides := s.overrideEntries()
	head := []entry{{Switches: s.Switches()}}
	for _, n := range s.Namespaces() {
		head = append(head, entry{Namespace: &n})
	}
	sortEntries(services)
	sortEntries(overrides)
	held.sort()
	return func(w io.Writer) error {
		return writeSnapshot(w, func(l *lineWriter) {
			l.entries(head)
			l.entries(services)
			l.registrations(&held)
			l.entries(overrides)
		})
	}
}

// Ephemeral returns the instances that clients keep alive and the persistent ones
// that are unhealthy, in the same way as [Store.Durable]: what the server remembers
// across a restart beside its durable log.
func (s *Store) Ephemeral() func(io.Writer) error {
	var held registrations
	var unhealthy []entry
	s.eachService(func(svc *service) {
		held.begin(svc)
		for _, r := range svc.records {
			for _, h := range slices.Backward(r.below()) { // the latest last, so that it is the latest again
				if h.kind.ephemeral() {
					held.add(&h)
				}
			}
			if r.top.kind.ephemeral() {
				held.add(&r.top)
			}
		}
		held.end()
		if ill := svc.ill(); len(ill) > 0 {
			unhealthy = append(unhealthy, entry{Unhealthy: &healthEntry{svc.key, ill}})
		}
	})
	sortEntries(unhealthy)
	held.sort()
	return func(w io.Writer) error {
		return writeSnapshot(w, func(l *lineWriter) {
			l.registrations(&held)
			l.entries(unhealthy)
		})
	}
}

// registrations are those of many owners, as they were at one time: no more than
// pointers to what does not change.
type registrations struct {
	services []span
	held     []holding
}

// span are the registrations of one service.
type span struct {
	svc      *service // of which only the key may be read
	from, to int      // in held
}

// begin starts the registrations of a service, end ends them and reports whether
// there are any.
func (r *registrations) begin(svc *service) {
	r.services = append(r.services, span{svc: svc, from: len(r.held)})
}

func (r *registrations) add(h *holding) { r.held = append(r.held, *h) }

func (r *registrations) end() bool {
	last := &r.services[len(r.services)-1]
	if last.to = len(r.held); last.to > last.from {
		return true
	}
	r.services = r.services[:len(r.services)-1]
	return false
}

func (r *registrations) sort() {
	slices.SortFunc(r.services, func(a, b span) int { return a.svc.key.compare(b.svc.key) })
}

// eachService gives every service to f, with its shard's lock held for reading.
func (s *Store) eachService(f func(*service)) {
	for i := range s.shards {
		sh := &s.shards[i]
		sh.mu.RLock()
		for _, svc := range sh.services {
			f(svc)
		}
		sh.mu.RUnlock()
	}
}

func (svc *service) entry() *serviceEntry {
	return &serviceEntry{
		ServiceKey: svc.key, Info: svc.info, Clusters: svc.clusters, Revision: svc.revision, Kept: svc.kept,
	}
}

// service returns the service that the entry is about.
func (e entry) service() ServiceKey {
	switch {
	case e.Service != nil:
		return e.Service.ServiceKey
	case e.Instance != nil:
		return e.Instance.ServiceKey
	case e.Unhealthy != nil:
		return e.Unhealthy.ServiceKey
	default:
		return e.Override.ServiceKey
	}
}

func sortEntries(entries []entry) { slices.SortFunc(entries, entry.compare) }

// compare orders entries by service, and overrides by their target.
func (e entry) compare(o entry) int {
	if c := e.service().compare(o.service()); c != 0 || e.Override == nil || o.Override == nil {
		return c
	}
	return e.Override.Target.compare(o.Override.Target)
}

func (s *Store) overrideEntries() []entry {
	var entries []entry
	for i := range s.shards {
		sh := &s.shards[i]
		sh.mu.RLock()
		for svc, overs := range sh.overlays {
			for key, o := range overs {
				entries = append(entries, entry{Override: &overrideEntry{svc, TargetOverride{key, o.Override}}})
			}
		}
		sh.mu.RUnlock()
	}
	return entries
}

// lineWriter writes the lines of a snapshot, until the first error.
type lineWriter struct {
	out *bufio.Writer
	enc *json.Encoder
	err error
}

// writeSnapshot has write write lines to w.
func writeSnapshot(w io.Writer, write func(*lineWriter)) error {
	l := &lineWriter{out: bufio.NewWriterSize(w, 64<<10)}
	l.enc = json.NewEncoder(l.out)
	l.enc.SetEscapeHTML(false)
	write(l)
	if l.err == nil {
		l.err = l.out.Flush()
	}
	if l.err != nil {
		return fmt.Errorf("write snapshot: %w", l.err)
	}
	return nil
}

func (l *lineWriter) entry(e *entry) {
	if l.err == nil {
		l.err = l.enc.Encode(e)
	}
}

func (l *lineWriter) entries(list []entry) {
	for i := range list {
		l.entry(&list[i])
	}
}

func (l *lineWriter) registrations(r *registrations) {
	for _, s := range r.services {
		for i := s.from; i < s.to && l.err == nil; i++ {
			l.registration(s.svc.key, &r.held[i])
		}
	}
}

func (l *lineWriter) registration(key ServiceKey, h *holding) {
	if h.base.isCommon() {
		_, l.err = l.out.Write(appendInstanceLine(l.out.AvailableBuffer(), key, h))
		return
	}
	l.entry(&entry{Instance: &instanceEntry{ServiceKey: key, Owner: h.owner(), Healthy: h.healthy, Instance: h.base}})
}

// Snapshot is a read snapshot, to be put into a [Store].
type Snapshot struct{ entries []entry }

// ReadSnapshot reads what [Store.Durable] or [Store.Ephemeral] wrote. It changes
// nothing, so that a snapshot can be tried before it is taken.
func ReadSnapshot(r io.Reader) (*Snapshot, error) {
	lines := bufio.NewReaderSize(r, 64<<10)
	read := &entryReader{texts: interner{seed: maphash.MakeSeed()}}
	snap := &Snapshot{}
	for {
		line, err := lines.ReadString('\n')
		switch {
		case err != nil && !errors.Is(err, io.EOF):
			return nil, fmt.Errorf("read snapshot: %w", err)
		case line == "":
			return snap, nil
		}
		e, err := read.entry(line)
		if err != nil {
			return nil, fmt.Errorf("read snapshot, entry %d: %w", len(snap.entries)+1, err)
		}
		snap.entries = append(snap.entries, e)
	}
}

// check refuses an entry that holds nothing that this version knows.
func (e *entry) check() error {
	switch {
	case e.Service != nil && (e.Service.Info == nil || slices.Contains(e.Service.Clusters, nil)):
		return errors.New("a service or cluster without its settings")
	case e.Instance != nil && e.Instance.Instance == nil:
		return errors.New("an owner without its instance")
	case e.Switches != nil, e.Namespace != nil, e.Service != nil, e.Instance != nil, e.Override != nil, e.Unhealthy != nil:
		return nil
	}
	return errors.New("an entry of no known kind; it is from a newer version")
}

// Install replaces the durable state by a snapshot, as of m. Ephemeral instances
// stay.
func (s *Store) Install(snap *Snapshot, m Meta) {
	s.forgetDurable(m)
	s.Merge(snap, m)
}

// Merge adds what a snapshot holds, as of m. HTTP owners get a fresh lease, and
// health is as it was. What a connection registered is taken only if the
// connection has been opened.
func (s *Store) Merge(snap *Snapshot, m Meta) {
	for i := range snap.entries {
		s.load(&snap.entries[i], m)
	}
}

// Append adds the entries of a part that was read on its own.
func (snap *Snapshot) Append(part *Snapshot) {
	snap.entries = append(snap.entries, part.entries...)
}

// Clients returns the connections that own instances in the snapshot.
func (snap *Snapshot) Clients() []ClientID {
	seen := map[ClientID]bool{}
	for _, e := range snap.entries {
		if e.Instance != nil && e.Instance.Owner.Client != "" {
			seen[e.Instance.Owner.Client] = true
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

func (s *Store) load(e *entry, m Meta) {
	switch {
	case e.Switches != nil:
		s.switches.Store(e.Switches)
	case e.Namespace != nil:
		s.namespaces.set(*e.Namespace)
	case e.Service != nil:
		s.loadService(e.Service, m)
	case e.Instance != nil:
		i := e.Instance
		inst := *i.Instance
		inst.Healthy = i.Healthy
		// Refused only when its connection is not open.
		_ = s.Register(&Register{Meta: m, Service: i.ServiceKey, Owner: i.Owner, Instance: inst, TakeHealth: true, remembered: true})
	case e.Unhealthy != nil:
		s.setDurableHealth(e.Unhealthy, false, m)
	case e.Override != nil:
		_, _ = s.Apply(&SetOverride{Meta: m, Service: e.Override.ServiceKey, Entries: []TargetOverride{e.Override.TargetOverride}})
	}
}

func (s *Store) loadService(e *serviceEntry, m Meta) {
	sh := s.shard(e.ServiceKey)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	svc := sh.services[e.ServiceKey]
	if svc == nil {
		s.RaiseFloor(e.Revision)
		svc = s.newService(sh, e.ServiceKey, e.Info, m)
	} else {
		svc.revision = max(svc.revision, e.Revision)
		s.setInfo(sh, svc, e.Info, m)
	}
	svc.kept = svc.kept || e.Kept
	for _, c := range e.Clusters {
		svc.setCluster(c)
	}
}

// forgetDurable takes away all that the durable log has made.
func (s *Store) forgetDurable(m Meta) {
	for i := range s.shards {
		sh := &s.shards[i]
		sh.mu.Lock()
		for key, targets := range sh.overlays {
			for target := range targets {
				s.dropOverride(sh, key, target, m)
			}
		}
		for _, svc := range sh.services {
			s.forgetDurableService(sh, svc, m)
		}
		sh.mu.Unlock()
	}
	s.namespaces.mu.Lock()
	s.namespaces.byID = nil
	s.namespaces.mu.Unlock()
	s.switches.Store(DefaultSwitches())
}

func (s *Store) forgetDurableService(sh *shard, svc *service, m Meta) {
	durable := svc.kept
	for _, r := range slices.Clone(svc.records) {
		if h := r.holdingOf(OwnerDurable); h != nil {
			durable = true
			s.release(sh, r, m, h.owner())
		}
	}
	switch {
	case !durable:
	case len(svc.records) == 0:
		s.dropService(sh, svc, m)
	default:
		svc.kept = false
		for _, c := range svc.clusters {
			svc.setCluster(NewCluster(c.Name))
		}
		s.setInfo(sh, svc, s.blank[KindAny], m)
	}
}

// ReviveDurable makes every persistent instance healthy, before what is remembered
// of their health is merged: the durable log has their health as of some earlier
// time.
func (s *Store) ReviveDurable(m Meta) {
	var unhealthy []healthEntry
	s.eachService(func(svc *service) {
		if ill := svc.ill(); len(ill) > 0 {
			unhealthy = append(unhealthy, healthEntry{svc.key, ill})
		}
	})
	for i := range unhealthy {
		s.setDurableHealth(&unhealthy[i], true, m)
	}
}

// ill returns the persistent instances that are unhealthy.
func (svc *service) ill() (keys []InstanceKey) {
	for _, r := range svc.records {
		if h := r.holdingOf(OwnerDurable); h != nil && !h.healthy {
			keys = append(keys, r.inst.Key())
		}
	}
	return keys
}

// setDurableHealth sets the health of persistent instances that are still there.
func (s *Store) setDurableHealth(e *healthEntry, healthy bool, m Meta) {
	for _, key := range e.Instances {
		// Refused only when the service is gone.
		_, _ = s.Apply(&SetHealth{Meta: m, Service: e.ServiceKey, Instance: key, Healthy: healthy, Kind: OwnerDurable})
	}
}
