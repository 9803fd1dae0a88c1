// Command e2e measures a real server from outside: what a request costs it, what
// a registry of 100,000 instances costs in memory and in processor time at rest,
// how fast it starts, and how soon a change reaches a subscriber.
//
//	go run ./bench/e2e -server bin/rollcall
//
// The server runs on one core and the load comes from another, over loopback, in
// a temporary folder. Next to it run servers that do nothing, on the same HTTP
// stack and on fasthttp; they get the same requests in turn, round by round, so
// that what else the machine does meets all of them, and what is reported are
// medians over the rounds and medians of the ratios within a round.
//
// With -write the tables replace those between the markers of a Markdown file,
// for the parts that ran. It needs Linux, and for pinning taskset.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		os.Exit(1)
	}
}

// options are the flags. Those of the role nothing are for the children that do
// nothing, which this program starts itself.
type options struct {
	role, stack, body string
	copies            int

	server             string
	serverCPU, loadCPU string
	only               string
	against            list
	write              string
	rounds             int
	length             time.Duration
	conns              int
	instances          int
	churn              int
	pushes, hold, soak time.Duration
}

func run(ctx context.Context, args []string) error {
	var o options
	flags := flag.NewFlagSet("e2e", flag.ContinueOnError)
	flags.StringVar(&o.role, "role", "measure", "measure or nothing (a child that measure starts)")
	flags.StringVar(&o.stack, "stack", "", "HTTP stack of the role nothing")
	flags.StringVar(&o.body, "body", "", "file with the answer of the role nothing")
	flags.IntVar(&o.copies, "copies", 1, "copies of that answer, given in turn")
	flags.StringVar(&o.server, "server", "bin/rollcall", "the binary to measure")
	flags.StringVar(&o.serverCPU, "server-cpu", "0", "core of the servers; empty pins nothing")
	flags.StringVar(&o.loadCPU, "load-cpu", "1", "core of the load; empty pins nothing")
	flags.StringVar(&o.only, "only", usualParts(), "parts to run; soak and peers run only when they are named")
	flags.Var(&o.against, "against", "server of another kind, `NAME=host:port`, for the part peers; may be repeated")
	flags.StringVar(&o.write, "write", "", "Markdown file whose tables are replaced")
	flags.IntVar(&o.rounds, "rounds", 6, "rounds of each server")
	flags.DurationVar(&o.length, "length", time.Second, "length of a round")
	flags.DurationVar(&o.pushes, "pushes", 30*time.Second, "how long changes are made for subscribers")
	// Long enough for each instance to have been judged by the wheel, and for the
	// snapshot of each minute.
	flags.DurationVar(&o.hold, "hold", 75*time.Second, "how long a large registry is held")
	flags.DurationVar(&o.soak, "soak", 5*time.Minute, "how long each soak lasts")
	flags.IntVar(&o.conns, "conns", 64, "keep-alive connections, each with one request under way")
	flags.IntVar(&o.instances, "instances", 100_000, "instances of a large registry, a multiple of 10")
	flags.IntVar(&o.churn, "churn", 1_000_000, "registrations and removals after which memory is measured again")
	if err := flags.Parse(args); err != nil {
		return err
	}
	switch o.role {
	case "nothing":
		return serveNothing(ctx, o.stack, o.body, o.copies)
	case "measure":
		if err := pinSelf(o.loadCPU); err != nil {
			return err
		}
		return measure(ctx, o)
	default:
		return fmt.Errorf("unknown role %q", o.role)
	}
}

// part is one part of the suite. Its tables carry the names of the markers that
// they go between.
type part struct {
	name string
	run  func(context.Context, *suite) ([]table, error)
	long bool // it runs only when it is named
}

func parts() []part {
	return []part{
		{name: "requests", run: measureRequests},
		{name: "profiles", run: measureProfiles},
		{name: "scale", run: measureScale},
		{name: "memory", run: measureMemory},
		{name: "history", run: measureHistory},
		{name: "durable", run: measureDurable},
		{name: "start", run: measureStart},
		{name: "push", run: measurePush},
		{name: "soak", run: measureSoak, long: true},
		{name: "peers", run: measurePeers, long: true},
	}
}

// usualParts are those that run when none is named.
func usualParts() string {
	var names []string
	for _, p := range parts() {
		if !p.long {
			names = append(names, p.name)
		}
	}
	return strings.Join(names, ",")
}

// suite is one run.
type suite struct {
	options
	dir string // temporary, for data directories
}

func measure(ctx context.Context, o options) error {
	dir, err := os.MkdirTemp("", "rollcall-e2e-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	b := &suite{options: o, dir: dir}
	wanted := strings.Split(o.only, ",")
	for _, p := range parts() {
		if !slices.Contains(wanted, p.name) {
			continue
		}
		progress("%s", p.name)
		tables, err := p.run(ctx, b)
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		for _, t := range tables {
			t.machine = machine(o.server)
			if err := t.text(os.Stdout); err != nil {
				return err
			}
			if err := t.writeTo(o.write); err != nil {
				return err
			}
		}
	}
	return nil
}

func progress(format string, args ...any) {
	fmt.Fprintf(os.Stderr, time.Now().Format("15:04:05 ")+format+"\n", args...)
}

// pinned marks a process that pinSelf has started.
const pinned = "ROLLCALL_E2E_PINNED"

// pinSelf starts this program anew on one core, so that all of its threads stay
// there. It returns only if that is done or cannot be.
func pinSelf(cpu string) error {
	taskset, _ := exec.LookPath("taskset")
	if cpu == "" || taskset == "" || os.Getenv(pinned) != "" {
		return nil
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	args := append([]string{"taskset", "-c", cpu, self}, os.Args[1:]...)
	return syscall.Exec(taskset, args, append(os.Environ(), pinned+"=1"))
}
