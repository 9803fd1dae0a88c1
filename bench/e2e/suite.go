package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/rollcall-registry/rollcall/internal/bench"
	"github.com/rollcall-registry/rollcall/internal/bench/fleet"
	"github.com/rollcall-registry/rollcall/internal/bench/report"
	"github.com/rollcall-registry/rollcall/internal/bench/target"
	"github.com/rollcall-registry/rollcall/internal/bench/workload"
)

// group is that of all services that the suite makes by itself.
const group = "DEFAULT_GROUP"

// protocols are all that clients speak.
func protocols() []target.Protocol { return []target.Protocol{target.HTTP, target.GRPC} }

// run runs a workload for some rounds on each server in turn. A fault of any of them
// is an error.
func (b *suite) run(ctx context.Context, c workload.Config, rounds int, servers ...*process) ([]report.Result, error) {
	return b.watched(ctx, c, rounds, nil, servers...)
}

// watched is run, and calls begun when the load begins.
func (b *suite) watched(ctx context.Context, c workload.Config, rounds int, begun func(), servers ...*process) ([]report.Result, error) {
	warmup := min(c.Duration/4, time.Second)
	if err := c.Complete(&warmup); err != nil {
		return nil, err
	}
	r := &bench.Runner{Work: []workload.Config{c}, Rounds: rounds, Seed: 1}
	for _, s := range servers {
		r.Targets = append(r.Targets, s.target)
	}
	if begun != nil {
		var once sync.Once
		r.Progress = func(p bench.Progress) {
			if p.Stage == "run" {
				once.Do(begun)
			}
		}
	}
	progress("%s via %s", report.Title(&c), c.Protocol)
	results, err := r.Run(ctx)
	if err != nil {
		return nil, err
	}
	for i := range results {
		if fault := results[i].Fault; fault != "" {
			return nil, fmt.Errorf("%s: %s via %s: %s", results[i].Server, results[i].Title(), c.Protocol, fault)
		}
	}
	return results, nil
}

// one is run for one server.
func (b *suite) one(ctx context.Context, c workload.Config, server *process) (*report.Result, error) {
	results, err := b.run(ctx, c, 1, server)
	if err != nil {
		return nil, err
	}
	return &results[0], nil
}

// ratiosOf returns how a figure of each server stands to that of the first.
func ratiosOf(results []report.Result, name string) ([]float64, error) {
	var sets []report.Set
	for i := range results {
		sets = append(sets, report.Set{Name: results[i].Server, Results: results[i : i+1]})
	}
	list, err := report.Compare(sets)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(list[0].Rows, func(r report.Row) bool { return r.Name == name })
	if at < 0 {
		return nil, fmt.Errorf("%s was not measured", name)
	}
	var ratios []float64
	for _, c := range list[0].Rows[at].Cells {
		ratios = append(ratios, c.Ratio)
	}
	return ratios, nil
}

// cpuOf is the processor time of the server for each unit.
func cpuOf(r *report.Result) string {
	if r.Process == nil {
		return "-"
	}
	return fmt.Sprintf("%.1f µs", r.Process.CPUPerUnit)
}

// durable is a fleet of persistent instances.
func durable(instances int) *fleet.Fleet {
	return &fleet.Fleet{Name: "durable", Group: group, Services: instances / 10, Size: 10, Owners: 1, Persistent: true}
}

// registerAll registers all instances of a fleet over so many connections, each with
// one request under way, and returns how long that took.
func registerAll(ctx context.Context, server *process, f *fleet.Fleet, conns int) (time.Duration, error) {
	dealt := *f
	dealt.Owners = conns
	sessions := make([]target.Session, conns)
	for n := range sessions {
		s, err := server.target.Dial(ctx, target.HTTP)
		if err != nil {
			return 0, err
		}
		defer s.Close()
		sessions[n] = s
	}
	begun := time.Now()
	errs := make(chan error, conns)
	for n, s := range sessions {
		go func() { errs <- registerOwned(ctx, s, &dealt, n) }()
	}
	var failed error
	for range sessions {
		if err := <-errs; err != nil {
			failed = err
		}
	}
	return time.Since(begun), failed
}

func registerOwned(ctx context.Context, s target.Session, f *fleet.Fleet, owner int) error {
	for k := range f.Rounds() {
		i, ok := f.Owned(owner, k)
		if !ok {
			continue
		}
		if err := s.Register(i); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}
