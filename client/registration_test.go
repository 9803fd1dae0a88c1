package rollcall

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollcall-registry/rollcall/client/internal/wire"
)

func mustRegister(t *testing.T, c *Client, port uint16, options ...RegisterOption) *Registration {
	t.Helper()
	r, err := c.Register(t.Context(), orders, NewInstance("10.0.0.1", port), options...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRegisteredAgainAfterEachLoss(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Client, w *fakeWire) {
		w.up()
		r := mustRegister(t, c, 1)
		mustRegister(t, c, 2)
		for range 3 {
			w.down(errors.New("reset by peer"))
			if st := r.State(); st.Phase != Retrying || !strings.Contains(st.Err.Error(), "reset by peer") {
				t.Errorf("state %v while disconnected", st)
			}
			time.Sleep(time.Minute)
			w.up()
			if got := w.ports(wireOrders); !slices.Equal(got, []int{1, 2}) || r.State().Phase != Registered {
				t.Errorf("after the loss: %v, %v", got, r.State())
			}
		}
		if st := c.Status(); st.Registrations != 2 || st.Registered != 2 || st.State != Connected {
			t.Errorf("status %+v", st)
		}
	})
}

func TestRegisterWaitsForAServer(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Client, w *fakeWire) {
		time.AfterFunc(10*time.Second, func() { go w.up() })
		began := time.Now()
		mustRegister(t, c, 1)
		if d := time.Since(began); d != 10*time.Second {
			t.Errorf("took %v", d)
		}
	})
}

func TestRegisterGivesUpWithItsContext(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Client, w *fakeWire) {
		w.down(&wire.Error{Kind: wire.NotConnected, Server: "10.0.0.1:9848", Err: errors.New("connection refused")})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := c.Register(ctx, orders, NewInstance("10.0.0.1", 1))
		if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, ErrNotConnected) || !strings.Contains(err.Error(), "10.0.0.1:9848: connection refused") {
			t.Errorf("got %v", err)
		}
		w.up()
		time.Sleep(time.Minute)
		if got := w.ports(wireOrders); got != nil || w.ops("publish") != 0 {
			t.Errorf("an error means that nothing is registered: %v", got)
		}
	})
}

func TestAsyncGoesOn(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Client, w *fakeWire) {
		r := mustRegister(t, c, 1, WithAsync())
		if st := r.State(); st.Phase != Pending && st.Phase != Retrying {
			t.Errorf("state %v", st)
		}
		w.up()
		if st := r.State(); st.Phase != Registered {
			t.Errorf("state %v", st)
		}
	})
}

func TestTransientFailuresAreRetried(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Client, w *fakeWire) {
		w.set(func(f *fakeWire) {
			n := 0
			f.fail = func(string, wire.Service, []wire.Instance) error {
				if n++; n < 10 {
					return &wire.Error{Kind: wire.Overloaded, Server: "s", ErrorCode: 503}
				}
				return nil
			}
		})
		w.up()
		began := time.Now()
		mustRegister(t, c, 1)
		if d := time.Since(began); d > 50*time.Second || w.ops("publish") != 10 {
			t.Errorf("%d attempts in %v", w.ops("publish"), d)
		}
	})
}

// refuse refuses what has a port, for good, with the whole set as gRPC servers do.
func refuse(port uint16) func(string, wire.Service, []wire.Instance) error {
	return func(_ string, _ wire.Service, instances []wire.Instance) error {
		for _, i := range instances {
			if i.Port == port && i.Weight > 0 {
				return &wire.Error{Kind: wire.Invalid, Server: "s", ErrorCode: 400, Message: "bad instance"}
			}
		}
		return nil
	}
}

func TestRefusalHarmsNobodyElse(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Client, w *fakeWire) {
		w.set(func(f *fakeWire) { f.fail = refuse(13); f.delay = 10 * time.Millisecond })
		w.up()
		var wg sync.WaitGroup
		for _, port := range []uint16{11, 12, 13, 14} {
			wg.Go(func() {
				_, err := c.Register(t.Context(), orders, NewInstance("10.0.0.1", port))
				if (err != nil) != (port == 13) {
					t.Errorf("port %d: %v", port, err)
				}
				if port == 13 {
					var server *ServerError
					if !errors.Is(err, ErrInvalidArgument) || !errors.As(err, &server) || server.ErrorCode != 400 || server.Message != "bad instance" {
						t.Errorf("got %v", err)
					}
				}
			})
		}
		wg.Wait()
		time.Sleep(time.Second)
		if got := w.ports(wireOrders); !slices.Equal(got, []int{11, 12, 14}) {
			t.Errorf("published %v", got)
		}
		n := w.ops("publish")
		time.Sleep(time.Hour)
		if w.ops("publish") != n {
			t.Error("a refusal is repeated")
		}
		if st := c.Status(); st.Registrations != 3 || st.Registered != 3 {
			t.Errorf("status %+v", st)
		}
	})
}

func TestManyUpdatesAreMerged(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Client, w *fakeWire) {
		w.set(func(f *fakeWire) { f.delay = 100 * time.Millisecond })
		w.up()
		r := mustRegister(t, c, 1)
		var wg sync.WaitGroup
		for n := range 1000 {
			wg.Go(func() {
				if err := r.Update(t.Context(), func(i *Instance) {
					i.Metadata = map[string]string{fmt.Sprint("last", n): "x"}
				}); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if n := w.ops("publish"); n > 4 {
			t.Errorf("%d requests for 1000 updates at once", n)
		}
		w.mu.Lock()
		sent := w.published[wireOrders][0].Metadata
		w.mu.Unlock()
		if want := r.Instance().Metadata; len(sent) != 1 || fmt.Sprint(sent) != fmt.Sprint(want) {
			t.Errorf("the server has %v, wanted is %v", sent, want)
		}
	})
}

func TestDeregister(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Client, w *fakeWire) {
		w.up()
		a, b := mustRegister(t, c, 1), mustRegister(t, c, 2)
		for range 2 {
			if err := a.Deregister(t.Context()); err != nil {
				t.Error(err)
			}
		}
		if got := w.ports(wireOrders); !slices.Equal(got, []int{2}) {
			t.Errorf("published %v", got)
		}
		if err := a.Update(t.Context(), func(*Instance) {}); !errors.Is(err, ErrClosed) {
			t.Errorf("updated what has left: %v", err)
		}
		if err := b.Drain(t.Context(), time.Second); err != nil {
			t.Error(err)
		}
		if got := w.ports(wireOrders); got != nil {
			t.Errorf("published %v", got)
		}
		w.down(errors.New("x"))
		n := w.ops("publish")
		w.up()
		time.Sleep(time.Minute)
		if w.ops("publish") != n {
			t.Error("something is published although nothing is wanted")
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if len(c.publications) != 0 {
			t.Error("the publication is kept")
		}
	})
}

func TestDeregisterWhileDisconnected(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Client, w *fakeWire) {
		w.up()
		r := mustRegister(t, c, 1)
		w.down(errors.New("x"))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := r.Deregister(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		w.up()
		if got := w.ports(wireOrders); got != nil {
			t.Errorf("published %v", got)
		}
		if err := r.Deregister(t.Context()); err != nil {
			t.Error(err)
		}
		never := mustRegister(t, c, 2, WithAsync())
		if err := never.Deregister(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestRegisteredTwice(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Client, w *fakeWire) {
		w.up()
		a := mustRegister(t, c, 1)
		b, err := c.Register(t.Context(), orders, NewInstance("10.0.0.1", 1, Weighted(5)))
		if err != nil {
			t.Fatal(err)
		}
		if st := a.State(); st.Phase != Removed || !errors.Is(st.Err, ErrReplaced) || b.State().Phase != Registered {
			t.Errorf("states %v and %v", st, b.State())
		}
		if err := a.Deregister(t.Context()); err != nil {
			t.Error(err)
		}
		if got := w.ports(wireOrders); !slices.Equal(got, []int{1}) {
			t.Errorf("the end of the first took the second: %v", got)
		}
		// another cluster is another instance
		if _, err := c.Register(t.Context(), orders, NewInstance("10.0.0.1", 1, InCluster("b"))); err != nil {
			t.Fatal(err)
		}
		if got := w.ports(wireOrders); !slices.Equal(got, []int{1, 1}) {
			t.Errorf("published %v", got)
		}
	})
}

// TestWaitingForWhatEnds: nobody waits for a registration that will not be.
func TestWaitingForWhatEnds(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Client, w *fakeWire) {
		waits := func(f func() error) <-chan error {
			ended := make(chan error, 1)
			go func() { ended <- f() }()
			synctest.Wait()
			return ended
		}
		first := waits(func() error {
			_, err := c.Register(t.Context(), orders, NewInstance("10.0.0.1", 1))
			return err
		})
		r, err := c.Register(t.Context(), orders, NewInstance("10.0.0.1", 1), WithAsync())
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		select {
		case err := <-first:
			if !errors.Is(err, ErrReplaced) {
				t.Errorf("replaced: %v", err)
			}
		default:
			t.Fatal("a registration that was replaced is waited for")
		}
		update := waits(func() error { return r.Update(t.Context(), func(i *Instance) { i.Weight = 2 }) })
		gone := waits(func() error { return r.Deregister(t.Context()) })
		w.up()
		synctest.Wait()
		if err := errors.Join(<-gone); err != nil {
			t.Error(err)
		}
		if err := <-update; !errors.Is(err, ErrClosed) {
			t.Errorf("update of what was deregistered: %v", err)
		}
	})
}

func TestPersistent(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Client, w *fakeWire) {
		w.up()
		r, err := c.Register(t.Context(), orders, NewInstance("10.0.0.1", 1, Persistent()))
		if err != nil {
			t.Fatal(err)
		}
		w.down(errors.New("x"))
		w.up()
		time.Sleep(time.Minute)
		if n := w.ops("register"); n != 1 {
			t.Errorf("registered %d times; it needs no session", n)
		}
		w.set(func(f *fakeWire) {
			f.fail = func(string, wire.Service, []wire.Instance) error { return &wire.Error{Kind: wire.NotReady} }
		})
		time.AfterFunc(10*time.Second, func() { w.set(func(f *fakeWire) { f.fail = nil }) })
		if err := r.Update(t.Context(), func(i *Instance) { i.Weight = 2 }); err != nil {
			t.Error(err)
		}
		if err := r.Deregister(t.Context()); err != nil {
			t.Error(err)
		}
		if n := w.ops("deregister"); n != 1 {
			t.Errorf("deregistered %d times", n)
		}
		w.set(func(f *fakeWire) {
			f.fail = func(string, wire.Service, []wire.Instance) error {
				return &wire.Error{Kind: wire.Conflict, ErrorCode: 409}
			}
		})
		if _, err := c.Register(t.Context(), orders, NewInstance("10.0.0.1", 1, Persistent())); !errors.Is(err, ErrConflict) {
			t.Errorf("got %v", err)
		}
		if st := c.Status(); st.Registrations != 0 {
			t.Errorf("status %+v", st)
		}
	})
}

func TestShutdown(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Client, w *fakeWire) {
		w.up()
		for port := range uint16(50) {
			mustRegister(t, c, port+1)
		}
		n := w.ops("publish")
		if err := c.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		if got := w.ports(wireOrders); got != nil || w.ops("publish")-n > 2 {
			t.Errorf("left: %v, after %d requests", got, w.ops("publish")-n)
		}
	})
	inBubble(t, func(t *testing.T, c *Client, w *fakeWire) {
		w.up()
		r := mustRegister(t, c, 1)
		w.down(errors.New("x"))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := c.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		if r.State().Phase != Removed || c.Status().State != Closed {
			t.Errorf("%v, %v", r.State(), c.Status())
		}
	})
}

// moments bring a client into the middle of operations of all kinds.
func moments() map[string]func(t *testing.T, c *Client, w *fakeWire) {
	return map[string]func(t *testing.T, c *Client, w *fakeWire){
		"before it is connected": func(*testing.T, *Client, *fakeWire) {},
		"while it registers": func(t *testing.T, c *Client, w *fakeWire) {
			w.set(func(f *fakeWire) { f.delay = time.Hour })
			w.up()
			for port := range uint16(3) {
				go func() {
					if _, err := c.Register(context.Background(), orders, NewInstance("10.0.0.1", port+1)); !errors.Is(err, ErrClosed) {
						t.Errorf("register: %v", err)
					}
				}()
			}
		},
		"while it watches": func(t *testing.T, c *Client, w *fakeWire) {
			w.set(func(f *fakeWire) { f.delay = time.Hour })
			w.up()
			go func() {
				if _, err := c.Watch(context.Background(), orders); !errors.Is(err, ErrClosed) {
					t.Errorf("watch: %v", err)
				}
			}()
			go func() {
				if _, err := c.Lookup(context.Background(), orders); err == nil {
					t.Error("looked up")
				}
			}()
			go func() {
				if _, err := c.WatchServices(context.Background(), Pattern{}); !errors.Is(err, ErrClosed) {
					t.Errorf("watch services: %v", err)
				}
			}()
			go func() {
				for s := range c.StatusChanges(context.Background()) {
					_ = s
				}
			}()
		},
		"while it waits for a server": func(t *testing.T, c *Client, w *fakeWire) {
			w.down(errors.New("x"))
			go func() {
				if err := c.Ready(context.Background()); !errors.Is(err, ErrClosed) {
					t.Errorf("ready: %v", err)
				}
			}()
			go func() {
				_, _ = c.Lookup(context.Background(), orders)
			}()
		},
		"in a callback": func(t *testing.T, c *Client, w *fakeWire) {
			w.up()
			watch, err := c.Watch(t.Context(), orders)
			if err != nil {
				t.Fatal(err)
			}
			watch.OnUpdate(func(Update) {
				if err := c.Close(); err != nil {
					t.Error(err)
				}
			})
		},
		"while it reads": func(t *testing.T, c *Client, w *fakeWire) {
			w.up()
			watch, err := c.Watch(t.Context(), orders)
			if err != nil {
				t.Fatal(err)
			}
			go func() {
				for range watch.Updates() {
				}
			}()
			go func() {
				var last error
				for _, err := range watch.All(context.Background()) {
					last = err
				}
				if !errors.Is(last, ErrClosed) {
					t.Errorf("all: %v", last)
				}
			}()
		},
	}
}

// TestCloseAtEveryMoment closes during operations of all kinds.
func TestCloseAtEveryMoment(t *testing.T) {
	for name, moment := range moments() {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, c *Client, w *fakeWire) {
				moment(t, c, w)
				synctest.Wait()
				began := time.Now()
				var wg sync.WaitGroup
				for range 3 {
					wg.Go(func() {
						if err := c.Close(); err != nil {
							t.Error(err)
						}
					})
				}
				wg.Wait()
				if d := time.Since(began); d > time.Second {
					t.Errorf("closed after %v", d)
				}
				if _, err := c.Register(t.Context(), orders, NewInstance("10.0.0.1", 1)); !errors.Is(err, ErrClosed) {
					t.Errorf("register after the end: %v", err)
				}
				if _, err := c.Watch(t.Context(), orders); !errors.Is(err, ErrClosed) {
					t.Errorf("watch after the end: %v", err)
				}
				if _, err := c.Lookup(t.Context(), orders); !errors.Is(err, ErrClosed) {
					t.Errorf("look-up after the end: %v", err)
				}
			})
		})
	}
}
