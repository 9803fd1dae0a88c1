package registry

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"
)

var first = at("10.0.0.1", 8080)

func TestDefaultLifeTimes(t *testing.T) {
	w := newWorld(t)
	w.register(httpOwner, first)
	w.rec.take()
	for _, step := range []struct {
		silence time.Duration
		events  []string
	}{
		{15 * time.Second, nil},
		{15001 * time.Millisecond, []string{"unhealthy orders 10.0.0.1:8080/DEFAULT"}},
		{30 * time.Second, nil},
		{30001 * time.Millisecond, []string{"removed orders 10.0.0.1:8080/DEFAULT"}},
	} {
		w.pass(step.silence - w.now.Lease)
		w.events(step.events...)
		w.Expire(w.now) // idempotent
		w.events()
	}
}

func TestLifeTimes(t *testing.T) {
	const never = time.Duration(0)
	for _, tt := range []struct {
		name                      string
		interval, timeout, remove string
		unhealthy, removed        time.Duration // silence after which, in ms steps; never means not within 3 minutes
	}{
		{"defaults", "", "", "", 15001 * time.Millisecond, 30001 * time.Millisecond},
		{"shorter", "1000", "3000", "6000", 3001 * time.Millisecond, 6001 * time.Millisecond},
		{"delete below the beat timeout is not marked first", "", "20000", "10000", never, 10001 * time.Millisecond},
		{"timeout below the interval", "30000", "10000", "10000", 10001 * time.Millisecond, 10001 * time.Millisecond},
		{"seconds taken for milliseconds", "30", "120", "180", 121 * time.Millisecond, 181 * time.Millisecond},
		{"past the horizon of the wheel", "", "100000", "150000", 100001 * time.Millisecond, 150001 * time.Millisecond},
		{"huge", "", "99999999999999999999999", "99999999999999999999999", never, never},
		{"largest number", "", "9223372036854775807", "18446744073709551615", never, never},
		{"no number", "", "abc", "-5", 15001 * time.Millisecond, 30001 * time.Millisecond},
		{"zero", "", "0", "0", 15001 * time.Millisecond, 30001 * time.Millisecond},
		{"only the timeout", "", "1000", "", 1001 * time.Millisecond, 30001 * time.Millisecond},
	} {
		for _, tick := range []time.Duration{33 * time.Millisecond, 250 * time.Millisecond, 5 * time.Second} {
			t.Run(fmt.Sprint(tt.name, " every ", tick), func(t *testing.T) {
				w := newWorld(t)
				w.now.Lease = 123456789 * time.Microsecond
				start := w.now.Lease
				w.register(httpOwner, first, times(tt.interval, tt.timeout, tt.remove))
				w.rec.take()
				check := func(kind EventKind, silence time.Duration) {
					t.Helper()
					want := never
					if silence != never { // the first look after it
						want = (silence - time.Nanosecond + tick).Truncate(tick)
					}
					got := never
					for _, e := range w.rec.events {
						if e.Kind == kind {
							got = e.At.Lease - start
						}
					}
					if got != want {
						t.Errorf("%s after %v, want %v", kind, got, want)
					}
				}
				for w.now.Lease < start+3*time.Minute {
					w.pass(tick)
				}
				check(InstanceUnhealthy, tt.unhealthy)
				check(InstanceRemoved, tt.removed)
			})
		}
	}
}

func TestBeatHeals(t *testing.T) {
	w := newWorld(t)
	w.register(httpOwner, first)
	w.pass(20 * time.Second)
	w.rec.take()
	if state := w.beat(first); !state.Known {
		t.Fatal("the beat of a listed instance is not known")
	}
	w.events("healthy orders 10.0.0.1:8080/DEFAULT")
	w.beat(first)
	w.events() // a beat of a healthy instance says nothing
	w.pass(15001 * time.Millisecond)
	w.events("unhealthy orders 10.0.0.1:8080/DEFAULT")
}

// A revived instance whose timeout is far below its delete timeout is marked
// again in time, though the wheel holds it for the delete timeout.
func TestRevivedInstanceIsWatched(t *testing.T) {
	w := newWorld(t)
	w.register(httpOwner, first, times("", "1000", "600000"))
	w.pass(2 * time.Second)
	w.beat(first)
	w.rec.take()
	w.pass(1001 * time.Millisecond)
	w.events("unhealthy orders 10.0.0.1:8080/DEFAULT")
}

// Times that get shorter count at once.
func TestShorterTimesCountAtOnce(t *testing.T) {
	shorter := NewMetadata(map[string]string{KeyBeatTimeout: "1000", KeyDeleteTimeout: "2000"})
	for name, change := range map[string]func(*world){
		"registration": func(w *world) { w.register(httpOwner, first, times("", "1000", "2000")) },
		"override": func(w *world) {
			w.must(&SetOverride{Meta: w.meta(), Service: orders(), Entries: []TargetOverride{{Target: first, Override: Override{Metadata: &shorter}}}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.register(httpOwner, first, times("", "600000", "700000"))
			change(w)
			w.rec.take()
			w.pass(1001 * time.Millisecond)
			w.pass(1000 * time.Millisecond)
			w.events("unhealthy orders 10.0.0.1:8080/DEFAULT", "removed orders 10.0.0.1:8080/DEFAULT")
		})
	}
}

func TestHealthSetByHandIsJudgedAgain(t *testing.T) {
	w := newWorld(t)
	w.register(httpOwner, first)
	w.pass(20 * time.Second)
	w.must(&SetHealth{Meta: w.meta(), Service: orders(), Instance: first, Healthy: true, All: true})
	w.rec.take()
	w.pass(time.Millisecond)
	w.events("unhealthy orders 10.0.0.1:8080/DEFAULT")
}

func TestMarkedInstancesStay(t *testing.T) {
	w := newWorld(t)
	w.register(httpOwner, first, func(i *Instance) { i.Marked = true })
	w.rec.take()
	w.pass(time.Hour)
	w.events()
	w.register(httpOwner, first) // no longer marked
	w.rec.take()
	w.pass(15001 * time.Millisecond)
	w.events("unhealthy orders 10.0.0.1:8080/DEFAULT")
}

func TestChecksSwitchedOff(t *testing.T) {
	w := newWorld(t)
	w.register(httpOwner, first)
	w.must(&SetSwitch{Meta: w.meta(), Entry: "check", Value: "false"})
	w.rec.take()
	w.pass(time.Hour)
	w.events()
	w.must(&SetSwitch{Meta: w.meta(), Entry: "check", Value: "true"})
	w.rec.take()
	w.pass(time.Millisecond)
	w.events("unhealthy orders 10.0.0.1:8080/DEFAULT", "removed orders 10.0.0.1:8080/DEFAULT")
}

func TestWithoutRemoval(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Expire = false
	w := newWorldWith(t, cfg)
	w.register(httpOwner, first)
	w.register(httpOwner, at("10.0.0.2", 8080), times("", "20000", "10000"))
	w.rec.take()
	w.pass(19 * time.Second)
	w.events("unhealthy orders 10.0.0.1:8080/DEFAULT")
	w.pass(time.Hour)
	w.events("unhealthy orders 10.0.0.2:8080/DEFAULT")
	w.beat(first)
	w.pass(15001 * time.Millisecond)
	w.events("healthy orders 10.0.0.1:8080/DEFAULT", "unhealthy orders 10.0.0.1:8080/DEFAULT")
}

// A late wheel removes whoever is silent, and nobody who has beaten.
func TestLateClock(t *testing.T) {
	w := newWorld(t)
	for n := range 4 {
		w.register(httpOwner, at("10.0.0.1", int32(n)))
	}
	w.advance(time.Hour)
	w.beat(at("10.0.0.1", 0))
	w.advance(10 * time.Second)
	w.rec.take()
	w.Expire(w.now)
	got := w.rec.take()
	slices.Sort(got)
	want := []string{}
	for _, kind := range []string{"removed", "unhealthy"} {
		for n := 1; n < 4; n++ {
			want = append(want, kind+" orders 10.0.0.1:"+strconv.Itoa(n)+"/DEFAULT")
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// A clock that seems to run back, as when two calls overtake each other, does
// nothing.
func TestExpireOutOfOrder(t *testing.T) {
	w := newWorld(t)
	w.register(httpOwner, first)
	w.Expire(Instant{Wall: wall0, Lease: 20 * time.Second})
	w.rec.take()
	w.Expire(Instant{Wall: wall0, Lease: 10 * time.Second})
	w.events()
	w.Expire(Instant{Wall: wall0, Lease: 31 * time.Second})
	w.events("removed orders 10.0.0.1:8080/DEFAULT")
}
