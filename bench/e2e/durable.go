package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/rollcall-registry/rollcall/internal/bench/fleet"
)

// durableRounds is how often each registration of persistent instances is
// measured, each time on a new data directory.
const durableRounds = 3

// measureDurable measures how many persistent instances a server registers a
// second, over few and many connections. Each waits until it is on the disk; those
// that wait at the same time share a sync. The instances are probed meanwhile, and
// nothing listens at their addresses.
func measureDurable(ctx context.Context, b *suite) ([]table, error) {
	t := table{marker: "durable", head: []string{"Connections", "one core", "Server CPU", "at a time", "both cores", "at a time"}}
	for _, load := range []struct{ conns, instances int }{{1, 1_000}, {64, 20_000}, {512, 20_000}} {
		f := durable(load.instances)
		progress("durable: %d connections", load.conns)
		one, err := b.registerDurably(ctx, b.serverCPU, f, load.conns)
		if err != nil {
			return nil, err
		}
		all, err := b.registerDurably(ctx, "", f, load.conns)
		if err != nil {
			return nil, err
		}
		t.rows = append(t.rows, []string{
			thousands(float64(load.conns)),
			one.rate(), fmt.Sprintf("%.0f µs", median(one.cpu)), one.together(),
			all.rate(), all.together(),
		})
	}
	return []table{t}, nil
}

// durableLoad is what registering a fleet again and again measured, round by round.
type durableLoad struct {
	perSecond []float64
	cpu       []float64 // microseconds of the server's processor time for each
	shared    []float64 // registrations a write to the log
}

func (l *durableLoad) rate() string { return thousands(median(l.perSecond)) + "/s" }

func (l *durableLoad) together() string { return fmt.Sprintf("%.0f", median(l.shared)) }

func (b *suite) registerDurably(ctx context.Context, cpu string, f *fleet.Fleet, conns int) (*durableLoad, error) {
	on := *b
	on.serverCPU = cpu
	load := &durableLoad{}
	for range durableRounds {
		if err := on.durableRound(ctx, f, conns, load); err != nil {
			return nil, err
		}
	}
	return load, nil
}

// durableRound registers all instances of a fleet on a new server.
func (b *suite) durableRound(ctx context.Context, f *fleet.Fleet, conns int, load *durableLoad) error {
	server, err := b.newServer(ctx)
	if err != nil {
		return err
	}
	defer server.end()
	writes, err := b.writes(ctx, server)
	if err != nil {
		return err
	}
	before, err := server.usage()
	if err != nil {
		return err
	}
	took, err := registerAll(ctx, server, f, conns)
	if err != nil {
		return err
	}
	after, err := server.usage()
	if err != nil {
		return err
	}
	all, err := b.writes(ctx, server)
	n := float64(f.Len())
	load.perSecond = append(load.perSecond, n/took.Seconds())
	load.cpu = append(load.cpu, float64((after.CPU-before.CPU).Microseconds())/n)
	load.shared = append(load.shared, n/max(all-writes, 1))
	return err
}

// writes returns how often a server has written to its durable log.
func (b *suite) writes(ctx context.Context, server *process) (float64, error) {
	file := filepath.Join(b.dir, "metrics")
	if err := fetch(ctx, server.address, "/metrics", file); err != nil {
		return 0, err
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	_, rest, _ := bytes.Cut(text, []byte("\nrollcall_durable_write_seconds_count "))
	value, _, _ := bytes.Cut(rest, []byte("\n"))
	return strconv.ParseFloat(string(value), 64)
}
