package rollcall

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollcall-registry/rollcall/client/internal/wire"
)

// TestFreshness is the table of rules: what is taken, in which order of events.
func TestFreshness(t *testing.T) {
	type step struct {
		do   func(w *fakeWire)
		want string // what is shown after it
	}
	push := func(refTime int64, hosts ...string) func(*fakeWire) {
		return func(w *fakeWire) { w.push(wireOrders, refTime, hosts...) }
	}
	foreign := func(w *fakeWire) {
		w.events.Pushed(wire.List{Service: wireOrders, Session: "other", Raw: []byte(rawList(99, "9.9.9.9:9"))})
	}
	raw := func(text string) func(*fakeWire) {
		return func(w *fakeWire) {
			w.events.Pushed(wire.List{Service: wireOrders, Session: w.session.ID, Raw: []byte(text)})
		}
	}
	tests := map[string]struct {
		steps []step
		drops map[string]int
		seen  int // updates, with the first
	}{
		"in order":              {[]step{{push(2, "b:1"), "b:1"}, {push(3, "b:1", "c:1"), "b:1 c:1"}}, nil, 3},
		"twice":                 {[]step{{push(2, "b:1"), "b:1"}, {push(2, "b:1"), "b:1"}}, nil, 2},
		"out of order":          {[]step{{push(5, "b:1"), "b:1"}, {push(4, "c:1"), "b:1"}}, map[string]int{"push_stale": 1}, 2},
		"older than the answer": {[]step{{push(0, "b:1"), "a:1"}}, map[string]int{"push_stale": 1}, 1},
		"same time, other list": {[]step{{push(1, "b:1"), "b:1"}}, nil, 2},
		"of another session":    {[]step{{foreign, "a:1"}}, map[string]int{"push_foreign": 1}, 1},
		"empty":                 {[]step{{push(2), ""}}, nil, 2},
		"corrupt":               {[]step{{raw(`{"hosts":[{"ip"`), "a:1"}, {raw(``), "a:1"}, {raw(`[]`), "a:1"}}, map[string]int{"list_malformed": 3}, 1},
		"without hosts":         {[]step{{raw(`{"lastRefTime":9}`), "a:1"}, {raw(`{"hosts":null}`), "a:1"}}, map[string]int{"list_malformed": 2}, 1},
		"a server whose clock is behind": {[]step{
			{push(1000, "b:1"), "b:1"},
			{func(w *fakeWire) { w.down(errors.New("x")); w.say(wireOrders, 5, "c:1"); w.up() }, "c:1"},
			{push(6, "d:1"), "d:1"},
		}, nil, 4},
		"a push before the session asked": {[]step{
			{func(w *fakeWire) {
				w.set(func(f *fakeWire) { f.delay = time.Second })
				w.down(errors.New("x"))
				w.say(wireOrders, 5, "c:1")
				w.up()
				w.push(wireOrders, 6, "d:1")
			}, "a:1"},
			{func(*fakeWire) { time.Sleep(2 * time.Second) }, "d:1"},
		}, nil, 2},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			counts := new(counter)
			inBubble(t, func(t *testing.T, c *Client, w *fakeWire) {
				w.say(wireOrders, 1, "a:1")
				w.up()
				watch := mustWatch(t, c)
				seen := 0
				watch.OnUpdate(func(Update) { seen++ })
				synctest.Wait()
				for n, s := range test.steps {
					s.do(w)
					synctest.Wait()
					if got := addresses(watch.Snapshot()); got != s.want {
						t.Errorf("step %d: %q is shown, want %q", n, got, s.want)
					}
				}
				if seen != test.seen {
					t.Errorf("%d updates, want %d", seen, test.seen)
				}
				if got := counts.all(); !maps.Equal(got, test.drops) {
					t.Errorf("dropped %v, want %v", got, test.drops)
				}
			}, WithMetrics(counts))
		})
	}
}

// An answer that was overtaken by a push is older than it.
func TestPushOvertakesAnAnswer(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Client, w *fakeWire) {
		w.say(wireOrders, 1, "a:1")
		w.up()
		watch := mustWatch(t, c)
		e := watch.entry
		after := e.begin("s1")
		w.push(wireOrders, 5, "b:1")
		late := wire.List{Service: wireOrders, Session: "s1", Asked: true, Raw: []byte(rawList(3, "old:1"))}
		if err := e.answered(late, after, nil); err != nil {
			t.Fatal(err)
		}
		if got := addresses(watch.Snapshot()); got != "b:1" {
			t.Errorf("shows %s", got)
		}
		if err := e.answered(late, e.begin("s1"), nil); err != nil { // asked after the push
			t.Fatal(err)
		}
		if got := addresses(watch.Snapshot()); got != "old:1" {
			t.Errorf("shows %s; what was asked for is taken, whatever the clocks say", got)
		}
	})
}

// A push that is faster than the answer which begins its session is not lost.
func TestPushBeforeTheFirstAnswer(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Client, w *fakeWire) {
		w.say(wireOrders, 1, "a:1")
		w.up()
		watch := mustWatch(t, c)
		w.down(errors.New("x"))
		w.set(func(f *fakeWire) { f.delay = time.Second })
		w.up()
		e := watch.entry
		if got := w.ops("subscribe"); got != 2 {
			t.Fatalf("%d subscriptions", got)
		}
		w.events.Pushed(wire.List{Service: wireOrders, Session: "s2", Raw: []byte(rawList(9, "b:1"))})
		if got := addresses(watch.Snapshot()); got != "a:1" {
			t.Errorf("shows %s before the session has answered", got)
		}
		time.Sleep(2 * time.Second)
		if got := addresses(watch.Snapshot()); got != "b:1" || e.early != nil {
			t.Errorf("shows %s", got)
		}
	})
}

// A poll over HTTP that is answered after the client has moved to gRPC is of the past.
func TestPollAfterMoving(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Client, w *fakeWire) {
		w.say(wireOrders, 1, "a:1")
		w.up()
		watch := mustWatch(t, c)
		w.events.Pushed(wire.List{Service: wireOrders, Session: "http", Asked: true, Raw: []byte(rawList(99, "b:1"))})
		if got := addresses(watch.Snapshot()); got != "a:1" {
			t.Errorf("shows %s", got)
		}
		w.push(wireOrders, 2, "c:1")
		if got := addresses(watch.Snapshot()); got != "c:1" {
			t.Errorf("shows %s", got)
		}
	})
}

func TestResync(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Client, w *fakeWire) {
		w.say(wireOrders, 1, "a:1")
		w.up()
		watch := mustWatch(t, c)
		w.say(wireOrders, 2, "b:1") // and the push is lost
		time.Sleep(48*time.Second - time.Millisecond)
		if w.ops("query") != 0 {
			t.Error("asked too soon")
		}
		time.Sleep(24*time.Second + 2*time.Millisecond)
		if got := addresses(watch.Snapshot()); got != "b:1" {
			t.Errorf("after 72 s: %s", got)
		}
		time.Sleep(time.Hour)
		if n := w.ops("query"); n < 50 || n > 80 {
			t.Errorf("asked %d times in an hour and a minute", n)
		}
	})
	inBubble(t, func(t *testing.T, c *Client, w *fakeWire) {
		w.up()
		mustWatch(t, c)
		time.Sleep(time.Hour)
		if n := w.ops("query"); n != 0 {
			t.Errorf("asked %d times", n)
		}
	}, WithResync(0))
}

func TestEmptyProtection(t *testing.T) {
	const hold = 30 * time.Second
	dir := t.TempDir()
	inBubble(t, func(t *testing.T, c *Client, w *fakeWire) {
		w.say(wireOrders, 1, "a:1")
		w.up()
		watch := mustWatch(t, c)
		w.push(wireOrders, 2)
		s := watch.Snapshot()
		if addresses(s) != "a:1" || !s.Info().HeldEmpty {
			t.Errorf("at once: %s, %+v", addresses(s), s.Info())
		}
		time.Sleep(hold / 2)
		w.push(wireOrders, 3) // still empty; the time counts from the first
		w.push(wireOrders, 4, "b:1")
		if s := watch.Snapshot(); addresses(s) != "b:1" || s.Info().HeldEmpty {
			t.Errorf("not empty any more: %s", addresses(s))
		}
		w.push(wireOrders, 5)
		time.Sleep(hold - time.Second)
		w.push(wireOrders, 6)
		if got := addresses(watch.Snapshot()); got != "b:1" {
			t.Errorf("before the time is over: %s", got)
		}
		time.Sleep(2 * time.Second)
		if s := watch.Snapshot(); s.Len() != 0 || s.Info().HeldEmpty {
			t.Errorf("after %v: %s", hold, addresses(s))
		}
		time.Sleep(2 * time.Second)
		raw, err := os.ReadFile(filepath.Join(dir, "naming", "public", "DEFAULT_GROUP%40%40orders"))
		if err != nil || strings.Contains(string(raw), "ip") {
			t.Errorf("on disk: %s, %v", raw, err)
		}
	}, WithEmptyProtection(hold), WithDiskCache(dir, 0))
}

// While an empty list is held, the service is asked for as before: the push that says that
// there are instances again may be lost.
func TestResyncWhileEmptyIsHeld(t *testing.T) {
	const hold = time.Hour
	inBubble(t, func(t *testing.T, c *Client, w *fakeWire) {
		w.say(wireOrders, 1, "a:1")
		w.up()
		watch := mustWatch(t, c)
		w.push(wireOrders, 2)
		if !watch.Snapshot().Info().HeldEmpty {
			t.Fatal("not held")
		}
		w.say(wireOrders, 3, "b:1") // and the push is lost
		time.Sleep(73 * time.Second)
		if s := watch.Snapshot(); addresses(s) != "b:1" || s.Info().HeldEmpty {
			t.Errorf("after 73 s: %s, %+v", addresses(s), s.Info())
		}
		w.push(wireOrders, 4)
		time.Sleep(hold + time.Millisecond)
		if s := watch.Snapshot(); s.Len() != 0 {
			t.Errorf("held for longer than %v: %s", hold, addresses(s))
		}
	}, WithEmptyProtection(hold))
}
