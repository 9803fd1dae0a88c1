package rollcall

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollcall-registry/rollcall/client/internal/wire"
)

// restarted is a client of a server that restarts, remembers, and is not reached again
// yet.
func restarted(t *testing.T, f func(t *testing.T, c *Client, w *fakeWire, a, b *Registration)) {
	inBubble(t, func(t *testing.T, c *Client, w *fakeWire) {
		w.set(func(w *fakeWire) { w.remembers = true })
		w.up()
		a, b := mustRegister(t, c, 1), mustRegister(t, c, 2)
		w.down(&wire.Error{Kind: wire.NotConnected, Server: "10.0.0.1:9848", Err: errors.New("reset by peer")})
		f(t, c, w, a, b)
	})
}

// in runs f and returns its result when it ends.
func in(f func() error) <-chan error {
	ended := make(chan error, 1)
	go func() { ended <- f() }()
	synctest.Wait()
	return ended
}

// What a server remembers of the connection before is taken from it by the next one, and
// what is wanted still stays the whole time.
func TestDeregisterWhatAServerRemembers(t *testing.T) {
	restarted(t, func(t *testing.T, c *Client, w *fakeWire, a, b *Registration) {
		ended := in(func() error { return a.Deregister(t.Context()) })
		time.Sleep(time.Minute)
		if len(ended) > 0 {
			t.Fatalf("ended with %v while the server is away", <-ended)
		}
		w.set(func(w *fakeWire) {
			w.fail = func(op string, _ wire.Service, instances []wire.Instance) error {
				if op == "publish" && !slices.ContainsFunc(instances, func(i wire.Instance) bool { return i.Port == 2 }) {
					t.Error("what is wanted was withdrawn")
				}
				return nil
			}
		})
		w.up()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if got := w.listed(wireOrders); !slices.Equal(got, []int{2}) || b.State().Phase != Registered {
			t.Errorf("the server lists %v; %v", got, b.State())
		}
	})
}

func TestShutdownAfterARestart(t *testing.T) {
	restarted(t, func(t *testing.T, c *Client, w *fakeWire, a, b *Registration) {
		ended := in(func() error { return c.Shutdown(t.Context()) })
		w.up()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if got := w.listed(wireOrders); got != nil {
			t.Errorf("the server lists %v", got)
		}
	})
}

// Whoever does not wait for the server is told that it may remember.
func TestDeregisterDoesNotPretend(t *testing.T) {
	for name, end := range map[string]func(*Client, *Registration, context.Context) error{
		"Deregister": func(_ *Client, r *Registration, ctx context.Context) error { return r.Deregister(ctx) },
		"Drain":      func(_ *Client, r *Registration, ctx context.Context) error { return r.Drain(ctx, 0) },
		"Shutdown":   func(c *Client, _ *Registration, ctx context.Context) error { return c.Shutdown(ctx) },
	} {
		t.Run(name, func(t *testing.T) {
			restarted(t, func(t *testing.T, c *Client, w *fakeWire, a, b *Registration) {
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
				defer cancel()
				began := time.Now()
				err := end(c, a, ctx)
				if !errors.Is(err, ErrMayRemain) || !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, ErrNotConnected) ||
					!strings.Contains(err.Error(), "10.0.0.1:9848: reset by peer") {
					t.Errorf("got %v", err)
				}
				if d := time.Since(began); d != 2*time.Second {
					t.Errorf("took %v", d)
				}
			})
		})
	}
}

// A client that is closed in the meantime does not pretend either.
func TestDeregisterOfAClosedClient(t *testing.T) {
	restarted(t, func(t *testing.T, c *Client, w *fakeWire, a, b *Registration) {
		ended := in(func() error { return a.Deregister(t.Context()) })
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if err := <-ended; !errors.Is(err, ErrMayRemain) || !errors.Is(err, ErrClosed) {
			t.Errorf("got %v", err)
		}
	})
}

// It goes on in the background after its context has ended, through all failures.
func TestDeregisterGoesOn(t *testing.T) {
	restarted(t, func(t *testing.T, c *Client, w *fakeWire, a, b *Registration) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := a.Deregister(ctx); !errors.Is(err, ErrMayRemain) {
			t.Errorf("got %v", err)
		}
		n := 0
		w.set(func(w *fakeWire) {
			w.fail = func(string, wire.Service, []wire.Instance) error {
				if n++; n > 1 && n < 10 {
					return &wire.Error{Kind: wire.Overloaded, Server: "s", ErrorCode: 503}
				}
				return nil
			}
		})
		w.up()
		time.Sleep(time.Minute)
		if got := w.listed(wireOrders); !slices.Equal(got, []int{2}) {
			t.Errorf("the server lists %v", got)
		}
		w.down(errors.New("x"))
		before := w.ops("")
		w.up()
		time.Sleep(time.Hour)
		if n := w.ops("") - before; n != 1 {
			t.Errorf("%d requests afterwards, want the one for what is wanted", n)
		}
	})
}

// Over HTTP nothing can be done about what a server remembers of a connection: it is
// waited for.
func TestDeregisterOverAnotherProtocol(t *testing.T) {
	restarted(t, func(t *testing.T, c *Client, w *fakeWire, a, b *Registration) {
		w.set(func(w *fakeWire) { w.protocol, w.stubborn = wire.HTTP, true })
		ended := in(func() error { return a.Deregister(t.Context()) })
		w.up()
		time.Sleep(40 * time.Second)
		if len(ended) > 0 {
			t.Errorf("ended with %v while the server lists %v", <-ended, w.listed(wireOrders))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := a.Deregister(ctx); !errors.Is(err, ErrMayRemain) || !strings.Contains(err.Error(), "still lists") {
			t.Errorf("got %v", err)
		}
		w.set(func(w *fakeWire) {
			clear(w.memory)
			w.lists[wireOrders] = w.state(wireOrders)
		})
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// What a server does not list is not brought back for a moment.
func TestForgottenInstancesStayForgotten(t *testing.T) {
	restarted(t, func(t *testing.T, c *Client, w *fakeWire, a, b *Registration) {
		ended := in(func() error { return a.Deregister(t.Context()) })
		w.set(func(w *fakeWire) {
			w.remembers = false
			clear(w.lists)
			w.fail = func(op string, _ wire.Service, instances []wire.Instance) error {
				if slices.ContainsFunc(instances, func(i wire.Instance) bool { return i.Port == 1 }) {
					t.Error("it was published again")
				}
				return nil
			}
		})
		w.up()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// An instance that is registered again while it is to leave stays.
func TestRegisteredAgainWhileItLeaves(t *testing.T) {
	restarted(t, func(t *testing.T, c *Client, w *fakeWire, a, b *Registration) {
		ended := in(func() error { return a.Deregister(t.Context()) })
		again := mustRegister(t, c, 1, WithAsync())
		if err := <-ended; err != nil {
			t.Errorf("of what was replaced: %v", err)
		}
		w.up()
		time.Sleep(time.Minute)
		if got := w.listed(wireOrders); !slices.Equal(got, []int{1, 2}) || again.State().Phase != Registered {
			t.Errorf("the server lists %v; %v", got, again.State())
		}
		w.down(errors.New("x"))
		last := in(func() error { return again.Deregister(t.Context()) })
		w.up()
		if err := <-last; err != nil {
			t.Error(err)
		}
		if got := w.listed(wireOrders); !slices.Equal(got, []int{2}) {
			t.Errorf("the server lists %v", got)
		}
	})
}

// Requests about one persistent instance never overtake each other, whichever
// registration they are for.
func TestPersistentRequestsTakeTurns(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Client, w *fakeWire) {
		var weights []float64
		w.set(func(w *fakeWire) {
			w.delay = time.Second
			w.fail = func(op string, _ wire.Service, instances []wire.Instance) error {
				if op == "deregister" {
					weights = append(weights, -1)
					return nil
				}
				weights = append(weights, instances[0].Weight)
				w.set(func(w *fakeWire) { w.delay /= 2 }) // the next is faster
				return nil
			}
		})
		w.up()
		register := func(weight float64) (*Registration, error) {
			in := NewInstance("10.0.0.1", 1, Weighted(weight))
			in.Ephemeral = false
			return c.Register(t.Context(), orders, in)
		}
		first := in(func() error { _, err := register(1); return err })
		second, err := register(2)
		if err != nil {
			t.Fatal(err)
		}
		if err := <-first; !errors.Is(err, ErrReplaced) {
			t.Errorf("the first: %v", err)
		}
		if !slices.Equal(weights, []float64{1, 2}) {
			t.Errorf("the server heard of %v", weights)
		}
		gone := in(func() error { return second.Deregister(t.Context()) })
		if _, err := register(3); err != nil {
			t.Fatal(err)
		}
		if err := <-gone; err != nil {
			t.Error(err)
		}
		if !slices.Equal(weights, []float64{1, 2, -1, 3}) {
			t.Errorf("the server heard of %v", weights)
		}
	})
}
