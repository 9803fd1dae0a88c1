package h2

import (
	"context"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/rollcall-registry/rollcall/internal/grpcapi/transport"
	"github.com/rollcall-registry/rollcall/internal/grpcapi/transport/transporttest"
)

// start serves on a free port of loopback.
func start(t *testing.T, h transport.Handler, limits transporttest.Limits) transporttest.Server {
	t.Helper()
	return run(t, New(configOf(limits), h, slog.New(slog.DiscardHandler)))
}

func configOf(l transporttest.Limits) Config {
	return Config{
		MaxConns: l.Conns, MaxConnsPerIP: l.ConnsPerIP, MaxMessageBytes: l.Message, MaxMessageMemory: 64 << 20,
		MaxStreams: l.Streams, Keepalive: time.Minute,
	}
}

// server is what serves connections.
type server interface {
	Run(context.Context) error
	ServeConn(ctx context.Context, nc net.Conn, prefix []byte)
}

// run runs a server on a free port of loopback until the test ends.
func run(t *testing.T, s server) transporttest.Server {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		if err := s.Run(ctx); err != nil {
			t.Error(err)
		}
	}()
	go func() {
		for {
			nc, err := ln.Accept()
			if err != nil {
				return
			}
			go s.ServeConn(ctx, nc, nil)
		}
	}()
	stop := func() {
		cancel()
		_ = ln.Close()
		<-stopped
	}
	t.Cleanup(stop)
	return transporttest.Server{Address: ln.Addr().String(), Stop: stop}
}

func TestTransport(t *testing.T) { transporttest.Run(t, start) }
