package rollcall

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollcall-registry/rollcall/client/internal/wire"
)

// Who waits for what a server refuses for its credentials is told at once, and the status
// says so. What was registered before stays wanted.
func TestUnauthorized(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Client, w *fakeWire) {
		w.up()
		good := mustRegister(t, c, 1)
		w.set(func(f *fakeWire) {
			f.fail = func(string, wire.Service, []wire.Instance) error {
				return &wire.Error{Kind: wire.Unauthorized, ErrorCode: 403, Message: "token invalid!"}
			}
		})
		began := time.Now()
		if _, err := c.Register(within(t, time.Minute), orders, NewInstance("10.0.0.1", 2)); !errors.Is(err, ErrUnauthorized) {
			t.Errorf("register: %v", err)
		}
		if _, err := c.Register(within(t, time.Minute), Service{Name: "other"}, NewInstance("10.0.0.1", 2, Persistent())); !errors.Is(err, ErrUnauthorized) {
			t.Errorf("register persistent: %v", err)
		}
		if _, err := c.Watch(within(t, time.Minute), orders); !errors.Is(err, ErrUnauthorized) {
			t.Errorf("watch: %v", err)
		}
		if _, err := c.WatchServices(within(t, time.Minute), Pattern{}); !errors.Is(err, ErrUnauthorized) {
			t.Errorf("watch services: %v", err)
		}
		if err := good.Update(within(t, time.Minute), func(i *Instance) { i.Weight = 3 }); !errors.Is(err, ErrUnauthorized) {
			t.Errorf("update: %v", err)
		}
		if took := time.Since(began); took > 0 {
			t.Errorf("took %v", took)
		}
		if st := c.Status(); st.State != Connected || !errors.Is(st.LastError, ErrUnauthorized) {
			t.Errorf("status %+v", st)
		}
		if st := good.State(); st.Phase == Removed || good.Instance().Weight != 1 {
			t.Errorf("state %v, weight %v", st, good.Instance().Weight)
		}
		patient := mustRegister(t, c, 3, WithAsync())
		w.set(func(f *fakeWire) { f.fail = nil })
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if patient.State().Phase != Registered || fmt.Sprint(w.ports(wireOrders)) != "[1 3]" {
			t.Errorf("state %v, published %v", patient.State(), w.ports(wireOrders))
		}
	})
}

// The same over HTTP, of a server that refuses logins, and of one that wants one.
func TestUnauthorizedOverHTTP(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write([]byte("unknown user!"))
	}))
	defer srv.Close()
	for _, options := range [][]Option{nil, {WithUserPassword("u", "p")}} {
		c, err := New(append(options, WithServers(srv.Listener.Addr().String()), WithProtocol(HTTP))...)
		if err != nil {
			t.Fatal(err)
		}
		ctx := within(t, 20*time.Second)
		if _, err := c.Register(ctx, orders, NewInstance("10.0.0.1", 1)); !errors.Is(err, ErrUnauthorized) || ctx.Err() != nil {
			t.Errorf("register: %v", err)
		}
		if _, err := c.Watch(ctx, orders); !errors.Is(err, ErrUnauthorized) || ctx.Err() != nil {
			t.Errorf("watch: %v", err)
		}
		if st := c.Status(); st.Server != srv.Listener.Addr().String() || !errors.Is(st.LastError, ErrUnauthorized) {
			t.Errorf("status %+v", st)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}
