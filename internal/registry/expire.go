package registry

import (
	"fmt"
	"time"
)

// Brake limits mass expiry: when many instances of one service fall silent at
// once, the cause is more likely the network or the registry than the instances.
// The brake then holds their removal for one more delete timeout, and says so.
// Explicit deregistrations, operators and ordinary removals are never delayed.
type Brake struct {
	Enabled bool
	// MinInstances and MinShare: the brake holds when at least so many, and at
	// least this share of the service's instances with beats, are silent.
	MinInstances int
	MinShare     float64
}

// DefaultBrake holds at ten instances and half of the service.
func DefaultBrake() Brake { return Brake{Enabled: true, MinInstances: 10, MinShare: 0.5} }

// brakeState is the brake of one service, on the lease clock. After until the
// brake does not hold again before rearm, so that it never holds twice for one
// silence.
type brakeState struct {
	held         bool
	until, rearm time.Duration
}

// Due are durable commands that time has made necessary. The store cannot run
// them itself, since durable commands go through the durable log.
type Due []DropOverride

// Expire lets time pass: instances that fell silent become unhealthy, those that
// stayed silent go, empty services are cleaned. It is idempotent: a second call
// with the same time does nothing. It locks one shard at a time.
func (s *Store) Expire(at Instant) Due {
	var due Due
	checks := s.Switches().HealthCheckEnabled
	for i := range s.shards {
		sh := &s.shards[i]
		sh.mu.Lock()
		sh.wheel.advance(at.Lease, func(r *record) { s.expireRecord(sh, r, at, checks) })
		s.cleanEmptied(sh, at)
		due = sh.lapsedOverrides(due, at, s.cfg.OverrideMemory)
		sh.mu.Unlock()
	}
	return due
}

// expireRecord judges one record and puts it back where it is due next.
func (s *Store) expireRecord(sh *shard, r *record, at Instant, checks bool) {
	h := r.holdingOf(OwnerHTTP)
	if r.removed || h == nil {
		return
	}
	timeout, remove := r.inst.BeatTimeout(), r.inst.DeleteTimeout()
	if !checks || r.inst.Marked {
		sh.wheel.add(r, at.Lease+timeout)
		return
	}
	silence := r.silence(at.Lease)
	m := Meta{At: at, Cause: Cause{Kind: CauseBeatLost}}
	if silence > timeout && h.healthy {
		h.healthy = false
		m.Cause.Detail = timeout.String() + " without a beat"
		s.refresh(sh, r, m, InstanceUpdated, h.owner)
	}
	if silence > remove && s.cfg.Expire {
		if until, hold := s.brake(r.svc, at, remove); hold {
			sh.wheel.add(r, until)
			return
		}
		m.Cause.Detail = remove.String() + " without a beat"
		s.release(sh, r, m, h.owner)
		return
	}
	last := time.Duration(r.lastBeat.Load())
	switch {
	case silence <= timeout && silence <= remove:
		sh.wheel.add(r, last+min(timeout, remove))
	case silence <= remove:
		sh.wheel.add(r, last+remove)
	default: // removal is switched off: look again now and then
		sh.wheel.add(r, at.Lease+timeout)
	}
}

// brake reports whether the removal of silent instances of svc is held now, and
// until when: for at most the delete timeout of the instance that met it first.
func (s *Store) brake(svc *service, at Instant, timeout time.Duration) (until time.Duration, hold bool) {
	b := &svc.brake
	if b.held && at.Lease < b.until {
		return b.until, true
	}
	if b.held {
		b.held = false
		s.emit(&Event{
			Kind: ExpiryReleased, At: at, Service: svc.key,
			Cause: Cause{Kind: CauseBrake, Detail: "held for one delete timeout; the silent instances go now"},
		})
	}
	if !s.cfg.Brake.Enabled || at.Lease < b.rearm {
		return 0, false
	}
	silent, beating := svc.silent(at.Lease)
	if silent < s.cfg.Brake.MinInstances || float64(silent) < s.cfg.Brake.MinShare*float64(beating) {
		return 0, false
	}
	*b = brakeState{held: true, until: at.Lease + timeout, rearm: at.Lease + 2*timeout}
	s.emit(&Event{
		Kind: ExpiryHeld, At: at, Service: svc.key,
		Cause: Cause{Kind: CauseBrake, Detail: brakeDetail(silent, beating)},
	})
	return b.until, true
}

// silent counts the instances kept by beats, and those that miss them.
func (svc *service) silent(now time.Duration) (silent, beating int) {
	for _, r := range svc.records {
		if r.holdingOf(OwnerHTTP) == nil {
			continue
		}
		beating++
		if r.silence(now) > r.inst.BeatTimeout() {
			silent++
		}
	}
	return silent, beating
}

// Held reports whether the brake holds the expiry of a service.
func (s *Store) Held(key ServiceKey) bool {
	sh := s.shard(key)
	sh.mu.RLock()
	defer sh.mu.RUnlock()
	svc := sh.services[key]
	return svc != nil && svc.brake.held
}

// queueEmptied remembers a service that became empty. Each is queued once: when
// its turn comes too early, it goes to the end again.
func (sh *shard) queueEmptied(svc *service) {
	if !svc.queued {
		svc.queued = true
		sh.emptied = append(sh.emptied, svc)
	}
}

// cleanEmptied removes services that have been empty for long enough and that
// nobody made by hand. Subscribers stay.
func (s *Store) cleanEmptied(sh *shard, at Instant) {
	waiting := sh.emptied
	sh.emptied = nil
	for i, svc := range waiting {
		if at.Lease-svc.emptiedAt < s.cfg.EmptyServiceMemory && i == 0 {
			sh.emptied = waiting // the oldest is not due, so none is
			return
		}
		svc.queued = false
		switch {
		case sh.services[svc.key] != svc || len(svc.records) > 0 || svc.durable:
		case at.Lease-svc.emptiedAt < s.cfg.EmptyServiceMemory:
			sh.queueEmptied(svc)
		default:
			s.dropService(sh, svc, Meta{At: at, Cause: Cause{
				Kind: CauseExpiry, Detail: "empty for " + s.cfg.EmptyServiceMemory.String(),
			}})
		}
	}
}

// lapsedOverrides appends the overrides whose instance has been gone for too long.
func (sh *shard) lapsedOverrides(due Due, at Instant, memory time.Duration) Due {
	for svc, overs := range sh.overlays {
		for key, o := range overs {
			if o.goneAt == present || at.Lease-o.goneAt < memory {
				continue
			}
			due = append(due, DropOverride{Service: svc, Target: key, Meta: Meta{At: at, Cause: Cause{
				Kind: CauseExpiry, Detail: "its instance has been gone for " + memory.String(),
			}}})
		}
	}
	return due
}

func brakeDetail(silent, beating int) string {
	return fmt.Sprintf("%d of %d instances fell silent at once", silent, beating)
}
