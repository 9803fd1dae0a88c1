package rollcall

import (
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollcall-registry/rollcall/client/internal/wire"
)

// fleet makes the fake transports of a client that chooses.
type fleet struct {
	mu         sync.Mutex
	grpc, http []*fakeWire
	grpcWorks  bool
	httpWorks  bool
	grpcSilent bool          // instead of refusing
	slow       time.Duration // operations over gRPC
}

func (f *fleet) newGRPC() wire.Transport {
	f.mu.Lock()
	defer f.mu.Unlock()
	w := newFakeWire()
	w.delay = f.slow
	f.grpc = append(f.grpc, w)
	switch {
	case f.grpcWorks:
		go w.begin()
	case !f.grpcSilent:
		go w.refuse()
	}
	return w
}

func (f *fleet) newHTTP() wire.Transport {
	f.mu.Lock()
	defer f.mu.Unlock()
	w := newFakeWire()
	w.protocol, w.polls = wire.HTTP, true
	f.http = append(f.http, w)
	if f.httpWorks {
		go w.begin()
	}
	return w
}

func (f *fleet) works(grpc, http bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.grpcWorks, f.httpWorks = grpc, http
}

// last returns the transports that were made last; nil for none.
func (f *fleet) last() (grpc, http *fakeWire) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if n := len(f.grpc); n > 0 {
		grpc = f.grpc[n-1]
	}
	if n := len(f.http); n > 0 {
		http = f.http[n-1]
	}
	return grpc, http
}

func (f *fleet) made() (grpc, http int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.grpc), len(f.http)
}

var errPort = &wire.Error{Kind: wire.NotConnected, Server: "10.0.0.1:9848", Err: errors.New("connection refused")}

// begin and refuse are up and down for those who are not in the test's goroutine.
func (f *fakeWire) begin() {
	<-f.running
	f.mu.Lock()
	f.sessions++
	protocol := wire.GRPC
	if f.protocol != 0 {
		protocol = f.protocol
	}
	s := wire.Session{ID: protocolName(protocol) + "-1", Server: "10.0.0.1", Protocol: protocol, Persistent: true, Polls: f.polls}
	f.session = &s
	events := f.events
	f.mu.Unlock()
	events.Connected(s)
}

func protocolName(p wire.Protocol) string { return publicProtocol(p).String() }

func (f *fakeWire) refuse() {
	<-f.running
	f.mu.Lock()
	events := f.events
	f.mu.Unlock()
	events.Disconnected(errPort)
}

func choosing(t *testing.T, f func(t *testing.T, c *Client, fleet *fleet)) {
	synctest.Test(t, func(t *testing.T) {
		c, err := build([]Option{WithServers("10.0.0.1"), WithLogger(slog.New(slog.NewTextHandler(t.Output(), nil)))})
		if err != nil {
			t.Fatal(err)
		}
		fl := new(fleet)
		c.newGRPC, c.newHTTP = fl.newGRPC, fl.newHTTP
		fl.works(true, true)
		f(t, c, fl)
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
}

// settle waits until the client is connected as is wanted, and returns how long it took.
func settle(t *testing.T, c *Client, p Protocol, most time.Duration) time.Duration {
	t.Helper()
	began := time.Now()
	for time.Since(began) <= most {
		if st := c.Status(); st.State == Connected && st.Protocol == p {
			return time.Since(began)
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("not connected over %v within %v: %+v", p, most, c.Status())
	return 0
}

func TestGRPCIsPreferred(t *testing.T) {
	choosing(t, func(t *testing.T, c *Client, f *fleet) {
		c.start()
		settle(t, c, GRPC, 100*time.Millisecond)
		time.Sleep(time.Hour)
		if g, h := f.made(); g != 1 || h != 0 {
			t.Errorf("%d and %d transports", g, h)
		}
	})
}

func TestHTTPWhereOnlyItWorks(t *testing.T) {
	choosing(t, func(t *testing.T, c *Client, f *fleet) {
		f.works(false, true)
		c.start()
		if d := settle(t, c, HTTP, 4*time.Second); d < time.Second {
			t.Errorf("after %v already", d)
		}
		if st := c.Status(); !errors.Is(st.LastError, ErrNotConnected) {
			t.Errorf("says %v; want what is wrong with the gRPC port", st.LastError)
		}
		r := mustRegister(t, c, 1)
		watch := mustWatch(t, c)
		_, http := f.last()
		if got := http.ports(wireOrders); !slices.Equal(got, []int{1}) {
			t.Errorf("published over HTTP: %v", got)
		}
		time.Sleep(10 * time.Minute)
		if g, h := f.made(); g < 9 || g > 12 || h != 1 {
			t.Errorf("%d transports over gRPC in 10 minutes, want one a minute; %d over HTTP", g, h)
		}

		// the port is opened
		f.works(true, true)
		settle(t, c, GRPC, 61*time.Second)
		time.Sleep(time.Second)
		grpc, _ := f.last()
		if got := grpc.ports(wireOrders); !slices.Equal(got, []int{1}) || r.State().Phase != Registered {
			t.Errorf("published over gRPC: %v, %v", got, r.State())
		}
		if got := http.ports(wireOrders); got != nil {
			t.Errorf("left over HTTP: %v", got)
		}
		grpc.push(wireOrders, 5, "a:1")
		if got := addresses(watch.Snapshot()); got != "a:1" {
			t.Errorf("shows %s", got)
		}
		if st := c.Status(); st.Registered != 1 || st.Subscribed != 1 {
			t.Errorf("status %+v", st)
		}
	})
}

// What is published is never missing at both: the new one has it before the old one
// gives it up.
func TestMovingLeavesNoGap(t *testing.T) {
	choosing(t, func(t *testing.T, c *Client, f *fleet) {
		f.works(false, true)
		c.start()
		settle(t, c, HTTP, 4*time.Second)
		mustRegister(t, c, 1)
		_, http := f.last()
		f.mu.Lock()
		f.slow = 3 * time.Second
		f.mu.Unlock()
		f.works(true, true)
		settle(t, c, GRPC, 61*time.Second)
		if http.ports(wireOrders) == nil {
			t.Fatal("given up at once")
		}
		began := time.Now()
		for http.ports(wireOrders) != nil {
			if time.Since(began) > 15*time.Second {
				t.Fatal("never given up")
			}
			time.Sleep(10 * time.Millisecond)
		}
		grpc, _ := f.last()
		if d := time.Since(began); grpc.ports(wireOrders) == nil || d < 2900*time.Millisecond {
			t.Errorf("given up after %v; the new one has %v", d, grpc.ports(wireOrders))
		}
	})
}

// What is deregistered while the client moves is taken back where it was, too.
func TestDeregisterWhileMoving(t *testing.T) {
	choosing(t, func(t *testing.T, c *Client, f *fleet) {
		f.works(false, true)
		c.start()
		settle(t, c, HTTP, 4*time.Second)
		r := mustRegister(t, c, 1)
		_, http := f.last()
		f.mu.Lock()
		f.slow = time.Second
		f.mu.Unlock()
		f.works(true, true)
		settle(t, c, GRPC, 61*time.Second)
		if err := r.Deregister(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(handover)
		grpc, _ := f.last()
		if over := http.ports(wireOrders); over != nil || grpc.ports(wireOrders) != nil {
			t.Errorf("left over HTTP: %v, over gRPC: %v", over, grpc.ports(wireOrders))
		}
	})
}

// A server that restarts is waited for, and not left for HTTP, which comes up first.
func TestRestartIsWaitedFor(t *testing.T) {
	choosing(t, func(t *testing.T, c *Client, f *fleet) {
		c.start()
		settle(t, c, GRPC, time.Second)
		grpc, _ := f.last()
		f.works(false, true)
		grpc.down(errPort)
		time.Sleep(5 * time.Second)
		if st := c.Status(); st.State != Connecting {
			t.Errorf("after 5 s: %+v", st)
		}
		grpc, _ = f.last() // another one: it is tried when HTTP is there
		grpc.begin()
		settle(t, c, GRPC, time.Second)
		grpc.down(errPort)
		settle(t, c, HTTP, 11*time.Second)
	})
}

func TestChooserEndsAnywhere(t *testing.T) {
	for _, works := range [][2]bool{{false, false}, {false, true}, {true, false}, {true, true}} {
		for _, after := range []time.Duration{0, 500 * time.Millisecond, 2 * time.Second, 5 * time.Second, 65 * time.Second} {
			choosing(t, func(t *testing.T, c *Client, f *fleet) {
				f.works(works[0], works[1])
				c.start()
				mustRegister(t, c, 1, WithAsync())
				time.Sleep(after)
				began := time.Now()
				if err := c.Close(); err != nil || time.Since(began) > time.Second {
					t.Errorf("%v after %v", err, time.Since(began))
				}
			})
		}
	}
}
