package main

import (
	"context"
	"fmt"
	"time"
)

// measureHistory registers and removes many instances, and looks whether memory
// or a request costs more afterwards than before.
func measureHistory(ctx context.Context, b *bench) ([]table, error) {
	server, err := b.newServer(ctx)
	if err != nil {
		return nil, err
	}
	defer server.end()
	stay := &population{prefix: "svc-", services: b.instances / 10, each: 10}
	k := &keeper{server: server, populations: []*population{stay}}
	if err := k.fill(ctx); err != nil {
		return nil, err
	}
	t := table{marker: "history", head: []string{"Registry of " + thousands(float64(stay.size())) + " instances", "Memory", "light beat", "list of 10"}}
	row := func(title string) error {
		r, err := b.stateOf(ctx, k, stay)
		if err == nil {
			t.rows = append(t.rows, append([]string{title}, r...))
		}
		return err
	}
	if err := row("before"); err != nil {
		return nil, err
	}
	progress("history: %d registrations and removals", b.churn)
	if err := b.comeAndGo(ctx, k); err != nil {
		return nil, err
	}
	if err := row("just after " + thousands(float64(b.churn)) + " registrations and removals"); err != nil {
		return nil, err
	}
	if err := k.hold(ctx, emptyServiceTime); err != nil {
		return nil, err
	}
	if err := row(fmt.Sprintf("%.0f s later", emptyServiceTime.Seconds())); err != nil {
		return nil, err
	}
	return []table{t}, k.verify(stay)
}

// emptyServiceTime is past the minute for which a server remembers a service that
// nobody is in.
const emptyServiceTime = 90 * time.Second

// churnBatch is how many instances come before they go again.
const churnBatch = 10_000

// comeAndGo registers instances of services that never were, and removes them.
func (b *bench) comeAndGo(ctx context.Context, k *keeper) error {
	f, err := dial(k.server.address, b.conns)
	if err != nil {
		return err
	}
	defer f.close()
	p := growingServices()
	for n := 0; n < b.churn; n += churnBatch {
		end := min(n+churnBatch, b.churn)
		if err := f.each(ctx, p.register(), n, end); err != nil {
			return err
		}
		if err := f.each(ctx, p.deregister(), n, end); err != nil {
			return err
		}
		if err := k.beat(ctx); err != nil {
			return err
		}
	}
	return nil
}

// stateOf returns memory and the cost of requests.
func (b *bench) stateOf(ctx context.Context, k *keeper, p *population) ([]string, error) {
	m, err := k.server.memory()
	if err != nil {
		return nil, err
	}
	f, err := dial(k.server.address, b.conns)
	if err != nil {
		return nil, err
	}
	defer f.close()
	out := []string{mebibytes(m.resident)}
	for _, c := range []*call{p.beat(false), p.list()} {
		var rounds []round
		for n := range b.rounds {
			r, _, err := b.measureRound(k.server, f, c, n*10_000, lasting(b.length))
			if err != nil {
				return nil, err
			}
			rounds = append(rounds, r)
			if err := k.beat(ctx); err != nil {
				return nil, err
			}
		}
		out = append(out, fmt.Sprintf("%.1f µs", median(pick(rounds, cpuOf))))
	}
	return out, nil
}

// hold keeps the instances alive for so long.
func (k *keeper) hold(ctx context.Context, d time.Duration) error {
	for end := time.Now().Add(d); time.Now().Before(end); {
		if err := k.beat(ctx); err != nil {
			return err
		}
		if err := wait(ctx, keepEvery); err != nil {
			return err
		}
	}
	return nil
}

// wait waits for d or the end of ctx.
func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
