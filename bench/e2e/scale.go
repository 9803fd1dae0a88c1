package main

import (
	"context"
	"fmt"
)

// measureScale compares what a request costs on a small registry with what it
// costs on one of many services, of which either all or as many as the small one
// has are asked for.
func measureScale(ctx context.Context, b *bench) ([]table, error) {
	const few = 100
	many := b.instances
	small := &population{prefix: "one-", services: few, each: 1}
	all := &population{prefix: "one-", services: many, each: 1}
	sizes := []struct {
		title string
		fill  *population
		asked *population
	}{
		{fmt.Sprintf("%d services", few), small, small},
		{fmt.Sprintf("%s services, %d of them asked for", thousands(float64(many)), few), all, small},
		{fmt.Sprintf("%s services, each asked for in turn", thousands(float64(many))), all, all},
	}
	var keepers []*keeper
	for _, size := range sizes {
		server, err := b.newServer(ctx)
		if err != nil {
			return nil, err
		}
		defer server.end()
		keepers = append(keepers, &keeper{server: server, populations: []*population{size.fill}})
	}
	calls := func(p *population) []*call { return []*call{p.beat(false), p.list()} }
	results := make([][][]round, len(sizes))
	for i := range results {
		results[i] = make([][]round, len(calls(small)))
	}
	for _, k := range keepers {
		if err := k.fill(ctx); err != nil {
			return nil, err
		}
	}
	for n := range b.rounds {
		progress("scale: round %d of %d", n+1, b.rounds)
		for i, size := range sizes {
			f, err := dial(keepers[i].server.address, b.conns)
			if err != nil {
				return nil, err
			}
			for j, c := range calls(size.asked) {
				r, _, err := b.measureRound(keepers[i].server, f, c, n*few*100, lasting(b.length))
				if err != nil {
					f.close()
					return nil, err
				}
				results[i][j] = append(results[i][j], r)
			}
			f.close()
			for _, k := range keepers {
				if err := k.beat(ctx); err != nil {
					return nil, err
				}
			}
		}
	}
	t := table{marker: "scale", head: []string{"Registry", "light beat", "ratio", "list of 1", "ratio"}}
	for i, size := range sizes {
		row := []string{size.title}
		for j := range results[i] {
			row = append(row, fmt.Sprintf("%.1f µs", median(pick(results[i][j], cpuOf))),
				fmt.Sprintf("%.2f", ratio(results[i][j], results[0][j], cpuOf)))
		}
		t.rows = append(t.rows, row)
	}
	return []table{t}, nil
}
