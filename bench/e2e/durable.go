package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// durableRounds is how often each registration of persistent instances is
// measured, each time on a new data directory.
const durableRounds = 3

// measureDurable measures how many persistent instances a server registers a
// second, over few and many connections. Each waits until it is on the disk; those
// that wait at the same time share a sync. The instances are probed meanwhile, and
// nothing listens at their addresses.
func measureDurable(ctx context.Context, b *bench) ([]table, error) {
	t := table{marker: "durable", head: []string{"Connections", "one core", "Server CPU", "at a time", "both cores", "at a time"}}
	for _, load := range []struct{ conns, instances int }{{1, 1_000}, {64, 20_000}, {512, 20_000}} {
		p := &population{prefix: "svc-", services: load.instances / 10, each: 10, persistent: true}
		progress("durable: %d connections", load.conns)
		one, err := b.registerDurably(ctx, b.serverCPU, p, load.conns)
		if err != nil {
			return nil, err
		}
		all, err := b.registerDurably(ctx, "", p, load.conns)
		if err != nil {
			return nil, err
		}
		t.rows = append(t.rows, []string{
			thousands(float64(load.conns)),
			one.rate(), fmt.Sprintf("%.0f µs", median(pick(one.rounds, cpuOf))), one.together(),
			all.rate(), all.together(),
		})
	}
	return []table{t}, nil
}

// durableLoad is what registering a population again and again measured.
type durableLoad struct {
	rounds []round
	shared []float64 // registrations a write to the log, of each round
}

func (l *durableLoad) rate() string { return thousands(median(pick(l.rounds, perSecond))) + "/s" }

func (l *durableLoad) together() string { return fmt.Sprintf("%.0f", median(l.shared)) }

func (b *bench) registerDurably(ctx context.Context, cpu string, p *population, conns int) (*durableLoad, error) {
	on := *b
	on.serverCPU = cpu
	load := &durableLoad{}
	for range durableRounds {
		r, shared, err := on.durableRound(ctx, p, conns)
		if err != nil {
			return nil, err
		}
		load.rounds, load.shared = append(load.rounds, r), append(load.shared, shared)
	}
	return load, nil
}

// durableRound registers all instances of a population on a new server. shared is
// how many went into a write to the log.
func (b *bench) durableRound(ctx context.Context, p *population, conns int) (r round, shared float64, err error) {
	server, err := b.newServer(ctx)
	if err != nil {
		return r, 0, err
	}
	defer server.end()
	f, err := dial(server.address, conns)
	if err != nil {
		return r, 0, err
	}
	defer f.close()
	before, err := b.writes(ctx, server)
	if err != nil {
		return r, 0, err
	}
	r, sent, err := b.measureRound(server, f, p.register(), 0, func(sent int) bool {
		return sent < p.size() && ctx.Err() == nil
	})
	if err != nil {
		return r, 0, err
	}
	after, err := b.writes(ctx, server)
	return r, float64(sent) / max(after-before, 1), err
}

// writes returns how often a server has written to its durable log.
func (b *bench) writes(ctx context.Context, server *process) (float64, error) {
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
