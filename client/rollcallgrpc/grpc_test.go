package rollcallgrpc_test

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	rollcall "github.com/rollcall-registry/rollcall/client"
	"github.com/rollcall-registry/rollcall/client/balance"
	"github.com/rollcall-registry/rollcall/client/clienttest"
	"github.com/rollcall-registry/rollcall/client/rollcallgrpc"
)

func TestMain(m *testing.M) {
	balancer.Register(rollcallgrpc.NewPolicy(rollcallgrpc.Policy, balance.WeightedRandom()))
	balancer.Register(rollcallgrpc.NewPolicy("by_key", balance.ConsistentHash()))
	balancer.Register(rollcallgrpc.NewPolicy("by_load", balance.LeastOutstanding()))
	goleak.VerifyTestMain(m)
}

func orders() rollcall.Service { return rollcall.Service{Name: "orders"} }

// server is a server of health checks, the smallest service there is.
type server struct {
	*rollcallgrpc.Server
	instance rollcall.Instance
	calls    atomic.Int64
}

func serve(t *testing.T, options ...rollcall.InstanceOption) *server {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := new(server)
	g := grpc.NewServer(grpc.UnaryInterceptor(func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		s.calls.Add(1)
		return next(ctx, req)
	}))
	grpc_health_v1.RegisterHealthServer(g, health.NewServer())
	s.Server = rollcallgrpc.NewServer(g)
	at := netip.MustParseAddrPort(l.Addr().String())
	s.instance = rollcall.NewInstance(at.Addr().String(), at.Port(), options...)
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	t.Cleanup(func() {
		g.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return s
}

// dial connects to orders by way of a client that is closed, and seen to have no watch
// left, when the test ends.
func dial(t *testing.T, c *rollcall.Client, target string, options ...grpc.DialOption) grpc_health_v1.HealthClient {
	t.Helper()
	conn, err := grpc.NewClient(target, append(options,
		grpc.WithResolvers(rollcallgrpc.NewResolver(c)), grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
		if n := c.Status().Watches; n != 0 {
			t.Errorf("%d watches are left", n)
		}
	})
	return grpc_health_v1.NewHealthClient(conn)
}

// call makes a call and returns who answered.
func call(ctx context.Context, h grpc_health_v1.HealthClient) (addr string, err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	var p peer.Peer
	_, err = h.Check(ctx, &grpc_health_v1.HealthCheckRequest{}, grpc.Peer(&p))
	if err != nil {
		return "", err
	}
	return p.Addr.String(), nil
}

// until calls until what it is told of the answers is as wanted.
func until(t *testing.T, h grpc_health_v1.HealthClient, done func(addr string, err error) bool) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for {
		addr, err := call(t.Context(), h)
		if done(addr, err) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("it does not happen; the last call: %q, %v", addr, err)
		}
	}
}

func TestCallsGoByWeight(t *testing.T) {
	r := clienttest.New()
	light, heavy, drained := serve(t), serve(t, rollcall.Weighted(3)), serve(t, rollcall.Weighted(0))
	sick := rollcall.NewInstance("127.0.0.1", 1)
	sick.Healthy = false
	r.Set(orders(), light.instance, heavy.instance, drained.instance, sick)
	h := dial(t, r.Client(t), "rollcall:///orders")
	seen := map[string]bool{}
	until(t, h, func(addr string, err error) bool { // both are connected
		if err != nil {
			t.Fatal(err)
		}
		seen[addr] = true
		return len(seen) == 2
	})
	light.calls.Store(0)
	heavy.calls.Store(0)
	const n = 2000
	for range n {
		if _, err := call(t.Context(), h); err != nil {
			t.Fatal(err)
		}
	}
	if got := heavy.calls.Load(); got < n*3/4-120 || got > n*3/4+120 {
		t.Errorf("the one with weight 3 of 4 got %d of %d calls", got, n)
	}
	if got := drained.calls.Load(); got != 0 {
		t.Errorf("the one without weight got %d calls", got)
	}
}

// TestWeightsChange without a new connection.
func TestWeightsChange(t *testing.T) {
	r := clienttest.New()
	a, b := serve(t), serve(t)
	r.Set(orders(), a.instance, b.instance)
	h := dial(t, r.Client(t), "rollcall:///orders")
	until(t, h, func(addr string, err error) bool { return addr == a.instance.Addr() })
	b.instance.Weight = 0
	r.Set(orders(), a.instance, b.instance)
	since := 0
	until(t, h, func(addr string, err error) bool {
		if since++; addr != a.instance.Addr() {
			since = 0
		}
		return since > 50
	})
}

// TestRollingRestart replaces all servers while calls are made, none of which fails.
func TestRollingRestart(t *testing.T) {
	for _, policy := range []string{rollcallgrpc.Policy, "by_load", "by_key", "round_robin"} {
		t.Run(policy, func(t *testing.T) {
			r := clienttest.New()
			old := serve(t)
			r.Set(orders(), old.instance)
			h := dial(t, r.Client(t), "rollcall:///orders", grpc.WithDisableServiceConfig(),
				grpc.WithDefaultServiceConfig(fmt.Sprintf(`{"loadBalancingConfig":[{%q:{}}]}`, policy)))
			for range 5 {
				next := serve(t)
				r.Set(orders(), old.instance, next.instance)
				until(t, h, func(addr string, err error) bool {
					if err != nil {
						t.Fatal(err)
					}
					return policy == "by_key" || addr == next.instance.Addr()
				})
				r.Set(orders(), next.instance) // as a drain does
				until(t, h, func(addr string, err error) bool {
					if err != nil {
						t.Fatal(err)
					}
					return addr == next.instance.Addr()
				})
				if err := old.Shutdown(t.Context()); err != nil {
					t.Fatal(err)
				}
				old = next
			}
		})
	}
}

func TestKeysStick(t *testing.T) {
	r := clienttest.New()
	r.Set(orders(), serve(t).instance, serve(t).instance, serve(t).instance)
	h := dial(t, r.Client(t), "rollcall:///orders", grpc.WithDisableServiceConfig(),
		grpc.WithDefaultServiceConfig(`{"loadBalancingConfig":[{"by_key":{}}]}`))
	seen := map[string]bool{}
	until(t, h, func(addr string, err error) bool {
		seen[addr] = true
		return len(seen) == 3
	})
	owner := map[uint64]string{}
	for range 5 {
		for key := range uint64(20) {
			addr, err := call(rollcallgrpc.WithKey(t.Context(), key), h)
			if err != nil {
				t.Fatal(err)
			}
			if had := owner[key]; had != "" && had != addr {
				t.Errorf("key %d went to %s and then to %s", key, had, addr)
			}
			owner[key] = addr
		}
	}
}

func TestNobodyThere(t *testing.T) {
	r := clienttest.New()
	h := dial(t, r.Client(t), "rollcall:///orders")
	_, err := call(t.Context(), h)
	if status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "no instances") {
		t.Errorf("got %v", err)
	}
	r.Set(orders(), serve(t).instance)
	until(t, h, func(_ string, err error) bool { return err == nil })
	sick := rollcall.NewInstance("127.0.0.1", 1)
	sick.Healthy = false
	r.Set(orders(), sick)
	until(t, h, func(_ string, err error) bool {
		return status.Code(err) == codes.Unavailable && strings.Contains(err.Error(), "no healthy instances")
	})
}

func TestRefusalIsTold(t *testing.T) {
	r := clienttest.New()
	r.Fail(rollcall.ErrForbidden)
	h := dial(t, r.Client(t), "rollcall:///orders")
	_, err := call(t.Context(), h)
	if status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "forbidden") {
		t.Errorf("got %v", err)
	}
	r.Set(orders(), serve(t).instance)
	r.Fail(nil)
	until(t, h, func(_ string, err error) bool { return err == nil })
}

func TestPortFromMetadata(t *testing.T) {
	r := clienttest.New()
	s := serve(t)
	in := rollcall.NewInstance("127.0.0.1", 1, rollcall.Tagged("gRPC_port", fmt.Sprint(s.instance.Port)))
	r.Set(orders(), in)
	c := r.Client(t)
	conn, err := grpc.NewClient(rollcallgrpc.Target(orders()), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithResolvers(rollcallgrpc.NewResolver(c, rollcallgrpc.PortFromMetadata("gRPC_port"))))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := call(t.Context(), grpc_health_v1.NewHealthClient(conn)); err != nil {
		t.Error(err)
	}
}

func TestBadTarget(t *testing.T) {
	c := clienttest.New().Client(t)
	conn, err := grpc.NewClient("rollcall://a/b/c/d", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithResolvers(rollcallgrpc.NewResolver(c)))
	if err != nil {
		return
	}
	defer conn.Close()
	if _, err := call(t.Context(), grpc_health_v1.NewHealthClient(conn)); err == nil || !strings.Contains(err.Error(), "is no target") {
		t.Errorf("got %v", err)
	}
}

// TestShutdownEndsCalls when they take too long.
func TestShutdownEndsCalls(t *testing.T) {
	r := clienttest.New()
	s := serve(t)
	r.Set(orders(), s.instance)
	h := dial(t, r.Client(t), "rollcall:///orders")
	stream, err := h.Watch(t.Context(), &grpc_health_v1.HealthCheckRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Shutdown(ctx); err == nil {
		t.Error("a call that goes on was not told")
	}
	if _, err := stream.Recv(); err == nil {
		t.Error("the stream goes on")
	}
}

func Example() {
	registry := clienttest.New() // a program uses rollcall.New(rollcall.WithServers(…))
	client, err := rollcall.New(registry.Option())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()

	conn, err := grpc.NewClient("rollcall://public/DEFAULT_GROUP/orders",
		grpc.WithResolvers(rollcallgrpc.NewResolver(client)),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	fmt.Println(conn.Target())
	// Output: rollcall://public/DEFAULT_GROUP/orders
}
