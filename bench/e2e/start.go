package main

import (
	"context"
	"fmt"
	"os"
	"syscall"
	"time"
)

// starts is how often each start is measured.
const starts = 9

// fillConns is how many persistent instances are registered at once: one write to
// the durable log takes all that wait.
const fillConns = 512

// measureStart measures the time from the start of the process to the first answer
// to a look-up: with nothing, and with a large registry of persistent instances
// after an orderly stop and after a kill.
func measureStart(ctx context.Context, b *bench) ([]table, error) {
	t := table{marker: "start", head: []string{"Data", "one core", "both cores", "Memory"}}
	empty, err := os.MkdirTemp(b.dir, "empty-")
	if err != nil {
		return nil, err
	}
	none := &population{prefix: "svc-", services: 1, each: 1}
	row, err := b.startRow(ctx, "nothing", empty, none, syscall.SIGTERM)
	if err != nil {
		return nil, err
	}
	t.rows = append(t.rows, row)

	full, err := os.MkdirTemp(b.dir, "full-")
	if err != nil {
		return nil, err
	}
	p := &population{prefix: "svc-", services: b.instances / 10, each: 10, persistent: true}
	if err := b.fillDurable(ctx, full, p); err != nil {
		return nil, err
	}
	title := thousands(float64(p.size())) + " persistent instances"
	for _, stop := range []struct {
		title  string
		signal syscall.Signal
	}{{", stopped", syscall.SIGTERM}, {", killed", syscall.SIGKILL}} {
		row, err := b.startRow(ctx, title+stop.title, full, p, stop.signal)
		if err != nil {
			return nil, err
		}
		t.rows = append(t.rows, row)
	}
	return []table{t}, nil
}

// fillDurable registers persistent instances and kills the server, so that the
// first start after it is one from the log as it was written.
func (b *bench) fillDurable(ctx context.Context, dir string, p *population) error {
	server, err := b.startServer(ctx, dir)
	if err != nil {
		return err
	}
	defer server.end()
	f, err := dial(server.address, fillConns)
	if err != nil {
		return err
	}
	defer f.close()
	progress("start: registering %d persistent instances", p.size())
	return f.each(ctx, p.register(), 0, p.size())
}

// startRow starts a server on a directory again and again, on one core and on
// all, each time after a stop by signal.
func (b *bench) startRow(ctx context.Context, title, dir string, p *population, signal syscall.Signal) ([]string, error) {
	row := []string{title}
	var resident int64
	for _, cpu := range []string{b.serverCPU, ""} {
		var times []float64
		for range starts {
			progress("start: %s", title)
			took, m, err := b.timeStart(ctx, dir, cpu, p, signal)
			if err != nil {
				return nil, err
			}
			times, resident = append(times, took.Seconds()*1e3), m.resident
		}
		row = append(row, fmt.Sprintf("%.0f ms", median(times)))
	}
	return append(row, mebibytes(resident)), nil
}

func (b *bench) timeStart(ctx context.Context, dir, cpu string, p *population, signal syscall.Signal) (time.Duration, memory, error) {
	on := *b
	on.serverCPU = cpu
	begun := time.Now()
	server, err := on.startServer(ctx, dir)
	if err != nil {
		return 0, memory{}, err
	}
	defer server.end()
	body, err := ask(server.address, p.list(), p.services/2)
	took := time.Since(begun)
	if err == nil && p.persistent && !p.isList(body) {
		err = fmt.Errorf("the first answer is %.300q", body)
	}
	if err != nil {
		return 0, memory{}, err
	}
	m, err := server.memory()
	if err != nil {
		return 0, m, err
	}
	return took, m, server.stop(signal)
}
