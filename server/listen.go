package server

import (
	"context"
	"fmt"
	"net"
	"strconv"

	"golang.org/x/sync/errgroup"

	"github.com/rollcall-registry/rollcall/internal/portmux"
)

const (
	// grpcOff is the value of Config.GRPCListen that opens no extra port.
	grpcOff = "off"
	// grpcOffset is what SDKs of 2.x and 3.x add to the port that they are given.
	grpcOffset = 1000
	maxPort    = 65535
)

// listeners are the open ports. grpc is nil when there is none.
type listeners struct {
	clients []net.Listener
	grpc    net.Listener
}

// listen opens all ports, or none.
func (s *Server) listen(ctx context.Context) (*listeners, error) {
	l := &listeners{}
	for _, address := range s.cfg.Listen {
		ln, err := open(ctx, "listen", address)
		if err != nil {
			l.close()
			return nil, err
		}
		l.clients = append(l.clients, ln)
	}
	var err error
	if l.grpc, err = s.listenGRPC(ctx, l.clients[0].Addr()); err != nil {
		l.close()
		return nil, err
	}
	return l, nil
}

// listenGRPC opens the extra port for gRPC. When the operator named neither it
// nor the port that it follows from, it is left out if it cannot be had.
func (s *Server) listenGRPC(ctx context.Context, first net.Addr) (net.Listener, error) {
	switch address := s.cfg.GRPCListen; address {
	case grpcOff:
		return nil, nil
	case "":
		host, port, err := net.SplitHostPort(s.cfg.Listen[0])
		if err != nil {
			return nil, err
		}
		_, bound := hostPort(first)
		if bound+grpcOffset > maxPort {
			return nil, fmt.Errorf("grpc-listen: %d more than port %d is no port; name another address, or write %s", grpcOffset, bound, grpcOff)
		}
		ln, err := open(ctx, "grpc-listen", net.JoinHostPort(host, strconv.Itoa(bound+grpcOffset)))
		if err != nil && port == "0" {
			s.log.Info("no extra port for gRPC", "err", err)
			return nil, nil
		}
		return ln, err
	default:
		return open(ctx, "grpc-listen", address)
	}
}

func open(ctx context.Context, setting, address string) (net.Listener, error) {
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w; is another server running there? The setting is %s", address, err, setting)
	}
	return ln, nil
}

func (l *listeners) close() {
	for _, ln := range l.clients {
		_ = ln.Close()
	}
	if l.grpc != nil {
		_ = l.grpc.Close()
	}
}

func (l *listeners) addrs() (addrs Addrs) {
	for _, ln := range l.clients {
		addrs.HTTP = append(addrs.HTTP, ln.Addr())
	}
	if l.grpc != nil {
		addrs.GRPC = l.grpc.Addr()
	}
	return addrs
}

// serve serves all ports until ctx ends. They stop together, so that they share
// the time that running requests are given.
func (l *listeners) serve(ctx context.Context, p *parts, s *Server) error {
	both := portmux.New(portConfig(s.cfg, p), portmux.Backends{HTTP: p.http.ServeConn, GRPC: p.conns.ServeConn}, s.log)
	only := portmux.New(portConfig(s.cfg, p), portmux.Backends{GRPC: p.conns.ServeConn}, s.log)
	serving, ctx := errgroup.WithContext(ctx)
	serve := func(mux *portmux.Mux, ln net.Listener) {
		serving.Go(func() error {
			if err := mux.Serve(ctx, ln); err != nil {
				return fmt.Errorf("%s: %w", ln.Addr(), err)
			}
			return nil
		})
	}
	for _, ln := range l.clients {
		serve(both, ln)
	}
	if l.grpc != nil {
		serve(only, l.grpc)
	}
	return serving.Wait()
}

// portConfig takes what the HTTP settings say of connections, which hold for a
// port whatever is spoken on it.
func portConfig(cfg Config, p *parts) portmux.Config {
	c := portmux.Config{
		Timeout: cfg.HTTP.HeaderTimeout, Idle: cfg.HTTP.IdleTimeout, MaxPending: max(cfg.HTTP.MaxConns, 1), TLS: p.tls,
		Crowded: func() { p.crowded.Add(1) },
	}
	if cfg.HTTP.ProxyProtocol {
		c.Proxies = cfg.HTTP.TrustedProxies
	}
	return c
}
