package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rollcall-registry/rollcall/internal/bench"
	"github.com/rollcall-registry/rollcall/internal/bench/report"
	"github.com/rollcall-registry/rollcall/internal/bench/target"
	"github.com/rollcall-registry/rollcall/internal/bench/workload"
)

const (
	// capacityTime is how long the closed loop runs that finds what the server can do.
	capacityTime = 10 * time.Second
	// soakShare is the share of it that is then asked for.
	soakShare = 0.6
	// soakWarmup goes before what is recorded of a soak.
	soakWarmup = 5 * time.Second
)

// measureSoak asks for look-ups, beats and changes at a steady rate, well below what
// the server can do, for minutes, and looks at each second by itself: whether the worst
// is far from the usual one, and whether memory grows.
func measureSoak(ctx context.Context, b *suite) ([]table, error) {
	t := table{marker: "soak", head: []string{
		"Mixed load", "capacity", "asked for", "requests", "errors", "p99 of the median second", "of the worst", "ratio", "memory, first minute", "last minute",
	}}
	var minutes []string
	for _, p := range protocols() {
		r, capacity, err := b.soakVia(ctx, p)
		if err != nil {
			return nil, err
		}
		seconds := secondsOf(r)
		if len(seconds) == 0 {
			return nil, fmt.Errorf("via %s: no second was measured", p)
		}
		t.rows = append(t.rows, soakRow(r, capacity, seconds))
		minutes = append(minutes, minuteLines(r)...)
	}
	t.listing = strings.Join(minutes, "\n")
	return []table{t}, nil
}

// soakVia finds the capacity of a new server, and asks for a share of it.
func (b *suite) soakVia(ctx context.Context, p target.Protocol) (r *report.Result, capacity float64, err error) {
	server, err := b.newServer(ctx)
	if err != nil {
		return nil, 0, err
	}
	defer server.end()
	c := workload.Config{Workload: "mixed", Protocol: p, Connections: b.conns, Duration: min(capacityTime, b.soak)}
	most, err := b.one(ctx, c, server)
	if err != nil {
		return nil, 0, err
	}
	capacity = most.PerSecond()
	c.Rate, c.Duration = capacity*soakShare, b.soak
	warmup := min(soakWarmup, b.soak)
	if err := c.Complete(&warmup); err != nil {
		return nil, 0, err
	}
	progress("soak of %s via %s for %v", report.Title(&c), p, b.soak)
	runner := &bench.Runner{Targets: []*target.Target{server.target}, Work: []workload.Config{c}, Seed: 1, Interval: time.Second}
	results, err := runner.Run(ctx)
	if err != nil {
		return nil, 0, err
	}
	if fault := results[0].Fault; fault != "" {
		return nil, 0, fmt.Errorf("via %s: %s", p, fault)
	}
	return &results[0], capacity, nil
}

// secondsOf are the 99th percentiles of the seconds, in microseconds. A second in which
// nothing ended counts with what ended next, whose times have it in them.
func secondsOf(r *report.Result) []float64 {
	var list []float64
	for i := range r.Samples {
		if p99 := r.Samples[i].P99; p99 > 0 {
			list = append(list, p99)
		}
	}
	return list
}

func soakRow(r *report.Result, capacity float64, seconds []float64) []string {
	usual, worst := median(slices.Clone(seconds)), slices.Max(seconds)
	first, last := memoryAround(r.Samples, true), memoryAround(r.Samples, false)
	return []string{
		string(r.Config.Protocol), thousands(capacity) + "/s", thousands(r.Config.Rate) + "/s",
		thousands(float64(r.Done)), thousands(float64(r.Failed + r.Missed)),
		millis(usual), millis(worst), fmt.Sprintf("%.1f", worst/usual), mebibytes(first), mebibytes(last),
	}
}

func millis(us float64) string { return fmt.Sprintf("%.2f ms", us/1000) }

// memoryAround is the median resident memory of the first or last minute, in bytes.
func memoryAround(samples []report.Sample, first bool) int64 {
	minute := minutesOf(samples)
	if len(minute) == 0 {
		return 0
	}
	of := minute[len(minute)-1]
	if first {
		of = minute[0]
	}
	var list []float64
	for i := range of {
		list = append(list, float64(of[i].Resident))
	}
	return int64(median(list))
}

// minutesOf parts samples of a second each.
func minutesOf(samples []report.Sample) [][]report.Sample {
	return slices.Collect(slices.Chunk(samples, 60))
}

// minuteLines tell of each minute.
func minuteLines(r *report.Result) []string {
	lines := []string{fmt.Sprintf("via %s; the generator itself began a hundredth of the units %s late or more", r.Config.Protocol, millis(r.Generator.LateP99))}
	for n, samples := range minutesOf(r.Samples) {
		part := report.Result{Samples: samples}
		seconds := secondsOf(&part)
		if len(seconds) == 0 {
			continue
		}
		var errors int64
		for i := range samples {
			errors += samples[i].Failed
		}
		worst := slices.Max(seconds)
		lines = append(lines, fmt.Sprintf("  minute %d: p99 of the median second %s, of the worst %s, memory %s, %d errors",
			n+1, millis(median(seconds)), millis(worst), mebibytes(memoryAround(samples, true)), errors))
	}
	return lines
}
