package plan

import (
	"errors"
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
			if restarts(workload.Config{Workload: name}) {
				return errNoCommand
			}
			return fmt.Errorf("only: %s has no workload %q", p.Name, name)
		}
	}
	if err := errors.Join(p.boundRounds(), c.bounds()); err != nil {
		return err
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
	return c.used(kept)
}

// bounds refuses what no workload could do.
func (c *Change) bounds() error {
	var errs []error
	for key, wrong := range map[string]bool{
		"connections": c.Connections < 0, "rate": c.Rate < 0, "count": c.Count < 0, "duration": c.Duration < 0,
	} {
		if wrong {
			errs = append(errs, fmt.Errorf("%s: it is below 0", key))
		}
	}
	return errors.Join(errs...)
}

// used refuses what none of the workloads that are run has a use for.
func (c *Change) used(work []workload.Config) error {
	takes := func(use func(*workload.Kind) bool) bool {
		return slices.ContainsFunc(work, func(w workload.Config) bool {
			k, err := workload.KindOf(w.Workload)
			return err == nil && use(&k)
		})
	}
	if c.Connections != 0 && !takes(connects) {
		return errors.New("connections: none of the workloads that are run has any to be told")
	}
	if c.Rate != 0 && !takes(paced) {
		return errors.New("rate: the workloads that are run have a pace of their own, which only a scenario changes")
	}
	return nil
}

// connects reports whether a kind has connections to be told, paced whether it may go as
// fast as answers come, so that it can be told a rate.
func connects(k *workload.Kind) bool { return k.Defaults.Connections > 1 }

func paced(k *workload.Kind) bool { return connects(k) && k.Defaults.Rate == 0 && !k.OwnPace }

// restarts reports whether a workload takes the command that restarts the server.
func restarts(w workload.Config) bool {
	k, err := workload.KindOf(w.Workload)
	return err == nil && k.Restarts
}

var errNoCommand = errors.New("command: say how to restart the server, with --restart-command or in the scenario")

// change changes one workload, where it has what is changed.
func (c *Change) change(w *workload.Config) error {
	k, err := workload.KindOf(w.Workload)
	if err != nil {
		return err
	}
	if c.Connections != 0 && connects(&k) {
		w.Connections = c.Connections
	}
	if c.Rate != 0 && paced(&k) {
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
	if k.Restarts && w.Command == "" {
		return fmt.Errorf("%s: %w", w.Workload, errNoCommand)
	}
	return w.Complete(&warmup)
}
