package main

import (
	"context"
	"fmt"

	"github.com/rollcall-registry/rollcall/internal/bench/fleet"
	"github.com/rollcall-registry/rollcall/internal/bench/target"
	"github.com/rollcall-registry/rollcall/internal/bench/workload"
)

// few is how many services a small registry has.
const few = 100

// measureScale compares what a request costs on a small registry with what it costs
// on one of many services, of which either all or as many as the small one has are
// asked for.
func measureScale(ctx context.Context, b *suite) ([]table, error) {
	small, err := b.newServer(ctx)
	if err != nil {
		return nil, err
	}
	defer small.end()
	large, err := b.newServer(ctx)
	if err != nil {
		return nil, err
	}
	defer large.end()
	many := b.instances / 10
	release, err := workload.Hold(ctx, large.target, target.HTTP, &fleet.Fleet{Name: "many", Group: group, Services: many, Size: 1, Owners: 1})
	if err != nil {
		return nil, err
	}
	defer release(ctx)
	rows := [][]string{
		{fmt.Sprintf("%d services", few)},
		{fmt.Sprintf("%s services, %d of them asked for", thousands(float64(many+few)), few)},
		{fmt.Sprintf("%s services, %s of them asked for", thousands(float64(2*many)), thousands(float64(many)))},
	}
	for _, kind := range []string{"beat", "query"} {
		c := workload.Config{Workload: kind, Protocol: target.HTTP, Services: few, Instances: 1, Connections: b.conns, Duration: b.length}
		same, err := b.run(ctx, c, b.rounds, small, large)
		if err != nil {
			return nil, err
		}
		c.Services = many
		all, err := b.run(ctx, c, b.rounds, large)
		if err != nil {
			return nil, err
		}
		first := same[0].Process.CPUPerUnit
		for n, cpu := range []float64{first, same[1].Process.CPUPerUnit, all[0].Process.CPUPerUnit} {
			rows[n] = append(rows[n], fmt.Sprintf("%.1f µs", cpu), fmt.Sprintf("%.2f", cpu/first))
		}
	}
	return []table{{marker: "scale", head: []string{"Registry", "beat", "ratio", "query of 1", "ratio"}, rows: rows}}, nil
}
