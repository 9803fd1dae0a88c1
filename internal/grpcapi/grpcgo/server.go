package grpcgo

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rollcall-registry/rollcall/internal/admission"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"

	"github.com/rollcall-registry/rollcall/api/grpcv2"
	"github.com/rollcall-registry/rollcall/internal/grpcapi/transport"
)

// Server serves the connections that it is given. Create it with [New].
type Server struct {
	handler   transport.Handler
	log       *slog.Logger
	admission *admission.Gate
	health    *health.Server
	queue     *queue
	stopping  atomic.Bool

	mu    sync.Mutex
	conns map[*conn]struct{}

	incoming sync.Pool // *incoming
	outgoing sync.Pool // *outgoing
	options  []grpc.ServerOption
}

// New returns a server whose messages mean something to handler. It starts
// nothing; cfg must be valid.
func New(cfg Config, handler transport.Handler, logger *slog.Logger) *Server {
	s := &Server{
		handler:   handler,
		log:       logger.With("component", "grpc"),
		admission: admission.New(cfg.MaxConns, cfg.MaxConnsPerIP),
		health:    health.NewServer(),
		queue:     newQueue(),
		conns:     map[*conn]struct{}{},
		options: []grpc.ServerOption{
			grpc.ForceServerCodecV2(codec{}),
			grpc.MaxRecvMsgSize(cfg.MaxMessageBytes),
			grpc.MaxConcurrentStreams(uint32(cfg.MaxStreams)),
			grpc.MaxHeaderListSize(maxHeaders),
			grpc.ReadBufferSize(readBuffer),
			grpc.WriteBufferSize(writeBuffer),
			grpc.StaticStreamWindowSize(window),
			grpc.StaticConnWindowSize(window),
			grpc.ConnectionTimeout(handshakeTime),
			grpc.KeepaliveParams(keepalive.ServerParameters{Time: silence, Timeout: pingAnswer}),
			grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: minPing, PermitWithoutStream: true}),
			grpc.WaitForHandlers(true),
		},
	}
	s.incoming.New = func() any { return new(incoming) }
	s.outgoing.New = func() any { return &outgoing{server: s} }
	return s
}

// SetServing says what the health service (grpc.health.v1) answers. It is serving
// from the start.
func (s *Server) SetServing(serving bool) {
	status := healthpb.HealthCheckResponse_NOT_SERVING
	if serving {
		status = healthpb.HealthCheckResponse_SERVING
	}
	for _, service := range []string{"", grpcv2.UnaryService, grpcv2.StreamService} {
		s.health.SetServingStatus(service, status)
	}
}

// Connections returns how many connections are served and how many were refused
// because of their number.
func (s *Server) Connections() (served int, refused uint64) {
	inAll, ofAddress := s.admission.Refused()
	return s.admission.Connections(), inAll + ofAddress
}

// Refused returns how many connections were refused by the limit of all connections
// and by that of one address.
func (s *Server) Refused() (inAll, ofAddress uint64) { return s.admission.Refused() }

// ServeConn takes over a connection and returns, unless it has to tell the client
// that there are too many connections, which takes a second at most. prefix is
// what has been read from it already. TLS is the caller's.
func (s *Server) ServeConn(_ context.Context, nc net.Conn, prefix []byte) {
	c := newConn(s, nc, prefix)
	if r := s.admission.Admit(c.peer.Addr()); r != nil {
		s.log.Debug("connection refused", "reason", r, "client_id", c.peer)
		s.refuse(nc, prefix, r)
		return
	}
	s.mu.Lock()
	s.conns[c] = struct{}{}
	s.mu.Unlock()
	c.session = s.handler.Accept(closer{c})
	if !s.queue.put(c) {
		_ = c.Conn.Close()
		c.closed()
	}
}

// Run serves until ctx ends. Then it ends every stream with UNAVAILABLE, waits a
// second for clients to go, closes what is left and returns nil. It runs once.
func (s *Server) Run(ctx context.Context) error {
	g := grpc.NewServer(s.options...)
	s.register(g)
	s.SetServing(true)
	failed := make(chan error, 1)
	go func() { failed <- g.Serve(s.queue) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	s.stopping.Store(true)
	s.health.Shutdown()
	s.endAll(transport.Status{Code: transport.Unavailable, Message: "the server is stopping"})
	s.queue.close()
	stopped := make(chan struct{})
	go func() { g.GracefulStop(); close(stopped) }()
	timer := time.NewTimer(stopTime)
	defer timer.Stop()
	select {
	case <-stopped:
	case <-timer.C:
		g.Stop()
		<-stopped
	}
	if err := <-failed; err != nil && !errors.Is(err, net.ErrClosed) && !errors.Is(err, grpc.ErrServerStopped) {
		return err
	}
	return nil
}

func (s *Server) endAll(status transport.Status) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		c.endStreams(status)
	}
}

// message returns an empty message.
func (s *Server) message() *outgoing {
	m := s.outgoing.Get().(*outgoing)
	if m.Buf == nil {
		m.Buf = make([]byte, transport.Headroom, messageMemory)
	}
	return m
}

// recycle takes back a message that nobody holds.
func (s *Server) recycle(m *outgoing) {
	if cap(m.Buf) > messageKept {
		return
	}
	*m = outgoing{server: s, Message: transport.Message{Buf: m.Buf[:transport.Headroom]}}
	s.outgoing.Put(m)
}
