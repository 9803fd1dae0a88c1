package lifecycle_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"

	rollcall "github.com/rollcall-registry/rollcall/client"
	"github.com/rollcall-registry/rollcall/client/clienttest"
	"github.com/rollcall-registry/rollcall/client/lifecycle"
	"github.com/rollcall-registry/rollcall/client/rollcallgrpc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func orders() rollcall.Service { return rollcall.Service{Name: "orders"} }

// fakeServer serves until it is shut down or told to fail.
type fakeServer struct {
	failure chan error
	once    sync.Once
	busy    time.Duration // how long its last request takes
}

func newFake() *fakeServer { return &fakeServer{failure: make(chan error, 1)} }

func (s *fakeServer) Serve(net.Listener) error { return <-s.failure }

func (s *fakeServer) Shutdown(ctx context.Context) error {
	s.once.Do(func() { s.failure <- http.ErrServerClosed })
	timer := time.NewTimer(s.busy)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// fakeListener is one with an address and nothing else.
type fakeListener struct {
	net.Listener
	addr net.Addr
}

func (l fakeListener) Addr() net.Addr { return l.addr }

func listener(ip string) net.Listener {
	return fakeListener{addr: &net.TCPAddr{IP: net.ParseIP(ip), Port: 8080}}
}

// run is a run of a fake server, in a bubble.
type run struct {
	registry *clienttest.Registry
	stop     context.CancelFunc
	result   chan error
	began    time.Time
}

func start(t *testing.T, l net.Listener, s lifecycle.Server, options ...lifecycle.Option) *run {
	r := &run{registry: clienttest.New(), result: make(chan error, 1), began: time.Now()}
	var ctx context.Context
	ctx, r.stop = context.WithCancel(t.Context())
	c := r.registry.Client(t)
	go func() { r.result <- lifecycle.Run(ctx, c, orders(), l, s, options...) }()
	return r
}

// weights returns the weights of the instances that are registered.
func (r *run) weights() string {
	synctest.Wait()
	text := ""
	for _, in := range r.registry.Instances(orders()) {
		text += fmt.Sprintf("%s=%v ", in.Addr(), in.Weight)
	}
	return text
}

func want(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		draining := false
		r := start(t, listener("192.0.2.1"), newFake(), lifecycle.WithDrain(3*time.Second, func() { draining = true }))
		want(t, r.weights(), "192.0.2.1:8080=1 ")
		r.stop()
		want(t, r.weights(), "192.0.2.1:8080=0 ")
		if !draining {
			t.Error("nobody said that it drains")
		}
		time.Sleep(2999 * time.Millisecond)
		want(t, r.weights(), "192.0.2.1:8080=0 ")
		time.Sleep(time.Millisecond)
		want(t, r.weights(), "")
		if err := <-r.result; err != nil {
			t.Error(err)
		}
	})
}

func TestReadyFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ready atomic.Bool
		r := start(t, listener("192.0.2.1"), newFake(), lifecycle.WithReady(func(context.Context) error {
			if !ready.Load() {
				return errors.New("the cache is cold")
			}
			return nil
		}))
		time.Sleep(time.Minute)
		want(t, r.weights(), "")
		ready.Store(true)
		time.Sleep(100 * time.Millisecond)
		want(t, r.weights(), "192.0.2.1:8080=1 ")
		r.stop()
		if err := <-r.result; err != nil {
			t.Error(err)
		}
	})
}

func TestNeverReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, listener("192.0.2.1"), newFake(), lifecycle.WithReady(func(context.Context) error { return errors.New("no") }))
		time.Sleep(time.Second)
		r.stop()
		if err := <-r.result; err != nil {
			t.Error(err)
		}
	})
}

// TestReadyPanics: the server is shut down, and the reason told.
func TestReadyPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, listener("192.0.2.1"), newFake(), lifecycle.WithReady(func(context.Context) error { panic("no cache") }))
		if err := <-r.result; err == nil || !strings.Contains(err.Error(), "WithReady panicked: no cache") {
			t.Errorf("got %v", err)
		}
		want(t, r.weights(), "")
	})
}

// TestNil: what is missing is told.
func TestNil(t *testing.T) {
	err := lifecycle.Run(t.Context(), nil, orders(), nil, nil)
	if !errors.Is(err, rollcall.ErrInvalidArgument) {
		t.Fatalf("got %v", err)
	}
	for _, part := range []string{"client", "listener", "server"} {
		if !strings.Contains(err.Error(), "the "+part+" of Run is nil") {
			t.Errorf("nothing of the %s in: %v", part, err)
		}
	}
}

// TestServerFails has nothing to drain.
func TestServerFails(t *testing.T) {
	for name, fail := range map[string]func(*run, *fakeServer){
		"while it serves": func(_ *run, s *fakeServer) { s.failure <- errors.New("no more files") },
		"while it drains": func(r *run, s *fakeServer) {
			r.stop()
			synctest.Wait()
			s.failure <- errors.New("no more files")
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newFake()
				r := start(t, listener("192.0.2.1"), s, lifecycle.WithDrain(time.Hour, nil))
				synctest.Wait()
				began := time.Now()
				fail(r, s)
				err := <-r.result
				if err == nil || err.Error() != "serve: no more files" {
					t.Errorf("got %v", err)
				}
				if took := time.Since(began); took > time.Second {
					t.Errorf("it took %v", took)
				}
				want(t, r.weights(), "")
			})
		})
	}
}

// TestRegistryIsAway: neither the beginning nor the end waits for it long.
func TestRegistryIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		registry := clienttest.New()
		registry.Stop()
		c := registry.Client(t)
		ctx, stop := context.WithCancel(t.Context())
		result := make(chan error, 1)
		go func() { result <- lifecycle.Run(ctx, c, orders(), listener("192.0.2.1"), newFake()) }()
		time.Sleep(time.Minute)
		registry.Start()
		time.Sleep(10 * time.Second)
		if n := len(registry.Instances(orders())); n != 1 {
			t.Errorf("%d instances, want 1", n)
		}
		registry.Stop()
		began := time.Now()
		stop()
		if err := <-result; !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

func TestGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFake()
		s.busy = time.Hour
		r := start(t, listener("192.0.2.1"), s, lifecycle.WithDrain(0, nil), lifecycle.WithGrace(5*time.Second))
		synctest.Wait()
		r.stop()
		if err := <-r.result; !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		if took := time.Since(r.began); took != 5*time.Second {
			t.Errorf("it took %v, want 5s", took)
		}
	})
}

// What an HTTP server still does when its time is over is cut off.
func TestGraceCutsOff(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	asked, cut := make(chan struct{}), make(chan struct{})
	server := &http.Server{ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(asked)
		<-r.Context().Done()
		close(cut)
	})}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	result := make(chan error, 1)
	go func() {
		result <- lifecycle.Run(ctx, clienttest.New().Client(t), orders(), l, server, lifecycle.WithDrain(0, nil), lifecycle.WithGrace(0))
	}()
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: orders\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	<-asked
	stop()
	if err := <-result; !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	select {
	case <-cut:
	case <-time.After(10 * time.Second):
		t.Error("the request goes on")
	}
}

func TestAddresses(t *testing.T) {
	for name, tt := range map[string]struct {
		listener net.Listener
		instance rollcall.Instance
		want     string
	}{
		"of the listener": {listener("192.0.2.1"), rollcall.NewInstance("", 0), "192.0.2.1:8080=1 "},
		"IPv6":            {listener("2001:db8::1"), rollcall.NewInstance("", 0), "[2001:db8::1]:8080=1 "},
		"by the route":    {listener("0.0.0.0"), rollcall.NewInstance("", 0), "127.0.0.1:8080=1 "},
		"as given":        {listener("0.0.0.0"), rollcall.NewInstance("198.51.100.1", 80, rollcall.Weighted(2)), "198.51.100.1:80=2 "},
		"a socket":        {fakeListener{addr: &net.UnixAddr{Name: "/s"}}, rollcall.NewInstance("198.51.100.1", 80), "198.51.100.1:80=1 "},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := start(t, tt.listener, newFake(), lifecycle.WithInstance(tt.instance))
				want(t, r.weights(), tt.want)
				r.stop()
				if err := <-r.result; err != nil {
					t.Error(err)
				}
			})
		})
	}
	err := lifecycle.Run(t.Context(), clienttest.New().Client(t), orders(), fakeListener{addr: &net.UnixAddr{Name: "/s"}}, newFake())
	if err == nil {
		t.Error("a socket without an address was registered")
	}
}

// Wrong options are told together, before anything is served.
func TestWrongOptions(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := newFake()
	err = lifecycle.Run(t.Context(), clienttest.New().Client(t), orders(), l, server,
		nil, lifecycle.WithReady(nil), lifecycle.WithDrain(-1, nil), lifecycle.WithGrace(-time.Second),
		lifecycle.WithInstance(rollcall.NewInstance("", 0, rollcall.Weighted(-1))),
		lifecycle.WithRegister(rollcall.WithHeartbeat(time.Second, time.Millisecond, time.Second)))
	if !errors.Is(err, rollcall.ErrInvalidArgument) {
		t.Fatalf("got %v", err)
	}
	for _, part := range []string{"option 1 of Run is nil", "WithReady(nil)", "WithDrain(-1ns)", "WithGrace(-1s)", "Instance.Weight -1", "WithHeartbeat(1s, 1ms, 1s)"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("nothing of %s in: %v", part, err)
		}
	}
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the listener is not closed: %v", err)
	}
}

// TestRealServers runs what programs run.
func TestRealServers(t *testing.T) {
	for name, server := range map[string]lifecycle.Server{
		"http": &http.Server{ReadHeaderTimeout: time.Second},
		"grpc": rollcallgrpc.NewServer(grpc.NewServer()),
	} {
		t.Run(name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			registry := clienttest.New()
			watcher, c := registry.Client(t), registry.Client(t)
			w, err := watcher.Watch(t.Context(), orders())
			if err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			result := make(chan error, 1)
			go func() { result <- lifecycle.Run(ctx, c, orders(), l, server, lifecycle.WithDrain(0, nil)) }()
			for u := range w.Updates() {
				if u.Snapshot.Len() == 1 {
					want(t, u.Snapshot.At(0).Addr(), l.Addr().String())
					break
				}
			}
			stop()
			if err := <-result; err != nil {
				t.Error(err)
			}
			if n := w.Snapshot().Len(); n != 0 {
				t.Errorf("%d instances are left", n)
			}
		})
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

	ctx, stop := context.WithTimeout(context.Background(), 10*time.Millisecond) // a program listens to signals
	defer stop()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	err = lifecycle.Run(ctx, client, rollcall.Service{Name: "orders"}, l, &http.Server{ReadHeaderTimeout: time.Second},
		lifecycle.WithDrain(time.Millisecond, nil))
	fmt.Println(err)
	// Output: <nil>
}
