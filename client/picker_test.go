package rollcall

import (
	"errors"
	"sync/atomic"
	"testing"
)

// firstOf is a balancer that picks the first instance and counts what it builds.
type firstOf struct{ built *atomic.Int32 }

type firstPicker struct{ in *Instance }

func (b firstOf) Build(s *Snapshot, _ Picker) Picker {
	b.built.Add(1)
	if s.Len() == 0 {
		return firstPicker{}
	}
	return firstPicker{s.At(0)}
}

func (p firstPicker) Pick() (*Instance, error) {
	if p.in == nil {
		return nil, ErrNoInstances
	}
	return p.in, nil
}

func (p firstPicker) PickKey(uint64) (*Instance, error) { return p.Pick() }
func (firstPicker) Done(*Instance, error)               {}

func TestLivePicker(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Client, w *fakeWire) {
		w.up()
		watch := mustWatch(t, c)
		var built atomic.Int32
		p := watch.Picker(firstOf{&built})
		if _, err := p.Pick(); !errors.Is(err, ErrNoInstances) {
			t.Errorf("got %v", err)
		}
		w.push(wireOrders, 1, "a:1")
		for range 10 {
			if in, err := p.Pick(); err != nil || in.IP != "a" {
				t.Errorf("%v, %v", in, err)
			}
		}
		if built.Load() != 2 {
			t.Errorf("built %d times, want 2", built.Load())
		}
		_ = watch.Close()
		if in, err := p.Pick(); err != nil || in.IP != "a" {
			t.Errorf("after the end: %v, %v", in, err)
		}
	})
}
