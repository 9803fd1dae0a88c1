// Package bench measures servers that speak the protocols of Nacos: it runs
// workloads on them in turn and reports. A [Runner] is for one run.
package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rollcall-registry/rollcall/internal/bench/load"
	"github.com/rollcall-registry/rollcall/internal/bench/process"
	"github.com/rollcall-registry/rollcall/internal/bench/report"
	"github.com/rollcall-registry/rollcall/internal/bench/target"
	"github.com/rollcall-registry/rollcall/internal/bench/workload"
)

// Runner runs a plan.
type Runner struct {
	Targets []*target.Target
	// Work is what each of them is measured by, complete.
	Work []workload.Config
	// Rounds is how often each workload is run on each server, in turn, so that what
	// else the machine does meets all of them.
	Rounds int
	Seed   uint64
	// Interval is the time between two samples; if it is 0, a twentieth of the time
	// that is recorded, within bounds.
	Interval time.Duration
	// Patience is how long a change may take to reach all subscribers; 10 s if it is
	// 0.
	Patience time.Duration
	// Progress, if set, is told what happens. It may be called by any goroutine, one
	// at a time.
	Progress func(Progress)
}

// Progress is a moment of a run.
type Progress struct {
	Server, Workload string
	Protocol         target.Protocol
	Stage            string  // prepare, run or verify
	PerSecond        float64 // of the last interval
	Failed           int64
	Elapsed, Total   time.Duration // of the stage
	Step, Steps      int           // of the whole run
}

// Run sees that each server answers, logs in where that is asked for and runs everything.
// A server that answers by none of the protocols of the work is an error; work by one that
// is not answered fails at once. It returns what was
// measured even when it ended early with an error of ctx. A workload that fails is a
// fault of its result and not an error.
func (r *Runner) Run(ctx context.Context) ([]report.Result, error) {
	unreached, err := reach(ctx, r.Targets, r.Work)
	if err != nil {
		return nil, err
	}
	for _, t := range r.Targets {
		stop, err := t.LogIn(ctx)
		if err != nil {
			return nil, err
		}
		defer stop()
	}
	var results []report.Result
	rounds := max(r.Rounds, 1)
	step := 0
	for w := range r.Work {
		of := make([]*gathered, len(r.Targets))
		for i, t := range r.Targets {
			of[i] = newGathered(t, &r.Work[w])
			if err := unreached[t][r.Work[w].Protocol]; err != nil {
				of[i].result.Fault = fmt.Sprintf("via %s nothing is answered: %v", r.Work[w].Protocol, err)
			}
		}
		for round := range rounds {
			for i := range r.Targets {
				step++
				// Each round begins with another server.
				g := of[(i+round)%len(of)]
				if g.result.Fault != "" {
					continue
				}
				if err := r.once(ctx, g, round, Progress{Step: step, Steps: len(r.Work) * rounds * len(r.Targets)}); err != nil {
					return append(results, finished(of, rounds)...), err
				}
			}
		}
		for _, g := range of {
			results = append(results, g.finish())
		}
	}
	return results, nil
}

// finished are the results of what has run for at least one round when the run ends
// early.
func finished(of []*gathered, rounds int) []report.Result {
	var results []report.Result
	for _, g := range of {
		if g.rounds == 0 && g.result.Fault == "" {
			continue // what was not verified has no figures
		}
		if g.rounds < rounds {
			g.result.Incomplete = fmt.Sprintf("%d of %d rounds", g.rounds, rounds)
		}
		results = append(results, g.finish())
	}
	return results
}

// once runs a workload on a server for one round. The error is that of ctx.
func (r *Runner) once(ctx context.Context, g *gathered, round int, at Progress) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	at.Server, at.Workload, at.Protocol = g.target.Name, report.Title(g.config), g.config.Protocol
	tell := func(stage string, total time.Duration) {
		at.Stage, at.Total = stage, total
		if r.Progress != nil {
			r.Progress(at)
		}
	}
	kind, err := workload.KindOf(g.config.Workload)
	if err != nil {
		return err
	}
	tell("prepare", 0)
	// A restart, by a workload or by others, gives it another process.
	if g.pid, err = g.target.Process(); err != nil {
		return g.fail(ctx, "prepare", err)
	}
	rec := load.NewRecorder()
	units := rec.Series("units")
	late := rec.Aside("late")
	env := &workload.Env{
		Target: g.target, Config: *g.config, Rec: rec, Seed: r.Seed + uint64(round), Patience: cmp.Or(r.Patience, patience),
		Prefix:   fmt.Sprintf("bench-%s-%d-", time.Now().UTC().Format("150405"), at.Step),
		Resident: func() int64 { u, _ := process.Read(g.pid); return u.Resident },
	}
	w := kind.New(env)
	defer w.Close(ctx)

	before := g.usage()
	if err := w.Prepare(ctx); err != nil {
		g.result.Behind = errors.Is(err, workload.ErrBehind)
		return g.fail(ctx, "prepare", err)
	}
	tell("run", g.config.Warmup+g.config.Duration)
	l := &load.Loop{
		Workers: kind.WorkersOf(g.config), Rate: g.config.Rate, Count: g.config.Count,
		Warmup: g.config.Warmup, Duration: g.config.Duration, Interval: cmp.Or(r.Interval, intervalOf(g.config.Duration)),
	}
	meter := newMeter(g.pid)
	l.OnBegin = meter.begin
	l.OnInterval = func(i *load.Interval) {
		meter.sample(i)
		at.PerSecond = float64(i.Done) / i.Length.Seconds()
		at.Failed += i.Failed
		at.Elapsed = g.config.Warmup + i.At + i.Length
		tell("run", at.Total)
	}
	out, err := l.Run(ctx, rec, units, late, w.Step)
	used := meter.end()
	if err != nil {
		return err
	}
	tell("verify", 0)
	checked, err := w.Verify(ctx)
	if err != nil {
		g.behind(err, out, used)
		return g.fail(ctx, "verify", err)
	}
	if out.Done == 0 {
		return g.nothing(ctx, out)
	}
	var figures []workload.Figure
	if f, ok := w.(workload.Figured); ok {
		figures = f.Figures()
	}
	g.add(&roundResult{round: round, out: out, rec: rec, late: late, used: used, before: before, checked: checked, figures: figures})
	return nil
}

// patience is how long a change may take to reach all subscribers.
const patience = 10 * time.Second

// intervalOf gives a recorded time some twenty samples, none so short that it holds
// hardly anything, or so long that what happens within is not seen.
func intervalOf(recorded time.Duration) time.Duration {
	return min(max(recorded/20, 50*time.Millisecond), time.Second)
}

var errNothing = errors.New("nothing was done")
