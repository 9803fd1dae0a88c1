package grpcmode

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rollcall-registry/rollcall/api/grpcv2"
	"github.com/rollcall-registry/rollcall/client/internal/auth"
	"github.com/rollcall-registry/rollcall/client/internal/servers"
	"github.com/rollcall-registry/rollcall/client/internal/wire"
)

// Config is what a transport needs.
type Config struct {
	Servers *servers.List
	Auth    *auth.Provider
	Backoff servers.Backoff
	Timeout time.Duration // of one request, and of a dial
	Logger  *slog.Logger
	TLS     *tls.Config // nil for clear text, but to servers whose entry says https
	Dial    func(ctx context.Context, network, address string) (net.Conn, error)
	AppName string
	Labels  map[string]string
	// LocalIP is the address to give as the client's; empty for that of the socket.
	LocalIP string
}

// labels returns what the client says of a connection. Those of the user are told
// apart by a prefix, as Nacos clients do.
func (c *Config) labels() map[string]string {
	labels := map[string]string{"source": "sdk", "module": "naming"}
	if c.AppName != "" {
		labels["AppName"] = c.AppName
	}
	for k, v := range c.Labels {
		labels["app_"+k] = v
	}
	return labels
}

// linger is how long the connection that a client leaves is kept after the next one is
// there, so that the engine publishes anew before what was published is gone.
const linger = 3 * time.Second

// notReady bounds the wait for servers that say that they are starting.
const notReady = time.Second

// Transport is a wire.FuzzyTransport over gRPC.
type Transport struct {
	cfg     Config
	current atomic.Pointer[session] // nil while there is none
	leaving atomic.Pointer[session] // kept for a moment; see linger

	cause atomic.Pointer[error] // why there is none; never nil

	// announcing is held while current changes and while the engine is told of a
	// session, so that it hears nothing of one after the next has begun.
	announcing sync.Mutex
	events     wire.Events // set by Run before it starts anything

	failures int // in a row; of Run
}

// New returns a transport. Its life begins with Run.
func New(cfg Config) *Transport {
	t := &Transport{cfg: cfg}
	t.cause.Store(new(errNoSession))
	return t
}

// Run keeps the transport connected to one of the servers until ctx ends.
func (t *Transport) Run(ctx context.Context, events wire.Events) error {
	t.events = events
	var s *session // the last one, while it is not closed
	defer func() { t.end(s) }()
	var next *move
	for {
		fresh := t.attach(ctx, next)
		switch {
		case fresh == nil:
			return context.Cause(ctx)
		case !t.use(fresh, s):
			fresh.close()
			next = nil
			t.failures++
			pause(ctx, t.cfg.Backoff.Delay(t.failures), nil)
			continue
		}
		s = fresh
		if next = t.stay(ctx, s); ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if next == nil {
			s.close()
			s = nil
		}
	}
}

// end closes what is left when Run returns.
func (t *Transport) end(last *session) {
	t.announcing.Lock()
	t.current.Store(nil)
	t.announcing.Unlock()
	t.release()
	if last != nil {
		last.close()
	}
}

// release closes the session that lingers.
func (t *Transport) release() {
	if s := t.leaving.Swap(nil); s != nil {
		s.close()
	}
}

// use makes a session the one that is used; the one before, if there is one, lingers. It
// returns false if the session has ended already.
func (t *Transport) use(s, before *session) bool {
	t.release()
	t.announcing.Lock()
	if s.main.over() != nil {
		t.announcing.Unlock()
		return false
	}
	t.leaving.Store(before)
	t.current.Store(s)
	t.events.Connected(s.info)
	t.announcing.Unlock()
	if before != nil && before.main.over() != nil {
		t.release()
	}
	return true
}

// lost notes that a session has ended.
func (t *Transport) lost(s *session, cause error) {
	t.announcing.Lock()
	defer t.announcing.Unlock()
	if t.current.CompareAndSwap(s, nil) {
		t.cause.Store(&cause)
		t.events.Disconnected(cause)
	}
}

// failed tells why a server was not connected to, unless there still is a session.
func (t *Transport) failed(cause error) {
	t.announcing.Lock()
	defer t.announcing.Unlock()
	if t.current.Load() == nil {
		t.cause.Store(&cause)
		t.events.Disconnected(cause)
	}
}

// deliver tells the engine what came on a session, if that is the present one.
func (t *Transport) deliver(s *session, f func(wire.Events)) {
	t.announcing.Lock()
	defer t.announcing.Unlock()
	if t.current.Load() == s {
		f(t.events)
	}
}

// session returns the present session.
func (t *Transport) session() (*session, error) {
	if s := t.current.Load(); s != nil {
		return s, nil
	}
	cause := *t.cause.Load()
	e := &wire.Error{Kind: wire.NotConnected, Err: cause}
	if known, ok := errors.AsType[*wire.Error](cause); ok {
		e.Server, e.Err = known.Server, known.Err
		if e.Err == nil {
			e.Err = known
		}
	}
	return nil, e
}

// move is why and where to go from a server that still answers.
type move struct {
	from servers.Server
	// host and port are the address and the HTTP port that the server recommends; host
	// is empty if it does not.
	host, port string
}

// order returns the servers in the order in which they are to be tried: the recommended
// one, if it is in the list, then the others at random, the one that is left last.
func (t *Transport) order(m *move) []servers.Server {
	round := t.cfg.Servers.Round()
	if m == nil {
		return round
	}
	rank := func(s servers.Server) int {
		switch {
		case m.host != "" && s.Host == m.host && strconv.Itoa(int(s.Port)) == m.port:
			return 0
		case m.host != "" && s.Host == m.host && m.port == "":
			return 0
		case s == m.from:
			return 2
		default:
			return 1
		}
	}
	slices.SortStableFunc(round, func(a, b servers.Server) int { return rank(a) - rank(b) })
	return round
}

// attach connects to one of the servers, asking each once a round, with a pause between
// rounds; nil if ctx ends.
func (t *Transport) attach(ctx context.Context, m *move) *session {
	for {
		changed := t.cfg.Servers.Changed()
		starting := false
		round := t.order(m)
		if len(round) == 0 {
			t.failed(&wire.Error{Kind: wire.NotConnected, Err: errNoServers})
		}
		for _, server := range round {
			s, err := t.open(ctx, server)
			if err == nil {
				return s
			}
			if ctx.Err() != nil {
				return nil
			}
			t.cfg.Logger.Debug("no connection", "server", server.GRPC(), "err", err)
			starting = starting || wire.KindOf(err) == wire.NotReady
			t.failed(err)
		}
		m = nil // a recommendation counts once
		t.failures++
		delay := t.cfg.Backoff.Delay(t.failures)
		if starting {
			delay = min(delay, notReady)
		}
		if !pause(ctx, delay, changed) {
			return nil
		}
	}
}

// pause waits, less if the list of servers changes. It returns false if ctx ended.
func pause(ctx context.Context, d time.Duration, changed <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-changed:
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

// stay returns when a session has ended, with nil, or is to be left for another.
func (t *Transport) stay(ctx context.Context, s *session) *move {
	lingering := time.NewTimer(linger)
	defer lingering.Stop()
	next := t.await(ctx, s, lingering.C)
	if ctx.Err() != nil {
		return nil
	}
	// One that did not last may be the fault of the server, or of all of them.
	if time.Since(s.main.begun) >= t.cfg.Backoff.Max {
		t.failures = 0
	}
	if t.failures++; next == nil || t.failures > 1 {
		pause(ctx, t.cfg.Backoff.Delay(t.failures), t.cfg.Servers.Changed())
	}
	if s.main.over() != nil {
		return nil
	}
	return next
}

func (t *Transport) await(ctx context.Context, s *session, lingering <-chan time.Time) *move {
	for {
		changed := t.cfg.Servers.Changed()
		if !t.cfg.Servers.Has(s.server) {
			t.cfg.Logger.Info("the server is no longer in the list", "server", s.info.Server)
			return &move{from: s.server}
		}
		select {
		case <-s.main.ended:
			return nil
		case next := <-s.resets:
			t.cfg.Logger.Info("the server asks to go to another one", "server", s.info.Server, "to", next.host)
			return &next
		case <-lingering:
			t.release()
		case <-changed:
		case <-ctx.Done():
			return nil
		}
	}
}

// open makes a session with a server.
func (t *Transport) open(ctx context.Context, server servers.Server) (*session, error) {
	s := newSession(t, server)
	main, abilities, err := t.dial(ctx, server, handler{
		request: s.request,
		dropped: t.events.Dropped,
		lost:    func(cause error) { t.lost(s, cause) },
	})
	if err != nil {
		return nil, err
	}
	s.main = main
	s.info.Persistent = slices.Contains(abilities, grpcv2.AbilityPersistent)
	s.info.Fuzzy = slices.Contains(abilities, grpcv2.AbilityFuzzyWatch)
	return s, nil
}
