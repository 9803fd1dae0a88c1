package main

import (
	"context"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/rollcall-registry/rollcall/internal/bench/fleet"
	proc "github.com/rollcall-registry/rollcall/internal/bench/process"
	"github.com/rollcall-registry/rollcall/internal/bench/target"
)

// starts is how often each start is measured.
const starts = 9

// fillConns is how many persistent instances are registered at once: one write to
// the durable log takes all that wait.
const fillConns = 512

// measureStart measures the time from the start of the process to the first answer
// to a look-up: with nothing, and with a large registry of persistent instances
// after an orderly stop and after a kill.
func measureStart(ctx context.Context, b *suite) ([]table, error) {
	t := table{marker: "start", head: []string{"Data", "one core", "both cores", "Memory"}}
	empty, err := os.MkdirTemp(b.dir, "empty-")
	if err != nil {
		return nil, err
	}
	row, err := b.startRow(ctx, "nothing", empty, nil, syscall.SIGTERM)
	if err != nil {
		return nil, err
	}
	t.rows = append(t.rows, row)

	full, err := os.MkdirTemp(b.dir, "full-")
	if err != nil {
		return nil, err
	}
	f := durable(b.instances)
	if err := b.fillDurable(ctx, full, f); err != nil {
		return nil, err
	}
	title := thousands(float64(f.Len())) + " persistent instances"
	for _, stop := range []struct {
		title  string
		signal syscall.Signal
	}{{", stopped", syscall.SIGTERM}, {", killed", syscall.SIGKILL}} {
		row, err := b.startRow(ctx, title+stop.title, full, f, stop.signal)
		if err != nil {
			return nil, err
		}
		t.rows = append(t.rows, row)
	}
	return []table{t}, nil
}

// fillDurable registers persistent instances and kills the server, so that the
// first start after it is one from the log as it was written.
func (b *suite) fillDurable(ctx context.Context, dir string, f *fleet.Fleet) error {
	server, err := b.startServer(ctx, dir)
	if err != nil {
		return err
	}
	defer server.end()
	progress("start: registering %d persistent instances", f.Len())
	_, err = registerAll(ctx, server, f, fillConns)
	return err
}

// startRow starts a server on a directory again and again, on one core and on all,
// each time after a stop by signal. f is what it must know, nil for nothing.
func (b *suite) startRow(ctx context.Context, title, dir string, f *fleet.Fleet, signal syscall.Signal) ([]string, error) {
	row := []string{title}
	var resident int64
	for _, cpu := range []string{b.serverCPU, ""} {
		var times []float64
		for range starts {
			progress("start: %s", title)
			took, used, err := b.timeStart(ctx, dir, cpu, f, signal)
			if err != nil {
				return nil, err
			}
			times, resident = append(times, took.Seconds()*1e3), used.Resident
		}
		row = append(row, fmt.Sprintf("%.0f ms", median(times)))
	}
	return append(row, mebibytes(resident)), nil
}

func (b *suite) timeStart(ctx context.Context, dir, cpu string, f *fleet.Fleet, signal syscall.Signal) (took time.Duration, used proc.Usage, err error) {
	on := *b
	on.serverCPU = cpu
	begun := time.Now()
	server, err := on.startServer(ctx, dir)
	if err != nil {
		return 0, used, err
	}
	defer server.end()
	if err := firstAnswer(ctx, server, f); err != nil {
		return 0, used, err
	}
	took = time.Since(begun)
	if used, err = server.usage(); err != nil {
		return 0, used, err
	}
	return took, used, server.stop(signal)
}

// firstAnswer looks a service up, whose instances must be there.
func firstAnswer(ctx context.Context, server *process, f *fleet.Fleet) error {
	want := f
	if f == nil {
		want = &fleet.Fleet{Name: "none", Group: group, Services: 1, Owners: 1}
	}
	session, err := server.target.Dial(ctx, target.HTTP)
	if err != nil {
		return err
	}
	defer session.Close()
	have, err := session.Count(want.Service(want.Services / 2))
	if err == nil && have != want.Size {
		err = fmt.Errorf("the first answer has %d instances, not %d", have, want.Size)
	}
	return err
}
