package h2

import (
	"context"
	"errors"
	"strings"
	"time"

	"golang.org/x/net/http2"

	"github.com/rollcall-registry/rollcall/api/grpcv2"
	"github.com/rollcall-registry/rollcall/internal/grpcapi/transport"
)

// The paths of the methods.
const (
	unaryPath       = "/" + grpcv2.UnaryService + "/" + grpcv2.UnaryMethod
	streamPath      = "/" + grpcv2.StreamService + "/" + grpcv2.StreamMethod
	healthCheckPath = "/" + healthService + "/Check"
	healthWatchPath = "/" + healthService + "/Watch"
)

// methodOf returns the method at a path.
func methodOf(path string) (m method, ok bool) {
	switch path {
	case unaryPath:
		return unaryCall, true
	case streamPath:
		return bothWays, true
	case healthCheckPath:
		return healthCheck, true
	case healthWatchPath:
		return healthWatch, true
	default:
		return 0, false
	}
}

// refusal is an answer that consists of a status.
type refusal struct {
	httpStatus int
	status     transport.Status
	field      string // one more, as it is in a header block
}

func refuse(httpStatus int, code uint32, message string) *refusal {
	return &refusal{httpStatus: httpStatus, status: transport.Status{Code: code, Message: message}}
}

// judge says why a request is not served; nil: it is.
func (h *head) judge(known bool, deadline time.Time, validTime bool) *refusal {
	switch {
	case h.tooLarge:
		return refuse(431, resourceExhausted, "the header list is too large")
	case !h.isGRPC():
		return refuse(415, invalidArgument, "the content type is not that of gRPC")
	case !validTime:
		return refuse(400, internal, "grpc-timeout is malformed")
	case h.authorities == 0 && h.hosts != 1 || h.hosts > 1:
		return refuse(400, internal, "there must be one :authority or host")
	case h.method != "POST":
		return refuse(405, internal, "the method of HTTP must be POST")
	case !deadline.IsZero() && !deadline.After(time.Now()):
		return &refusal{httpStatus: 200, status: errDeadline}
	case !known:
		return refuse(200, unimplemented, "there is no method "+strings.ToValidUTF8(h.path, "?"))
	case h.encoding != "" && h.encoding != "identity":
		r := refuse(200, unimplemented, "messages must not be compressed")
		r.field = string(appendField(nil, "grpc-accept-encoding", "identity"))
		return r
	default:
		return nil
	}
}

// open opens a stream, or answers that it is not opened.
func (c *conn) open(h *head) {
	if h.malformed || !h.tooLarge && h.incomplete() || h.endStream && h.contentLength > 0 {
		c.reset(h.id, http2.ErrCodeProtocol)
		return
	}
	if c.session == nil {
		c.turnAway(h)
		return
	}
	m, known := methodOf(h.path)
	deadline, validTime := h.deadline()
	r := h.judge(known, deadline, validTime)
	c.mu.Lock()
	switch {
	case c.saidBye:
		// The client knows that nothing comes of it.
		c.mu.Unlock()
		return
	case len(c.streams) >= c.server.cfg.MaxStreams || c.apart >= c.server.cfg.MaxStreams:
		c.resetLocked(h.id, http2.ErrCodeRefusedStream)
		c.mu.Unlock()
		return
	case r != nil:
		c.decline(h, r)
		c.mu.Unlock()
		return
	}
	st := &stream{conn: c, id: h.id, method: m, deadline: deadline, content: h.contentLength, window: c.streamWindow, halfway: h.endStream}
	c.streams = append(c.streams, st)
	c.mu.Unlock()
	if m == bothWays {
		c.openBothWays(st)
	}
	if h.endStream {
		c.receive(st, nil, true)
	}
}

// decline answers a request with a status and nothing else. The caller holds c.mu.
func (c *conn) decline(h *head, r *refusal) {
	c.appendBlock(h.id, http2.FlagHeadersEndStream, func(b []byte) []byte {
		b = appendAnswerHead(b, r.httpStatus)
		return append(appendStatus(b, r.status), r.field...)
	})
	if !h.endStream {
		out := c.buffer()
		out.b = appendReset(out.b, h.id, http2.ErrCodeNo)
	}
}

// turnAway tells the client of a refused connection why it is: GOAWAY alone has its
// text lost in some libraries, which all show the status of a call.
func (c *conn) turnAway(h *head) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.decline(h, refuse(200, transport.Unavailable, c.refusal))
	if !c.saidBye {
		c.saidBye = true
		out := c.buffer()
		out.b = appendGoAway(out.b, h.id, http2.ErrCodeEnhanceYourCalm, c.refusal)
	}
}

// openBothWays tells the handler of a stream of both directions.
func (c *conn) openBothWays(st *stream) {
	frames := c.session.Open(st)
	c.mu.Lock()
	defer c.mu.Unlock()
	st.frames = frames
	if st.over { // it has ended meanwhile, and nobody could be told
		c.after(frames.Ended)
		return
	}
	c.limit(st)
	if c.ending != nil {
		c.conclude(st, *c.ending)
	} else if st.woken {
		c.enqueue(st)
	}
}

// limit ends a stream at its deadline, if it has one. The caller holds c.mu.
func (c *conn) limit(st *stream) {
	if st.deadline.IsZero() {
		return
	}
	st.timer = time.AfterFunc(time.Until(st.deadline), func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.conclude(st, errDeadline)
		c.over(st)
	})
}

// fail ends a stream with a status; what the client still sends is dropped.
func (c *conn) fail(st *stream, s transport.Status) {
	st.deaf = true
	st.release()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.conclude(st, s)
	c.over(st)
}

// deliver gives a message of a stream of both directions to the handler.
func (c *conn) deliver(st *stream, message []byte) {
	p := &c.reader.payload
	if err := p.Unmarshal(message); err != nil {
		c.fail(st, transport.Status{Code: internal, Message: err.Error()})
		return
	}
	c.mu.Lock()
	c.earn()
	if st.over {
		c.mu.Unlock()
		return
	}
	st.busy++
	c.mu.Unlock()
	st.frames.Received(p)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.leave(st)
}

// halfClose does what is due when the client has said that nothing more comes.
func (c *conn) halfClose(st *stream) {
	switch {
	case len(st.part) > 0 && !st.asked:
		c.fail(st, transport.Status{Code: internal, Message: "the last message is not complete"})
	case st.method == bothWays:
		// A client that sends no more does not answer pushes either.
		c.fail(st, transport.Status{})
	case !st.asked:
		c.fail(st, transport.Status{Code: internal, Message: "no message for a method that takes one"})
	case !st.deadline.IsZero() && !st.deadline.After(time.Now()):
		c.fail(st, errDeadline)
	case st.method == unaryCall:
		c.answer(st)
	default:
		c.answerHealth(st)
	}
}

// answer answers a unary call: here when it does not block, else in a goroutine.
func (c *conn) answer(st *stream) {
	p := &c.reader.payload
	if err := p.Unmarshal(st.request); err != nil {
		c.fail(st, transport.Status{Code: internal, Message: err.Error()})
		return
	}
	if c.session.Blocks(p) {
		c.answerApart(st)
		return
	}
	m := c.server.message()
	c.session.Answer(c.server.work, p, &m.Message)
	m.encode()
	st.release()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.respond(st, m)
}

// respond sends the answer to a call. The caller holds c.mu.
func (c *conn) respond(st *stream, m *message) {
	c.earn()
	c.give(st, m)
	if st.closed {
		return
	}
	st.status = c.server.okStatus
	if c.line != nil || c.out != nil && len(c.out.b) >= chunkBytes || c.advance(st) {
		c.enqueue(st)
	}
	c.kick()
}

// answerApart answers a call in a goroutine, when there is room for one more.
func (c *conn) answerApart(st *stream) {
	s := c.server
	select {
	case s.blocked <- struct{}{}:
	default:
		_ = c.flush() // an error is seen by the next one who writes
		s.blocked <- struct{}{}
		c.takeTurn()
	}
	request := st.keep(st.request)
	part := st.part
	st.part, st.request = nil, nil
	ctx, cancel := s.callContext(st.deadline)
	c.mu.Lock()
	c.apart++
	st.cancel = cancel
	c.mu.Unlock()
	s.helpers.Go(func() {
		defer cancel()
		c.answerNow(ctx, st, request)
		s.recycleBody(part)
		<-s.blocked
	})
}

// callContext returns the context of a call; a deadline that is zero is none.
func (s *Server) callContext(deadline time.Time) (context.Context, context.CancelFunc) {
	if deadline.IsZero() {
		return context.WithCancel(s.work)
	}
	return context.WithDeadline(s.work, deadline)
}

// answerNow answers a call in its goroutine.
func (c *conn) answerNow(ctx context.Context, st *stream, request []byte) {
	m := c.server.message()
	var p grpcv2.Payload
	if err := p.Unmarshal(request); err == nil { // as it was before
		c.session.Answer(ctx, &p, &m.Message)
	}
	m.encode()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.apart--
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		c.discard(m)
		c.conclude(st, errDeadline)
		return
	}
	c.respond(st, m)
}
