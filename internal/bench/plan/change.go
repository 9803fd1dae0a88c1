package plan

import (
	"fmt"
	"slices"
	"time"

	"github.com/rollcall-registry/rollcall/internal/bench/target"
	"github.com/rollcall-registry/rollcall/internal/bench/workload"
)

// Change is what a command line changes about a plan. What is zero stays.
type Change struct {
	Only        []string // workloads to keep
	Protocol    target.Protocol
	Connections int
	Rate        float64
	Count       int
	Duration    time.Duration
	Warmup      *time.Duration
	// Command restarts the server. A plan without a workload that uses it gets one.
	Command string
}

// Apply changes the plan.
func (p *Plan) Apply(c *Change) error {
	if c.Command != "" && !slices.ContainsFunc(p.Work, restarts) {
		for _, protocol := range []target.Protocol{target.HTTP, target.GRPC} {
			p.Work = append(p.Work, workload.Config{Workload: "restart", Protocol: protocol})
		}
	}
	for _, name := range c.Only {
		if !slices.ContainsFunc(p.Work, func(w workload.Config) bool { return w.Workload == name }) {
			return fmt.Errorf("only: %s has no workload %q", p.Name, name)
		}
	}
	if p.Rounds < 1 || p.Rounds > maxRounds {
		return fmt.Errorf("rounds: %d is not between 1 and %d", p.Rounds, maxRounds)
	}
	var kept []workload.Config
	for _, w := range p.Work {
		if len(c.Only) > 0 && !slices.Contains(c.Only, w.Workload) || c.Protocol != "" && c.Protocol != w.Protocol {
			continue
		}
		if err := c.change(&w); err != nil {
			return err
		}
		kept = append(kept, w)
	}
	if len(kept) == 0 {
		return fmt.Errorf("of %s nothing is left to run", p.Name)
	}
	p.Work = kept
	return nil
}

// restarts reports whether a workload takes the command that restarts the server.
func restarts(w workload.Config) bool {
	k, err := workload.KindOf(w.Workload)
	return err == nil && k.Restarts
}

// change changes one workload, where it has what is changed.
func (c *Change) change(w *workload.Config) error {
	k, err := workload.KindOf(w.Workload)
	if err != nil {
		return err
	}
	if c.Connections != 0 && k.Defaults.Connections > 0 {
		w.Connections = c.Connections
	}
	if c.Rate != 0 && k.Defaults.Rate == 0 {
		w.Rate = c.Rate
	}
	if c.Count != 0 {
		w.Count = c.Count
	}
	if c.Duration != 0 {
		w.Duration = c.Duration
	}
	if c.Command != "" && k.Restarts {
		w.Command = c.Command
	}
	warmup := w.Warmup
	if c.Warmup != nil {
		warmup = *c.Warmup
	}
	return w.Complete(&warmup)
}
