package push

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollcall-registry/rollcall/internal/registry"
)

func TestFirstChangeLeavesAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, h *house, r *recorder) {
		time.Sleep(time.Minute)
		h.register(service1(0), 1, 1)
		synctest.Wait()
		calls := r.all()
		if len(calls) != 1 || calls[0].at != time.Minute || calls[0].revision != h.store.View(service1(0)).Revision {
			t.Fatalf("got %+v, want one push of the present view at once", calls)
		}
		time.Sleep(time.Minute)
		if n := len(r.all()); n != 1 {
			t.Errorf("%d pushes for one change, want 1", n)
		}
	})
}

func TestWindow(t *testing.T) {
	for _, test := range []struct {
		name    string
		changes []int // milliseconds
		backlog time.Duration
		want    []time.Duration
	}{
		{"burst", []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, 0, ms(0, 10)},
		{"two far apart", []int{0, 100}, 0, ms(0, 100)},
		{"just inside", []int{0, 9}, 0, ms(0, 10)},
		{"just outside", []int{0, 12}, 0, ms(0, 12)},
		{"one after the other", []int{0, 1, 11, 21, 31}, 0, ms(0, 10, 20, 30, 40)},
		{"a storm doubles it", []int{0, 1, 2, 11, 12, 31, 32, 71, 72, 151}, 0, ms(0, 10, 30, 70, 150, 310)},
		{"a window without a change ends the storm", []int{0, 1, 2, 100, 101}, 0, ms(0, 10, 100, 110)},
		{"an expensive push widens it", []int{0, 10}, 30 * time.Millisecond, ms(0, 300)},
		{"but never past the largest", []int{0, 10}, time.Hour, ms(0, 500)},
	} {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, h *house, r *recorder) {
				r.backlog = test.backlog
				for i, at := range test.changes {
					time.Sleep(time.Until(r.start.Add(time.Duration(at) * time.Millisecond)))
					h.register(service1(0), 1, float64(i+1))
				}
				time.Sleep(time.Minute)
				if got := r.times(); !closeTo(got, test.want) {
					t.Errorf("pushed at %v, want %v", got, test.want)
				}
				calls := r.all()
				if last := calls[len(calls)-1]; last.revision != h.store.View(service1(0)).Revision {
					t.Errorf("the last push has revision %d, want the last one", last.revision)
				}
				if want := len(test.changes) + 1; h.seen.changes != want { // the service is made too
					t.Errorf("observed %d changes, want %d", h.seen.changes, want)
				}
				if n := h.pusher.Pending(); n != 0 {
					t.Errorf("%d services pending, want 0", n)
				}
			})
		})
	}
}

// slack is what a push may be late by in fake time: nothing but its own sleeps.
const slack = time.Millisecond

// closeTo compares times.
func closeTo(got, want []time.Duration) bool {
	return slices.EqualFunc(got, want, func(g, w time.Duration) bool {
		return g >= w && g <= w+slack
	})
}

func TestStreamOfChanges(t *testing.T) {
	bubble(t, func(t *testing.T, h *house, r *recorder) {
		for i := range 2000 { // one each 5 ms for 10 s
			h.register(service1(0), 1, float64(i+1))
			time.Sleep(5 * time.Millisecond)
		}
		time.Sleep(time.Second)
		times := r.times()
		if len(times) < 20 || len(times) > 30 {
			t.Errorf("%d pushes in 10 s, want about two a second after the start", len(times))
		}
		for i := 1; i < len(times); i++ {
			if gap := times[i] - times[i-1]; gap > DefaultConfig().MaxWindow+slack {
				t.Errorf("a gap of %v between pushes", gap)
			}
		}
	})
}

func TestChangeDuringPushIsNotLost(t *testing.T) {
	bubble(t, func(t *testing.T, h *house, r *recorder) {
		weight := 1.0
		r.during = func(key registry.ServiceKey) {
			if weight < 3 {
				weight++
				h.register(key, 1, weight)
			}
		}
		h.register(service1(0), 1, weight)
		time.Sleep(time.Minute)
		calls := r.all()
		if len(calls) != 3 || calls[2].revision != h.store.View(service1(0)).Revision {
			t.Errorf("got %+v, want three pushes, the last with the last state", calls)
		}
	})
}

func TestWhoIsPushedTo(t *testing.T) {
	bubble(t, func(t *testing.T, h *house, r *recorder) {
		key := service1(0)
		grpc := &recorder{start: r.start}
		h.pusher.senders = append(h.pusher.senders, sender{registry.ProtocolGRPC, grpc})
		h.subscribe(key, addr(1), registry.ProtocolUDP)
		h.subscribe(key, addr(2), registry.ProtocolGRPC)
		refused := &registry.Subscriber{Service: key, SubscriberKey: addr(3), Protocol: registry.ProtocolUDP, Refused: "not its own address"}
		h.apply(&registry.Subscribe{Meta: h.meta(), Subscriber: refused})
		h.register(key, 1, 1)
		h.register(service1(9), 1, 1) // nobody subscribed
		synctest.Wait()
		if calls := r.all(); len(calls) != 1 || !slices.Equal(calls[0].ports, []uint16{20000, 20001}) {
			t.Errorf("udp got %+v, want the ports 20000 and 20001", calls)
		}
		if calls := grpc.all(); len(calls) != 1 || !slices.Equal(calls[0].ports, []uint16{20002}) {
			t.Errorf("grpc got %+v, want the port 20002", calls)
		}
	})
}

func TestServiceGone(t *testing.T) {
	bubble(t, func(t *testing.T, h *house, r *recorder) {
		key := service1(0)
		h.register(key, 1, 1)
		time.Sleep(time.Second)
		h.apply(&registry.DeleteService{Meta: h.meta(), Service: key})
		time.Sleep(time.Second)
		// Both commands have two events: the service and its instance.
		if calls := r.all(); len(calls) != 2 || calls[0].revision == 0 || calls[1].revision != 0 {
			t.Errorf("got %+v, want one push of the service and one that it is gone", calls)
		}
		if h.seen.empty != 1 {
			t.Errorf("%d empty pushes observed, want 1", h.seen.empty)
		}
	})
}

func TestPushDisabled(t *testing.T) {
	bubble(t, func(t *testing.T, h *house, r *recorder) {
		h.setSwitch("pushEnabled", "false")
		for n := range 3 {
			h.subscribe(service1(n), addr(n), registry.ProtocolUDP)
			h.register(service1(n), 1, 1)
			h.register(service1(n), 2, 1)
		}
		time.Sleep(time.Hour)
		if n := len(r.all()); n != 0 {
			t.Fatalf("%d pushes while they are switched off, want 0", n)
		}
		if n := h.pusher.Pending(); n != 3 {
			t.Errorf("%d services pending, want 3", n)
		}
		h.setSwitch("pushEnabled", "true")
		time.Sleep(10 * time.Millisecond)
		if n := len(r.all()); n != 3 {
			t.Errorf("%d pushes once they are on again, want 3", n)
		}
	})
}

func TestSwitchedOffInTheWindow(t *testing.T) {
	bubble(t, func(t *testing.T, h *house, r *recorder) {
		h.register(service1(0), 1, 1)
		synctest.Wait()
		h.register(service1(0), 1, 2)
		h.setSwitch("pushEnabled", "false")
		time.Sleep(time.Minute) // the window ends meanwhile
		h.setSwitch("pushEnabled", "true")
		time.Sleep(10 * time.Millisecond)
		if n := len(r.all()); n != 2 {
			t.Errorf("%d pushes, want 2", n)
		}
	})
}

func TestSchedule(t *testing.T) {
	bubble(t, func(t *testing.T, h *house, r *recorder) {
		key := service1(0)
		h.register(key, 1, 1)
		time.Sleep(time.Second)
		before := len(r.all())
		other := h.subscribe(key, addr(1), registry.ProtocolUDP)
		gone := h.subscribe(key, addr(2), registry.ProtocolUDP)
		changed := h.clock.Now()
		for _, delay := range ms(500, 700, 300, 900) { // the earliest counts
			h.pusher.Schedule(other, delay, changed)
		}
		h.pusher.Schedule(gone, 300*time.Millisecond, registry.Instant{})
		h.apply(&registry.Unsubscribe{Meta: h.meta(), Service: key, Subscriber: gone.SubscriberKey})
		time.Sleep(time.Minute)
		calls := r.all()[before:]
		if len(calls) != 1 || !slices.Equal(calls[0].ports, []uint16{20001}) {
			t.Fatalf("got %+v, want one push to port 20001", calls)
		}
		if want := time.Second + 300*time.Millisecond; !closeTo([]time.Duration{calls[0].at}, []time.Duration{want}) {
			t.Errorf("pushed at %v, want %v", calls[0].at, want)
		}
		if calls[0].changed != changed || calls[0].revision == 0 {
			t.Errorf("got %+v, want the view and the time of the change", calls[0])
		}
		if services, alarms := h.remembered(); services != 1 || alarms != 0 {
			t.Errorf("%d services and %d alarms are remembered, want 1 and 0", services, alarms)
		}
	})
}

func TestScheduledPushDoesNotWaitForTheWindow(t *testing.T) {
	bubble(t, func(t *testing.T, h *house, r *recorder) {
		r.backlog = time.Hour // the window is 500 ms
		h.register(service1(0), 1, 1)
		synctest.Wait()
		h.register(service1(0), 1, 2)
		h.pusher.Schedule(h.store.Subscriber(service1(0), addr(0)), 100*time.Millisecond, registry.Instant{})
		time.Sleep(time.Minute)
		if got, want := r.times(), ms(0, 100, 500); !closeTo(got, want) {
			t.Errorf("pushed at %v, want %v", got, want)
		}
	})
}

func TestDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, DefaultConfig())
		r := &recorder{start: time.Now(), backlog: time.Hour}
		h.pusher.Deliver(registry.ProtocolUDP, r)
		for n := range 3 {
			h.subscribe(service1(n), addr(n), registry.ProtocolUDP)
		}
		stop := h.run()
		for n := range 3 {
			h.register(service1(n), 1, 1)
		}
		synctest.Wait()
		for n := range 2 { // these are held by their windows
			h.register(service1(n), 1, 2)
		}
		stop()
		if calls := r.all(); len(calls) != 5 || calls[4].at > 10*time.Millisecond {
			t.Errorf("got %+v, want five pushes at once", calls)
		}
	})
}

func TestDrainIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, DefaultConfig())
		r := &recorder{start: time.Now(), during: func(registry.ServiceKey) { time.Sleep(300 * time.Millisecond) }}
		h.pusher.Deliver(registry.ProtocolUDP, r)
		stop := h.run()
		h.setSwitch("pushEnabled", "false")
		for n := range 100 {
			h.subscribe(service1(n), addr(n), registry.ProtocolUDP)
			h.register(service1(n), 1, 1)
		}
		ended := make(chan struct{})
		if _, err := h.store.Apply(&registry.SetSwitch{Meta: h.meta(), Entry: "pushEnabled", Value: "true"}); err != nil {
			t.Fatal(err)
		}
		go func() { stop(); close(ended) }()
		<-ended
		if took := time.Since(r.start); took > drainLimit+time.Second {
			t.Errorf("stopping took %v, want at most about %v", took, drainLimit)
		}
	})
}

// TestNoChangeIsLost makes random changes to services with and without
// subscribers while senders are slow at random. Whoever is subscribed must have
// been given the last state, and every state that lasted longer than the largest
// window and the slowest pushes.
func TestNoChangeIsLost(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			const services, steps = 20, 2000
			rnd := rand.New(rand.NewPCG(seed, 1))
			h := newHouse(t, DefaultConfig())
			var mu sync.Mutex
			slow := rand.New(rand.NewPCG(seed, 2))
			r := &recorder{start: time.Now(), during: func(registry.ServiceKey) {
				mu.Lock()
				d := time.Duration(slow.IntN(3)) * time.Duration(slow.IntN(20)) * time.Millisecond
				mu.Unlock()
				time.Sleep(d)
			}}
			h.pusher.Deliver(registry.ProtocolUDP, r)
			stop := h.run()
			defer stop()

			type state struct {
				key      registry.ServiceKey
				revision int64
			}
			var lasting []state                       // what subscribers must see
			watched := map[registry.ServiceKey]bool{} // somebody waits for the last change
			for i := range steps {
				key := service1(rnd.IntN(services))
				switch rnd.IntN(10) {
				case 0:
					h.subscribe(key, addr(rnd.IntN(3)), registry.ProtocolUDP)
				case 1:
					h.apply(&registry.Unsubscribe{Meta: h.meta(), Service: key, Subscriber: addr(rnd.IntN(3))})
					watched[key] = watched[key] && h.store.HasSubscribers(key)
				default:
					h.register(key, int32(rnd.IntN(5)+1), float64(i+1))
					watched[key] = h.store.HasSubscribers(key)
				}
				if rnd.IntN(3) == 0 {
					time.Sleep(time.Duration(rnd.IntN(30)) * time.Millisecond)
				}
				if i%500 == 499 {
					h.subscribe(key, addr(7), registry.ProtocolUDP)
					h.register(key, 1, float64(i)+0.5)
					time.Sleep(2 * time.Second)
					lasting = append(lasting, state{key, h.store.View(key).Revision})
				}
			}
			time.Sleep(10 * time.Second)

			last := map[registry.ServiceKey]int64{}
			seen := map[state]bool{}
			for _, p := range r.all() {
				if p.revision < last[p.key] {
					t.Fatalf("seed %d: %v went back from %d to %d", seed, p.key, last[p.key], p.revision)
				}
				last[p.key] = p.revision
				seen[state{p.key, p.revision}] = true
			}
			for _, was := range lasting {
				if !seen[was] {
					t.Errorf("seed %d: %v lasted 2 s and was not pushed", seed, was)
				}
			}
			for key, waiting := range watched {
				if now := h.store.View(key).Revision; waiting && last[key] != now {
					t.Errorf("seed %d: %v: the last push has revision %d, want %d", seed, key, last[key], now)
				}
			}
			if n := h.pusher.Pending(); n != 0 {
				t.Errorf("seed %d: %d services pending, want 0", seed, n)
			}
			subscribed := 0
			for key := range watched {
				if h.store.HasSubscribers(key) {
					subscribed++
				}
			}
			if services, alarms := h.remembered(); services != subscribed || alarms != 0 {
				t.Errorf("seed %d: %d services and %d alarms are remembered, want %d and 0", seed, services, alarms, subscribed)
			}
		})
	}
}

func TestServicesThatNobodyWatchesAreForgotten(t *testing.T) {
	bubble(t, func(t *testing.T, h *house, r *recorder) {
		for n := range 3000 {
			h.register(service1(n), 1, 1)
		}
		if services, _ := h.remembered(); services != 1 {
			t.Errorf("%d services are remembered, want the one with a subscriber", services)
		}
		for n := range 3000 {
			h.subscribe(service1(n), addr(0), registry.ProtocolUDP)
			h.register(service1(n), 1, 2)
		}
		for n := range 3000 {
			h.apply(&registry.Unsubscribe{Meta: h.meta(), Service: service1(n), Subscriber: addr(0)})
		}
		time.Sleep(time.Second)
		if services, alarms := h.remembered(); services != 0 || alarms != 0 {
			t.Errorf("%d services and %d alarms are remembered, want none", services, alarms)
		}
		if n := h.pusher.Pending(); n != 0 {
			t.Errorf("%d services pending, want 0", n)
		}
	})
}

func TestOneOfTwoLeaves(t *testing.T) {
	bubble(t, func(t *testing.T, h *house, r *recorder) {
		h.subscribe(service1(0), addr(1), registry.ProtocolUDP)
		h.apply(&registry.Unsubscribe{Meta: h.meta(), Service: service1(0), Subscriber: addr(0)})
		time.Sleep(time.Second)
		h.register(service1(0), 1, 1)
		synctest.Wait()
		if calls := r.all(); len(calls) != 1 || !slices.Equal(calls[0].ports, []uint16{20001}) {
			t.Errorf("got %+v, want one push to port 20001", calls)
		}
	})
}

func TestConfig(t *testing.T) {
	if err := DefaultConfig().Validate(); err != nil {
		t.Errorf("the defaults are invalid: %v", err)
	}
	for _, cfg := range []Config{{}, {time.Second, time.Millisecond}, {time.Second, time.Hour}} {
		if cfg.Validate() == nil {
			t.Errorf("%+v is valid, want a fault", cfg)
		}
	}
}
