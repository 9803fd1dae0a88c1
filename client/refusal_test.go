package rollcall

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollcall-registry/rollcall/client/internal/wire"
)

func TestRefusedAsyncIsLeftAlone(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Client, w *fakeWire) {
		w.set(func(f *fakeWire) { f.fail = refuse(13) })
		w.up()
		bad := mustRegister(t, c, 13, WithAsync())
		mustRegister(t, c, 14)
		time.Sleep(time.Minute)
		if got := w.ports(wireOrders); !slices.Equal(got, []int{14}) {
			t.Errorf("published %v", got)
		}
		if st := bad.State(); st.Phase != Retrying || !errors.Is(st.Err, ErrInvalidArgument) {
			t.Errorf("state %v", st)
		}
		if n := w.ops("publish"); n > 10 {
			t.Errorf("%d attempts in a minute", n)
		}
		w.set(func(f *fakeWire) { f.fail = nil })
		time.Sleep(time.Minute)
		if got := w.ports(wireOrders); !slices.Equal(got, []int{13, 14}) {
			t.Errorf("published %v", got)
		}
	})
}

// What is left alone is not left for longer because of others.
func TestRefusedAsyncIsTriedInTime(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Client, w *fakeWire) {
		w.set(func(f *fakeWire) { f.fail = refuse(13) })
		w.up()
		mustRegister(t, c, 13, WithAsync())
		time.Sleep(refusedPause - time.Second)
		mustRegister(t, c, 14)
		w.set(func(f *fakeWire) { f.fail = nil })
		time.Sleep(2 * time.Second)
		if got := w.ports(wireOrders); !slices.Equal(got, []int{13, 14}) {
			t.Errorf("published %v", got)
		}
	})
}

func TestUpdateThatIsRefusedIsUndone(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Client, w *fakeWire) {
		w.up()
		r := mustRegister(t, c, 1)
		other := mustRegister(t, c, 2)
		w.set(func(f *fakeWire) {
			f.fail = func(_ string, _ wire.Service, instances []wire.Instance) error {
				for _, i := range instances {
					if i.Weight == 7 {
						return &wire.Error{Kind: wire.Invalid, ErrorCode: 400}
					}
				}
				return nil
			}
		})
		if err := r.Update(t.Context(), func(i *Instance) { i.Weight = 7 }); !errors.Is(err, ErrInvalidArgument) {
			t.Errorf("got %v", err)
		}
		if err := other.Update(t.Context(), func(i *Instance) { i.Weight = 3 }); err != nil {
			t.Error(err)
		}
		if r.Instance().Weight != 1 || other.Instance().Weight != 3 {
			t.Errorf("weights %v and %v", r.Instance().Weight, other.Instance().Weight)
		}
		w.down(errors.New("gone"))
		w.up()
		if got := w.ports(wireOrders); !slices.Equal(got, []int{1, 2}) {
			t.Errorf("published %v", got)
		}
	})
}

// Who waits for a change that was refused is told so, although somebody else has changed the
// instance since.
func TestRefusedUpdateIsNotTakenForAnother(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Client, w *fakeWire) {
		w.up()
		r := mustRegister(t, c, 1)
		w.set(func(f *fakeWire) {
			f.fail = func(_ string, _ wire.Service, instances []wire.Instance) error {
				if len(instances) > 0 && instances[0].Weight == 7 {
					return &wire.Error{Kind: wire.Invalid, ErrorCode: 400}
				}
				return nil
			}
		})
		bad, err := r.edit(func(i *Instance) { i.Weight = 7 })
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // it is refused, and who wants to know comes late
		if err := r.Update(t.Context(), func(i *Instance) { i.Weight = 3 }); err != nil {
			t.Fatal(err)
		}
		if err := r.wait(t.Context(), r.reached(bad)); public(err) == nil || r.Instance().Weight != 3 {
			t.Errorf("got %v, weight %v", err, r.Instance().Weight)
		}
	})
}

// Nobody has what was refused: to deregister it takes no server.
func TestRefusedAsyncIsDeregisteredAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Client, w *fakeWire) {
		w.set(func(f *fakeWire) {
			f.fail = func(string, wire.Service, []wire.Instance) error {
				return &wire.Error{Kind: wire.Forbidden, ErrorCode: 403}
			}
		})
		w.up()
		for _, in := range []Instance{NewInstance("10.0.0.1", 1), NewInstance("10.0.0.1", 2, Persistent())} {
			r, err := c.Register(t.Context(), Service{Name: "refused", Group: in.Addr()}, in, WithAsync())
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if st := r.State(); st.Phase != Retrying || !errors.Is(st.Err, ErrForbidden) {
				t.Errorf("state %v", st)
			}
			if err := r.Deregister(within(t, time.Second)); err != nil || r.State().Phase != Removed {
				t.Errorf("deregister: %v, state %v", err, r.State())
			}
		}
	})
}
