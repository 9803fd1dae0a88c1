package grpcmode

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollcall-registry/rollcall/api/grpcv2"
	"github.com/rollcall-registry/rollcall/client/internal/servers"
	"github.com/rollcall-registry/rollcall/client/internal/wire"
	"github.com/rollcall-registry/rollcall/internal/grpcapi/grpctest"
	"github.com/rollcall-registry/rollcall/servertest"
	"github.com/rollcall-registry/rollcall/test/faulttest"
)

// Whatever the transport is about when it is stopped, it ends within a second and leaves
// nothing behind: goroutines that stay would keep the bubble from ending.
func TestStopAtEveryMoment(t *testing.T) {
	hangs := func(kind string) grpctest.Script {
		return grpctest.Script{Negotiates: true, Answer: func(_ *grpctest.Peer, f grpctest.Frame) (grpctest.Message, bool) {
			if f.Type == kind {
				time.Sleep(5 * time.Second)
			}
			return grpctest.Message{}, false
		}}
	}
	publishing := func(r *rig) {
		_ = r.Publish(context.Background(), service("orders"), set(1, 2, 3))
	}
	for name, tt := range map[string]struct {
		script  grpctest.Script
		prepare func(w *world, r *rig) // and what it waits for
		during  func(r *rig)           // runs when it is stopped
	}{
		"refused":      {prepare: func(w *world, _ *rig) { w.Set(first, faulttest.Refused); time.Sleep(10 * time.Second) }},
		"dial":         {prepare: func(w *world, _ *rig) { w.Set(first, faulttest.BlackHole); time.Sleep(10 * time.Second) }},
		"server check": {script: hangs(grpcv2.ServerCheck), prepare: func(*world, *rig) { time.Sleep(time.Second) }},
		"negotiation":  {script: grpctest.Script{Negotiates: true}, prepare: func(*world, *rig) { time.Sleep(time.Second) }},
		"settling": {script: grpctest.Script{Answer: func(_ *grpctest.Peer, f grpctest.Frame) (grpctest.Message, bool) {
			return grpctest.Refuse(grpcv2.CodeUnregistered, ""), f.Type == grpcv2.HealthCheck
		}}, prepare: func(*world, *rig) { time.Sleep(time.Second) }},
		"idle":         {prepare: func(*world, *rig) { time.Sleep(time.Minute) }},
		"sign of life": {script: hangs(grpcv2.HealthCheck), prepare: func(*world, *rig) { time.Sleep(11 * time.Second) }},
		"black hole":   {prepare: func(w *world, _ *rig) { time.Sleep(time.Second); w.Set(first, faulttest.BlackHole) }},
		"half open":    {prepare: func(w *world, _ *rig) { time.Sleep(time.Second); w.Set(first, faulttest.HalfOpen) }},
		"call":         {script: hangs(grpcv2.InstanceType), prepare: func(*world, *rig) { time.Sleep(6 * time.Second) }, during: publishing},
		"several":      {prepare: func(_ *world, r *rig) { time.Sleep(time.Second); publishing(r) }},
		"in spreading": {script: grpctest.Script{}, prepare: func(w *world, r *rig) { time.Sleep(time.Second); w.Set(first, faulttest.BlackHole) }, during: publishing},
		"lingering":    {prepare: func(w *world, r *rig) { time.Sleep(time.Minute); w.serve(second, grpctest.Script{}); w.peerReset() }},
		"moving nowhere": {prepare: func(w *world, r *rig) {
			time.Sleep(time.Minute)
			w.Set(second, faulttest.BlackHole)
			w.peerReset()
			time.Sleep(time.Second)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.only = w.serve(first, tt.script)
				r := start(t, to(first, second), on(w), patient, func(c *Config) {
					if name != "moving nowhere" && name != "lingering" {
						c.Servers = listOf(first)
					}
				})
				if tt.prepare != nil {
					tt.prepare(w, r)
				}
				var calls sync.WaitGroup
				if tt.during != nil {
					calls.Go(func() { tt.during(r) })
					synctest.Wait()
				}
				r.end(t)
				begun := time.Now()
				calls.Wait()
				if took := time.Since(begun); took > time.Second {
					t.Errorf("a call took %v longer", took)
				}
				w.Set(first, faulttest.Healthy)
				w.Set(second, faulttest.Healthy)
			})
		})
	}
}

// A network that takes no bytes does not hold up the end.
func TestStopWhenNothingCanBeWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.serve(first, grpctest.Script{})
		var clogged atomic.Bool
		r := start(t, to(first), func(c *Config) {
			c.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
				socket, err := w.Dial(ctx, network, address)
				nobody, _ := net.Pipe()
				return &clog{Conn: socket, nobody: nobody, on: &clogged}, err
			}
		})
		r.connected(t, 1)
		clogged.Store(true)
		var call sync.WaitGroup
		call.Go(func() { _, _ = r.Query(context.Background(), service("orders")) })
		synctest.Wait()
		r.end(t)
		call.Wait()
	})
}

// clog is a socket that may take nothing any more.
type clog struct {
	net.Conn
	nobody net.Conn // reads what is written then
	on     *atomic.Bool
}

func (c *clog) Write(b []byte) (int, error) {
	if c.on.Load() {
		return c.nobody.Write(b)
	}
	return c.Conn.Write(b)
}

func (c *clog) SetDeadline(at time.Time) error {
	return errors.Join(c.Conn.SetDeadline(at), c.nobody.SetDeadline(at))
}

// Close is like that of a socket whose connection to the server is cut.
func (c *clog) Close() error { return errors.Join(c.Conn.Close(), c.nobody.Close()) }

// Stopping at any moment of the beginning works, on real sockets.
func TestStopAnyTime(t *testing.T) {
	srv := servertest.New(t)
	for range 60 {
		ctx, stop := context.WithTimeout(context.Background(), rand.N(10*time.Millisecond))
		tr := New(newConfig(to(srv.Addr())))
		var calls sync.WaitGroup
		calls.Go(func() {
			for ctx.Err() == nil {
				if tr.Publish(ctx, service("orders"), set(1, 2)) == nil {
					_, _ = tr.Subscribe(ctx, service("orders"))
				}
			}
		})
		begun := time.Now()
		if err := tr.Run(ctx, newEngine()); err == nil {
			t.Error("Run returned no error")
		}
		if took := time.Since(begun); took > time.Second {
			t.Errorf("it took %v", took)
		}
		stop()
		calls.Wait()
	}
}

// Everything at once: operations of many services while servers send the client about.
func TestConcurrency(t *testing.T) {
	a, b := serve(t, grpctest.Script{}), serve(t, grpctest.Script{})
	r := start(t, to(a.Addr(), b.Addr()), func(c *Config) {
		c.Backoff = servers.Backoff{Min: time.Millisecond, Max: 5 * time.Millisecond}
	})
	r.connected(t, 1)
	ctx, cancel := context.WithCancel(limited(t))
	var callers sync.WaitGroup
	for _, name := range []string{"a", "b", "c", "d"} {
		callers.Go(func() {
			for ctx.Err() == nil {
				s := service(name)
				if r.Publish(ctx, s, set(1, 2)[:rand.N(3)]) != nil {
					r.hear(ctx)
				}
				_, _ = r.Subscribe(ctx, s)
				_, _ = r.Query(ctx, s)
				_ = r.Unsubscribe(ctx, s)
			}
		})
	}
	for n := range 20 {
		r.connected(t, n+1)
		for _, s := range []*grpctest.Server{a, b} {
			for _, p := range s.Peers() {
				switch n % 3 {
				case 0:
					_ = p.Say(grpcv2.ConnectReset, string(grpcv2.AppendConnectReset(nil, 1, "", "")))
				case 1:
					p.End(nil)
				default:
					_ = p.Say(grpcv2.NotifySubscriber, notify(1, "null", "DEFAULT_GROUP", "a", ""))
					p.End(context.Canceled)
				}
			}
		}
	}
	cancel()
	callers.Wait()
}

// An engine hears nothing of a session before it began and after it ended.
func TestOrderOfEvents(t *testing.T) {
	a := serve(t, grpctest.Script{})
	e := &strict{t: t}
	ctx, stop := context.WithCancel(limited(t))
	tr := New(newConfig(to(a.Addr()), func(c *Config) { c.Backoff = servers.Backoff{Min: time.Millisecond, Max: time.Millisecond} }))
	var running sync.WaitGroup
	running.Go(func() { _ = tr.Run(ctx, e) })
	for range 200 {
		_, _ = tr.Subscribe(ctx, service("a"))
		for _, p := range a.Peers() {
			_ = p.Say(grpcv2.NotifySubscriber, notify(1, "null", "DEFAULT_GROUP", "a", ""))
			if rand.N(4) == 0 {
				_ = p.Say(grpcv2.ConnectReset, `{"requestId":"1"}`)
				p.End(nil)
			}
		}
	}
	stop()
	running.Wait()
}

// strict checks what it is told.
type strict struct {
	t  *testing.T
	mu sync.Mutex
	id string
}

func (s *strict) Connected(session wire.Session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.id = session.ID
}

func (s *strict) Disconnected(cause error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.id = ""
	if cause == nil {
		s.t.Error("no cause")
	}
}

func (s *strict) Pushed(l wire.List) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.Session != s.id {
		s.t.Errorf("a list of %q in session %q", l.Session, s.id)
	}
}

func (s *strict) ServicesChanged(wire.ServicesChange) {}
func (s *strict) Dropped(string)                      {}
