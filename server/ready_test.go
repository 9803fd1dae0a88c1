package server

import (
	"context"
	"log/slog"
	"testing"
)

// TestReadiness follows what a server tells a load balancer from its making to
// its end.
func TestReadiness(t *testing.T) {
	t.Parallel()
	cfg := DefaultConfig()
	cfg.Listen = []string{"127.0.0.1:0", "127.0.0.1:0"}
	cfg.UDP.Host = "127.0.0.1"
	cfg.DataDir = t.TempDir()
	s, err := New(cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.readiness(); err == nil || err.Error() != "starting" {
		t.Errorf("before Run: %v, want starting", err)
	}
	if got := s.Addrs(); len(got.HTTP) != 0 {
		t.Errorf("before Run it has the addresses %v", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	<-s.Ready()
	if err := s.readiness(); err != nil {
		t.Errorf("when ready: %v", err)
	}
	if got := s.Addrs(); len(got.HTTP) != 2 || got.HTTP[0].String() == got.HTTP[1].String() || got.UDP.Port() == 0 {
		t.Errorf("addresses %v, want two of HTTP and one of UDP", got)
	}
	cancel()
	if err := <-done; err != nil {
		t.Errorf("Run: %v", err)
	}
	if err := s.readiness(); err == nil || err.Error() != "stopping" {
		t.Errorf("after the end: %v, want stopping", err)
	}
}
