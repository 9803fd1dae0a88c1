package h2

import (
	"sync"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/rollcall-registry/rollcall/api/grpcv2"
	"github.com/rollcall-registry/rollcall/internal/grpcapi/transport"
)

// healthService is the standard service by which others see whether a server
// serves. Source: grpc/health/v1/health.proto.
const healthService = "grpc.health.v1.Health"

// servingStatus is what it answers.
type servingStatus uint8

const (
	serving        servingStatus = 1
	notServing     servingStatus = 2
	serviceUnknown servingStatus = 3
)

// health is the state of the server, which is that of all its services.
type health struct {
	mu      sync.Mutex
	serving bool
	// watching are the streams that are told of changes; the locks of connections
	// come before mu.
	watching map[*stream]struct{}
}

// watch is one such stream's.
type watch struct {
	health  *health
	service string
	told    servingStatus // 0: nothing yet
}

// status returns the state of a service; the empty name is the server's.
func (h *health) status(service string) servingStatus {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch service {
	case "", grpcv2.UnaryService, grpcv2.StreamService:
		if h.serving {
			return serving
		}
		return notServing
	default:
		return serviceUnknown
	}
}

// set changes the state and wakes those who watch it.
func (h *health) set(serving bool) {
	h.mu.Lock()
	h.serving = serving
	watching := make([]*stream, 0, len(h.watching))
	for st := range h.watching {
		watching = append(watching, st)
	}
	h.mu.Unlock()
	for _, st := range watching {
		st.Wake()
	}
}

func (h *health) add(st *stream) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.watching == nil {
		h.watching = map[*stream]struct{}{}
	}
	h.watching[st] = struct{}{}
}

func (h *health) remove(st *stream) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.watching, st)
}

// next writes the state when it is another than the client knows.
func (w *watch) next(m *message) bool {
	now := w.health.status(w.service)
	if now == w.told {
		return false
	}
	w.told = now
	m.encodeHealth(now)
	return true
}

// encodeHealth makes the message a HealthCheckResponse.
func (m *message) encodeHealth(s servingStatus) {
	const status = 1
	m.Buf = protowire.AppendTag(m.Buf, status, protowire.VarintType)
	m.Buf = protowire.AppendVarint(m.Buf, uint64(s))
	m.prepend(nil)
}

// answerHealth answers Check, or begins to answer Watch.
func (c *conn) answerHealth(st *stream) {
	service, ok := healthRequest(st.request)
	if !ok {
		c.fail(st, transport.Status{Code: internal, Message: "the message is no HealthCheckRequest"})
		return
	}
	h := &c.server.health
	st.release()
	if st.method == healthWatch {
		c.watchHealth(st, service)
		return
	}
	state := h.status(service)
	if state == serviceUnknown {
		c.fail(st, transport.Status{Code: notFound, Message: "there is no such service"})
		return
	}
	m := c.server.message()
	m.encodeHealth(state)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.respond(st, m)
}

// watchHealth has the client told of the state, now and whenever it changes.
func (c *conn) watchHealth(st *stream, service string) {
	h := &c.server.health
	c.mu.Lock()
	defer c.mu.Unlock()
	st.watch = &watch{health: h, service: service}
	h.add(st)
	c.limit(st)
	st.woken = true
	if c.ending != nil {
		c.conclude(st, *c.ending)
	}
	c.enqueue(st)
}

// healthRequest reads a HealthCheckRequest.
func healthRequest(b []byte) (service string, ok bool) {
	const name = 1
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return "", false
		}
		b = b[n:]
		if number == name && kind == protowire.BytesType {
			service, n = protowire.ConsumeString(b)
		} else {
			n = protowire.ConsumeFieldValue(number, kind, b)
		}
		if n < 0 {
			return "", false
		}
		b = b[n:]
	}
	return service, true
}
