package registry

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
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

// healthEntry is a persistent instance whose probes fail: soft state, which the
// durable log does not have.
type healthEntry struct {
	ServiceKey
	Instance InstanceKey `json:"instance"`
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
	var services, entries []entry
	s.eachService(func(svc *service) {
		keep := svc.kept
		for _, r := range svc.records {
			if h := r.holdingOf(OwnerDurable); h != nil {
				keep = true
				entries = append(entries, r.entry(h))
			}
		}
		if keep {
			services = append(services, entry{Service: svc.entry()})
		}
	})
	entries = append(entries, s.overrideEntries()...)
	slices.SortStableFunc(services, entry.compare)
	slices.SortStableFunc(entries, entry.compare)
	head := []entry{{Switches: s.Switches()}}
	for _, n := range s.Namespaces() {
		head = append(head, entry{Namespace: &n})
	}
	return func(w io.Writer) error { return writeEntries(w, head, services, entries) }
}

// Ephemeral returns the instances that clients keep alive and the persistent ones
// that are unhealthy, in the same way as [Store.Durable]: what the server remembers
// across a restart beside its durable log.
func (s *Store) Ephemeral() func(io.Writer) error {
	var entries []entry
	s.eachService(func(svc *service) {
		for _, r := range svc.records {
			for _, h := range slices.Backward(r.below()) { // the latest last, so that it is the latest again
				if h.kind.ephemeral() {
					entries = append(entries, r.entry(&h))
				}
			}
			if r.top.kind.ephemeral() {
				entries = append(entries, r.entry(&r.top))
			}
			if h := r.holdingOf(OwnerDurable); h != nil && !h.healthy {
				entries = append(entries, entry{Unhealthy: &healthEntry{svc.key, r.inst.Key()}})
			}
		}
	})
	slices.SortStableFunc(entries, entry.compare)
	return func(w io.Writer) error { return writeEntries(w, entries) }
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

func (r *record) entry(h *holding) entry {
	return entry{Instance: &instanceEntry{ServiceKey: r.svc.key, Owner: h.owner(), Healthy: h.healthy, Instance: h.base}}
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

func writeEntries(w io.Writer, parts ...[]entry) error {
	buf := bufio.NewWriterSize(w, 64<<10)
	enc := json.NewEncoder(buf)
	enc.SetEscapeHTML(false)
	for _, entries := range parts {
		for i := range entries {
			if err := enc.Encode(&entries[i]); err != nil {
				return fmt.Errorf("write snapshot: %w", err)
			}
		}
	}
	if err := buf.Flush(); err != nil {
		return fmt.Errorf("write snapshot: %w", err)
	}
	return nil
}

// Snapshot is a read snapshot, to be put into a [Store].
type Snapshot struct{ entries []entry }

// ReadSnapshot reads what [Store.Durable] or [Store.Ephemeral] wrote. It changes
// nothing, so that a snapshot can be tried before it is taken.
func ReadSnapshot(r io.Reader) (*Snapshot, error) {
	dec := json.NewDecoder(bufio.NewReaderSize(r, 64<<10))
	snap := &Snapshot{}
	for {
		var e entry
		err := dec.Decode(&e)
		if errors.Is(err, io.EOF) {
			return snap, nil
		}
		if err == nil {
			err = e.check()
		}
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
		_, _ = s.Apply(&Register{Meta: m, Service: i.ServiceKey, Owner: i.Owner, Instance: inst, TakeHealth: true, remembered: true})
	case e.Unhealthy != nil:
		// Refused only when the service is gone.
		_, _ = s.Apply(&SetHealth{Meta: m, Service: e.Unhealthy.ServiceKey, Instance: e.Unhealthy.Instance, Kind: OwnerDurable})
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
		s.setInfo(sh, svc, s.blank, m)
	}
}

// ReviveDurable makes every persistent instance healthy, before what is remembered
// of their health is merged: the durable log has their health as of some earlier
// time.
func (s *Store) ReviveDurable(m Meta) {
	var ill []healthEntry
	s.eachService(func(svc *service) {
		for _, r := range svc.records {
			if h := r.holdingOf(OwnerDurable); h != nil && !h.healthy {
				ill = append(ill, healthEntry{svc.key, r.inst.Key()})
			}
		}
	})
	for _, e := range ill {
		_, _ = s.Apply(&SetHealth{Meta: m, Service: e.ServiceKey, Instance: e.Instance, Healthy: true, Kind: OwnerDurable})
	}
}
