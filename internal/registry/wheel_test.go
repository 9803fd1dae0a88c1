package registry

import (
	"slices"
	"testing"
	"time"
)

// visits lets time pass and returns the names of the records that came up.
func visits(w *wheel, now time.Duration) []string {
	var names []string
	w.advance(now, func(r *record) { names = append(names, r.inst.IP) })
	slices.Sort(names)
	return names
}

func wheelRecord(name string) *record { return &record{inst: &Instance{IP: name}} }

func TestWheel(t *testing.T) {
	var w wheel
	a, b, c, d := wheelRecord("a"), wheelRecord("b"), wheelRecord("c"), wheelRecord("d")
	w.arm(a, time.Second)
	w.arm(b, time.Second)
	w.arm(c, 999*time.Millisecond)
	w.arm(d, time.Hour) // past the horizon
	w.arm(b, 2*time.Second)
	for _, step := range []struct {
		now  time.Duration
		want []string
	}{
		{749 * time.Millisecond, nil},
		{750 * time.Millisecond, []string{"c"}}, // of its tick, maybe early
		{750 * time.Millisecond, nil},
		{1000 * time.Millisecond, []string{"a", "b"}}, // the later wish did not move b
		{500 * time.Millisecond, nil},                 // back
		{63 * time.Second, nil},
		{64 * time.Second, []string{"d"}}, // looked at again at the horizon
		{10 * time.Hour, nil},
	} {
		if got := visits(&w, step.now); !slices.Equal(got, step.want) {
			t.Errorf("at %v: %v came up, want %v", step.now, got, step.want)
		}
	}
}

func TestWheelMovesEarlierAndForgets(t *testing.T) {
	var w wheel
	a, b, c := wheelRecord("a"), wheelRecord("b"), wheelRecord("c")
	for _, r := range []*record{a, b, c} {
		w.arm(r, 10*time.Second)
	}
	w.arm(b, 2*time.Second)
	w.disarm(c)
	w.disarm(c)
	if got := visits(&w, 3*time.Second); !slices.Equal(got, []string{"b"}) {
		t.Errorf("at 3s: %v", got)
	}
	w.arm(b, time.Second) // is past: comes up at once
	if got := visits(&w, 3*time.Second); !slices.Equal(got, []string{"b"}) {
		t.Errorf("again: %v", got)
	}
	if got := visits(&w, time.Minute); !slices.Equal(got, []string{"a"}) {
		t.Errorf("at 1m: %v", got)
	}
}

// Whoever is put back while the wheel turns comes up no more than once again in
// that call, however long the wheel stood still, and then when it is due.
func TestWheelPutsBack(t *testing.T) {
	for _, gap := range []time.Duration{0, wheelTick, 63 * time.Second, 64 * time.Second, 65 * time.Second, time.Hour} {
		var w wheel
		r, other := wheelRecord("r"), wheelRecord("other")
		w.advance(time.Second, func(*record) {})
		w.arm(r, time.Second)
		w.arm(other, time.Second)
		now, times := time.Second+gap, 0
		w.advance(now, func(at *record) {
			if at == r {
				times++
				w.arm(r, now+wheelTick/2)
			}
		})
		if times != 1 && times != 2 {
			t.Errorf("gap %v: came up %d times", gap, times)
		}
		if got := visits(&w, now+2*wheelTick); !slices.Equal(got, []string{"r"}) {
			t.Errorf("gap %v: then %v came up", gap, got)
		}
	}
}
