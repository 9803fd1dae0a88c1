package registry

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// entry is one line of a snapshot. Exactly one field is set.
type entry struct {
	Switches  *Switches      `json:"switches,omitempty"`
	Namespace *Namespace     `json:"namespace,omitempty"`
	Service   *serviceEntry  `json:"service,omitempty"`
	Instance  *instanceEntry `json:"instance,omitempty"`
	Override  *overrideEntry `json:"override,omitempty"`
}

type serviceEntry struct {
	ServiceKey
	Info     *ServiceInfo `json:"info"`
	Clusters []*Cluster   `json:"clusters,omitempty"`
	Revision int64        `json:"revision"`
}

type instanceEntry struct {
	ServiceKey
	Owner    Owner    `json:"owner"`
	Healthy  bool     `json:"healthy"`
	Instance Instance `json:"instance"`
}

type overrideEntry struct {
	ServiceKey
	TargetOverride
}

// Durable returns what the durable log has made so far, as a function that
// writes it. The returned function may run later, while the store changes: what
// it writes is the state at the time of the call. The form is one JSON object a
// line, so that it serves as an export too.
func (s *Store) Durable() func(io.Writer) error {
	var entries []entry
	entries = append(entries, entry{Switches: s.Switches()})
	for _, n := range s.Namespaces() {
		entries = append(entries, entry{Namespace: &n})
	}
	s.eachService(func(sh *shard, svc *service) {
		if svc.durable {
			entries = append(entries, entry{Service: svc.entry()})
		}
		for _, r := range svc.records {
			if h := r.holdingOf(OwnerDurable); h != nil {
				entries = append(entries, r.entry(h))
			}
		}
	})
	entries = append(entries, s.overrideEntries()...)
	return func(w io.Writer) error { return writeEntries(w, entries) }
}

// Ephemeral returns the instances that clients keep alive, in the same way as
// [Store.Durable]: what the server remembers of them across a restart.
func (s *Store) Ephemeral() func(io.Writer) error {
	var entries []entry
	s.eachService(func(_ *shard, svc *service) {
		for _, r := range svc.records {
			for _, h := range append([]holding{r.top}, r.below...) {
				if h.owner.ephemeral() {
					entries = append(entries, r.entry(&h))
				}
			}
		}
	})
	return func(w io.Writer) error { return writeEntries(w, entries) }
}

func (s *Store) eachService(f func(*shard, *service)) {
	for i := range s.shards {
		sh := &s.shards[i]
		sh.mu.RLock()
		for _, svc := range sh.services {
			f(sh, svc)
		}
		sh.mu.RUnlock()
	}
}

func (svc *service) entry() *serviceEntry {
	return &serviceEntry{ServiceKey: svc.key, Info: svc.info, Clusters: svc.clusters, Revision: svc.revision}
}

func (r *record) entry(h *holding) entry {
	return entry{Instance: &instanceEntry{ServiceKey: r.svc.key, Owner: h.owner, Healthy: h.healthy, Instance: *h.base}}
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

func writeEntries(w io.Writer, entries []entry) error {
	buf := bufio.NewWriterSize(w, 64<<10)
	enc := json.NewEncoder(buf)
	enc.SetEscapeHTML(false)
	for i := range entries {
		if err := enc.Encode(&entries[i]); err != nil {
			return fmt.Errorf("write snapshot: %w", err)
		}
	}
	if err := buf.Flush(); err != nil {
		return fmt.Errorf("write snapshot: %w", err)
	}
	return nil
}

// Load adds what a snapshot holds, as of m. It is for an empty store, or for
// ephemeral instances over a durable state. HTTP owners get a fresh lease, and
// health is as it was.
func (s *Store) Load(r io.Reader, m Meta) error {
	dec := json.NewDecoder(bufio.NewReaderSize(r, 64<<10))
	for line := 1; ; line++ {
		var e entry
		if err := dec.Decode(&e); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("read snapshot, entry %d: %w", line, err)
		}
		if err := s.load(&e, m); err != nil {
			return fmt.Errorf("read snapshot, entry %d: %w", line, err)
		}
	}
}

func (s *Store) load(e *entry, m Meta) error {
	var err error
	switch {
	case e.Switches != nil:
		s.switches.Store(e.Switches)
	case e.Namespace != nil:
		_, err = s.Apply(&CreateNamespace{Meta: m, Namespace: *e.Namespace})
	case e.Service != nil:
		s.loadService(e.Service, m)
	case e.Instance != nil:
		i := e.Instance
		i.Instance.Healthy = i.Healthy
		_, err = s.Apply(&Register{Meta: m, Service: i.ServiceKey, Owner: i.Owner, Instance: i.Instance, TakeHealth: true})
	case e.Override != nil:
		_, err = s.Apply(&SetOverride{Meta: m, Service: e.Override.ServiceKey, Entries: []TargetOverride{e.Override.TargetOverride}})
	}
	return err
}

func (s *Store) loadService(e *serviceEntry, m Meta) {
	sh := s.shard(e.ServiceKey)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	svc := sh.services[e.ServiceKey]
	if svc == nil {
		svc = s.newService(sh, e.ServiceKey, e.Info, m)
	}
	svc.info, svc.clusters, svc.durable = e.Info, slices.Clone(e.Clusters), true
	svc.revision = max(svc.revision, e.Revision)
	svc.changed(m.At)
}

// Reset empties the store of durable state before a restore, and of everything
// else with it.
func (s *Store) Reset(m Meta) {
	for i := range s.shards {
		sh := &s.shards[i]
		sh.mu.Lock()
		sh.overlays = nil
		for _, svc := range sh.services {
			s.dropService(sh, svc, m)
		}
		sh.mu.Unlock()
	}
	s.namespaces.mu.Lock()
	s.namespaces.byID = nil
	s.namespaces.mu.Unlock()
	s.switches.Store(DefaultSwitches())
}
