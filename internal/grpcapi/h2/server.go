package h2

import (
	"context"
	"log/slog"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rollcall-registry/rollcall/internal/admission"

	"github.com/rollcall-registry/rollcall/internal/grpcapi/transport"
)

// Server serves the connections that it is given. Create it with [New]. It is safe
// for concurrent use.
type Server struct {
	cfg       Config
	handler   transport.Handler
	log       *slog.Logger
	times     times
	admission *admission.Gate
	health    health
	writers   writers

	begun time.Time
	clock atomic.Int64    // see now
	large atomic.Int64    // memory of large messages that are being received, in bytes
	work  context.Context // of calls; it ends with the server
	stop  context.CancelFunc
	// blocked holds a token for each call that runs in a goroutine.
	blocked chan struct{}

	mu       sync.Mutex
	conns    map[*conn]struct{} // refused ones included
	stopping bool
	running  sync.WaitGroup // goroutines of connections
	helpers  sync.WaitGroup // those of calls that block, and of clients that do not read

	answerHead, okStatus []byte // what nearly every answer begins and ends with

	// Memory that is in use only while something comes or goes.
	readers  sync.Pool // *reader
	messages sync.Pool // *message
	chunks   sync.Pool // *chunk
	bodies   sync.Pool // *[]byte
}

// New returns a server whose messages mean something to handler. It starts
// nothing; cfg must be valid.
func New(cfg Config, handler transport.Handler, logger *slog.Logger) *Server {
	s := &Server{
		cfg: cfg, handler: handler, log: logger.With("component", "grpc"), times: defaultTimes(cfg.Keepalive),
		admission:  admission.New(cfg.MaxConns, cfg.MaxConnsPerIP),
		begun:      time.Now(),
		blocked:    make(chan struct{}, maxBlocked),
		conns:      map[*conn]struct{}{},
		answerHead: appendAnswerHead(nil, 200), okStatus: appendStatus(nil, transport.Status{}),
	}
	s.work, s.stop = context.WithCancel(context.Background())
	s.readers.New = func() any { return newReader() }
	s.tick()
	s.health.serving = true
	return s
}

// SetServing says what the health service (grpc.health.v1) answers. It is serving
// from the start.
func (s *Server) SetServing(serving bool) { s.health.set(serving) }

// Limit sets how many connections may be served from now on, in all and of one
// address; 0 is no limit. Those that are there stay.
func (s *Server) Limit(inAll, perIP int) { s.admission.Limit(inAll, perIP) }

// Connections returns how many connections are served and how many were refused
// because of their number.
func (s *Server) Connections() (served int, refused uint64) {
	inAll, ofAddress := s.admission.Refused()
	return s.admission.Connections(), inAll + ofAddress
}

// Refused returns how many connections were refused by the limit of all connections
// and by that of one address.
func (s *Server) Refused() (inAll, ofAddress uint64) { return s.admission.Refused() }

// ServeConn takes over a connection and returns. prefix is what has been read from
// it already. TLS is the caller's.
func (s *Server) ServeConn(_ context.Context, nc net.Conn, prefix []byte) {
	c := newConn(s, nc, prefix)
	if r := s.admission.Admit(c.peer.Addr()); r != nil {
		s.log.Debug("connection refused", "reason", r, "client_id", c.peer)
		c.refusal = r.Error()
		if !s.admission.StartRefusing() {
			_ = nc.Close()
			return
		}
	}
	s.mu.Lock()
	stopping := s.stopping
	if !stopping {
		s.conns[c] = struct{}{}
		s.running.Add(1)
	}
	s.mu.Unlock()
	switch {
	case stopping:
		_ = nc.Close()
		s.leaveAdmission(c)
		return
	case c.refusal == "":
		c.session = s.handler.Accept(c)
	default:
		c.mu.Lock()
		c.closeAfter(s.times.linger)
		c.mu.Unlock()
	}
	go c.serve()
}

// leave takes a connection off that has ended, and tells the handler.
func (s *Server) leave(c *conn) {
	s.mu.Lock()
	delete(s.conns, c)
	stopping := s.stopping
	s.mu.Unlock()
	s.leaveAdmission(c)
	if c.session != nil {
		c.session.Closed(stopping)
	}
	s.running.Done()
}

func (s *Server) leaveAdmission(c *conn) {
	if c.refusal != "" {
		s.admission.StopRefusing()
		return
	}
	s.admission.Release(c.peer.Addr())
}

// Run serves until ctx ends. Then it ends every stream with UNAVAILABLE, waits a
// second for calls to be answered and clients to go, closes what is left and
// returns nil. It runs once.
func (s *Server) Run(ctx context.Context) error {
	s.writers.start(runtime.GOMAXPROCS(0))
	ticker := time.NewTicker(s.times.sweep)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			s.shutDown()
			return nil
		case <-ticker.C:
			s.tick()
			s.sweep()
		}
	}
}

func (s *Server) shutDown() {
	s.mu.Lock()
	s.stopping = true
	s.mu.Unlock()
	s.health.set(false)
	for _, c := range s.all() {
		c.Close(transport.Status{Code: transport.Unavailable, Message: "the server is stopping"})
	}
	// Every connection is closed by then.
	force := time.AfterFunc(s.times.stop, func() {
		s.stop()
		for _, c := range s.all() {
			_ = c.nc.Close()
		}
	})
	s.running.Wait()
	force.Stop()
	s.stop()
	s.helpers.Wait()
	s.writers.stop() // last, since calls that end late have somebody told
}

// all returns the connections, in no order.
func (s *Server) all() []*conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]*conn, 0, len(s.conns))
	for c := range s.conns {
		list = append(list, c)
	}
	return list
}

// now returns the coarse clock, in nanoseconds; it is never 0. It saves connections
// the clock's reading, where a second more or less does not matter.
func (s *Server) now() int64 { return s.clock.Load() }

func (s *Server) tick() {
	s.clock.Store(int64(time.Since(s.begun)) + 1)
}

// sweep looks after connections on which something takes too long.
func (s *Server) sweep() {
	for _, c := range s.all() {
		if why := c.look(); why != "" {
			s.log.Debug("connection closed", "reason", why, "client_id", c.peer)
			_ = c.nc.Close()
		}
	}
}

// look says why the connection must be closed, if it must, and pings a client that
// has been silent.
func (c *conn) look() (why string) {
	now, t := c.server.now(), &c.server.times
	since := func(when int64) time.Duration { return time.Duration(now - when) }
	heard, partial := c.heard.Load(), c.partial.Load()
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
	case partial != 0 && since(partial) >= t.partial:
		return "a frame or the handshake takes too long"
	case c.since != 0 && since(c.since) >= t.write, c.unread(now):
		return "the client does not read"
	case c.reserved > 0 && since(c.loading) >= t.message:
		return "a message takes too long"
	case c.pinged != 0 && heard >= c.pinged:
		c.pinged = 0
	case c.pinged != 0 && since(c.pinged) >= t.answer:
		return "no answer to a ping"
	case c.pinged == 0 && since(heard) >= t.silence:
		c.pinged = now
		out := c.buffer()
		out.b = appendPing(out.b, false, alivePing)
		c.kick()
	}
	return ""
}

// alivePing is the ping of a connection that has been silent.
var alivePing = [8]byte{'s', 't', 'i', 'l', 'l', 'h', 'e', 'r'}

// unread reports whether an answer waits too long for the client to take it. What
// waits on a stream of both directions is the handler's to judge. The caller holds
// c.mu.
func (c *conn) unread(now int64) bool {
	for _, st := range c.streams {
		if st.msg != nil && st.method != bothWays && time.Duration(now-st.since) >= c.server.times.write {
			return true
		}
	}
	return false
}
