package rollcall

import (
	"errors"
	"testing"
	"time"

	"github.com/rollcall-registry/rollcall/client/internal/wire"
)

// A change that the server refuses leaves a persistent instance as it was: registered.
func TestRefusedUpdateOfAPersistentInstance(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Client, w *fakeWire) {
		w.up()
		r, err := c.Register(t.Context(), orders, NewInstance("10.0.0.1", 1, Persistent()))
		if err != nil {
			t.Fatal(err)
		}
		w.set(func(f *fakeWire) {
			f.fail = func(string, wire.Service, []wire.Instance) error {
				return &wire.Error{Kind: wire.Invalid, ErrorCode: 400}
			}
		})
		if err := r.Update(t.Context(), func(i *Instance) { i.Weight = 7 }); !errors.Is(err, ErrInvalidArgument) {
			t.Errorf("got %v", err)
		}
		if st := r.State(); st.Phase != Registered || st.Err != nil || r.Instance().Weight != 1 {
			t.Errorf("state %v, weight %v", st, r.Instance().Weight)
		}
		if st := c.Status(); st.Registered != 1 {
			t.Errorf("status %+v", st)
		}
	})
}

// A deregistration that the server refuses for good is not sent again and again, and
// succeeds when it may.
func TestRefusedDeregistrationOfAPersistentInstance(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Client, w *fakeWire) {
		w.up()
		r, err := c.Register(t.Context(), orders, NewInstance("10.0.0.1", 1, Persistent()))
		if err != nil {
			t.Fatal(err)
		}
		w.set(func(f *fakeWire) {
			f.fail = func(string, wire.Service, []wire.Instance) error {
				return &wire.Error{Kind: wire.Forbidden, ErrorCode: 403}
			}
		})
		if err := r.Deregister(within(t, 10*time.Minute)); !errors.Is(err, ErrForbidden) || !errors.Is(err, ErrMayRemain) {
			t.Errorf("got %v", err)
		}
		if n := w.ops("deregister"); n > 21 {
			t.Errorf("asked %d times in ten minutes, want one each 30 s", n)
		}
		w.set(func(f *fakeWire) { f.fail = nil })
		if err := r.Deregister(within(t, time.Minute)); err != nil {
			t.Error(err)
		}
	})
}
