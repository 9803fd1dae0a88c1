package grpcapi

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rollcall-registry/rollcall/internal/grpcapi/transport"
	"github.com/rollcall-registry/rollcall/internal/naming"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// Parts is what an [API] works with. All but History and Ready are needed.
type Parts struct {
	Core    *naming.Core
	Encoder *naming.Encoder
	// Later has the present state of a service pushed to one subscriber after a
	// delay: push.Pusher.Schedule.
	Later    func(sub *registry.Subscriber, delay time.Duration, changed registry.Instant)
	Observer Observer
	// History, if set, gets how the push of each revision to each subscriber ended.
	History registry.Sink
	// Ready says why the server cannot answer yet; nil: it always can.
	Ready func() error
	Log   *slog.Logger
}

// Observer is told what happens, for metrics. Its methods are called by many
// goroutines and must not block. Durations of pushes are since the change that the
// push tells of, 0 when it tells of none.
type Observer interface {
	// Answered: a unary call of a known type, else "other", was answered with an
	// error code (0 for success). requestType is memory of the request.
	Answered(requestType string, code int, took time.Duration)
	// Sent: a push was handed to the transport.
	Sent(sinceChange time.Duration)
	// Settled: this is the end of a push that was sent.
	Settled(outcome string, sinceChange time.Duration)
}

// Outcomes of a push, for an [Observer].
const (
	Acked      = "acked"
	Refused    = "refused"    // the client says that it failed
	Failed     = "failed"     // not acknowledged in time
	Superseded = "superseded" // a newer one was sent meanwhile
	TooLarge   = "too_large"  // for the client; it was not sent
	Gone       = "gone"       // the connection or the subscription ended
)

// API is the gRPC front-end. It is the handler of a transport, the push sender of
// the protocol, and a sink of the registry's events. Create it with [New].
type API struct {
	cfg      Config
	core     *naming.Core
	encoder  *naming.Encoder
	later    func(*registry.Subscriber, time.Duration, registry.Instant)
	observer Observer
	history  registry.Sink
	ready    func() error
	log      *slog.Logger

	requests atomic.Uint64 // the last ID of a request to a client
	fuzzies  fuzzies
	shedding chan shed // holds the latest wish that has not begun
	calls    sync.Pool // *call; zero while nobody uses it

	mu      sync.RWMutex
	clients map[registry.ClientID]*client
}

// New returns an API without clients. It starts nothing; cfg must be valid.
func New(cfg Config, p Parts) *API {
	a := &API{
		cfg: cfg, core: p.Core, encoder: p.Encoder, later: p.Later, observer: p.Observer,
		history: p.History, ready: p.Ready, log: p.Log.With("component", "grpcapi"),
		clients: map[registry.ClientID]*client{}, shedding: make(chan shed, 1),
	}
	a.calls.New = func() any { return new(call) }
	a.fuzzies.init()
	if a.history == nil {
		a.history = naming.Sinks{}
	}
	if a.ready == nil {
		a.ready = func() error { return nil }
	}
	return a
}

// Accept implements transport.Handler.
func (a *API) Accept(conn transport.Conn) transport.Session {
	c := &client{api: a, conn: conn, peer: conn.Peer(), since: a.core.Now()}
	c.local = conn.Local().Addr().String()
	c.touch(c.since)
	a.mu.Lock()
	defer a.mu.Unlock()
	c.id = a.newID(c.peer, c.since.Wall)
	a.clients[c.id] = c
	return c
}

// newID returns the ID of a connection, <milliseconds>_<address>_<port>. It never
// has a # in it, by which Nacos tells the IDs of HTTP clients. The caller holds
// a.mu.
func (a *API) newID(peer netip.AddrPort, millis int64) registry.ClientID {
	for ; ; millis++ {
		id := registry.ClientID(fmt.Sprintf("%d_%s_%d", millis, peer.Addr().WithZone(""), peer.Port()))
		if a.clients[id] == nil {
			return id
		}
	}
}

// client returns a connection, nil when it has ended.
func (a *API) client(id registry.ClientID) *client {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return a.clients[id]
}

// forget takes a connection off the list.
func (a *API) forget(c *client) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.clients, c.id)
}

// snapshot returns all connections, in no order.
func (a *API) snapshot() []*client {
	a.mu.RLock()
	defer a.mu.RUnlock()
	list := make([]*client, 0, len(a.clients))
	for _, c := range a.clients {
		list = append(list, c)
	}
	return list
}

// Run looks for silent clients and missing acknowledgements, serves fuzzy watches
// and sheds clients, until ctx ends; then it returns nil.
func (a *API) Run(ctx context.Context) error {
	var others sync.WaitGroup
	others.Go(func() { a.watchServices(ctx) })
	others.Go(func() { a.shedClients(ctx) })
	defer others.Wait()
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			now := a.core.Now()
			for _, c := range a.snapshot() {
				c.expire(now)
				c.look(now)
			}
			for _, f := range a.fuzzies.all(func(*pattern) bool { return true }) {
				f.retry()
			}
		}
	}
}
