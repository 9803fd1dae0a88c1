package rollcall

import (
	"context"
	"time"

	"github.com/rollcall-registry/rollcall/client/internal/wire"
)

// chooser chooses between gRPC and HTTP and moves from one to the other. All of it
// runs in one goroutine.
//
// gRPC is preferred. HTTP is tried besides when gRPC takes long, and used if it works
// and gRPC does not for longer than limit, or at once if gRPC has failed already. What it
// failed of before HTTP worked does not count: the server was not there, and gRPC is
// tried anew.
// While HTTP is used, gRPC is tried now and then; when it connects, everything is
// published there before it is withdrawn over HTTP, so that nobody misses it.
type chooser struct {
	client *Client
	limit  time.Duration // see budget and patience

	grpc, http *carrier  // nil while not tried
	tried      time.Time // when grpc was last started
	downSince  time.Time // of grpc; zero while it is up
	httpUp     bool      // as of the last look
	onHTTP     bool
	leaving    time.Time // when the move from HTTP began; zero if there is none
	held       services  // what may have been published over HTTP when it did
}

// services are those of which something is or was published.
type services map[wire.Service]bool

func (h *chooser) choose(ctx context.Context) {
	h.startGRPC(ctx)
	timer := time.NewTimer(probeHTTP)
	defer timer.Stop()
	for {
		select {
		case <-h.client.signal:
		case <-timer.C:
		case <-ctx.Done():
			return
		}
		timer.Reset(h.step(ctx))
	}
}

func (h *chooser) startGRPC(ctx context.Context) {
	h.grpc = h.client.run(ctx, h.client.newGRPC())
	h.tried, h.downSince = time.Now(), time.Now()
}

// step looks at both and returns when to look again at the latest.
func (h *chooser) step(ctx context.Context) time.Duration {
	if h.grpc != nil && h.grpc.up() != nil {
		return h.withGRPC(ctx)
	}
	if h.onHTTP {
		return h.withHTTP(ctx)
	}
	return h.withNeither(ctx)
}

// withGRPC is the preferred state. What runs over HTTP is taken down.
func (h *chooser) withGRPC(ctx context.Context) time.Duration {
	h.downSince, h.limit, h.httpUp = time.Time{}, patience, false
	if h.onHTTP && h.leaving.IsZero() {
		h.leaving, h.held = time.Now(), make(services)
		h.client.addPublished(h.held)
	}
	h.client.use(h.grpc)
	switch {
	case h.http == nil:
		return time.Hour
	case !h.onHTTP:
		h.stopHTTP()
		return time.Hour
	}
	if !h.client.published() && time.Since(h.leaving) < handover {
		return 100 * time.Millisecond
	}
	h.client.addPublished(h.held)
	h.client.withdraw(ctx, h.http.transport, h.held)
	h.onHTTP, h.leaving, h.held = false, time.Time{}, nil
	h.stopHTTP()
	return time.Hour
}

func (h *chooser) stopHTTP() {
	h.http.stop()
	<-h.http.done
	h.http = nil
}

// withHTTP uses HTTP and tries gRPC now and then.
func (h *chooser) withHTTP(ctx context.Context) time.Duration {
	h.leaving = time.Time{}
	h.client.use(h.http)
	if h.grpc != nil && time.Since(h.tried) >= budget {
		h.grpc.stop()
		<-h.grpc.done
		h.grpc = nil
	}
	if h.grpc != nil {
		return budget - time.Since(h.tried)
	}
	if wait := retryGRPC - time.Since(h.tried); wait > 0 {
		return wait
	}
	h.startGRPC(ctx)
	return budget
}

// withNeither waits for gRPC, and with less and less hope for it looks at HTTP.
func (h *chooser) withNeither(ctx context.Context) time.Duration {
	if h.downSince.IsZero() {
		h.downSince = time.Now()
	}
	h.client.use(nil)
	down := time.Since(h.downSince)
	if down < probeHTTP {
		return probeHTTP - down
	}
	if h.http == nil {
		h.http = h.client.run(ctx, h.client.newHTTP())
	}
	was := h.httpUp
	h.httpUp = h.http.up() != nil
	switch {
	case !h.httpUp:
		return max(h.limit-down, probeHTTP)
	case !was && h.grpc.failed():
		h.restartGRPC(ctx)
	}
	trying := budget - time.Since(h.tried)
	if h.grpc.failed() {
		trying = 0
	}
	if h.limit != budget { // it worked before
		trying = max(trying, h.limit-down)
	}
	if trying > 0 {
		return trying
	}
	h.onHTTP = true
	return h.withHTTP(ctx)
}

// restartGRPC has gRPC tried at once, and not when it would try again.
func (h *chooser) restartGRPC(ctx context.Context) {
	h.grpc.stop()
	<-h.grpc.done
	h.grpc, h.tried = h.client.run(ctx, h.client.newGRPC()), time.Now()
}

// published reports whether all that is wanted has been published on the present
// session.
func (c *Client) published() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.link.Load()
	if l == nil {
		return false
	}
	for _, p := range c.publications {
		if p.session != l.session.ID || p.done != p.generation {
			return false
		}
	}
	return true
}

// addPublished adds the services of which something is published, or was until a moment ago.
func (c *Client) addPublished(to services) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for s := range c.publications {
		to[s] = true
	}
}

// withdraw takes everything back that was published of some services over a transport
// which is about to be left.
func (c *Client) withdraw(ctx context.Context, t wire.Transport, all services) {
	ctx, cancel := context.WithTimeout(ctx, handover)
	defer cancel()
	for s := range all {
		if err := t.Publish(ctx, s, nil); err != nil {
			c.logger.Info("an instance stays registered over HTTP until its beats are missed", "service", s.Name, "err", err)
		}
	}
}
