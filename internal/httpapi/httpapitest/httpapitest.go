// Package httpapitest helps to test handlers: a server on a free port, requests
// replayed on an in-memory connection, for benchmarks, and a core to answer from.
package httpapitest

import (
	"context"
	"io"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/rollcall-registry/rollcall/internal/httpapi"
)

// Groups are the manners of the v1 paths, for routers in tests.
func Groups() []httpapi.Group {
	return []httpapi.Group{
		{Prefix: "/v1/ns", Strict: true, NoRoute: httpapi.NoSuchAPI, WrongMethod: httpapi.NoSuchAPI},
		{NoRoute: httpapi.NotFound, WrongMethod: httpapi.MethodNotSupported},
	}
}

// Server returns a server of the given routes under /nacos with Groups and cfg.
func Server(tb testing.TB, cfg httpapi.Config, hooks httpapi.Hooks, routes ...httpapi.Route) *httpapi.Server {
	tb.Helper()
	router, err := httpapi.NewRouter(cfg.ContextPath, hooks, Groups(), routes)
	if err != nil {
		tb.Fatal(err)
	}
	server, err := httpapi.New(cfg, router, slog.New(slog.DiscardHandler))
	if err != nil {
		tb.Fatal(err)
	}
	return server
}

// Start serves on a free port of the loopback until the test ends, and returns
// the address.
func Start(tb testing.TB, server *httpapi.Server) (address string) {
	tb.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- Serve(ctx, server, ln) }()
	tb.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			tb.Error(err)
		}
	})
	return ln.Addr().String()
}

// Serve accepts connections from ln until ctx ends, and returns nil when the last one
// has ended. It returns an error if ln fails.
func Serve(ctx context.Context, server *httpapi.Server, ln net.Listener) error {
	defer context.AfterFunc(ctx, func() { _ = ln.Close() })()
	var conns sync.WaitGroup
	defer conns.Wait()
	for {
		nc, err := ln.Accept()
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		conns.Go(func() { server.ServeConn(ctx, nc, nil) })
	}
}

// Replay serves request n times on one in-memory connection, each time after the
// answer to the one before, and returns the last answer.
func Replay(server *httpapi.Server, request []byte, n int) (answer []byte) {
	c := &replay{request: request, left: n, answer: make([]byte, 0, 4096)}
	server.ServeConn(context.Background(), c, nil)
	return c.answer
}

// replay is a connection whose other end sends the same request over and over.
type replay struct {
	request []byte
	at      int // of request
	left    int
	answer  []byte
	fresh   bool // the next write begins an answer
}

func (c *replay) Read(p []byte) (int, error) {
	if c.left == 0 {
		return 0, io.EOF
	}
	n := copy(p, c.request[c.at:])
	if c.at += n; c.at == len(c.request) {
		c.at, c.left, c.fresh = 0, c.left-1, true
	}
	return n, nil
}

func (c *replay) Write(p []byte) (int, error) {
	if c.fresh {
		c.answer, c.fresh = c.answer[:0], false
	}
	c.answer = append(c.answer, p...)
	return len(p), nil
}

func (c *replay) Close() error                     { return nil }
func (c *replay) LocalAddr() net.Addr              { return &net.UnixAddr{} }
func (c *replay) RemoteAddr() net.Addr             { return &net.UnixAddr{} }
func (c *replay) SetDeadline(time.Time) error      { return nil }
func (c *replay) SetReadDeadline(time.Time) error  { return nil }
func (c *replay) SetWriteDeadline(time.Time) error { return nil }
