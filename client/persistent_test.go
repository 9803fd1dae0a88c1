package rollcall

import (
	"errors"
	"testing"

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
