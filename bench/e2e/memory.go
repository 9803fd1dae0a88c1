package main

import (
	"context"
	"fmt"

	"github.com/rollcall-registry/rollcall/internal/bench/report"
	"github.com/rollcall-registry/rollcall/internal/bench/target"
	"github.com/rollcall-registry/rollcall/internal/bench/workload"
)

// measureMemory holds a large registry of ephemeral instances that all beat, as
// clients do, and measures its memory, what its processor time goes into, and what
// the checks for expiry have of it.
func measureMemory(ctx context.Context, b *suite) ([]table, error) {
	sizes := table{marker: "memory", head: []string{"Registry", "via", "empty", "just filled", "after a snapshot", "an instance"}}
	expiry := table{marker: "expiry", head: []string{"Registry", "Beats/s", "Server CPU", "of it expiry", "of it snapshots"}}
	for _, c := range []workload.Config{
		{Workload: "fill", Protocol: target.HTTP},
		{Workload: "fill", Protocol: target.HTTP, Distinct: true},
		{Workload: "fill", Protocol: target.GRPC},
	} {
		c.Services, c.Duration = b.instances/10, b.hold
		title := fmt.Sprintf("%s instances, 10 a service", thousands(float64(b.instances)))
		if c.Distinct {
			title += ", no two with equal metadata"
		}
		r, top, err := b.holdFull(ctx, c)
		if err != nil {
			return nil, err
		}
		sizes.rows = append(sizes.rows, append([]string{title, string(c.Protocol)}, memoryOf(r)...))
		if c.Protocol == target.HTTP && !c.Distinct {
			busy := r.Process.CPUSeconds / r.Seconds
			expiry.rows = append(expiry.rows, []string{
				title, thousands(r.PerSecond()), percent(busy),
				percent(busy * top.share("health.(*Expirer).Run")), percent(busy * top.share("recovery.(*Keeper).Run")),
			})
			expiry.listing = top.summary()
		}
	}
	return []table{sizes, expiry}, nil
}

func percent(share float64) string { return fmt.Sprintf("%.2f %%", 100*share) }

// holdFull runs a workload on a server of its own, and takes a profile meanwhile.
func (b *suite) holdFull(ctx context.Context, c workload.Config) (*report.Result, *profile, error) {
	profiles, err := freePort()
	if err != nil {
		return nil, nil, err
	}
	server, err := b.newServer(ctx, "--pprof-listen", profiles)
	if err != nil {
		return nil, nil, err
	}
	defer server.end()
	return b.profiled(ctx, c, server, profiles, b.hold*9/10)
}

// memoryOf are the figures of a fill.
func memoryOf(r *report.Result) []string {
	figures := map[string]float64{}
	for _, f := range r.Figures {
		figures[f.Name] = f.Value
	}
	return []string{
		mebibytes(int64(figures["memory before"])), mebibytes(int64(figures["memory just filled"])),
		mebibytes(int64(figures["memory at the end"])), fmt.Sprintf("%.0f B", figures["memory an instance"]),
	}
}
