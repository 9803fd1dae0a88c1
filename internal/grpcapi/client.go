package grpcapi

import (
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rollcall-registry/rollcall/api/grpcv2"
	"github.com/rollcall-registry/rollcall/internal/grpcapi/transport"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// client is one connection with what is known of who is at its other end.
type client struct {
	api    *API
	conn   transport.Conn
	id     registry.ClientID
	peer   netip.AddrPort
	local  string // the address that the client connected to
	since  registry.Instant
	active atomic.Int64 // lease-clock time of the latest sign of life
	// identity is what the client said of itself; nil while it is not registered.
	identity atomic.Pointer[identity]

	// strayed is when a client that is not registered first asked for its health, on
	// the lease clock; 0 when it has not.
	strayed atomic.Int64

	// probed is when the client was asked for a sign of life, on the lease clock; 0
	// when it was not, or has given one since. It belongs to [API.Run].
	probed time.Duration

	// subscribing is held while a call changes subscriptions, so that two of them
	// take turns.
	subscribing sync.Mutex

	mu      sync.Mutex
	gone    bool      // it is not registered again
	streams []*frames // those with a setup, the oldest first
	orders  []*order  // requests that wait to be sent
	watches map[registry.ServiceKey]*watch
	ready   []*watch // those with a push that waits to be sent
	waiting map[uint64]wait
	// taken is when the transport last asked for a message, or since when one has
	// been waiting, on the lease clock.
	taken time.Duration
}

// touch notes a sign of life.
func (c *client) touch(now registry.Instant) { c.active.Store(int64(now.Lease)) }

// silence returns for how long the client has given no sign of life.
func (c *client) silence(now registry.Instant) time.Duration {
	return now.Lease - time.Duration(c.active.Load())
}

// stray reports whether a client that is not registered asks for its health, again
// and again, and so believes to be.
func (c *client) stray(now registry.Instant) bool {
	at := max(int64(now.Lease), 1)
	if c.strayed.CompareAndSwap(0, at) {
		return false
	}
	return time.Duration(at-c.strayed.Load()) >= strayAfter
}

// cause is why a change is made at the client's request.
func (c *client) cause(op string) registry.Cause {
	return registry.Cause{Kind: registry.CauseRequest, API: "grpc", Op: op, From: c.peer.Addr()}
}

// Closed implements transport.Session. When the server stops, what the client
// registered stays, for the client to find when both are back.
func (c *client) Closed(stopping bool) {
	if stopping {
		c.api.forget(c)
		return
	}
	c.leave("by the client")
}

// leave ends the client's registration and what it registered and subscribed to.
// It reports whether it had not left before.
func (c *client) leave(why string) bool {
	c.mu.Lock()
	if c.gone {
		c.mu.Unlock()
		return false
	}
	c.gone = true
	who := c.identity.Swap(nil)
	waiting := c.waiting
	c.waiting, c.watches, c.ready, c.orders = nil, nil, nil, nil
	c.mu.Unlock()
	c.api.forget(c)
	c.api.fuzzies.dropAll(c)
	if who != nil && who.naming {
		c.api.core.Close(registry.Cause{Kind: registry.CauseDisconnect, API: "grpc", From: c.peer.Addr(), Detail: why}, c.id)
	}
	for _, w := range waiting {
		w.asker.settle(gone)
	}
	return true
}

// left reports whether the client has left.
func (c *client) left() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.gone
}

// evict ends a client that is still connected.
func (c *client) evict(why string) {
	if c.leave(why) {
		c.api.log.Info("connection evicted", "client_id", c.id, "reason", why)
		c.conn.Close(transport.Status{Code: transport.Unavailable, Message: "connection evicted: " + why})
	}
}

// look asks a silent client for a sign of life, or gives it up. A client that has
// ended its stream and then falls silent cannot be asked.
func (c *client) look(now registry.Instant) {
	silence, cfg := c.silence(now), &c.api.cfg
	switch {
	case c.identity.Load() == nil:
		if silence >= cfg.SetupTimeout {
			c.evict("not registered for " + cfg.SetupTimeout.String())
		}
	case c.stuck(now):
		c.evict("it reads nothing of its stream for " + stuckMax.String())
	case silence < cfg.ProbeAfter:
		c.probed = 0
	case c.probed == 0:
		c.probed = now.Lease
		if !c.ask(&order{kind: grpcv2.ClientDetection, write: grpcv2.AppendClientDetection, timeout: cfg.ProbeTimeout}) {
			c.evict("silent for " + cfg.ProbeAfter.String() + ", and without a stream")
		}
	case now.Lease-c.probed >= cfg.ProbeTimeout:
		c.evict("no answer to a probe for " + cfg.ProbeTimeout.String())
	}
}

// stuck reports whether messages wait that the client does not read.
func (c *client) stuck(now registry.Instant) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.orders)+len(c.ready) > 0 && now.Lease-c.taken >= stuckMax
}

// offer tells the transport of a message that has just been added. The caller
// holds c.mu.
func (c *client) offer() {
	if len(c.orders)+len(c.ready) == 1 {
		c.taken = c.api.core.Now().Lease
	}
	c.wake()
}

// frames is the server's half of one stream.
type frames struct {
	client *client
	stream transport.Stream
	acks   int // setups that are to be acknowledged; guarded by client.mu
	setUp  bool
}

// Open implements transport.Session.
func (c *client) Open(s transport.Stream) transport.Frames { return &frames{client: c, stream: s} }

// Ended implements transport.Frames. It is no disconnect: calls are still
// answered, and a new stream may take the place of this one.
func (f *frames) Ended() {
	c := f.client
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := slices.Index(c.streams, f); i >= 0 {
		c.streams = slices.Delete(c.streams, i, i+1)
		c.wake()
	}
}

// main reports whether f is the stream on which the server talks to the client:
// the oldest one with a setup. The caller holds c.mu.
func (f *frames) main() bool {
	return len(f.client.streams) > 0 && f.client.streams[0] == f
}

// wake has the transport look for messages. The caller holds c.mu.
func (c *client) wake() {
	if len(c.streams) > 0 {
		c.streams[0].stream.Wake()
	}
}
