// Package servertest runs real servers for tests: on port 0, with a data
// directory of their own, stopped when the test ends.
package servertest

import (
	"context"
	"log/slog"
	"testing"

	"github.com/rollcall-registry/rollcall/server"
)

// Server is a running server.
type Server struct {
	*server.Server
	dir  string
	stop context.CancelFunc
	done chan error
}

// Option changes the configuration of a server before it is made.
type Option func(*server.Config)

// WithDataDir gives the server a directory that outlives it.
func WithDataDir(dir string) Option { return func(c *server.Config) { c.DataDir = dir } }

// New starts a server on loopback and waits until it is ready. The test fails
// when it cannot start, or does not stop in order.
func New(t testing.TB, options ...Option) *Server {
	t.Helper()
	cfg := server.DefaultConfig()
	cfg.Listen = []string{"127.0.0.1:0"}
	cfg.UDP.Host = "127.0.0.1"
	cfg.DataDir = t.TempDir()
	for _, option := range options {
		option(&cfg)
	}
	srv, err := server.New(cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatalf("make a server: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &Server{Server: srv, dir: cfg.DataDir, stop: cancel, done: make(chan error, 1)}
	go func() { s.done <- srv.Run(ctx) }()
	select {
	case <-srv.Ready():
	case err := <-s.done:
		cancel()
		t.Fatalf("start a server: %v", err)
	}
	t.Cleanup(func() { s.Stop(t) })
	return s
}

// Stop ends the server and waits for it. Stopping it again does nothing.
func (s *Server) Stop(t testing.TB) {
	t.Helper()
	if s.stop == nil {
		return
	}
	s.stop()
	s.stop = nil
	if err := <-s.done; err != nil {
		t.Errorf("stop the server: %v", err)
	}
}

// URL returns the base URL of the HTTP APIs, without a trailing slash.
func (s *Server) URL() string { return "http://" + s.Addr() }

// Addr returns host:port of the HTTP listener.
func (s *Server) Addr() string { return s.Addrs().HTTP[0].String() }

// DataDir returns the server's data directory.
func (s *Server) DataDir() string { return s.dir }
