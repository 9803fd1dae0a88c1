package server

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"sync/atomic"
	"time"

	v1 "github.com/rollcall-registry/rollcall/internal/httpapi/v1"
	"github.com/rollcall-registry/rollcall/internal/store"
)

// Server is one registry. Create it with [New] and give it life with
// [Server.Run].
type Server struct {
	cfg   Config
	log   *slog.Logger
	ready chan struct{}
	addrs atomic.Pointer[Addrs]
	// state says why the server may not be sent traffic; nil when it may.
	state atomic.Pointer[string]
	// levels changes what is logged; nil when the embedder gave no way to.
	levels v1.LogLevels
	// parts are set once the server runs.
	parts atomic.Pointer[parts]
}

// Option changes a server before it runs.
type Option func(*Server)

// WithLevel lets operators change the level of the log through the API.
func WithLevel(level *slog.LevelVar) Option {
	return func(s *Server) { s.levels = rootLevel{level} }
}

// Addrs are the addresses on which a server can be reached.
type Addrs struct {
	// HTTP has one address for each of Config.Listen, in their order.
	HTTP []net.Addr
	// GRPC is the extra port for gRPC, which HTTP's addresses serve too; nil when
	// there is none.
	GRPC net.Addr
	// UDP is where pushes come from and acknowledgements go.
	UDP netip.AddrPort
}

// New returns a server, or every fault of cfg. It does no I/O.
func New(cfg Config, logger *slog.Logger, options ...Option) (*Server, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	s := &Server{cfg: cfg, log: logger, ready: make(chan struct{})}
	s.setState("starting")
	for _, option := range options {
		option(s)
	}
	return s, nil
}

// Ready is closed once the server answers. It stays open when Run fails earlier.
func (s *Server) Ready() <-chan struct{} { return s.ready }

// Addrs returns the server's addresses, once it is ready.
func (s *Server) Addrs() Addrs {
	if a := s.addrs.Load(); a != nil {
		return *a
	}
	return Addrs{}
}

func (s *Server) setState(why string) {
	if why == "" {
		s.state.Store(nil)
		return
	}
	s.state.Store(&why)
}

// readiness returns why the server may not be sent traffic.
func (s *Server) readiness() error {
	if why := s.state.Load(); why != nil {
		return errors.New(*why)
	}
	return nil
}

// Run serves until ctx ends, flushes everything and returns nil; or it returns
// one sentence that says why the server cannot start or go on. It runs once.
//
// The order of the start is that of the dependencies: the durable state, the
// ephemeral instances remembered over it, then what lets time pass, then what
// talks to clients. The stop goes the other way: no new requests, the last
// pushes, the last snapshot, the history, the durable log, the directory.
func (s *Server) Run(ctx context.Context) (err error) {
	dir, err := store.Open(s.cfg.DataDir, s.log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	p, err := s.assemble(dir)
	if err != nil {
		return err
	}
	crew := newCrew()
	defer func() {
		s.setState("stopping")
		err = errors.Join(err, crew.stop())
	}()
	memory, err := p.keeper.Open()
	if err != nil {
		return err
	}
	crew.start(part{"durable log", p.log.Run})
	select {
	case <-p.log.Ready():
	case r := <-crew.first:
		return r.fault()
	case <-ctx.Done():
		return nil
	}
	crew.start(part{"lease clock", p.clock.Run})
	if err := memory.Recall(ctx); err != nil {
		return err
	}
	if err := p.pushes.open(); err != nil {
		return err
	}
	p.gate.Open()
	if err := s.serve(ctx, crew, p, dir); err != nil {
		return err
	}
	return crew.wait(ctx)
}

// serve starts what runs once the state is complete.
func (s *Server) serve(ctx context.Context, crew *crew, p *parts, dir *store.Dir) error {
	ports, err := s.listen(ctx)
	if err != nil {
		return err
	}
	if err := p.udp.Listen(); err != nil {
		ports.close()
		return err
	}
	if p.pushes != nil {
		crew.start(part{"history of pushes", p.pushes.Run})
	}
	for _, part := range []part{
		{"disk watch", func(ctx context.Context) error { watchDisk(ctx, dir); return nil }},
		{"certificate", p.watchCertificate},
		{"history", p.ledger.Run},
		{"memory of ephemeral instances", p.keeper.Run},
		{"expiry", p.expirer.Run},
		{"probes", p.checker.Run},
		{"UDP push", p.udp.Run},
		{"gRPC clients", p.grpc.Run},
		{"gRPC connections", p.conns.Run},
		{"push", p.pusher.Run},
		{"clients", func(ctx context.Context) error { return ports.serve(ctx, p, s) }},
	} {
		crew.start(part)
	}
	addrs := ports.addrs()
	addrs.UDP = p.udp.Addr()
	s.addrs.Store(&addrs)
	p.members.SetAddress(hostPort(addrs.HTTP[0]))
	s.parts.Store(p)
	s.setState("")
	close(s.ready)
	return nil
}

// Reload takes over the settings of cfg that can change while the server runs:
// the ranges that UDP pushes may go to, and how many connections are taken. It reads
// the files of the certificate again. The caller has validated cfg.
func (s *Server) Reload(cfg Config) {
	p := s.parts.Load()
	if p == nil {
		return
	}
	p.udp.Admission().SetAllowed(cfg.UDP.Allow)
	p.http.Limit(cfg.HTTP.MaxConns, cfg.HTTP.MaxConnsPerIP)
	p.conns.Limit(cfg.GRPCConn.MaxConns, cfg.GRPCConn.MaxConnsPerIP)
	if p.certs != nil {
		p.certs.Reload()
	}
}

// hostPort returns where clients reach a listener: its address, or for one that
// listens on all addresses the name of the machine as it is known to itself.
func hostPort(addr net.Addr) (string, int) {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok {
		return addr.String(), 0
	}
	if !tcp.IP.IsUnspecified() {
		return tcp.IP.String(), tcp.Port
	}
	name, err := os.Hostname()
	if err != nil {
		name = tcp.IP.String()
	}
	return name, tcp.Port
}

// The data directory is looked at every 30 s; below 256 MiB the log warns: a
// snapshot of a large registry needs tens of megabytes.
const (
	diskInterval = 30 * time.Second
	diskFloor    = 256 << 20
)

func watchDisk(ctx context.Context, dir *store.Dir) {
	dir.WatchSpace(ctx, diskInterval, diskFloor, func(store.Space, bool) {})
}
