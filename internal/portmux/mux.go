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
	// Crowded, if set, is called for each one more, by many goroutines.
	Crowded func()
	// Proxies are the ranges from which a PROXY header is believed; none is read
	// from others.
	Proxies []netip.Prefix
	// TLS, if set, serves clients that begin with a handshake. Without it such a
	// beginning is taken for HTTP/1.1, which does not know it.
	TLS *TLS
}

// Backends are the protocols of a port. A nil one is not spoken there.
type Backends struct{ HTTP, GRPC Serve }

// Mux tells the protocols of connections apart. Create it with [New].
type Mux struct {
	cfg      Config
	backends Backends
	tls      *tls.Config // of this port; nil without TLS
	log      *slog.Logger
	pending  chan struct{} // holds a token for each connection that is looked at
}

// The protocols by the names that TLS has for them.
const (
	protocolHTTP1 = "http/1.1"
	protocolHTTP2 = "h2"
)

// protocols are those of the backends that there are.
func (b Backends) protocols() (names []string) {
	if b.HTTP != nil {
		names = append(names, protocolHTTP1)
	}
	if b.GRPC != nil {
		names = append(names, protocolHTTP2)
	}
	return names
}

// of returns the backend that speaks a protocol.
func (b Backends) of(protocol string) (Serve, error) {
	backend := b.HTTP
	if protocol == protocolHTTP2 {
		backend = b.GRPC
	}
	if backend == nil {
		return nil, fmt.Errorf("%s is not spoken here", protocol)
	}
	return backend, nil
}

// New returns a mux. It starts nothing.
func New(cfg Config, backends Backends, logger *slog.Logger) *Mux {
	m := &Mux{
		cfg: cfg, backends: backends, log: logger.With("component", "portmux"),
		pending: make(chan struct{}, cfg.MaxPending),
	}
	if cfg.TLS != nil {
		m.tls = cfg.TLS.settings(backends.protocols())
	}
	return m
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
		if m.cfg.Crowded != nil {
			m.cfg.Crowded()
		}
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
// that ends makes it fail.
func (m *Mux) look(ctx context.Context, nc net.Conn) (Serve, net.Conn, []byte, error) {
	defer context.AfterFunc(ctx, func() { _ = nc.SetDeadline(time.Unix(1, 0)) })()
	first := sniffer{Conn: nc}
	if err := first.wait(ctx, m.cfg.Idle, m.cfg.Timeout); err != nil {
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
	inner, protocol, prefix, err := m.protocol(ctx, inner, &first)
	if err != nil {
		return nil, nc, nil, err
	}
	backend, err := m.backends.of(protocol)
	if err != nil {
		return nil, nc, nil, err
	}
	if err := nc.SetDeadline(time.Time{}); err != nil {
		return nil, nc, nil, err
	}
	return backend, inner, prefix, ctx.Err()
}

// protocol finds out what is spoken on nc, of which first has begun to read. It
// returns the connection on which it is spoken, and what has been read from that.
func (m *Mux) protocol(ctx context.Context, nc net.Conn, first *sniffer) (inner net.Conn, name string, prefix []byte, err error) {
	if m.tls != nil {
		secure, err := first.isTLS()
		if err != nil {
			return nil, "", nil, err
		}
		if secure {
			return m.protocolWithin(ctx, &replay{Conn: nc, prefix: first.read})
		}
	}
	name, err = first.protocol()
	if err == nil && m.tls != nil {
		m.cfg.TLS.counts.clear.Add(1)
		if m.cfg.TLS.cfg.Only {
			refuse(first.Conn, name, first.read)
			err = errClearText
		}
	}
	return nc, name, first.read, err
}

// protocolWithin makes the handshake and finds out what is spoken within TLS.
func (m *Mux) protocolWithin(ctx context.Context, nc net.Conn) (inner net.Conn, name string, prefix []byte, err error) {
	tc, err := m.cfg.TLS.handshake(ctx, nc, m.tls, m.cfg.Timeout)
	if err != nil {
		return nil, "", nil, err
	}
	if agreed := tc.ConnectionState().NegotiatedProtocol; agreed != "" {
		return tc, agreed, nil, nil
	}
	first := sniffer{Conn: tc}
	name, err = first.protocol()
	return tc, name, first.read, err
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
