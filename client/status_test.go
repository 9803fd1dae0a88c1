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
