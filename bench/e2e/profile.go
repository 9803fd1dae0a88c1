package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/rollcall-registry/rollcall/internal/bench/report"
	"github.com/rollcall-registry/rollcall/internal/bench/target"
	"github.com/rollcall-registry/rollcall/internal/bench/workload"
)

// measureProfiles shows where the processor time of the server goes while it is
// asked one kind of request as fast as it can answer, for the kinds that are most of
// the load.
func measureProfiles(ctx context.Context, b *suite) ([]table, error) {
	profiles, err := freePort()
	if err != nil {
		return nil, err
	}
	server, err := b.newServer(ctx, "--pprof-listen", profiles)
	if err != nil {
		return nil, err
	}
	defer server.end()
	var listing strings.Builder
	for _, c := range []workload.Config{
		{Workload: "beat", Protocol: target.HTTP},
		{Workload: "query", Protocol: target.HTTP},
		{Workload: "register", Protocol: target.HTTP},
		{Workload: "query", Protocol: target.GRPC},
		{Workload: "register", Protocol: target.GRPC},
		{Workload: "fanout", Protocol: target.GRPC, Instances: 1},
	} {
		c.Duration = profileTime + time.Second
		if c.Workload != "fanout" {
			c.Connections = b.conns
		}
		r, top, err := b.profiled(ctx, c, server, profiles, profileTime)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&listing, "%s via %s\n%s\n", r.Title(), c.Protocol, top.summary())
	}
	return []table{{marker: "profiles", listing: listing.String()}}, nil
}

// profileTime is how long a workload is profiled.
const profileTime = 4 * time.Second

// profiled runs a workload, and takes a profile of so long from when the load begins.
func (b *suite) profiled(ctx context.Context, c workload.Config, server *process, address string, length time.Duration) (*report.Result, *profile, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var taken <-chan profile
	results, err := b.watched(ctx, c, 1, func() { taken = b.profile(ctx, address, length) }, server)
	if err != nil {
		return nil, nil, err
	}
	top := <-taken
	return &results[0], &top, top.err
}

// profile is a processor profile: the lines of pprof's list of functions, by the
// time of each with all that it calls.
type profile struct {
	rows []string
	err  error
}

// profile takes a processor profile for so long, meanwhile.
func (b *suite) profile(ctx context.Context, address string, length time.Duration) <-chan profile {
	done := make(chan profile, 1)
	go func() {
		file := filepath.Join(b.dir, "profile")
		p := profile{err: fetch(ctx, address, fmt.Sprintf("/debug/pprof/profile?seconds=%.0f", length.Seconds()), file)}
		if p.err == nil {
			p.rows, p.err = topFunctions(ctx, file)
		}
		done <- p
	}()
	return done
}

func topFunctions(ctx context.Context, file string) ([]string, error) {
	out, err := exec.CommandContext(ctx, "go", "tool", "pprof", "-top", "-cum", "-nodecount=1000", "-nodefraction=0", file).Output()
	if err != nil {
		return nil, fmt.Errorf("read profile: %w", err)
	}
	if err := os.Remove(file); err != nil {
		return nil, err
	}
	return strings.Split(string(out), "\n"), nil
}

// function returns the name in a line of the profile and the share of the time
// that the function has with all that it calls; ok is false for other lines.
func function(row string) (name string, share float64, ok bool) {
	fields := strings.Fields(row) // flat flat% sum% cum cum% name
	if len(fields) < 6 {
		return "", 0, false
	}
	_, err := fmt.Sscanf(fields[4], "%f%%", &share)
	return fields[5], share / 100, err == nil
}

// share returns the share of a function; 0 when the profile does not list it.
func (p *profile) share(want string) float64 {
	for _, row := range p.rows {
		if name, share, ok := function(row); ok && strings.HasSuffix(name, want) {
			return share
		}
	}
	return 0
}

const module = "github.com/rollcall-registry/rollcall/"

// outside are the functions that a summary shows besides our own: the kernel, the
// parser of heads, memory, and the scheduler.
func outside() []string {
	return []string{
		"syscall.write", "syscall.read", "github.com/valyala/fasthttp.(*RequestHeader).parse",
		"runtime.mallocgc", "runtime.gcBgMarkWorker", "runtime.schedule",
	}
}

// summaryShare is the smallest share that a summary shows.
const summaryShare = 0.02

// summary lists our own functions and what is outside of them.
func (p *profile) summary() string {
	var b strings.Builder
	for _, row := range p.rows {
		name, share, ok := function(row)
		if !ok || share < summaryShare {
			continue
		}
		short, ours := strings.CutPrefix(name, module+"internal/")
		for _, other := range outside() {
			ours = ours || name == other
		}
		if ours && !strings.Contains(short, ".func") {
			fmt.Fprintf(&b, "  %5.1f %%  %s\n", 100*share, short)
		}
	}
	return b.String()
}
