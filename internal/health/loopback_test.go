package health

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rollcall-registry/rollcall/internal/registry"
)

// TestRealSockets runs the checker over real instances that fail while they are
// watched: one stops listening, one answers an error, and one was never there.
func TestRealSockets(t *testing.T) {
	plain, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = plain.Close() }()
	var broken atomic.Bool
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/ready" || broken.Load() {
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	defer web.Close()

	f := newField(t)
	cfg := DefaultConfig()
	cfg.ProbeMinInterval, cfg.ProbeTimeout = 100*time.Millisecond, 5*time.Second
	f.checker = NewChecker(cfg, f.store, f, slog.New(slog.DiscardHandler))
	f.checker.random = func() float64 { return 0 } // the first probes after 2 s
	f.out.set(f.checker)
	tcp, asked, absent := persistent("tcp", 0), persistent("web", 0), persistent("tcp", 0)
	place(tcp, plain.Addr())
	place(asked, web.Listener.Addr())
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = closed.Close()
	place(absent, closed.Addr())
	for _, r := range []*registry.Register{tcp, asked, absent} {
		apply(t, f.store, r)
	}
	c := registry.NewCluster(registry.DefaultCluster)
	c.Checker = registry.HealthCheck{Type: registry.CheckHTTP, Path: "/ready", ExpectedCode: http.StatusOK}
	apply(t, f.store, &registry.SetCluster{Service: asked.Service, Cluster: *c})

	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- f.checker.Run(ctx) }()
	eventually(t, func() bool {
		return f.checker.Checks(registry.CheckTCP) >= 2 && f.checker.Checks(registry.CheckHTTP) >= 1
	})
	eventually(t, func() bool { return !f.healthy(absent.Service, absent.Instance.Key()) })
	if !f.healthy(tcp.Service, tcp.Instance.Key()) || !f.healthy(asked.Service, asked.Instance.Key()) {
		t.Error("an instance that answers is unhealthy")
	}
	broken.Store(true)
	_ = plain.Close()
	eventually(t, func() bool {
		return !f.healthy(tcp.Service, tcp.Instance.Key()) && !f.healthy(asked.Service, asked.Instance.Key())
	})
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func place(r *registry.Register, at net.Addr) {
	addr := at.(*net.TCPAddr)
	r.Instance.IP, r.Instance.Port = addr.IP.String(), int32(addr.Port)
}

// eventually waits for a condition in real time.
func eventually(t *testing.T, met func() bool) {
	t.Helper()
	deadline := time.After(30 * time.Second)
	for !met() {
		select {
		case <-deadline:
			t.Fatal("not met after 30 s")
		case <-time.After(5 * time.Millisecond):
		}
	}
}
