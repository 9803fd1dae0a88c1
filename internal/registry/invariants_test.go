package registry

import (
	"encoding/json"
	"slices"
	"testing"
	"time"
)

func marshal(t testing.TB, v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// reporter is the part of testing.TB that a rapid.T has, too.
type reporter interface {
	Helper()
	Errorf(format string, args ...any)
}

// checkStore holds a store that nobody changes to what is always true of it.
func checkStore(t reporter, s *Store) {
	t.Helper()
	var counted Counts
	held := map[*client]int{}
	for i := range s.shards {
		sh := &s.shards[i]
		checkWheel(t, s, sh)
		for key, svc := range sh.services {
			counted.Services++
			checkService(t, s, sh, key, svc)
			for _, r := range svc.records {
				if r.inst.Ephemeral {
					counted.Ephemeral++
				} else {
					counted.Persistent++
				}
				if r.inst.Healthy {
					counted.Healthy++
				}
				for _, h := range append([]holding{r.top}, r.below()...) {
					if h.client == nil {
						continue
					}
					if held[h.client]++; h.client.closed {
						t.Errorf("%s: %v is kept by the closed connection %s", key, r.key(), h.client.id)
					}
					if _, ok := h.client.records[r]; !ok {
						t.Errorf("%s: the connection %s does not know that it holds %v", key, h.client.id, r.key())
					}
				}
			}
		}
		for key, overs := range sh.overlays {
			if counted.Overridden++; len(overs) == 0 {
				t.Errorf("%s: an empty list of overrides", key)
			}
		}
		for key, subs := range sh.subs {
			if counted.Subscribers += int64(len(subs)); len(subs) == 0 {
				t.Errorf("%s: an empty list of subscribers", key)
			}
		}
	}
	if got := s.Counts(); got != counted {
		t.Errorf("counts %+v, a recount says %+v", got, counted)
	}
	for _, c := range s.clients.byID {
		if len(c.records) != held[c] {
			t.Errorf("connection %s notes %d instances and holds %d", c.id, len(c.records), held[c])
		}
	}
	checkDirectory(t, s)
}

// checkService holds one service to its own rules.
func checkService(t reporter, s *Store, sh *shard, key ServiceKey, svc *service) {
	t.Helper()
	if svc.key != key || svc.grouped != key.Grouped() || s.shard(key) != sh {
		t.Errorf("%s: is filed under another name", key)
	}
	if !slices.IsSortedFunc(svc.clusters, func(a, b *Cluster) int { return compareCluster(a, b.Name) }) {
		t.Errorf("%s: clusters are not sorted", key)
	}
	for n, r := range svc.records {
		if n > 0 && svc.records[n-1].compare(r.key()) >= 0 {
			t.Errorf("%s: %v is out of order, or there twice", key, r.key())
		}
		if r.svc != svc || r.key() != r.inst.Key().identity() {
			t.Errorf("%s: %v is filed as %v", key, r.inst.Key(), r.key())
		}
		if svc.cluster(r.inst.Cluster) == nil {
			t.Errorf("%s: %v is in no cluster", key, r.key())
		}
		if r.inst.Ephemeral != r.top.kind.ephemeral() || r.inst.Healthy != r.healthy() {
			t.Errorf("%s: %v is not what its owners say", key, r.key())
		}
		if o := sh.overlay(key, r.key()); o != nil && o.goneAt != present {
			t.Errorf("%s: the override of %v believes it gone", key, r.key())
		}
	}
	if v := s.View(key); v.Revision != svc.revision || len(v.Instances) != len(svc.records) {
		t.Errorf("%s: the view is not the service", key)
	} else {
		for n, r := range svc.records {
			if v.Instances[n] != r.inst || v.Find(r.inst.Key()) != r.inst {
				t.Errorf("%s: %v is not in its place in the view", key, r.key())
			}
			if at := r.key(); !slices.Equal(s.InstancesAt(key, at.IP, at.Port), v.At(at.IP, at.Port)) {
				t.Errorf("%s: %v is not at its address as in the view", key, at)
			}
		}
	}
}

// checkWheel holds the lists of a wheel together, and demands that every record
// that time can change is in it, no later than it is due.
func checkWheel(t reporter, s *Store, sh *shard) {
	t.Helper()
	w := &sh.wheel
	for slot := range w.slots {
		for at := &w.slots[slot]; *at != nil; at = &(*at).timer.next {
			r := *at
			if r.timer.prev != at || r.timer.tick%wheelSlots != int64(slot) {
				t.Errorf("slot %d: the links of %v are broken", slot, r.key())
			}
			if r.timer.tick < w.at || r.timer.tick >= w.at+wheelSlots {
				t.Errorf("slot %d: %v waits for tick %d at tick %d", slot, r.key(), r.timer.tick, w.at)
			}
			if sh.services[r.svc.key] != r.svc || r.svc.find(r.key()) != r {
				t.Errorf("slot %d: %v is gone", slot, r.key())
			}
		}
	}
	for key, svc := range sh.services {
		for _, r := range svc.records {
			due, waits := s.due(r)
			if waits && svc.brake != nil {
				due = max(due, svc.brake.until)
				if r.holdingOf(OwnerHTTP).healthy {
					due = min(due, time.Duration(r.lastBeat.Load())+r.inst.BeatTimeout())
				}
			}
			if waits && (r.timer.prev == nil || r.timer.tick > max(int64(due/wheelTick), w.at)) {
				t.Errorf("%s: %v is due at %v and waits for tick %d", key, r.key(), due, r.timer.tick)
			}
		}
	}
}

// checkDirectory compares the directory with the services.
func checkDirectory(t reporter, s *Store) {
	t.Helper()
	listed := 0
	for _, ns := range s.ServiceNamespaces() {
		keys, total := s.Services(ns, "", 0, -1)
		listed += total
		if total == 0 || len(keys) != total || !slices.IsSortedFunc(keys, ServiceKey.compare) {
			t.Errorf("namespace %s: %d of %d services, sorted %v", ns, len(keys), total, slices.IsSortedFunc(keys, ServiceKey.compare))
		}
		for _, key := range keys {
			if s.View(key) == nil {
				t.Errorf("%s is listed and not there", key)
			}
		}
	}
	if n := s.Counts().Services; int64(listed) != n {
		t.Errorf("%d services are listed, %d are there", listed, n)
	}
}
