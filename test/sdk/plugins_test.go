package sdk

import (
	"context"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"

	rollcall "github.com/rollcall-registry/rollcall/client"
	"github.com/rollcall-registry/rollcall/client/lifecycle"
	"github.com/rollcall-registry/rollcall/client/rollcallgrpc"
	"github.com/rollcall-registry/rollcall/client/rollcallhttp"
	"github.com/rollcall-registry/rollcall/servertest"
)

// backend is one process of a service, as far as others can tell: it has a client and a
// server of its own.
type backend struct {
	stop  context.CancelFunc
	ended chan error
}

// startBackend runs a server until it is stopped. Its drain is short, since clients here
// are pushed to.
func startBackend(t *testing.T, server lifecycle.Server, options []rollcall.Option) *backend {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := dial(t, options...)
	ctx, stop := context.WithCancel(t.Context())
	b := &backend{stop, make(chan error, 1)}
	go func() {
		b.ended <- lifecycle.Run(ctx, c, orders, l, server, lifecycle.WithDrain(time.Second, nil))
	}()
	return b
}

func (b *backend) end(t *testing.T) {
	t.Helper()
	b.stop()
	select {
	case err := <-b.ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(patience):
		t.Fatal("a server does not end")
	}
}

// calls makes calls one after another until it is stopped, and counts them.
type calls struct{ made, failed atomic.Int64 }

func (c *calls) run(t *testing.T, call func() error) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			if err := call(); err != nil && ctx.Err() == nil {
				c.failed.Add(1)
				t.Log(err)
			}
			c.made.Add(1)
		}
	}()
	return func() { cancel(); <-ended }
}

// rollingRestart replaces each of three backends while calls are made, none of which
// may fail.
func rollingRestart(t *testing.T, server *servertest.Server, options []rollcall.Option, fresh func() lifecycle.Server, call func() error) {
	watcher, err := dial(t, rollcall.WithServers(server.Addr()), rollcall.WithProtocol(rollcall.GRPC), rollcall.WithGRPCPortOffset(0)).Watch(within(t), orders)
	if err != nil {
		t.Fatal(err)
	}
	running := make([]*backend, 3)
	for n := range running {
		running[n] = startBackend(t, fresh(), options)
	}
	see(t, watcher, "all backends", count(3))
	if err := call(); err != nil {
		t.Fatal(err)
	}
	var c calls
	stop := c.run(t, call)
	for n := range running {
		next := startBackend(t, fresh(), options)
		see(t, watcher, "one more", count(4))
		running[n].end(t)
		see(t, watcher, "one less", count(3))
		running[n] = next
	}
	stop()
	for _, b := range running {
		b.end(t)
	}
	if failed, made := c.failed.Load(), c.made.Load(); failed > 0 || made == 0 {
		t.Errorf("%d of %d calls failed", failed, made)
	}
}

func TestRollingRestartOfGRPC(t *testing.T) {
	protocols(t, func(t *testing.T, p rollcall.Protocol) {
		server := servertest.New(t)
		options := onePort(p, server.Addr())
		conn, err := grpc.NewClient(rollcallgrpc.Target(orders),
			grpc.WithResolvers(rollcallgrpc.NewResolver(dial(t, options...))), grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		h := grpc_health_v1.NewHealthClient(conn)
		rollingRestart(t, server, options, func() lifecycle.Server {
			s := grpc.NewServer()
			grpc_health_v1.RegisterHealthServer(s, health.NewServer())
			return rollcallgrpc.NewServer(s)
		}, func() error {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			_, err := h.Check(ctx, &grpc_health_v1.HealthCheckRequest{}, grpc.WaitForReady(false))
			return err
		})
	})
}

func TestRollingRestartOfHTTP(t *testing.T) {
	protocols(t, func(t *testing.T, p rollcall.Protocol) {
		server := servertest.New(t)
		options := onePort(p, server.Addr())
		transport := rollcallhttp.NewTransport(dial(t, options...), rollcallhttp.WithBase(&http.Transport{}))
		defer transport.Close()
		h := &http.Client{Transport: transport, Timeout: 5 * time.Second}
		defer h.CloseIdleConnections()
		rollingRestart(t, server, options, func() lifecycle.Server {
			return &http.Server{ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})}
		}, func() error {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://orders.rollcall/", nil)
			if err != nil {
				return err
			}
			resp, err := h.Do(req)
			if err != nil {
				return err
			}
			defer resp.Body.Close()
			_, err = io.Copy(io.Discard, resp.Body)
			return err
		})
	})
}
