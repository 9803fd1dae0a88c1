package main

import (
	"context"
	"fmt"
	"time"

	"github.com/rollcall-registry/rollcall/internal/bench/fleet"
	"github.com/rollcall-registry/rollcall/internal/bench/target"
	"github.com/rollcall-registry/rollcall/internal/bench/workload"
)

// measureHistory registers and removes many instances, and looks whether memory or a
// request costs more afterwards than before.
func measureHistory(ctx context.Context, b *suite) ([]table, error) {
	server, err := b.newServer(ctx)
	if err != nil {
		return nil, err
	}
	defer server.end()
	stay := &fleet.Fleet{Name: "stay", Group: group, Services: b.instances / 10, Size: 10, Owners: 1}
	release, err := workload.Hold(ctx, server.target, target.HTTP, stay)
	if err != nil {
		return nil, err
	}
	defer release(ctx)
	t := table{marker: "history", head: []string{"Registry of " + thousands(float64(stay.Len())) + " instances", "Memory", "beat", "query of 10"}}
	row := func(title string) error {
		r, err := b.stateOf(ctx, server)
		if err == nil {
			t.rows = append(t.rows, append([]string{title}, r...))
		}
		return err
	}
	if err := row("before"); err != nil {
		return nil, err
	}
	turnover := workload.Config{Workload: "turnover", Protocol: target.HTTP, Connections: b.conns, Count: b.churn, Duration: time.Hour}
	if _, err := b.one(ctx, turnover, server); err != nil {
		return nil, err
	}
	if err := row("just after " + thousands(float64(b.churn)) + " registrations and removals"); err != nil {
		return nil, err
	}
	if err := wait(ctx, emptyServiceTime); err != nil {
		return nil, err
	}
	return []table{t}, row(fmt.Sprintf("%.0f s later", emptyServiceTime.Seconds()))
}

// emptyServiceTime is past the minute for which a server remembers a service that
// nobody is in.
const emptyServiceTime = 90 * time.Second

// stateOf returns memory and the cost of requests.
func (b *suite) stateOf(ctx context.Context, server *process) ([]string, error) {
	u, err := server.usage()
	if err != nil {
		return nil, err
	}
	out := []string{mebibytes(u.Resident)}
	for _, kind := range []string{"beat", "query"} {
		c := workload.Config{Workload: kind, Protocol: target.HTTP, Connections: b.conns, Duration: b.length}
		r, err := b.run(ctx, c, b.rounds, server)
		if err != nil {
			return nil, err
		}
		out = append(out, cpuOf(&r[0]))
	}
	return out, nil
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
