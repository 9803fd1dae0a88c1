package portmux

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"
)

// Serve serves one connection and closes it, now or later. prefix is what has been
// read from it.
type Serve func(ctx context.Context, nc net.Conn, prefix []byte)

// Config is how connections begin.
type Config struct {
	// Timeout is how long a client may take for its first bytes, and for a PROXY
	// header and a TLS handshake before them.
	Timeout time.Duration
	// Idle is how long a client may send nothing at all, as browsers do that
	// connect ahead of need.
	Idle time.Duration
	// MaxPending bounds the connections of which the protocol is not known yet; one
	// more is closed.
	MaxPending int
	// Proxies are the ranges from which a PROXY header is believed; none is read
	// from others.
	Proxies []netip.Prefix
	// TLS makes all connections speak TLS; nil is plain text. Its protocols are set
	// here: http/1.1 before h2, so that browsers get the former.
	TLS *tls.Config
}

// Backends are the protocols of a port. A nil one is not spoken there.
type Backends struct{ HTTP, GRPC Serve }

// Mux tells the protocols of connections apart. Create it with [New].
type Mux struct {
	cfg      Config
	backends Backends
	log      *slog.Logger
	pending  chan struct{} // holds a token for each connection that is looked at
}

// New returns a mux. It starts nothing.
func New(cfg Config, backends Backends, logger *slog.Logger) *Mux {
	if cfg.TLS != nil {
		cfg.TLS = cfg.TLS.Clone()
		cfg.TLS.NextProtos = []string{"http/1.1", "h2"}
	}
	return &Mux{
		cfg: cfg, backends: backends, log: logger.With("component", "portmux"),
		pending: make(chan struct{}, cfg.MaxPending),
	}
}

// Serve accepts connections from ln until ctx ends; then it closes ln, waits for
// the backends to be done with theirs and returns nil. It returns an error only if
// ln fails for good. It may be called for several listeners.
func (m *Mux) Serve(ctx context.Context, ln net.Listener) error {
	stop := context.AfterFunc(ctx, func() { _ = ln.Close() })
	defer stop()
	var conns sync.WaitGroup
	defer conns.Wait()
	for delay := time.Duration(0); ; {
		nc, err := ln.Accept()
		switch {
		case err == nil:
			delay = 0
			conns.Go(func() { m.serve(ctx, nc) })
		case ctx.Err() != nil:
			return nil
		case !passing(err):
			_ = ln.Close()
			return fmt.Errorf("accept: %w", err)
		default:
			delay = min(max(2*delay, 5*time.Millisecond), time.Second)
			m.log.Error("cannot accept connections", "err", err, "pause", delay)
			if !pause(ctx, delay) {
				return nil
			}
		}
	}
}

// passing reports whether an error of Accept passes: the process or the host is out
// of file descriptors or memory, or the client has gone before it was accepted.
func passing(err error) bool {
	for _, e := range []error{
		syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM,
		syscall.ECONNABORTED, syscall.ECONNRESET, syscall.EINTR,
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// pause waits for d or the end of ctx, and reports whether ctx goes on.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// serve looks at one connection and hands it on.
func (m *Mux) serve(ctx context.Context, nc net.Conn) {
	select {
	case m.pending <- struct{}{}:
	default:
		m.log.Debug("connection closed", "reason", "too many have sent nothing yet", "client_id", nc.RemoteAddr())
		_ = nc.Close()
		return
	}
	backend, nc, prefix, err := m.look(ctx, nc)
	<-m.pending
	if err != nil {
		m.log.Debug("connection closed", "reason", err, "client_id", nc.RemoteAddr())
		_ = nc.Close()
		return
	}
	backend(ctx, nc, prefix)
}

// look finds the backend of a connection. The connection may be another on the
// way out: one within TLS, or one that knows the client behind a proxy. A context
// that ends closes it.
func (m *Mux) look(ctx context.Context, nc net.Conn) (Serve, net.Conn, []byte, error) {
	defer context.AfterFunc(ctx, func() { _ = nc.SetReadDeadline(time.Unix(1, 0)) })()
	first := sniffer{Conn: nc}
	if err := first.wait(m.cfg.Idle, m.cfg.Timeout); err != nil {
		return nil, nc, nil, err
	}
	inner := nc
	if m.trusted(nc.RemoteAddr()) {
		behind, err := first.proxyHeader()
		if err != nil {
			return nil, nc, nil, err
		}
		inner = behind
	}
	if m.cfg.TLS != nil {
		tc := tls.Server(&replay{Conn: inner, prefix: first.read}, m.cfg.TLS)
		if err := tc.HandshakeContext(ctx); err != nil {
			return nil, nc, nil, fmt.Errorf("TLS handshake: %w", err)
		}
		inner, first = tc, sniffer{Conn: tc}
	}
	h2, err := first.isHTTP2()
	if err != nil {
		return nil, nc, nil, err
	}
	if err := nc.SetReadDeadline(time.Time{}); err != nil {
		return nil, nc, nil, err
	}
	backend, name := m.backends.HTTP, "HTTP/1.1"
	if h2 {
		backend, name = m.backends.GRPC, "HTTP/2"
	}
	if backend == nil {
		return nil, nc, nil, fmt.Errorf("%s is not spoken here", name)
	}
	return backend, inner, first.read, ctx.Err()
}

func (m *Mux) trusted(addr net.Addr) bool {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok {
		return false
	}
	ip := tcp.AddrPort().Addr().Unmap()
	for _, p := range m.cfg.Proxies {
		if p.Contains(ip) {
			return true
		}
	}
	return false
}
