package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"

	"github.com/rollcall-registry/rollcall/internal/bench"
	"github.com/rollcall-registry/rollcall/internal/bench/report"
	"github.com/rollcall-registry/rollcall/internal/bench/target"
	"github.com/rollcall-registry/rollcall/internal/bench/workload"
)

// peer is a server of another kind, which runs already.
type peer struct {
	*target.Target
	pid int
}

// newPeer reads NAME=host:port of -against.
func newPeer(text string) (*peer, error) {
	name, address, ok := strings.Cut(text, "=")
	if !ok || name == "" {
		return nil, fmt.Errorf("-against %q: write NAME=host:port", text)
	}
	t, err := target.New(name, address, "")
	if err != nil {
		return nil, fmt.Errorf("-against %q: %w", text, err)
	}
	if !t.Loopback() {
		return nil, fmt.Errorf("-against %q: the server must run on this machine", text)
	}
	pid, err := t.Process()
	if err != nil {
		return nil, fmt.Errorf("-against %q: %w", text, err)
	}
	if pid == 0 {
		return nil, fmt.Errorf("-against %q: no process that we may look at listens there", text)
	}
	return &peer{Target: t, pid: pid}, nil
}

// pin moves the process to a core, all threads of it; an empty cpu leaves it alone.
func (p *peer) pin(ctx context.Context, cpu string) error {
	if cpu == "" {
		return nil
	}
	out, err := exec.CommandContext(ctx, "taskset", "-a", "-p", "-c", cpu, strconv.Itoa(p.pid)).CombinedOutput()
	if err != nil {
		return fmt.Errorf("pin %s, process %d: %w: %s", p.Name, p.pid, err, out)
	}
	return nil
}

// contestants are the server and its peers, in the order of the columns.
type contestants struct {
	names   []string
	targets []*target.Target
	// faults are what a server did not do, by workload.
	faults []string
}

// measurePeers puts the server beside others that speak its protocols: each gets the
// same load in turn, round by round, on the same core. Those of a workload that a peer
// fails are blank, with its reason below.
func measurePeers(ctx context.Context, b *suite) ([]table, error) {
	if len(b.against) == 0 {
		return nil, errors.New("name a running server with -against NAME=host:port")
	}
	server, err := b.newServer(ctx)
	if err != nil {
		return nil, err
	}
	defer server.end()
	cs := &contestants{names: []string{server.target.Name}, targets: []*target.Target{server.target}}
	for _, text := range b.against {
		p, err := newPeer(text)
		if err != nil {
			return nil, err
		}
		if err := p.pin(ctx, b.serverCPU); err != nil {
			return nil, err
		}
		cs.names, cs.targets = append(cs.names, p.Name), append(cs.targets, p.Target)
	}
	calls, err := b.peerCalls(ctx, cs)
	if err != nil {
		return nil, err
	}
	pushes, err := b.peerPushes(ctx, cs)
	if err != nil {
		return nil, err
	}
	sizes, err := b.peerMemory(ctx, cs)
	if err != nil {
		return nil, err
	}
	sizes.listing = strings.Join(cs.faults, "\n")
	return []table{calls, pushes, sizes}, nil
}

// contestAll runs a workload on all, and returns their results in order; nil for one that
// failed it.
func (b *suite) contestAll(ctx context.Context, cs *contestants, c workload.Config, rounds int) ([]*report.Result, error) {
	warmup := b.length / 4
	if err := c.Complete(&warmup); err != nil {
		return nil, err
	}
	progress("%s via %s", report.Title(&c), c.Protocol)
	r := &bench.Runner{Targets: cs.targets, Work: []workload.Config{c}, Rounds: rounds, Seed: 1}
	results, err := r.Run(ctx)
	if err != nil {
		return nil, err
	}
	list := make([]*report.Result, len(results))
	for n := range results {
		if fault := results[n].Fault; fault != "" {
			cs.faults = append(cs.faults, fmt.Sprintf("%s, %s via %s: %s", cs.names[n], report.Title(&c), c.Protocol, fault))
			continue
		}
		list[n] = &results[n]
	}
	if list[0] == nil {
		return nil, errors.New(cs.faults[len(cs.faults)-1])
	}
	return list, nil
}

// table is a table with columns for each server, and for the first, which is ours,
// beside each other one.
func (cs *contestants) table(marker, what string, columns ...string) table {
	t := table{marker: marker, head: []string{what, "via"}}
	for _, name := range cs.names {
		for _, column := range columns {
			t.head = append(t.head, name+" "+column)
		}
	}
	return t
}

// row is a row of such a table; cells are those of one server.
func (cs *contestants) row(list []*report.Result, columns int, cells func(*report.Result) []string) []string {
	row := []string{list[0].Title(), string(list[0].Config.Protocol)}
	for _, r := range list {
		if r == nil {
			for range columns {
				row = append(row, "-")
			}
			continue
		}
		row = append(row, cells(r)...)
	}
	return row
}

func (b *suite) peerCalls(ctx context.Context, cs *contestants) (table, error) {
	t := cs.table("peers", "Request", "a second", "CPU")
	for n, name := range cs.names {
		if n > 0 {
			t.head = append(t.head, name+" CPU / ours")
		}
	}
	for _, p := range protocols() {
		for _, c := range b.requests(p) {
			list, err := b.contestAll(ctx, cs, c, b.rounds)
			if err != nil {
				return t, err
			}
			row := cs.row(list, 2, func(r *report.Result) []string { return []string{thousands(r.PerSecond()), cpuOf(r)} })
			for _, r := range list[1:] {
				ratio := "-"
				if r != nil && r.Process != nil && list[0].Process != nil {
					ratio = fmt.Sprintf("%.1f", r.Process.CPUPerUnit/list[0].Process.CPUPerUnit)
				}
				row = append(row, ratio)
			}
			t.rows = append(t.rows, row)
		}
	}
	return t, nil
}

func (b *suite) peerPushes(ctx context.Context, cs *contestants) (table, error) {
	t := cs.table("peer-pushes", "A change, told to all", "p50", "p99", "lost")
	for _, c := range []workload.Config{
		{Workload: "fanout", Subscribers: 1000, Rate: 0.5},
		{Workload: "churn", Services: 100, Subscribers: 1000, Rate: 100},
	} {
		for _, p := range protocols() {
			c.Protocol, c.Instances, c.Duration = p, 1, b.pushes
			list, err := b.contestAll(ctx, cs, c, 1)
			if err != nil {
				return t, err
			}
			t.rows = append(t.rows, cs.row(list, 3, func(r *report.Result) []string {
				receipt := timesOf(r, "change to receipt")
				return []string{millis(receipt.P50), millis(receipt.P99), strconv.FormatFloat(figureOf(r, "lost final states"), 'f', -1, 64)}
			}))
		}
	}
	return t, nil
}

func (b *suite) peerMemory(ctx context.Context, cs *contestants) (table, error) {
	t := cs.table("peer-memory", "Held", "before", "at the end", "CPU, of a core")
	for _, p := range protocols() {
		c := workload.Config{Workload: "fill", Protocol: p, Services: b.instances / 10, Instances: 10, Connections: 100, Duration: b.hold}
		list, err := b.contestAll(ctx, cs, c, 1)
		if err != nil {
			return t, err
		}
		t.rows = append(t.rows, cs.row(list, 3, func(r *report.Result) []string {
			return []string{mebibytes(r.Process.Before), mebibytes(r.Process.After), percent(r.Process.CPUSeconds / r.Seconds)}
		}))
	}
	return t, nil
}

// timesOf returns one kind of times of a result; empty ones if there are none.
func timesOf(r *report.Result, name string) report.Times {
	for _, t := range r.Times {
		if t.Name == name {
			return t
		}
	}
	return report.Times{}
}

func figureOf(r *report.Result, name string) float64 {
	for _, f := range r.Figures {
		if f.Name == name {
			return f.Value
		}
	}
	return 0
}

// list is a flag that may be given several times.
type list []string

// String implements [flag.Value].
func (l *list) String() string { return strings.Join(*l, " ") }

// Set implements [flag.Value].
func (l *list) Set(v string) error {
	*l = append(*l, v)
	return nil
}
