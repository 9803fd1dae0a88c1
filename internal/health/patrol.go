package health

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/rollcall-registry/rollcall/internal/health/probe"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// patrol is one Run of a [Checker]. All of it belongs to the goroutine of Run,
// but for what a worker does to its own flight before it lands.
type patrol struct {
	*Checker
	services map[registry.ServiceKey]*watched
	agenda   agenda
	flying   int
	landed   chan *flight // has room for all that fly, so no worker waits
	workers  sync.WaitGroup
	// nextLaunch is when the rate allows the next probe.
	nextLaunch time.Time
	gatheredAt time.Time // when changes were last taken over
}

// launchSlack is how much of the rate may be caught up with at once, when Run
// comes late to a launch.
const launchSlack = 50 * time.Millisecond

func newPatrol(c *Checker) *patrol {
	return &patrol{
		Checker:  c,
		services: map[registry.ServiceKey]*watched{},
		landed:   make(chan *flight, c.cfg.ProbeConcurrency),
	}
}

// end waits for the workers, whose contexts have ended.
func (p *patrol) end() {
	p.changes.close()
	p.workers.Wait()
	p.targets.Store(0)
	p.inFlight.Store(0)
}

// arm sets the timer to the next probe that could start. When all workers are
// busy, the next landing wakes Run, not the timer.
func (p *patrol) arm(timer *time.Timer) {
	t := p.agenda.next()
	if t == nil || p.flying >= p.cfg.ProbeConcurrency {
		timer.Stop()
		return
	}
	timer.Reset(time.Until(later(t.due, p.nextLaunch)))
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// launchDue starts the probes that are due, as far as workers are free and the
// rate allows.
func (p *patrol) launchDue(ctx context.Context, now time.Time) {
	switches := p.source.Switches()
	for p.flying < p.cfg.ProbeConcurrency && !p.nextLaunch.After(now) {
		t := p.agenda.next()
		if t == nil || t.due.After(now) {
			return
		}
		switch {
		case now.Sub(t.service.readAt) > rereadAfter:
			p.read(t.service.key, now) // t may be another or gone after that
		case !switches.HealthCheckEnabled:
			p.schedule(t, now)
		default:
			p.lag.Store(int64(now.Sub(t.due)))
			p.nextLaunch = later(p.nextLaunch, now.Add(-launchSlack)).Add(time.Second / time.Duration(p.cfg.ProbeRate))
			p.launch(ctx, t)
		}
	}
}

func (p *patrol) launch(ctx context.Context, t *target) {
	p.agenda.remove(t)
	ctx, cancel := context.WithCancel(ctx)
	f := &flight{target: t, cancel: cancel, probe: t.aim()}
	t.flight = f
	p.flying++
	p.inFlight.Store(int64(p.flying))
	p.workers.Go(func() {
		defer cancel()
		start := time.Now()
		f.result = p.prober.Probe(ctx, f.probe)
		f.took = time.Since(start)
		p.landed <- f
	})
}

// land takes a finished probe back.
func (p *patrol) land(f *flight, now time.Time) {
	p.flying--
	p.inFlight.Store(int64(p.flying))
	t := f.target
	if t.flight != f {
		return // grounded meanwhile
	}
	t.flight = nil
	p.settle(t, f)
	p.schedule(t, now)
}

// settle makes what there is to make of a result.
func (p *patrol) settle(t *target, f *flight) {
	switches := p.source.Switches()
	kind := f.probe.Check.Type
	p.checks(kind).Add(1)
	if p.OnProbe != nil {
		p.OnProbe(kind, f.result.Outcome, f.took)
	}
	pace := params(switches, kind)
	spent := cost(f.result.Outcome, f.took, t.period, pace)
	t.period = smooth(t.period, spent, pace)
	p.timings.record(t.service.key, t.cluster.Name, spent, pace)
	switch {
	case f.result.Outcome == probe.Denied:
		p.denied.Add(1)
	case f.result.Outcome != probe.Up && f.took > p.patience():
		p.late.Add(1)
	case switches.HealthCheckEnabled && t.judge(f.result.Outcome, switches.CheckTimes):
		p.flip(t, f)
	}
}

// patience is how long a failed probe may have taken to count. The time-outs of
// package probe add up to three times ProbeTimeout; one that took longer was
// held up by this server, and says nothing about the instance.
func (p *patrol) patience() time.Duration { return 4 * p.cfg.ProbeTimeout }

// flip reports the other health. What cannot be reported is not believed, so
// that the next result reports it again.
func (p *patrol) flip(t *target, f *flight) {
	healthy := !t.healthy
	log := p.log.With("namespace", t.service.key.Namespace, "group", t.service.key.Group,
		"service", t.service.key.Name, "cluster", t.cluster.Name, "instance", f.probe.Address())
	if err := p.report.Probed(t.service.key, t.key, healthy, verdict(t, f)); err != nil {
		log.Warn("a probe's result was not taken", "healthy", healthy, "err", err)
		return
	}
	t.healthy, t.streak = healthy, 0
	p.flips.Add(1)
	log.Info("a persistent instance changed its health", "healthy", healthy, "why", f.result.Detail)
}

// verdict is what the history says of a flip.
func verdict(t *target, f *flight) string {
	what := string(f.probe.Check.Type) + " " + f.probe.Address()
	switch f.result.Outcome {
	case probe.Up:
		return fmt.Sprintf("%s answered %d times in a row", what, t.streak)
	case probe.Refused:
		return what + ": " + f.result.Detail
	default:
		return fmt.Sprintf("%s: %s, %d times in a row", what, f.result.Detail, t.streak)
	}
}

// schedule puts t into the agenda for its next regular probe.
func (p *patrol) schedule(t *target, now time.Time) {
	t.due = now.Add(spread(t.period, p.cfg.ProbeMinInterval, p.random()))
	p.agenda.put(t)
}
