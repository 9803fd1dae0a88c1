package transporttest

import (
	"context"
	"net"
	"sync"
	"testing"
)

// Transport serves the connections that it is given, until the context of Run ends.
type Transport interface {
	Run(ctx context.Context) error
	// ServeConn takes over a connection. It may return before that ends.
	ServeConn(ctx context.Context, nc net.Conn, prefix []byte)
}

// Serve runs a transport on a free port of loopback, until it is stopped or the test
// ends.
func Serve(t *testing.T, s Transport) Server {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := s.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	running.Go(func() {
		for {
			nc, err := ln.Accept()
			if err != nil {
				return
			}
			running.Go(func() { s.ServeConn(ctx, nc, nil) })
		}
	})
	stop := func() {
		cancel()
		_ = ln.Close()
		running.Wait()
	}
	t.Cleanup(stop)
	return Server{Address: ln.Addr().String(), Stop: stop}
}
