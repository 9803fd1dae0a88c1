//go:build unix

package sdk

import (
	"fmt"
	"runtime"
	"syscall"
	"testing"
	"time"

	rollcall "github.com/rollcall-registry/rollcall/client"
)

// overEach runs a test over each protocol, one after the other, against a server in a
// process of its own: what this process uses is then what clients do.
func overEach(t *testing.T, f func(t *testing.T, c, other *rollcall.Client)) {
	t.Helper()
	if testing.Short() {
		t.Skip("it measures for some seconds")
	}
	for _, p := range []rollcall.Protocol{rollcall.GRPC, rollcall.HTTP} {
		t.Run(p.String(), func(t *testing.T) {
			s := newProcess(t)
			options := []rollcall.Option{rollcall.WithServers(s.addr), rollcall.WithGRPCPortOffset(0), rollcall.WithProtocol(p)}
			f(t, dial(t, options...), dial(t, options...))
		})
	}
}

// memory returns how much of it is in use.
func memory() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse + m.StackInuse)
}

// processorTime returns how much of it the process has had.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// A client that has nothing to do takes at most a thousandth of a core.
func TestIdleClient(t *testing.T) {
	overEach(t, func(t *testing.T, c, _ *rollcall.Client) {
		if _, err := c.Register(within(t), orders, rollcall.NewInstance("10.0.0.7", 8080)); err != nil {
			t.Fatal(err)
		}
		for n := range 10 {
			if _, err := c.Watch(within(t), rollcall.Service{Name: fmt.Sprint("service-", n)}); err != nil {
				t.Fatal(err)
			}
		}
		const period = 5 * time.Second
		before := processorTime(t)
		time.Sleep(period) //nolint:forbidigo // the time in which nothing happens is what is measured
		share := float64(processorTime(t)-before) / float64(period)
		t.Logf("%.3f %% of a core", 100*share)
		if share > 0.01 { // ten times the aim: other programs make the same work take longer
			t.Errorf("%.3f %% of a core, want 0.1", 100*share)
		}
	})
}

// A thousand watches of three instances each take at most 20 MB.
func TestMemoryOfWatches(t *testing.T) {
	overEach(t, func(t *testing.T, c, provider *rollcall.Client) {
		const watches, most = 1000, 20 << 20
		service := func(n int) rollcall.Service { return rollcall.Service{Name: fmt.Sprint("service-", n)} }
		for n := range watches {
			for port := range uint16(3) {
				in := rollcall.NewInstance("10.0.0.7", 8080+port, rollcall.Tagged("version", "1.2.3"))
				if _, err := provider.Register(within(t), service(n), in, rollcall.WithAsync()); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := provider.Ready(within(t)); err != nil {
			t.Fatal(err)
		}
		before := memory()
		for n := range watches {
			w, err := c.Watch(within(t), service(n))
			if err != nil {
				t.Fatal(err)
			}
			see(t, w, "three instances", count(3))
		}
		after := memory()
		t.Logf("%.1f MB for %d watches", float64(after-before)/(1<<20), watches)
		if after-before > most {
			t.Errorf("%d bytes for %d watches, want at most %d", after-before, watches, most)
		}
	})
}
