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
		c, err := rollcall.New(rollcall.WithServers(server.Addr()), rollcall.WithGRPCPortOffset(0), rollcall.WithProtocol(p))
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

// From a registration to the value in the watcher's channel, over gRPC.
func TestPushLatency(t *testing.T) {
	server := servertest.New(t)
	options := []rollcall.Option{rollcall.WithServers(server.Addr()), rollcall.WithGRPCPortOffset(0), rollcall.WithProtocol(rollcall.GRPC)}
	provider, consumer := dial(t, options...), dial(t, options...)
	w, err := consumer.Watch(within(t), orders)
	if err != nil {
		t.Fatal(err)
	}
	r, err := provider.Register(within(t), orders, rollcall.NewInstance("10.0.0.7", 8080))
	if err != nil {
		t.Fatal(err)
	}
	see(t, w, "the instance", count(1))
	updates := w.Updates()
	<-updates
	var took []time.Duration
	for n := range 50 {
		began := time.Now()
		if err := r.Update(within(t), func(i *rollcall.Instance) { i.Weight = float64(n + 2) }); err != nil {
			t.Fatal(err)
		}
		answered := time.Since(began)
		for u := range updates {
			if u.Snapshot.Len() == 1 && u.Snapshot.At(0).Weight == float64(n+2) {
				break
			}
		}
		took = append(took, time.Since(began)-answered)
		time.Sleep(50 * time.Millisecond) //nolint:forbidigo // a quiet service is pushed at once
	}
	slices.Sort(took)
	t.Logf("from the answer to the update: median %v, 90 %% within %v", took[len(took)/2], took[len(took)*9/10])
	if took[len(took)/2] > 50*time.Millisecond {
		t.Errorf("median %v", took[len(took)/2])
	}
}
