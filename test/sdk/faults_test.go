package sdk

import (
	"fmt"
	"net"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	rollcall "github.com/rollcall-registry/rollcall/client"
	"github.com/rollcall-registry/rollcall/server"
	"github.com/rollcall-registry/rollcall/servertest"
	"github.com/rollcall-registry/rollcall/test/faulttest"
)

// site is a server behind proxies, one for each protocol.
type site struct {
	server     *servertest.Server
	http, grpc *faulttest.Proxy
}

func newSite(t *testing.T, options ...servertest.Option) *site {
	t.Helper()
	s := &site{server: servertest.New(t, options...)}
	s.http = faulttest.NewProxy(t, s.server.Addr())
	s.grpc = faulttest.NewProxy(t, s.server.Addr()) // which speaks both
	return s
}

// options are how a client reaches the site.
func (s *site) options(t *testing.T, p rollcall.Protocol, more ...rollcall.Option) []rollcall.Option {
	t.Helper()
	_, port, err := net.SplitHostPort(s.grpc.Addr())
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		t.Fatal(err)
	}
	options := append(more, rollcall.WithServers(s.http.Addr()), rollcall.WithProtocol(p))
	if p != rollcall.HTTP {
		options = append(options, rollcall.WithGRPCPort(uint16(n)))
	}
	return options
}

// restart replaces the server by a new one, which knows nothing unless the options say
// so.
func (s *site) restart(t *testing.T, away time.Duration, options ...servertest.Option) {
	t.Helper()
	s.set(faulttest.Refused)
	s.server.Stop(t)
	timer := time.NewTimer(away)
	defer timer.Stop()
	<-timer.C
	s.server = servertest.New(t, options...)
	s.http.Target(s.server.Addr())
	s.grpc.Target(s.server.Addr())
	s.set(faulttest.Healthy)
}

func (s *site) set(f faulttest.Fault) {
	s.http.Set(f)
	s.grpc.Set(f)
}

// protocols runs a test over each protocol.
func protocols(t *testing.T, f func(t *testing.T, p rollcall.Protocol)) {
	for _, p := range []rollcall.Protocol{rollcall.GRPC, rollcall.HTTP} {
		t.Run(p.String(), func(t *testing.T) {
			t.Parallel()
			f(t, p)
		})
	}
}

// onePort are the options of a client of a server that has both protocols on one port.
func onePort(p rollcall.Protocol, servers ...string) []rollcall.Option {
	options := []rollcall.Option{rollcall.WithServers(servers...), rollcall.WithProtocol(p)}
	if p != rollcall.HTTP {
		options = append(options, rollcall.WithGRPCPortOffset(0))
	}
	return options
}

// await waits until the status of a client is as is wanted, and returns it.
func await(t testing.TB, c *rollcall.Client, what string, ok func(rollcall.Status) bool) rollcall.Status {
	t.Helper()
	for st := range c.StatusChanges(within(t)) {
		if ok(st) {
			return st
		}
	}
	t.Fatalf("waiting for %s: %+v", what, c.Status())
	return rollcall.Status{}
}

// listed waits until the server itself lists n instances of a service, and returns
// how long that took. It asks through a client of its own.
func listed(t testing.TB, server string, n int) time.Duration {
	t.Helper()
	began := time.Now()
	observer := dial(t, rollcall.WithServers(server), rollcall.WithProtocol(rollcall.HTTP), rollcall.WithUDP("off"))
	for time.Since(began) < patience {
		found, err := observer.Lookup(within(t), orders)
		if err == nil && found.Len() == n {
			return time.Since(began)
		}
		time.Sleep(20 * time.Millisecond) //nolint:forbidigo // a poll of a real server
	}
	t.Fatalf("the server does not list %d instances", n)
	return 0
}

// A server that goes and returns: all is registered again, and picks never fail meanwhile, whether it remembers what it knew or the client protects what it has.
func TestServerReturns(t *testing.T) {
	for _, remembers := range []bool{true, false} {
		t.Run(fmt.Sprintf("remembers=%t", remembers), func(t *testing.T) {
			protocols(t, func(t *testing.T, p rollcall.Protocol) { serverReturns(t, p, remembers) })
		})
	}
}

func serverReturns(t *testing.T, p rollcall.Protocol, remembers bool) {
	var keep []servertest.Option
	var options []rollcall.Option
	if remembers {
		keep = append(keep, servertest.WithDataDir(t.TempDir()))
	} else {
		options = append(options, rollcall.WithEmptyProtection(30*time.Second))
	}
	s := newSite(t, keep...)
	provider, consumer := dial(t, s.options(t, p, options...)...), dial(t, s.options(t, p, options...)...)
	for port := range uint16(5) {
		if _, err := provider.Register(within(t), orders, rollcall.NewInstance("10.0.0.7", 8080+port)); err != nil {
			t.Fatal(err)
		}
	}
	w, err := consumer.Watch(within(t), orders)
	if err != nil {
		t.Fatal(err)
	}
	see(t, w, "all", count(5))
	var fewest atomic.Int64
	fewest.Store(5)
	stop := w.OnUpdate(func(u rollcall.Update) { fewest.Store(min(fewest.Load(), int64(u.Snapshot.Len()))) })
	defer stop()
	s.restart(t, 2*time.Second, keep...)
	t.Logf("registered again after %v", listed(t, s.server.Addr(), 5))
	see(t, w, "all again", count(5))
	if fewest.Load() == 0 {
		t.Error("for a while there was nothing to pick from")
	}
}

func TestBlackHole(t *testing.T) {
	protocols(t, func(t *testing.T, p rollcall.Protocol) {
		s := newSite(t)
		c := dial(t, s.options(t, p)...)
		r, err := c.Register(within(t), orders, rollcall.NewInstance("10.0.0.7", 8080))
		if err != nil {
			t.Fatal(err)
		}
		w, err := c.Watch(within(t), orders)
		if err != nil {
			t.Fatal(err)
		}
		see(t, w, "the instance", count(1))
		s.set(faulttest.BlackHole)
		await(t, c, "the loss", func(st rollcall.Status) bool { return st.State == rollcall.Connecting })
		if w.Snapshot().Len() != 1 {
			t.Error("what is known was given up")
		}
		s.set(faulttest.Healthy)
		await(t, c, "the registration", func(st rollcall.Status) bool { return st.State == rollcall.Connected && st.Registered == 1 })
		if st := r.State(); st.Phase != rollcall.Registered {
			t.Errorf("state %v", st)
		}
	})
}

func TestGRPCPortIsOpenedLate(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.grpc.Set(faulttest.Refused)
	c := dial(t, s.options(t, rollcall.Auto)...)
	if err := c.Ready(within(t)); err != nil {
		t.Fatal(err)
	}
	st := c.Status()
	if st.Protocol != rollcall.HTTP {
		t.Errorf("status %+v", st)
	}
	if st.LastError == nil {
		t.Error("nothing is said of the gRPC port")
	}
	if _, err := c.Register(within(t), orders, rollcall.NewInstance("10.0.0.7", 8080)); err != nil {
		t.Fatal(err)
	}
}

// Two thousand instances and five hundred watches through a restart.
func TestFleetThroughARestart(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes half a minute")
	}
	t.Parallel()
	s := newSite(t)
	const clients, each = 20, 100
	var all []*rollcall.Client
	for n := range clients {
		c := dial(t, s.options(t, rollcall.GRPC)...)
		all = append(all, c)
		for m := range each {
			if _, err := c.Register(within(t), orders, rollcall.NewInstance(fmt.Sprintf("10.0.%d.%d", n, m), 80), rollcall.WithAsync()); err != nil {
				t.Fatal(err)
			}
		}
		for m := range 25 {
			if _, err := c.Watch(within(t), rollcall.Service{Name: fmt.Sprint("service-", m)}, rollcall.WithAsync()); err != nil {
				t.Fatal(err)
			}
		}
	}
	listed(t, s.server.Addr(), clients*each)
	before := s.grpc.Dials()
	began := time.Now()
	s.restart(t, 3*time.Second)
	away := time.Since(began)
	d := listed(t, s.server.Addr(), clients*each)
	t.Logf("%d instances are back %v after the server is", clients*each, d)
	dials := float64(s.grpc.Dials()-before) / clients / (away + d).Seconds()
	t.Logf("%.2f dials a second and client", dials)
	for _, c := range all {
		if err := c.Ready(within(t)); err != nil {
			t.Error(err)
		}
	}
}

// A client that was there first speaks gRPC with its server from the beginning.
func TestServerIsStartedLate(t *testing.T) {
	for _, late := range []time.Duration{500 * time.Millisecond, 2 * time.Second, 6 * time.Second} {
		t.Run(late.String(), func(t *testing.T) {
			t.Parallel()
			address := freeAddress(t)
			c := dial(t, rollcall.WithServers(address), rollcall.WithGRPCPortOffset(0))
			r, err := c.Register(within(t), orders, rollcall.NewInstance("10.0.0.7", 8080), rollcall.WithAsync())
			if err != nil {
				t.Fatal(err)
			}
			pause(late)
			server := servertest.New(t, func(cfg *server.Config) { cfg.Listen = []string{address} })
			st := await(t, c, "a connection", func(st rollcall.Status) bool { return st.State == rollcall.Connected })
			if st.Protocol != rollcall.GRPC {
				t.Errorf("connected over %v", st.Protocol)
			}
			listed(t, server.Addr(), 1)
			if err := r.Deregister(within(t)); err != nil {
				t.Error(err)
			}
		})
	}
}
