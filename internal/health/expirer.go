package health

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rollcall-registry/rollcall/internal/registry"
)

const (
	// expireTick is the tick of the registry's timer wheel.
	expireTick = 250 * time.Millisecond
	// expireTimeout bounds how long a slow disk may keep expiry waiting: what
	// could not be made durable is tried again at the next tick.
	expireTimeout = time.Second
	// maxBrakeNotes bounds what one tick logs of the brake; the rest is counted.
	maxBrakeNotes = 32
)

// Expirer lets time pass: it calls the expiry of the core four times a second.
// As a sink of the store it counts what came of it and logs the brake.
type Expirer struct {
	expire func(context.Context) error
	log    *slog.Logger

	ticks, unhealthy, expired, holds, releases, failures atomic.Int64

	failing bool // the last call failed; of the goroutine of Run

	mu    sync.Mutex
	notes []brakeNote // of the brake, to be logged outside the store's locks
	lost  int         // notes that had no room
}

// brakeNote is what the brake did to a service.
type brakeNote struct {
	service registry.ServiceKey
	held    bool
	detail  string
}

// NewExpirer returns an expirer that calls expire, which is naming.Core.Expire.
func NewExpirer(expire func(context.Context) error, logger *slog.Logger) *Expirer {
	return &Expirer{expire: expire, log: logger.With("component", "expiry")}
}

// Run expires until ctx ends.
func (e *Expirer) Run(ctx context.Context) error {
	ticker := time.NewTicker(expireTick)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			e.tick(ctx)
		}
	}
}

func (e *Expirer) tick(ctx context.Context) {
	limited, cancel := context.WithTimeout(ctx, expireTimeout)
	err := e.expire(limited)
	cancel()
	e.ticks.Add(1)
	e.logBrake()
	if ctx.Err() != nil {
		return
	}
	switch {
	case err != nil && !e.failing:
		e.log.Error("what expired could not be made durable; trying again", "err", err)
	case err == nil && e.failing:
		e.log.Info("what expired is made durable again")
	}
	e.failing = err != nil
	if e.failing {
		e.failures.Add(1)
	}
}

// Emit implements [registry.Sink].
func (e *Expirer) Emit(ev *registry.Event) {
	switch ev.Kind {
	case registry.InstanceUnhealthy:
		if ev.Cause.Kind == registry.CauseBeatLost {
			e.unhealthy.Add(1)
		}
	case registry.InstanceRemoved, registry.OwnerRemoved:
		if ev.Cause.Kind == registry.CauseBeatLost {
			e.expired.Add(1)
		}
	case registry.ExpiryHeld:
		e.holds.Add(1)
		e.noteBrake(ev)
	case registry.ExpiryReleased:
		e.releases.Add(1)
		e.noteBrake(ev)
	default: // of no interest here
	}
}

func (e *Expirer) noteBrake(ev *registry.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.notes) == maxBrakeNotes {
		e.lost++
		return
	}
	e.notes = append(e.notes, brakeNote{
		service: ev.Service, held: ev.Kind == registry.ExpiryHeld, detail: ev.Cause.Detail,
	})
}

func (e *Expirer) logBrake() {
	e.mu.Lock()
	notes, lost := e.notes, e.lost
	e.notes, e.lost = nil, 0
	e.mu.Unlock()
	for _, n := range notes {
		log := e.log.With("namespace", n.service.Namespace, "group", n.service.Group, "service", n.service.Name)
		if n.held {
			log.Warn("the brake holds the expiry of a service", "why", n.detail)
		} else {
			log.Warn("the brake lets the expiry of a service go on", "why", n.detail)
		}
	}
	if lost > 0 {
		e.log.Warn("the brake acted on more services than are logged", "services", lost)
	}
}

// ExpirerStats count since the start.
type ExpirerStats struct {
	Ticks     int64 // rounds of expiry
	Unhealthy int64 // instances that became unhealthy for want of beats
	Expired   int64 // leases that ran out
	Holds     int64 // times that the brake held a service
	Releases  int64 // times that it let one go on
	Failures  int64 // rounds in which something could not be made durable
}

// Stats returns the counters; they may be a moment apart.
func (e *Expirer) Stats() ExpirerStats {
	return ExpirerStats{
		Ticks: e.ticks.Load(), Unhealthy: e.unhealthy.Load(), Expired: e.expired.Load(),
		Holds: e.holds.Load(), Releases: e.releases.Load(), Failures: e.failures.Load(),
	}
}
