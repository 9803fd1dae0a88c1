package health

import (
	"context"
	"time"

	"github.com/rollcall-registry/rollcall/internal/registry"
)

// rereadAfter is how old the checker's picture of a service may be when one of
// its instances is probed. Events keep it fresh; this heals what they missed.
const rereadAfter = 30 * time.Second

// gatherFor is within how much time changes of one service are taken over in one
// go, so that registering a thousand instances does not read the service a
// thousand times. The first change after a quiet time is taken over at once.
const gatherFor = 200 * time.Millisecond

// resettle is within how much time the instances of a cluster are probed after
// its settings changed: at once, but not all in one moment.
const resettle = time.Second

// readAll reads every service of the store.
func (p *patrol) readAll(ctx context.Context) {
	for _, namespace := range p.source.ServiceNamespaces() {
		keys, _ := p.source.Services(namespace, "", 0, -1)
		for _, key := range keys {
			if ctx.Err() != nil {
				return
			}
			p.read(key, time.Now())
		}
	}
}

// gather takes over what changed since the last time.
func (p *patrol) gather(now time.Time) {
	p.gatheredAt = now
	for key := range p.changes.take() {
		p.read(key, now)
	}
}

// candidate is an instance that should be probed.
type candidate struct {
	key     registry.InstanceKey
	cluster *registry.Cluster
	healthy bool
}

// read brings the targets of one service in line with the store.
func (p *patrol) read(key registry.ServiceKey, now time.Time) {
	w, wanted := p.services[key], p.candidates(key)
	if w == nil && len(wanted) == 0 {
		return
	}
	if w == nil {
		w = &watched{key: key}
		p.services[key] = w
	}
	w.readAt = now
	known := make(map[registry.InstanceKey]*target, len(w.targets))
	for _, t := range w.targets {
		known[t.key] = t
	}
	w.targets = make([]*target, 0, len(wanted))
	for _, c := range wanted {
		t := known[c.key]
		delete(known, c.key)
		if t == nil {
			t = p.meet(w, c, now)
		} else {
			p.renew(t, c, now)
		}
		w.targets = append(w.targets, t)
	}
	for _, t := range known {
		p.drop(t)
	}
	if len(wanted) == 0 {
		delete(p.services, key)
		p.timings.forget(key)
	}
}

// candidates returns the instances of a service that should be probed, in the
// order of their identity; nil when there is no such service.
func (p *patrol) candidates(key registry.ServiceKey) []candidate {
	var found []candidate
	var view *registry.View // built only for services with persistent instances
	for _, s := range p.source.Standings(key, registry.Instant{}) {
		healthy, durable := durableHealth(s.Owners)
		if !durable || s.Instance.Marked {
			continue
		}
		if view == nil {
			if view = p.source.View(key); view == nil || unprobed(view.Info) {
				return nil
			}
		}
		cluster := view.Cluster(s.Instance.Cluster)
		if cluster == nil || p.checks(cluster.Checker.Type) == nil { // NONE
			continue
		}
		id := s.Instance.Key()
		id.IP = registry.CanonicalIP(id.IP)
		found = append(found, candidate{key: id, cluster: cluster, healthy: healthy})
	}
	return found
}

// durableHealth returns what the durable store's registration says, and whether
// there is one.
func durableHealth(owners []registry.Holder) (healthy, found bool) {
	for _, o := range owners {
		if o.Kind == registry.OwnerDurable {
			return o.Healthy, true
		}
	}
	return false, false
}

func unprobed(info *registry.ServiceInfo) bool {
	value, _ := info.Metadata.Get(KeyProbe)
	return value == "off"
}

// meet makes a target of a new candidate and schedules its first probe.
func (p *patrol) meet(w *watched, c candidate, now time.Time) *target {
	width := millis(p.source.Switches().TCPHealthParams.Max)
	first := firstProbe + time.Duration(p.random()*float64(width))
	t := &target{
		service: w, key: c.key, cluster: c.cluster, healthy: c.healthy,
		period: first, due: now.Add(first), place: nowhere,
	}
	p.agenda.put(t)
	p.targets.Add(1)
	return t
}

// renew takes over what changed about a target. New settings count at once: the
// probe that runs is cancelled, and what was counted is forgotten.
func (p *patrol) renew(t *target, c candidate, now time.Time) {
	if t.healthy != c.healthy {
		t.healthy, t.streak = c.healthy, 0
	}
	before := t.aim()
	t.cluster = c.cluster
	if t.aim() == before {
		return
	}
	t.streak = 0
	t.ground()
	t.due = now.Add(time.Duration(p.random() * float64(resettle)))
	p.agenda.put(t)
}

func (p *patrol) drop(t *target) {
	t.ground()
	p.agenda.remove(t)
	p.targets.Add(-1)
}
