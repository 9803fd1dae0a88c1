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

func TestReadyAndStatus(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Client, w *fakeWire) {
		w.down(&wire.Error{Kind: wire.NotConnected, Server: "10.0.0.1:9848", Err: errors.New("connection refused")})
		if err := c.Ready(within(t, time.Second)); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "10.0.0.1:9848") {
			t.Errorf("got %v", err)
		}
		var states []State
		done := make(chan struct{})
		go func() {
			defer close(done)
			for s := range c.StatusChanges(context.Background()) {
				if len(states) == 0 || states[len(states)-1] != s.State {
					states = append(states, s.State)
				}
			}
		}()
		synctest.Wait()
		r := mustRegister(t, c, 1, WithAsync())
		w.set(func(f *fakeWire) { f.delay = time.Second })
		w.up()
		if err := c.Ready(t.Context()); err != nil || r.State().Phase == Pending {
			t.Errorf("%v, %v", err, r.State())
		}
		if st := c.Status(); st.State != Connected || st.Server != "10.0.0.1:9848" || st.Protocol != GRPC || st.LastError == nil {
			t.Errorf("status %+v", st)
		}
		_ = c.Close()
		<-done
		if want := []State{Connecting, Connected, Closed}; !slices.Equal(states, want) {
			t.Errorf("states %v, want %v", states, want)
		}
	})
}

// Each change of the status is told, that of the server of one session and that of the
// watches among them.
func TestStatusChangesTellAll(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Client, w *fakeWire) {
		session := w.up()
		var last Status
		done := make(chan struct{})
		go func() {
			defer close(done)
			for s := range c.StatusChanges(context.Background()) {
				if s.State != Closed {
					last = s
				}
			}
		}()
		synctest.Wait()
		told := func(after string) {
			t.Helper()
			synctest.Wait()
			if now := c.Status(); last != now {
				t.Errorf("after %s: told %+v, it is %+v", after, last, now)
			}
		}
		session.Server = "10.0.0.2:8848"
		w.events.Connected(session)
		told("another server")
		watch, second := mustWatch(t, c), mustWatch(t, c)
		told("watches")
		_ = second.Close()
		told("the end of one of two")
		_ = watch.Close()
		told("the end of the last one")
		r := mustRegister(t, c, 1, WithAsync())
		told("a registration")
		w.down(errors.New("gone"))
		again := mustRegister(t, c, 2, WithAsync())
		told("one without a server")
		w.up()
		_ = again.Deregister(t.Context())
		_ = r.Deregister(t.Context())
		told("its end")
		_ = c.Close()
		<-done
	})
}

// Ready waits for all that was asked of the client, and not for more than an attempt.
func TestReadyWaitsForAll(t *testing.T) {
	asked := map[string]func(*testing.T, *Client){
		"a watch":        func(t *testing.T, c *Client) { mustWatch(t, c, WithAsync()) },
		"a registration": func(t *testing.T, c *Client) { mustRegister(t, c, 1, WithAsync()) },
		"a persistent one": func(t *testing.T, c *Client) {
			if _, err := c.Register(t.Context(), orders, NewInstance("10.0.0.1", 1, Persistent()), WithAsync()); err != nil {
				t.Error(err)
			}
		},
		"a watch of names": func(t *testing.T, c *Client) {
			if _, err := c.WatchServices(t.Context(), Pattern{}, WithAsync()); err != nil {
				t.Error(err)
			}
		},
	}
	for name, ask := range asked {
		for _, failure := range []error{nil, &wire.Error{Kind: wire.Overloaded}, &wire.Error{Kind: wire.Forbidden}} {
			t.Run(name, func(t *testing.T) {
				inBubble(t, func(t *testing.T, c *Client, w *fakeWire) {
					w.set(func(f *fakeWire) {
						f.delay = time.Second
						f.fail = func(string, wire.Service, []wire.Instance) error { return failure }
					})
					w.up()
					ask(t, c)
					began := time.Now()
					if err := c.Ready(within(t, 5*time.Second)); err != nil || time.Since(began) != time.Second {
						t.Errorf("%v after %v, want 1s", err, time.Since(began))
					}
				})
			})
		}
	}
}
