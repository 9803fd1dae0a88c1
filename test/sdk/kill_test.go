package sdk

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	rollcall "github.com/rollcall-registry/rollcall/client"
)

// remembered is how long before a kill a registration must have been answered for the
// server to remember it in any case: its history is on disk within 100 ms.
const remembered = 500 * time.Millisecond

// TestKilledServerKeepsItsLists kills the real server with kill -9, at differing moments
// after a registration, and starts it again over its data. No watcher may ever miss an
// instance that was registered for a moment before the kill, whoever comes back first.
func TestKilledServerKeepsItsLists(t *testing.T) {
	t.Parallel()
	signals := map[string]syscall.Signal{"killed": syscall.SIGKILL, "stopped": syscall.SIGTERM}
	for name, signal := range signals {
		for _, each := range []int{1, 3} {
			t.Run(fmt.Sprintf("%s, %d a client", name, each), func(t *testing.T) {
				t.Parallel()
				f := newFleet(t, newProcess(t), each)
				for _, since := range []time.Duration{0, 30 * time.Millisecond, 150 * time.Millisecond, time.Second} {
					f.kill(signal, since, time.Second)
				}
				f.kill(signal, 2*remembered, 5*time.Second)
			})
		}
	}
}

// TestKilledServerStaysAway is the same for an absence in which clients have become slow
// to look for their server.
func TestKilledServerStaysAway(t *testing.T) {
	t.Parallel()
	for _, away := range []time.Duration{20 * time.Second, time.Minute} {
		t.Run(away.String(), func(t *testing.T) {
			if testing.Short() {
				t.Skip("it takes half a minute")
			}
			if away >= time.Minute {
				slow(t)
			}
			t.Parallel()
			newFleet(t, newProcess(t), 3).kill(syscall.SIGKILL, 2*remembered, away)
		})
	}
}

// fleet is clients that register instances of one service with a server, and watchers
// over both protocols.
type fleet struct {
	*testing.T
	server  *process
	clients []*rollcall.Client
	each    int
	watches map[string]*rollcall.Watch
	next    uint16 // port of the next instance

	mu      sync.Mutex
	settled map[string]bool // addresses that no watcher may miss
	faults  []string
}

// fleetSize is how many clients of a fleet register over each protocol.
const fleetSize = 2

func newFleet(t *testing.T, server *process, each int) *fleet {
	t.Helper()
	f := &fleet{T: t, server: server, each: each, next: 1, watches: make(map[string]*rollcall.Watch), settled: make(map[string]bool)}
	for _, p := range []rollcall.Protocol{rollcall.GRPC, rollcall.HTTP} {
		options := onePort(p, server.addr)
		for range fleetSize {
			f.clients = append(f.clients, dial(t, options...))
		}
		w, err := dial(t, options...).Watch(within(t), orders)
		if err != nil {
			t.Fatal(err)
		}
		f.watches[p.String()] = w
		t.Cleanup(w.OnUpdate(func(u rollcall.Update) { f.look(p, u.Snapshot) }))
	}
	f.register(each)
	return f
}

// register registers so many instances of each client and waits until all watchers see
// them.
func (f *fleet) register(n int) {
	f.Helper()
	var all sync.WaitGroup
	for _, c := range f.clients {
		for range n {
			port := f.next
			f.next++
			all.Go(func() {
				if _, err := c.Register(within(f), orders, rollcall.NewInstance("10.0.0.7", port)); err != nil {
					f.Error(err)
				}
			})
		}
	}
	all.Wait()
}

// look notes what a snapshot lacks.
func (f *fleet) look(p rollcall.Protocol, s *rollcall.Snapshot) {
	f.mu.Lock()
	defer f.mu.Unlock()
	missing := maps.Clone(f.settled)
	for in := range s.All() {
		delete(missing, in.Addr())
	}
	if len(missing) > 0 {
		f.faults = append(f.faults, fmt.Sprintf("%v: %d listed, without %v", p, s.Len(), slices.Sorted(maps.Keys(missing))))
	}
}

// kill registers one more instance of each client, ends the server some time after that
// was answered, starts it again, and waits until all is listed.
func (f *fleet) kill(signal syscall.Signal, since, away time.Duration) {
	f.Helper()
	f.seen()
	pause(remembered) // what is there so far must outlive the kill
	f.settle()
	f.register(1)
	pause(since)
	if since >= remembered {
		f.settle()
	}
	f.server.stop(f.T, signal)
	pause(away)
	f.server.start(f.T)
	f.seen()
	for _, c := range f.clients {
		await(f, c, "its registrations", func(st rollcall.Status) bool {
			return st.State == rollcall.Connected && st.Registered == st.Registrations
		})
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, fault := range f.faults {
		f.Errorf("%v after a registration, away for %v: %s", since, away, fault)
	}
	f.faults = nil
}

// seen waits until the server lists all instances, and until all watchers see them. What
// watchers see is what they saw before, while they have not reached the server again.
func (f *fleet) seen() {
	f.Helper()
	listed(f, f.server.addr, int(f.next)-1)
	for p, w := range f.watches {
		see(f, w, p+" to see all", count(int(f.next)-1))
	}
}

// settle makes all instances ones that nobody may miss any more.
func (f *fleet) settle() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for port := uint16(1); port < f.next; port++ {
		f.settled[fmt.Sprint("10.0.0.7:", port)] = true
	}
}

// TestDeregisterWhileTheServerIsAway: what is deregistered while a server restarts that
// remembers it, is not listed when Deregister or Shutdown has returned.
func TestDeregisterWhileTheServerIsAway(t *testing.T) {
	protocols(t, func(t *testing.T, p rollcall.Protocol) {
		server := newProcess(t)
		c := dial(t, onePort(p, server.addr)...)
		first, second := register(t, c, 8080), register(t, c, 8081)
		register(t, dial(t, onePort(p, server.addr)...), 8082) // of somebody else
		pause(remembered)

		restart := func(end func() error) {
			t.Helper()
			server.stop(t, syscall.SIGKILL)
			await(t, c, "the loss", func(st rollcall.Status) bool { return st.State == rollcall.Connecting })
			short, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
			defer cancel()
			if err := first.Deregister(short); first.State().Phase != rollcall.Removed || err != nil && !errors.Is(err, rollcall.ErrMayRemain) {
				t.Errorf("without a server: %v", err)
			}
			ended := make(chan error, 1)
			go func() { ended <- end() }()
			server.start(t)
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
		lists := func(want int) {
			t.Helper()
			found, err := dial(t, onePort(rollcall.HTTP, server.addr)...).Lookup(within(t), orders)
			if err != nil || found.Len() != want {
				t.Errorf("the server lists %d instances, want %d (%v)", found.Len(), want, err)
			}
		}
		restart(func() error { return first.Deregister(within(t)) })
		lists(2)
		pause(remembered) // that it has left
		restart(func() error { return c.Shutdown(within(t)) })
		lists(1)
		if st := second.State(); st.Phase != rollcall.Removed {
			t.Errorf("state %v", st)
		}
	})
}
