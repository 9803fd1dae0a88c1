package rollcall

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// panicking is metrics that panic.
type panicking struct{}

func (panicking) CallDone(string, time.Duration, error) { panic("of the user") }
func (panicking) Published(Service, int, time.Duration) { panic("of the user") }
func (panicking) Connected(string, Protocol)            { panic("of the user") }
func (panicking) Disconnected(error)                    { panic("of the user") }
func (panicking) Dropped(string)                        { panic("of the user") }

func TestMetricsThatPanic(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Client, w *fakeWire) {
		w.say(wireOrders, 1, "a:1")
		w.up()
		watch := mustWatch(t, c)
		mustRegister(t, c, 1)
		w.push(wireOrders, 0, "old:1")
		w.push(wireOrders, 2, "b:1")
		if got := addresses(watch.Snapshot()); got != "b:1" {
			t.Errorf("shows %s", got)
		}
		w.down(errors.New("x"))
	}, WithMetrics(panicking{}))
}

// Functions of the user that panic, or hang until their context ends, and the end of the
// client meanwhile.
func TestFunctionsThatFail(t *testing.T) {
	boom := func(context.Context) { panic("of the user") }
	hang := func(ctx context.Context) { <-ctx.Done() }
	for how, f := range map[string]func(context.Context){"panic": boom, "hang": hang} {
		for what, option := range map[string][]Option{
			"server source": {WithServerSource(func(ctx context.Context) ([]string, error) { f(ctx); return nil, ctx.Err() })},
			"credentials": {WithServers("127.0.0.1:1"), WithCredentials(func(ctx context.Context) (Credentials, error) {
				f(ctx)
				return Credentials{}, ctx.Err()
			})},
			"dialer": {WithServers("10.0.0.1:1"), WithDialer(func(ctx context.Context, _, _ string) (net.Conn, error) {
				f(ctx)
				return nil, ctx.Err()
			})},
		} {
			t.Run(what+" "+how, func(t *testing.T) {
				var said atomic.Bool
				logger := slog.New(slog.NewTextHandler(writer(func(line string) {
					if strings.Contains(line, "panicked") {
						said.Store(true)
					}
				}), nil))
				c, err := New(append(option, WithLogger(logger), WithUDP("off"), WithTimeout(100*time.Millisecond))...)
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
				defer cancel()
				if err := c.Ready(ctx); err == nil {
					t.Error("ready")
				}
				if what == "credentials" { // asked when there is something to sign
					_, _ = c.auth.Fields(within(t, 100*time.Millisecond), "")
				}
				began := time.Now()
				if err := c.Close(); err != nil || time.Since(began) > closeTime {
					t.Errorf("%v after %v", err, time.Since(began))
				}
				if how == "panic" && !said.Load() {
					t.Error("the panic was not logged")
				}
			})
		}
	}
}

type writer func(line string)

func (w writer) Write(b []byte) (int, error) {
	w(string(b))
	return len(b), nil
}

// A function that neither returns nor hears its context keeps Close no longer than a
// second, and is what Close tells of.
func TestCloseDoesNotWaitForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		c, err := New(WithServerSource(func(context.Context) ([]string, error) { <-release; return nil, nil }))
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		began := time.Now()
		if err := c.Close(); err == nil || time.Since(began) != time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		close(release)
		synctest.Wait()
		if err := c.Close(); err != nil {
			t.Errorf("when it has returned: %v", err)
		}
	})
}
