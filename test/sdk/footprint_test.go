package sdk

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	rollcall "github.com/rollcall-registry/rollcall/client"
	"github.com/rollcall-registry/rollcall/servertest"
)

// ofClient returns the stacks of goroutines that belong to clients.
func ofClient() []string {
	buffer := make([]byte, 4<<20)
	buffer = buffer[:runtime.Stack(buffer, true)]
	var stacks []string
	for stack := range strings.SplitSeq(string(buffer), "\n\n") {
		if strings.Contains(stack, "rollcall/client") || strings.Contains(stack, "google.golang.org/grpc") {
			if !strings.Contains(stack, "rollcall/test/sdk.Test") {
				stacks = append(stacks, stack)
			}
		}
	}
	return stacks
}

// settled waits until at most n goroutines of clients are left.
func settled(t *testing.T, n int) []string {
	t.Helper()
	began := time.Now()
	for {
		stacks := ofClient()
		if len(stacks) <= n || time.Since(began) > patience {
			return stacks
		}
		time.Sleep(20 * time.Millisecond) //nolint:forbidigo // what ends by itself
	}
}

// A thousand watches take ten goroutines at rest, and none is left after Close.
func TestFootprint(t *testing.T) {
	server := servertest.New(t)
	for _, p := range []rollcall.Protocol{rollcall.GRPC, rollcall.HTTP} {
		before := len(settled(t, 0))
		c, err := rollcall.New(onePort(p, server.Addr())...)
		if err != nil {
			t.Fatal(err)
		}
		for n := range 1000 {
			if _, err := c.Watch(within(t), rollcall.Service{Name: fmt.Sprint("service-", n)}, rollcall.WithAsync()); err != nil {
				t.Fatal(err)
			}
		}
		for st := range c.StatusChanges(within(t)) {
			if st.Subscribed == 1000 {
				break
			}
		}
		const most = 10
		stacks := settled(t, before+most)
		if n := len(stacks) - before; n > most {
			t.Errorf("%v: %d goroutines for 1000 watches, want %d:\n%s", p, n, most, strings.Join(stacks, "\n\n"))
		} else {
			t.Logf("%v: %d goroutines for 1000 watches", p, n)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if stacks := settled(t, before); len(stacks) > before {
			t.Errorf("%v: left after the end:\n%s", p, strings.Join(stacks, "\n\n"))
		}
	}
}

// BenchmarkPushLatency measures from a provider's update until the value is in the channel
// of a watcher of another client, over gRPC: the request, the push and what the SDK does. The service is left alone between two updates, so that
// each is pushed at once.
func BenchmarkPushLatency(b *testing.B) {
	server := servertest.New(b)
	options := onePort(rollcall.GRPC, server.Addr())
	provider, consumer := dial(b, options...), dial(b, options...)
	w, err := consumer.Watch(within(b), orders)
	if err != nil {
		b.Fatal(err)
	}
	r := register(b, provider, 8080)
	see(b, w, "the instance", count(1))
	updates := w.Updates()
	<-updates
	var took []time.Duration
	for weight := 2.0; b.Loop(); weight++ {
		began := time.Now()
		if err := r.Update(b.Context(), func(i *rollcall.Instance) { i.Weight = weight }); err != nil {
			b.Fatal(err)
		}
		for u := range updates {
			if u.Snapshot.Len() == 1 && u.Snapshot.At(0).Weight == weight {
				break
			}
		}
		took = append(took, time.Since(began))
		b.StopTimer()
		pause(50 * time.Millisecond)
		b.StartTimer()
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "median-µs")
	b.ReportMetric(float64(took[len(took)*9/10].Microseconds()), "p90-µs")
}
