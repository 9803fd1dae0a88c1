package health

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/rollcall-registry/rollcall/internal/health/probe"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// KeyProbe is the key of a service's metadata that, set to "off", leaves its
// instances unprobed whatever their clusters say.
const KeyProbe = "preserved.probe.check"

// Source is what the checker reads of the store. Its calls must not block.
type Source interface {
	ServiceNamespaces() []string
	Services(namespace, group string, offset, limit int) (page []registry.ServiceKey, total int)
	View(registry.ServiceKey) *registry.View
	Standings(registry.ServiceKey, registry.Instant) []registry.Standing
	Switches() *registry.Switches
}

// Reporter is told when the health of a persistent instance changes.
type Reporter interface {
	// Probed sets the health of an instance's durable registration. It must not
	// block for long: all probes wait for it.
	Probed(key registry.ServiceKey, instance registry.InstanceKey, healthy bool, detail string) error
}

// Prober checks one instance once.
type Prober interface {
	// Probe returns when it knows, or soon after ctx ended. It is called by
	// several goroutines at once.
	Probe(ctx context.Context, t probe.Target) probe.Result
}

// Checker probes the persistent instances of the store and reports when their
// health changes. It learns of them from the store's events and, in case one
// should be missed, reads each service again now and then.
//
// One goroutine decides; at most Config.ProbeConcurrency others wait for
// answers, and at most Config.ProbeRate probes begin in a second. When more are
// due than that, the one that has waited longest goes first and periods grow.
// Create it with [NewChecker]; Run it once.
type Checker struct {
	// OnProbe, when set before Run, is called after each probe that counts, on
	// the goroutine of Run. It must not block.
	OnProbe func(kind registry.CheckType, outcome probe.Outcome, took time.Duration)

	cfg     Config
	source  Source
	report  Reporter
	prober  Prober
	log     *slog.Logger
	random  func() float64 // at least 0, below 1
	changes *changes
	timings *timings

	targets, inFlight, flips, denied, late, lag atomic.Int64
	tcp, http, mySQL                            atomic.Int64 // probes
}

// NewChecker returns a checker of the persistent instances in source. Changes of
// health go to report.
func NewChecker(cfg Config, source Source, report Reporter, logger *slog.Logger) *Checker {
	return &Checker{
		cfg: cfg, source: source, report: report,
		prober:  probe.New(probe.Config{Timeout: cfg.ProbeTimeout, Allow: cfg.ProbeAllow, Deny: cfg.ProbeDeny}),
		log:     logger.With("component", "probes"),
		random:  rand.Float64,
		changes: newChanges(),
		timings: newTimings(),
	}
}

// Emit implements [registry.Sink]: it notes services whose persistent instances
// or settings changed.
func (c *Checker) Emit(e *registry.Event) {
	switch e.Kind {
	case registry.InstanceRegistered, registry.InstanceUpdated, registry.InstanceRenewed, registry.InstanceRemoved,
		registry.InstanceHealthy, registry.InstanceUnhealthy, registry.OwnerAdded, registry.OwnerRemoved:
		if e.Owner.Kind == registry.OwnerDurable && e.Cause.Kind != registry.CauseProbe {
			c.changes.add(e.Service)
		}
	case registry.ServiceUpdated, registry.ServiceRemoved, registry.ClusterUpdated:
		c.changes.add(e.Service)
	default: // of no interest here
	}
}

// Run probes until ctx ends, and returns when no probe runs any more.
func (c *Checker) Run(ctx context.Context) error {
	p := newPatrol(c)
	defer p.end()
	p.readAll(ctx)
	launch, gather := time.NewTimer(0), time.NewTimer(0)
	defer launch.Stop()
	defer gather.Stop()
	for {
		p.launchDue(ctx, time.Now())
		p.arm(launch)
		select {
		case <-ctx.Done():
			return nil
		case <-c.changes.wake:
			gather.Reset(time.Until(p.gatheredAt.Add(gatherFor)))
		case <-gather.C:
			p.gather(time.Now())
		case f := <-p.landed:
			p.land(f, time.Now())
		case <-launch.C:
		}
	}
}

// RT returns the response times of a cluster's probes.
func (c *Checker) RT(key registry.ServiceKey, cluster string) RT { return c.timings.get(key, cluster) }

// Checks returns how many probes of a kind were made since the start.
func (c *Checker) Checks(kind registry.CheckType) int64 {
	if n := c.checks(kind); n != nil {
		return n.Load()
	}
	return 0
}

func (c *Checker) checks(kind registry.CheckType) *atomic.Int64 {
	switch kind {
	case registry.CheckTCP:
		return &c.tcp
	case registry.CheckHTTP:
		return &c.http
	case registry.CheckMySQL:
		return &c.mySQL
	default:
		return nil
	}
}

// CheckerStats tell what the checker does.
type CheckerStats struct {
	Targets  int64 // instances that are probed
	InFlight int64 // probes that run now
	Flips    int64 // changes of health since the start
	Denied   int64 // probes since the start that the configuration forbade
	Late     int64 // probes since the start that did not count, because this server was slow
	// Lag is how much later than planned the latest probe began.
	Lag time.Duration
}

// Stats returns the present figures; they may be a moment apart.
func (c *Checker) Stats() CheckerStats {
	return CheckerStats{
		Targets: c.targets.Load(), InFlight: c.inFlight.Load(), Flips: c.flips.Load(),
		Denied: c.denied.Load(), Late: c.late.Load(), Lag: time.Duration(c.lag.Load()),
	}
}
