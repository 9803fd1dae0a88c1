package main

import (
	"context"
	"fmt"

	"github.com/rollcall-registry/rollcall/internal/bench/report"
	"github.com/rollcall-registry/rollcall/internal/bench/workload"
)

// measurePush measures the time from the request that changes a service, before its
// first byte, until its subscribers have read it: one of a quiet service, and many.
func measurePush(ctx context.Context, b *suite) ([]table, error) {
	server, err := b.newServer(ctx)
	if err != nil {
		return nil, err
	}
	defer server.end()
	t := table{marker: "push", head: []string{"One change to", "via", "answer p50", "receipt p50", "p99", "longest", "acknowledged p99", "Server CPU a push"}}
	for _, subscribers := range []int{1, 1000} {
		for _, p := range protocols() {
			c := workload.Config{Workload: "fanout", Protocol: p, Instances: 1, Subscribers: subscribers, Rate: 3, Duration: b.pushes}
			if subscribers > 1 {
				c.Rate = 1
			}
			r, err := b.one(ctx, c, server)
			if err != nil {
				return nil, err
			}
			t.rows = append(t.rows, pushRow(r))
		}
	}
	return []table{t}, nil
}

func pushRow(r *report.Result) []string {
	times := map[string]report.Times{}
	for _, t := range r.Times {
		times[t.Name] = t
	}
	answer, receipt, ack := times["change to answer"], times["change to receipt"], times["change to acknowledgement"]
	return []string{
		thousands(float64(r.Config.Subscribers)), string(r.Config.Protocol), millis(answer.P50),
		millis(receipt.P50), millis(receipt.P99), millis(receipt.Max), millis(ack.P99),
		fmt.Sprintf("%.1f µs", r.Process.CPUPerUnit/float64(r.Config.Subscribers)),
	}
}
