package main

import (
	"bytes"
	"context"
	"fmt"

	"github.com/rollcall-registry/rollcall/internal/bench/fleet"
	"github.com/rollcall-registry/rollcall/internal/bench/report"
	"github.com/rollcall-registry/rollcall/internal/bench/target"
	"github.com/rollcall-registry/rollcall/internal/bench/workload"
)

// requests are the workloads of single calls.
func (b *suite) requests(p target.Protocol) []workload.Config {
	list := []workload.Config{
		{Workload: "beat"},
		{Workload: "query", Services: 1000, Instances: 1},
		{Workload: "query", Services: 100, Instances: 10},
		// Few connections: an answer is larger than a socket's buffer.
		{Workload: "query", Services: 4, Instances: 1000, Connections: 8},
		{Workload: "register"},
		{Workload: "deregister"},
	}
	for n := range list {
		list[n].Protocol, list[n].Duration = p, b.length
		if list[n].Connections == 0 {
			list[n].Connections = b.conns
		}
	}
	return list
}

// yardsticks are the stacks of the servers that do nothing, for each protocol: ours,
// if it can serve without what is behind it, and the library that others would use.
func yardsticks(p target.Protocol) []string {
	if p == target.GRPC {
		return []string{stackGRPC}
	}
	return []string{stackOurs, stackFast}
}

// measureRequests measures each call next to servers that do nothing but answer with
// as many bytes, from as much memory.
func measureRequests(ctx context.Context, b *suite) ([]table, error) {
	server, err := b.newServer(ctx)
	if err != nil {
		return nil, err
	}
	defer server.end()
	t := table{
		marker: "requests",
		head: []string{
			"Request", "via", "Requests/s", "Server CPU", "Nothing, our stack", "ratio", "Nothing, library", "ratio", "requests/s", "our share",
		},
	}
	for _, p := range protocols() {
		for _, c := range b.requests(p) {
			results, err := b.contest(ctx, server, c)
			if err != nil {
				return nil, err
			}
			row, err := requestsRow(results)
			if err != nil {
				return nil, err
			}
			t.rows = append(t.rows, row)
		}
	}
	return []table{t}, nil
}

// contest runs a workload on the server and on its yardsticks.
func (b *suite) contest(ctx context.Context, server *process, c workload.Config) ([]report.Result, error) {
	answer, err := answerTo(ctx, server, c)
	if err != nil {
		return nil, err
	}
	copies := 1
	if c.Workload == "query" {
		copies = c.Services
	}
	servers := []*process{server}
	for _, stack := range yardsticks(c.Protocol) {
		s, err := b.startNothing(ctx, stack, answer, copies)
		if err != nil {
			return nil, err
		}
		defer s.end()
		servers = append(servers, s)
	}
	return b.run(ctx, c, b.rounds, servers...)
}

// answerTo returns what the server answers to the call of a workload.
func answerTo(ctx context.Context, server *process, c workload.Config) ([]byte, error) {
	session, err := server.target.Dial(ctx, c.Protocol)
	if err != nil {
		return nil, err
	}
	defer session.Close()
	service := (&fleet.Fleet{Name: "answer", Group: group, Services: 1, Size: max(c.Instances, 10), Owners: 1}).Service(0)
	if c.Workload == "query" && c.Instances > 0 {
		service.Fleet.Size = c.Instances
	}
	instance := fleet.Instance{Service: service}
	defer func() { _ = session.Deregister(instance) }() // what is left goes by itself
	if err := session.RegisterService(service); err != nil {
		return nil, err
	}
	switch c.Workload {
	case "query":
		_, err = session.Count(service)
	case "beat":
		err = session.Beat(instance)
	default:
		err = session.Register(instance)
	}
	return bytes.Clone(session.LastAnswer()), err
}

// requestsRow shows the server's result next to those of its yardsticks, of which the
// last is the library's.
func requestsRow(results []report.Result) ([]string, error) {
	ours, library := &results[0], &results[len(results)-1]
	ratios, err := ratiosOf(results, "server CPU")
	if err != nil {
		return nil, err
	}
	rates, err := ratiosOf(results, "per second")
	if err != nil {
		return nil, err
	}
	row := []string{ours.Title(), string(ours.Config.Protocol), thousands(ours.PerSecond()), cpuOf(ours)}
	if len(results) == 3 {
		row = append(row, cpuOf(&results[1]), fmt.Sprintf("%.2f", 1/ratios[1]))
	} else {
		row = append(row, "-", "-")
	}
	return append(row, cpuOf(library), fmt.Sprintf("%.2f", 1/ratios[len(ratios)-1]),
		thousands(library.PerSecond()), fmt.Sprintf("%.0f %%", 100/rates[len(rates)-1])), nil
}
