package registry

import (
	"fmt"
	"slices"
	"time"
)

// Brake limits mass expiry: when many instances of one service fall silent at
// once, the cause is more likely the network or the registry than the instances.
// The brake then holds their removal for one more delete timeout, and says so.
// Explicit deregistrations, operators and ordinary removals are never delayed.
type Brake struct {
	Enabled bool `config:"expiry.brake" help:"Hold the removal of instances for one more delete timeout when many of a service fall silent at once: the cause is then more likely the network than the instances."`
	// MinInstances and MinShare: the brake holds when at least so many, and at
	// least this share of the service's instances with beats, are silent.
	MinInstances int     `config:"expiry.brake-min-instances" help:"The brake holds when at least this many instances of one service are silent,"`
	MinShare     float64 `config:"expiry.brake-min-share" help:"and at least this share of those of its instances that beat."`
}

// DefaultBrake holds at ten instances and half of the service.
func DefaultBrake() Brake { return Brake{Enabled: true, MinInstances: 10, MinShare: 0.5} }

// brakeState is the brake of one service, on the lease clock. After until the
// brake does not hold again before rearm, so that it never holds twice for one
// silence.
type brakeState struct {
	held         bool
	until, rearm time.Duration
	passed       time.Duration // the time for which it was last found not to hold
}

// Due are durable commands that time has made necessary. The store cannot run
// them itself, since durable commands go through the durable log.
type Due []DropOverride

// Expire lets time pass: instances that fell silent become unhealthy, those that
// stayed silent go, empty services are cleaned. It is idempotent: a second call
// with the same time does nothing, but for Due, which are returned until they
// are applied. It locks one shard at a time.
func (s *Store) Expire(at Instant) Due {
	var due Due
	var sh *shard
	judge := func(r *record) { s.judge(sh, r, at) }
	checks := s.Switches().HealthCheckEnabled
	for i := range s.shards {
		sh = &s.shards[i]
		sh.mu.Lock()
		s.releaseBrakes(sh, at)
		if checks {
			sh.wheel.advance(at.Lease, judge)
		}
		s.cleanEmptied(sh, at)
		due = sh.lapsedOverrides(due, at, s.cfg.OverrideMemory)
		sh.mu.Unlock()
	}
	return due
}

// due returns when the HTTP owner of r, silent until then, becomes unhealthy or
// is removed; ok is false when neither can happen before r itself changes.
func (s *Store) due(r *record) (due time.Duration, ok bool) {
	h := r.holdingOf(OwnerHTTP)
	if h == nil || r.inst.Marked {
		return 0, false
	}
	wait := r.inst.DeleteTimeout()
	switch {
	case h.healthy && s.cfg.Expire:
		wait = min(wait, r.inst.BeatTimeout())
	case h.healthy:
		wait = r.inst.BeatTimeout()
	case !s.cfg.Expire:
		return 0, false
	}
	return time.Duration(r.lastBeat.Load()) + wait, true
}

// arm has r judged when it is due.
func (s *Store) arm(sh *shard, r *record) {
	if due, ok := s.due(r); ok {
		sh.wheel.arm(r, due)
	}
}

// judge decides on one record whose time may have come.
func (s *Store) judge(sh *shard, r *record, at Instant) {
	h := r.holdingOf(OwnerHTTP)
	if h == nil || r.inst.Marked {
		return
	}
	timeout, remove := r.inst.BeatTimeout(), r.inst.DeleteTimeout()
	silence := r.silence(at.Lease)
	m := Meta{At: at, Cause: Cause{Kind: CauseBeatLost}}
	if silence > timeout && h.healthy {
		h.healthy = false
		m.Cause.Detail = timeout.String() + " without a beat"
		s.refresh(sh, r, m, "", h.owner())
	}
	switch {
	case silence <= remove || !s.cfg.Expire:
		s.arm(sh, r)
	case s.brakes(sh, r.svc, at):
		due := r.svc.brake.until
		if h.healthy { // marking is not held
			due = min(due, at.Lease-silence+timeout)
		}
		sh.wheel.arm(r, due)
	default:
		m.Cause.Detail = remove.String() + " without a beat"
		s.release(sh, r, m, h.owner())
	}
}

// brakes reports whether the removal of the silent instances of svc is held now:
// for the shortest of their delete timeouts, so that none is held for longer than
// its own.
func (s *Store) brakes(sh *shard, svc *service, at Instant) bool {
	if svc.brake == nil {
		svc.brake = &brakeState{}
	}
	b := svc.brake
	if b.held {
		return true
	}
	if !s.cfg.Brake.Enabled || at.Lease < b.rearm || at.Lease == b.passed {
		return false
	}
	silent, beating, timeout := svc.silent(at.Lease)
	if silent < s.cfg.Brake.MinInstances || float64(silent) < s.cfg.Brake.MinShare*float64(beating) {
		b.passed = at.Lease // removals do not raise the share; not counted again at this time
		return false
	}
	*b = brakeState{held: true, until: at.Lease + timeout, rearm: at.Lease + 2*timeout}
	sh.held = append(sh.held, svc)
	s.emit(sh, Event{
		Kind: ExpiryHeld, At: at, Service: svc.key,
		Cause: Cause{Kind: CauseBrake, Detail: brakeDetail(silent, beating)},
	})
	return true
}

// releaseBrakes ends the brakes whose time is over.
func (s *Store) releaseBrakes(sh *shard, at Instant) {
	if len(sh.held) == 0 {
		return
	}
	sh.held = slices.DeleteFunc(sh.held, func(svc *service) bool {
		if at.Lease < svc.brake.until {
			return false
		}
		svc.brake.held = false
		if sh.services[svc.key] == svc {
			s.emit(sh, Event{
				Kind: ExpiryReleased, At: at, Service: svc.key,
				Cause: Cause{Kind: CauseBrake, Detail: "held for one delete timeout; what is still silent goes now"},
			})
		}
		return true
	})
}

// silent counts the instances kept by beats, and those that miss them; shortest
// is the shortest delete timeout among the latter.
func (svc *service) silent(now time.Duration) (silent, beating int, shortest time.Duration) {
	shortest = maxBeatTime
	for _, r := range svc.records {
		if r.holdingOf(OwnerHTTP) == nil || r.inst.Marked {
			continue
		}
		beating++
		if r.silence(now) > r.inst.BeatTimeout() {
			silent++
			shortest = min(shortest, r.inst.DeleteTimeout())
		}
	}
	return silent, beating, shortest
}

// Held reports whether the brake holds the expiry of a service.
func (s *Store) Held(key ServiceKey) bool {
	sh := s.shard(key)
	sh.mu.RLock()
	defer sh.mu.RUnlock()
	svc := sh.services[key]
	return svc != nil && svc.brake != nil && svc.brake.held
}

// settle notes when a service has become empty, so that it is cleaned later.
func (sh *shard) settle(svc *service, at Instant, memory time.Duration) {
	if len(svc.records) > 0 || svc.kept {
		return
	}
	svc.emptiedAt = at.Lease
	if svc.queued {
		return
	}
	svc.queued = true
	if len(sh.emptied) == 0 {
		sh.cleanAt = at.Lease + memory
	}
	sh.emptied = append(sh.emptied, svc)
}

// cleanEmptied removes services that have been empty for long enough and that
// nobody made by hand. Subscribers stay.
func (s *Store) cleanEmptied(sh *shard, at Instant) {
	if len(sh.emptied) == 0 || at.Lease < sh.cleanAt {
		return
	}
	memory := s.cfg.EmptyServiceMemory
	sh.cleanAt = at.Lease + memory
	sh.emptied = slices.DeleteFunc(sh.emptied, func(svc *service) bool {
		due := svc.emptiedAt + memory
		empty := sh.services[svc.key] == svc && len(svc.records) == 0 && !svc.kept
		if empty && at.Lease < due {
			sh.cleanAt = min(sh.cleanAt, due)
			return false
		}
		svc.queued = false
		if empty {
			s.dropService(sh, svc, Meta{At: at, Cause: Cause{
				Kind: CauseExpiry, Detail: "empty for " + memory.String(),
			}})
		}
		return true
	})
	if len(sh.emptied) == 0 {
		sh.emptied = nil // it may have been long
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
