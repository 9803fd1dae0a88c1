package registry

import (
	"strings"
	"testing"
	"time"
)

// fleet registers n instances in orders, on ports from 1.
func (w *world) fleet(n int) {
	for port := range int32(n) {
		w.register(httpOwner, at("10.0.0.1", port+1))
	}
	w.rec.take()
}

// beatPorts lets the instances from one port to another beat.
func (w *world) beatPorts(from, to int32) {
	for port := from; port <= to; port++ {
		w.beat(at("10.0.0.1", port))
	}
}

// tally counts the events since the last look by kind.
func (w *world) tally() string {
	count := map[EventKind]int{}
	for _, e := range w.rec.events {
		count[e.Kind]++
	}
	w.rec.take()
	var words []string
	for _, kind := range []EventKind{InstanceHealthy, InstanceUnhealthy, ExpiryHeld, ExpiryReleased, InstanceRemoved} {
		if n := count[kind]; n > 0 {
			words = append(words, strings.ReplaceAll(string(kind), " ", "-")+":"+string(rune('0'+n/10))+string(rune('0'+n%10)))
		}
	}
	return strings.Join(words, " ")
}

func (w *world) expect(step, want string) {
	w.t.Helper()
	if got := w.tally(); got != want {
		w.t.Errorf("%s: got %q, want %q", step, got, want)
	}
}

func TestBrake(t *testing.T) {
	for _, tt := range []struct {
		name           string
		fleet, beating int32
		holds          bool
	}{
		{"nine", 9, 0, false},
		{"ten", 10, 0, true},
		{"ten of twenty", 20, 10, true},
		{"ten of twenty-one", 21, 11, false},
		{"nine of eighteen", 18, 9, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			w.fleet(int(tt.fleet))
			for range 7 {
				w.beatPorts(1, tt.beating)
				w.pass(5 * time.Second)
			}
			if w.Held(orders()) != tt.holds {
				t.Errorf("held: %v, want %v; events %s", w.Held(orders()), tt.holds, w.tally())
			}
		})
	}
}

func TestBrakeHoldsOnce(t *testing.T) {
	w := newWorld(t)
	w.fleet(12)
	w.pass(15001 * time.Millisecond)
	w.expect("marked", "unhealthy:12") // marking is never held
	w.pass(15 * time.Second)
	if e := w.rec.events[0]; e.Cause.String() != "brake: 12 of 12 instances fell silent at once" || e.Revision != 0 {
		t.Errorf("the brake says %q, revision %d", e.Cause, e.Revision)
	}
	w.expect("due", "expiry-held:01")
	for range 29 {
		w.pass(time.Second)
	}
	w.expect("held", "")
	w.deregister(httpOwner, at("10.0.0.1", 1))
	w.expect("an explicit removal is not delayed", "removed:01")
	w.beatPorts(2, 3)
	w.expect("nor is a recovery", "healthy:02")
	w.pass(999 * time.Millisecond)
	w.expect("to the end", "")
	w.pass(time.Millisecond)
	w.expect("released after one delete timeout", "expiry-released:01 removed:09")
	if w.Held(orders()) {
		t.Error("still held")
	}
	w.pass(28 * time.Second)
	w.expect("who came back is judged as usual", "unhealthy:02")
}

// Right after the brake it does not hold again, and later it does.
func TestBrakeRearms(t *testing.T) {
	w := newWorld(t)
	w.fleet(10)
	w.pass(30001 * time.Millisecond)
	w.pass(30 * time.Second)
	w.expect("first time", "unhealthy:10 expiry-held:01 expiry-released:01 removed:10")
	w.fleet(10)
	w.pass(29 * time.Second) // until 89 s, and the brake is armed again at 90 s
	w.expect("silent again", "unhealthy:10")
	w.pass(1001 * time.Millisecond)
	w.expect("armed", "expiry-held:01")

	w = newWorld(t)
	w.fleet(10)
	w.pass(30001 * time.Millisecond)
	w.pass(30 * time.Second)
	w.tally()
	for port := range int32(10) {
		w.register(httpOwner, at("10.0.0.1", port+1), times("", "1000", "5000"))
	}
	w.tally()
	w.pass(5001 * time.Millisecond)
	w.expect("too early to be armed", "unhealthy:10 removed:10")
}

// The brake ends by the clock even when all came back, so that it does not show
// for ever and does not end in the midst of a later removal.
func TestBrakeEndsWithoutRemovals(t *testing.T) {
	w := newWorld(t)
	w.fleet(10)
	w.pass(30001 * time.Millisecond)
	w.expect("held", "unhealthy:10 expiry-held:01")
	for range 6 {
		w.beatPorts(1, 10)
		w.pass(5 * time.Second)
	}
	w.expect("recovered", "healthy:10 expiry-released:01")
	if w.Held(orders()) {
		t.Error("still held")
	}
}

// A service that is deleted under the brake leaves nothing behind.
func TestBrakeOfADeletedService(t *testing.T) {
	w := newWorld(t)
	w.fleet(10)
	w.pass(30001 * time.Millisecond)
	w.tally()
	w.must(&DeleteService{Meta: w.meta(), Service: orders()})
	w.fleet(1)
	if w.Held(orders()) {
		t.Error("a new service of the name is held")
	}
	w.pass(time.Minute)
	w.expect("later", "unhealthy:01 removed:01")
	if sh := w.shard(orders()); len(sh.held) != 0 {
		t.Errorf("%d services are noted as held", len(sh.held))
	}
}

func TestBrakeSettings(t *testing.T) {
	for _, tt := range []struct {
		brake Brake
		want  string
	}{
		{Brake{}, "unhealthy:10 removed:10"},
		{Brake{Enabled: true, MinInstances: 11}, "unhealthy:10 removed:10"},
		{Brake{Enabled: true, MinInstances: 2, MinShare: 1}, "unhealthy:10 expiry-held:01"},
	} {
		cfg := DefaultConfig()
		cfg.Brake = tt.brake
		w := newWorldWith(t, cfg)
		w.fleet(10)
		w.pass(time.Minute)
		if got := w.tally(); got != tt.want {
			t.Errorf("%+v: got %q, want %q", tt.brake, got, tt.want)
		}
	}
}

// An instance whose removal is held is marked in time all the same.
func TestBrakeDoesNotDelayMarking(t *testing.T) {
	w := newWorld(t)
	w.fleet(10)
	w.pass(30001 * time.Millisecond)
	w.tally()
	w.register(httpOwner, first, times("", "9000", "3000"))
	w.tally()
	for range 5 {
		w.pass(2 * time.Second)
	}
	w.expect("later", "unhealthy:01")
}

// Connections and persistent instances have no part in the brake.
func TestBrakeCountsBeatingInstances(t *testing.T) {
	w := newWorld(t)
	w.OpenClient("c1")
	for port := range int32(30) {
		w.register(connection("c1"), at("10.0.0.2", port))
		w.register(durableOwner, at("10.0.0.3", port))
	}
	w.fleet(10)
	w.pass(30001 * time.Millisecond)
	w.expect("all that beat are silent", "unhealthy:10 expiry-held:01")
	w.must(&CloseClient{Meta: w.meta(), Client: "c1"})
	w.expect("a closed connection is not delayed", "removed:30")
}
