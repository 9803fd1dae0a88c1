package health

import (
	"context"
	"fmt"
	"log/slog"
	"testing"

	"github.com/rollcall-registry/rollcall/internal/health/probe"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// BenchmarkRound measures what one probe costs the checker beside the probe
// itself: finding it due, a worker, the verdict, the next time; 10,000 instances.
func BenchmarkRound(b *testing.B) {
	store := registry.NewStore(registry.DefaultConfig(), &sinks{})
	for n := range 10_000 {
		apply(b, store, persistent(fmt.Sprint("svc-", n/10), n))
	}
	c := NewChecker(DefaultConfig(), store, nil, slog.New(slog.DiscardHandler))
	c.prober = ready{}
	c.cfg.ProbeRate = 1_000_000
	p := newPatrol(c)
	p.readAll(b.Context())
	b.ReportAllocs()
	for b.Loop() {
		now := p.agenda.next().due
		p.launchDue(b.Context(), now)
		for p.flying > 0 {
			p.land(<-p.landed, now)
		}
	}
	p.end()
}

// BenchmarkReadAll measures the start of a checker over 100,000 ephemeral
// instances, which it has to look through.
func BenchmarkReadAll(b *testing.B) {
	store := registry.NewStore(registry.DefaultConfig(), &sinks{})
	for n := range 100_000 {
		apply(b, store, ephemeral(registry.Instant{}, fmt.Sprint("svc-", n/10), n, ""))
	}
	c := NewChecker(DefaultConfig(), store, nil, slog.New(slog.DiscardHandler))
	b.ReportAllocs()
	for b.Loop() {
		newPatrol(c).readAll(b.Context())
	}
}

// ready answers every probe at once.
type ready struct{}

func (ready) Probe(context.Context, probe.Target) probe.Result {
	return probe.Result{Outcome: probe.Up}
}
