package grpcmode

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rollcall-registry/rollcall/api/grpcv2"
	"github.com/rollcall-registry/rollcall/client/internal/servers"
	"github.com/rollcall-registry/rollcall/client/internal/wire"
	"github.com/rollcall-registry/rollcall/internal/grpcapi/grpctest"
	"github.com/rollcall-registry/rollcall/test/faulttest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for what must happen.
const patience = 20 * time.Second

// record is what a transport told.
type record struct {
	sessions []wire.Session
	causes   []error
	lists    []wire.List
	changes  []wire.ServicesChange
	dropped  []string
	up       bool
}

// engine records what a transport tells.
type engine struct {
	mu sync.Mutex
	record
	news chan struct{}
}

// told returns what was told until now.
func (e *engine) told() record {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.record
}

func newEngine() *engine { return &engine{news: make(chan struct{})} }

func (e *engine) note(f func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	f()
	close(e.news)
	e.news = make(chan struct{})
}

func (e *engine) Connected(s wire.Session) {
	e.note(func() { e.up, e.sessions = true, append(e.sessions, s) })
}

func (e *engine) Disconnected(cause error) {
	e.note(func() { e.up, e.causes = false, append(e.causes, cause) })
}
func (e *engine) Pushed(l wire.List) { e.note(func() { e.lists = append(e.lists, l) }) }
func (e *engine) ServicesChanged(c wire.ServicesChange) {
	e.note(func() { e.changes = append(e.changes, c) })
}
func (e *engine) Dropped(reason string) { e.note(func() { e.dropped = append(e.dropped, reason) }) }

// hear waits until there is a session.
func (e *engine) hear(ctx context.Context) {
	for {
		e.mu.Lock()
		up, news := e.up, e.news
		e.mu.Unlock()
		if up {
			return
		}
		select {
		case <-news:
		case <-ctx.Done():
			return
		}
	}
}

// wait waits until a condition on what was told holds.
func (e *engine) wait(t testing.TB, what string, done func() bool) {
	t.Helper()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for {
		e.mu.Lock()
		ok, news := done(), e.news
		e.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-news:
		case <-timer.C:
			e.mu.Lock()
			defer e.mu.Unlock()
			t.Fatalf("no %s within %v; told: sessions %v, causes %v, %d lists, dropped %v", what, patience, e.sessions, e.causes, len(e.lists), e.dropped)
		}
	}
}

// rig is a transport that runs.
type rig struct {
	*Transport
	*engine
	list *servers.List
	stop context.CancelFunc
	done chan error
}

// with changes the configuration of a rig.
type with func(*Config)

// to has the servers at addresses of gRPC.
func to(addresses ...string) with {
	return func(c *Config) { c.Servers = listOf(addresses...) }
}

// listOf returns a list of servers by their addresses of gRPC.
func listOf(addresses ...string) *servers.List { return new(entries(addresses)).list() }

// entries are the entries of a list that changes.
type entries []string

func (e *entries) set(t testing.TB, l *servers.List, now ...string) {
	t.Helper()
	*e = now
	if err := l.Refresh(limited(t)); err != nil {
		t.Fatal(err)
	}
}

func (e *entries) list() *servers.List {
	l := servers.New(func(context.Context) ([]string, error) { return *e, nil }, servers.Ports{})
	if err := l.Refresh(context.Background()); err != nil {
		panic(err)
	}
	return l
}

// in has the servers of a list that changes.
func in(e *entries) with { return func(c *Config) { c.Servers = e.list() } }

func newConfig(options ...with) Config {
	cfg := Config{
		Backoff: servers.Backoff{Min: 10 * time.Millisecond, Max: 100 * time.Millisecond},
		Timeout: 3 * time.Second,
		Logger:  slog.New(slog.DiscardHandler),
	}
	for _, option := range options {
		option(&cfg)
	}
	return cfg
}

// start runs a transport until the test ends.
func start(t testing.TB, options ...with) *rig {
	t.Helper()
	cfg := newConfig(options...)
	ctx, stop := context.WithCancel(context.Background())
	r := &rig{Transport: New(cfg), engine: newEngine(), list: cfg.Servers, stop: stop, done: make(chan error, 1)}
	go func() { r.done <- r.Run(ctx, r.engine) }()
	t.Cleanup(func() { r.end(t) })
	return r
}

// end stops the transport, which must not take long.
func (r *rig) end(t testing.TB) {
	r.stop()
	begun := time.Now()
	select {
	case err := <-r.done:
		r.done <- err
		if !errors.Is(err, context.Canceled) {
			t.Errorf("Run returned %v", err)
		}
		if took := time.Since(begun); took > time.Second {
			t.Errorf("Run took %v to return", took)
		}
	case <-time.After(patience):
		t.Error("Run does not return")
	}
}

// connected waits for the n-th session, from 1.
func (r *rig) connected(t testing.TB, n int) wire.Session {
	t.Helper()
	r.wait(t, fmt.Sprintf("session %d", n), func() bool { return len(r.sessions) >= n })
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.sessions[n-1]
}

// pushed waits for a list with a text in it.
func (r *rig) pushed(t testing.TB, text string) wire.List {
	t.Helper()
	var found wire.List
	r.wait(t, "list with "+text, func() bool {
		for _, l := range r.lists {
			if strings.Contains(string(l.Raw), text) {
				found = l
				return true
			}
		}
		return false
	})
	return found
}

// serve starts a scripted server.
func serve(t testing.TB, script grpctest.Script) *grpctest.Server {
	t.Helper()
	s, stop, err := grpctest.Serve(script)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return s
}

func service(name string) wire.Service {
	return wire.Service{Namespace: "public", Group: "DEFAULT_GROUP", Name: name}
}

func instance(port int) wire.Instance {
	return wire.Instance{IP: "10.0.0.1", Port: uint16(port), Weight: 1, Healthy: true, Enabled: true, Ephemeral: true, Cluster: "DEFAULT"}
}

// limited returns a context of a call in a test.
func limited(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// world is a network in memory with scripted servers.
type world struct {
	*faulttest.Network
	t     *testing.T
	stops map[string]func()
	only  *grpctest.Server // whom peerReset means
}

// peerReset has the server send its clients elsewhere.
func (w *world) peerReset() {
	for _, p := range w.only.Peers() {
		_ = p.Say(grpcv2.ConnectReset, `{"requestId":"1"}`)
	}
}

func newWorld(t *testing.T) *world {
	w := &world{Network: faulttest.NewNetwork(t), t: t, stops: map[string]func(){}}
	t.Cleanup(func() {
		for address := range w.stops {
			w.kill(address)
		}
	})
	return w
}

// serve starts a server at an address.
func (w *world) serve(address string, script grpctest.Script) *grpctest.Server {
	w.t.Helper()
	script.Listener = w.Listen(address)
	s, stop, err := grpctest.Serve(script)
	if err != nil {
		w.t.Fatal(err)
	}
	w.stops[address] = stop
	return s
}

// kill ends the server at an address, which refuses connections then.
func (w *world) kill(address string) {
	w.stops[address]()
	delete(w.stops, address)
}

// on has the transport use the network.
func on(w *world) with { return func(c *Config) { c.Dial = w.Dial } }

// patient has the back-off that clients have by default.
func patient(c *Config) {
	c.Backoff = servers.Backoff{Min: 100 * time.Millisecond, Max: 5 * time.Second}
}
