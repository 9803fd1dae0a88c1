package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rollcall-registry/rollcall/internal/bench"
	"github.com/rollcall-registry/rollcall/internal/bench/plan"
	"github.com/rollcall-registry/rollcall/internal/bench/process"
	benchreport "github.com/rollcall-registry/rollcall/internal/bench/report"
	"github.com/rollcall-registry/rollcall/internal/bench/target"
)

const benchHelp = `Measure a running server that speaks the protocols of Nacos: Rollcall or another.

Each workload brings the server into a known state, loads it, and afterwards compares
what the server holds with what it was sent; a server that answers without doing has
no figures. Everything that was registered is taken back. docs/bench.md tells what
each workload does and how it measures.

Do not point it at a registry that is in use.`

const benchExample = `  rollcall bench --profile smoke
  rollcall bench --only query,beat --rate 5000 --html report.html
  rollcall bench --server 127.0.0.1:8848 --against nacos=127.0.0.1:8849 --rounds 5
  rollcall bench --server https://127.0.0.1:8848 --ca-file ca.pem --user bench --password-file password
  rollcall bench --json > a.json; rollcall bench compare a.json b.json`

// benchCommand is one run of `rollcall bench`.
type benchCommand struct {
	app   *app
	flags *pflag.FlagSet

	server, grpc, name string
	against            []string
	pid                int
	insecure           bool
	profile, scenario  string
	only               []string
	protocol           string
	connections, count int
	rate               float64
	duration, warmup   time.Duration
	rounds             int
	seed               uint64
	interval           time.Duration
	json               bool
	save, html         string
	allowRemote        bool
	restart            string
}

func (a *app) benchCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "bench",
		Short:   "Measure a server, and verify that it does what it answers",
		Long:    benchHelp,
		Example: benchExample,
		GroupID: clientGroup,
		Args:    cobra.NoArgs,
	}
	b := &benchCommand{app: a, flags: cmd.Flags()}
	b.addFlags()
	cmd.AddCommand(a.benchCompareCommand(), a.benchWorkloadsCommand())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		ctx, stop := untilSignal(cmd.Context(), a.process.Signals)
		defer stop()
		return b.run(ctx)
	}
	return cmd
}

func (b *benchCommand) addFlags() {
	f := b.flags
	f.SortFlags = false // what, how much, and how it is shown
	f.StringVarP(&b.server, flagServer, "s", "", describeSetting(flagServer, "The server to measure, as `host:port` or URL of its HTTP API; with https:// both APIs speak TLS.")+", default "+defaultServer)
	f.StringVar(&b.grpc, optionGRPC, "", "Its gRPC `host:port`, by default 1000 above that of HTTP; http:// or https:// before it where TLS differs.")
	f.StringVar(&b.name, "name", "rollcall", "What it is called in reports.")
	f.IntVar(&b.pid, optionPID, 0, "Its process, for memory and processor time; by default the one that listens at the address.")
	addAccessFlags(f)
	f.BoolVar(&b.insecure, optionInsecure, false, "Do not check the server's certificate.")
	f.StringArrayVar(&b.against, "against", nil, "Another running server beside it, as `NAME=host:port`[,grpc=host:port][,pid=N]; may be repeated. "+
		"After commas also user, password-file, ca-file, cert-file, key-file and server-name, each with its value, and insecure.")
	f.StringVar(&b.profile, "profile", "laptop", "What to run: "+strings.Join(plan.Profiles(), ", ")+".")
	f.StringVar(&b.scenario, "scenario", "", "YAML `file` with workloads of one's own in place of a profile.")
	f.StringSliceVar(&b.only, "only", nil, "Run only these workloads of the profile or scenario.")
	f.StringVar(&b.protocol, "protocol", "", "Run only what speaks `http` or grpc.")
	f.IntVar(&b.connections, "connections", 0, "Connections, for all workloads that have any.")
	f.Float64Var(&b.rate, "rate", 0, "Calls a second (open loop), for all workloads that may go as fast as answers come.")
	f.IntVar(&b.count, "count", 0, "Most units of each workload.")
	f.DurationVar(&b.duration, "duration", 0, "How long each workload is measured.")
	f.DurationVar(&b.warmup, "warmup", 0, "How long it runs before that.")
	f.IntVar(&b.rounds, "rounds", 0, "How often each workload is run on each server, in turn.")
	f.Uint64Var(&b.seed, "seed", plan.DefaultSeed, "Of names, orders and mixes: the same seed is the same load.")
	f.DurationVar(&b.interval, "interval", 0, "Time between two samples, by default a twentieth of the duration.")
	f.StringVar(&b.restart, "restart-command", "", "Shell `command` that restarts the server, for the workload restart.")
	f.BoolVar(&b.json, "json", false, "Print JSON for programs, and for \"rollcall bench compare\".")
	f.StringVar(&b.save, "save", "", "Write the JSON to a `file` besides.")
	f.StringVar(&b.html, "html", "", "Write a report with curves to a `file`.")
	f.BoolVar(&b.allowRemote, "allow-remote", false, "Load a server on another machine.")
}

func (b *benchCommand) run(ctx context.Context) error {
	if err := b.check(); err != nil {
		return &usageError{err}
	}
	targets, err := b.targets()
	if err != nil {
		return &usageError{err}
	}
	p, err := b.plan()
	if err != nil {
		return &usageError{err}
	}
	runner := &bench.Runner{
		Targets: targets, Work: p.Work, Rounds: p.Rounds, Seed: p.Seed, Interval: b.interval,
	}
	line := newProgressLine(b.app.process.Stderr)
	runner.Progress = line.show
	run := &benchreport.Run{
		Format: benchreport.Format, Started: time.Now().UTC(), Tool: versionText(), Machine: process.Machine(), Plan: p.Name, Seed: p.Seed,
		Command: "rollcall " + strings.Join(b.app.process.Args, " "),
	}
	for _, t := range targets {
		run.Servers = append(run.Servers, describe(ctx, t))
	}
	run.Results, err = runner.Run(ctx)
	line.clear()
	run.Seconds = time.Since(run.Started).Seconds()
	if err != nil {
		run.Stopped, run.Left = err.Error(), run.Missing(p.Work)
	}
	return errors.Join(b.write(run), err, verdict(run))
}

// check refuses flags that would do nothing, or undo each other.
func (b *benchCommand) check() error {
	var errs []error
	for name, above := range map[string]bool{
		"connections": b.connections > 0, "rate": b.rate > 0, "count": b.count > 0, "duration": b.duration > 0,
		"rounds": b.rounds > 0, "interval": b.interval > 0,
	} {
		if b.flags.Changed(name) && !above {
			errs = append(errs, fmt.Errorf("%s: %v is not above 0", name, b.flags.Lookup(name).Value))
		}
	}
	if b.save != "" && filepath.Clean(b.save) == filepath.Clean(b.html) {
		errs = append(errs, fmt.Errorf("save and html: both would write %s", b.save))
	}
	return errors.Join(errs...)
}

// verdict is an error when a result is void.
func verdict(run *benchreport.Run) error {
	for i := range run.Results {
		if run.Results[i].Fault != "" {
			return errSaid
		}
	}
	return nil
}

// plan is the profile or scenario as the flags change it.
func (b *benchCommand) plan() (*plan.Plan, error) {
	var p *plan.Plan
	var err error
	if b.scenario != "" {
		if b.flags.Changed("profile") {
			return nil, errors.New("profile and scenario exclude each other")
		}
		p, err = readScenario(b.scenario)
	} else {
		p, err = plan.Profile(b.profile)
	}
	if err != nil {
		return nil, err
	}
	change := plan.Change{
		Only: b.only, Protocol: target.Protocol(b.protocol), Connections: b.connections, Rate: b.rate, Count: b.count,
		Duration: b.duration, Command: b.restart,
	}
	if b.flags.Changed("warmup") {
		change.Warmup = &b.warmup
	}
	if b.flags.Changed("seed") {
		p.Seed = b.seed
	}
	if b.rounds != 0 {
		p.Rounds = b.rounds
	}
	return p, p.Apply(&change)
}

func readScenario(file string) (*plan.Plan, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	p, err := plan.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return p, nil
}
