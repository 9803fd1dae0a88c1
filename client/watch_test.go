package rollcall

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollcall-registry/rollcall/client/internal/wire"
)

func mustWatch(t *testing.T, c *Client, options ...WatchOption) *Watch {
	t.Helper()
	w, err := c.Watch(t.Context(), orders, options...)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// now returns the Update that is in a channel.
func now(t *testing.T, updates <-chan Update) Update {
	t.Helper()
	synctest.Wait()
	select {
	case u := <-updates:
		return u
	default:
		t.Helper()
		t.Fatal("there is no update")
		return Update{}
	}
}

func none(t *testing.T, updates <-chan Update) {
	t.Helper()
	synctest.Wait()
	select {
	case u := <-updates:
		t.Errorf("an update to %s", addresses(u.Snapshot))
	default:
	}
}

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

func TestUpdatesTellWhatTheReaderMissed(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Client, w *fakeWire) {
		w.say(wireOrders, 1, "a:1", "b:1")
		w.up()
		watch := mustWatch(t, c)
		updates := watch.Updates()
		u := now(t, updates)
		if len(u.Added) != 2 || len(u.Removed)+len(u.Changed) != 0 {
			t.Errorf("first: %+v", u)
		}
		kept := u.Snapshot.At(1)
		w.push(wireOrders, 2, "b:1", "c:1")
		w.push(wireOrders, 3, "b:1")
		w.push(wireOrders, 4, `b:1 ,"weight":2`, "d:1")
		u = now(t, updates)
		if addresses(u.Snapshot) != "b:1 d:1" || len(u.Added) != 1 || len(u.Removed) != 1 || len(u.Changed) != 1 {
			t.Errorf("after three: %+v", u)
		}
		if u.Removed[0].IP != "a" || u.Added[0].IP != "d" || u.Changed[0].Weight != 2 || kept.Weight != 1 {
			t.Errorf("after three: %v %v %v", u.Added[0], u.Removed[0], u.Changed[0])
		}
		w.push(wireOrders, 5, `b:1 ,"weight":2`, "d:1")
		none(t, updates)
		if u.Snapshot != watch.Snapshot() {
			t.Error("another snapshot without a change")
		}
	})
}

func TestEveryReaderBeginsWithAll(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Client, w *fakeWire) {
		w.say(wireOrders, 1, "a:1")
		w.up()
		first, second := mustWatch(t, c), mustWatch(t, c)
		if n := w.ops("subscribe"); n != 1 {
			t.Errorf("%d subscriptions for two watches", n)
		}
		for _, watch := range []*Watch{first, second} {
			for u, err := range watch.All(t.Context()) {
				if err != nil || len(u.Added) != 1 {
					t.Errorf("%+v, %v", u, err)
				}
				break
			}
		}
		if err := first.Close(); err != nil {
			t.Error(err)
		}
		if _, ok := <-first.Updates(); ok {
			if _, ok := <-first.Updates(); ok {
				t.Error("the channel is open after the end")
			}
		}
		w.push(wireOrders, 2, "b:1")
		if got := addresses(second.Snapshot()); got != "b:1" || w.ops("unsubscribe") != 0 {
			t.Errorf("the end of one watch ends another: %s", got)
		}
		_ = second.Close()
		_ = second.Close()
		synctest.Wait()
		if w.ops("unsubscribe") != 1 || w.subs[wireOrders] {
			t.Error("still subscribed")
		}
		third := mustWatch(t, c)
		if got := addresses(third.Snapshot()); got != "b:1" || w.ops("subscribe") != 2 {
			t.Errorf("watched again: %s", got)
		}
		if st := c.Status(); st.Watches != 1 || st.Services != 1 || st.Subscribed != 1 {
			t.Errorf("status %+v", st)
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

func TestFilters(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Client, w *fakeWire) {
		hosts := []string{`a:1 ,"clusterName":"x"`, `b:1 ,"healthy":false`, `c:1 ,"metadata":{"zone":"1"}`, `d:1 ,"enabled":false,"weight":0`}
		w.say(wireOrders, 1, hosts...)
		w.up()
		panics := func(in *Instance) bool {
			if in.IP == "b" {
				panic("of the user")
			}
			return in.Enabled
		}
		refTime := int64(1)
		for name, test := range map[string]struct {
			options []FilterOption
			want    string
		}{
			"all":       {nil, "a:1 b:1 c:1 d:1"},
			"cluster":   {[]FilterOption{WithClusters("x", "y")}, "a:1"},
			"healthy":   {[]FilterOption{WithHealth(OnlyHealthy)}, "a:1 c:1 d:1"},
			"unhealthy": {[]FilterOption{WithHealth(OnlyUnhealthy)}, "b:1"},
			"metadata":  {[]FilterOption{WithMetadata("zone", "1")}, "c:1"},
			"functions": {[]FilterOption{WithFilter(panics), WithFilter((*Instance).Available)}, "a:1 c:1"},
		} {
			var watching []WatchOption
			var asking []QueryOption
			for _, o := range test.options {
				watching, asking = append(watching, o), append(asking, o)
			}
			watch := mustWatch(t, c, watching...)
			if got := addresses(watch.Snapshot()); got != test.want {
				t.Errorf("%s: watched %s, want %s", name, got, test.want)
			}
			s, err := c.Lookup(t.Context(), orders, asking...)
			if err != nil || addresses(s) != test.want {
				t.Errorf("%s: looked up %s, %v, want %s", name, addresses(s), err, test.want)
			}
			updates := watch.Updates()
			now(t, updates)
			refTime += 2
			w.push(wireOrders, refTime, append(hosts, `e:1 ,"clusterName":"z","enabled":false,"healthy":false`)...)
			if name == "cluster" || name == "functions" || name == "metadata" || name == "healthy" {
				none(t, updates) // nothing that it shows has changed
			} else {
				now(t, updates)
			}
			w.push(wireOrders, refTime+1, hosts...)
			_ = watch.Close()
		}
	})
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

func TestSlowAndBrokenReaders(t *testing.T) {
	counts := new(counter)
	inBubble(t, func(t *testing.T, c *Client, w *fakeWire) {
		w.say(wireOrders, 1, "a:1")
		w.up()
		watch := mustWatch(t, c)
		hang := make(chan struct{})
		defer close(hang)
		watch.OnUpdate(func(Update) { <-hang })
		panics, calm := 0, ""
		watch.OnUpdate(func(Update) { panics++; panic("of the user") })
		stop := watch.OnUpdate(func(u Update) { calm = addresses(u.Snapshot) })
		filtered := mustWatch(t, c, WithFilter(func(*Instance) bool { return true }))
		mustWatch(t, c, WithAsync(), WithFilter(func(*Instance) bool { <-hang; return true }))
		watch.Updates() // nobody reads
		synctest.Wait()
		for n := range int64(100) {
			w.push(wireOrders, n+2, fmt.Sprintf("h%d:1", n))
			synctest.Wait()
		}
		if got := addresses(watch.Snapshot()); got != "h99:1" || calm != got || addresses(filtered.Snapshot()) != got {
			t.Errorf("shown %s, told %s", got, calm)
		}
		if panics != 101 || counts.all()["panic"] != panics {
			t.Errorf("%d calls of one that panics, counted %v", panics, counts.all())
		}
		stop()
		stop()
		w.push(wireOrders, 1000, "z:1")
		synctest.Wait()
		if calm == "z:1" {
			t.Error("called after the end")
		}
	}, WithMetrics(counts))
}

func TestWatchWaits(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Client, w *fakeWire) {
		async := mustWatch(t, c, WithAsync())
		if s := async.Snapshot(); s.Source() != FromNowhere || s.Len() != 0 || s.Service() != Service(wireOrders) {
			t.Errorf("%+v", s.Info())
		}
		if u := <-async.Updates(); u.Snapshot.Source() != FromNowhere {
			t.Errorf("%+v", u.Snapshot.Info())
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := c.Watch(ctx, orders); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, ErrNotConnected) {
			t.Errorf("got %v", err)
		}
		w.say(wireOrders, 1, "a:1")
		w.up()
		if u := <-async.Updates(); u.Snapshot.Source() != FromServer || len(u.Added) != 1 {
			t.Errorf("%+v", u.Snapshot.Info())
		}
		w.set(func(f *fakeWire) {
			f.fail = func(op string, s wire.Service, _ []wire.Instance) error {
				if s.Name == "secret" {
					return &wire.Error{Kind: wire.Forbidden, Server: "s", ErrorCode: 403}
				}
				return nil
			}
		})
		if _, err := c.Watch(t.Context(), Service{Name: "secret"}); !errors.Is(err, ErrForbidden) {
			t.Errorf("got %v", err)
		}
		if st := c.Status(); st.Watches != 1 {
			t.Errorf("status %+v", st)
		}
	})
}

func TestLookupsShareOneRequest(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Client, w *fakeWire) {
		w.say(wireOrders, 1, "a:1")
		w.set(func(f *fakeWire) { f.delay = time.Second })
		w.up()
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				if s, err := c.Lookup(t.Context(), orders); err != nil || addresses(s) != "a:1" {
					t.Errorf("%v, %v", s, err)
				}
			})
		}
		wg.Go(func() { // one who is in a hurry ends nobody else's
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			began := time.Now()
			if _, err := c.Lookup(ctx, orders); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != 100*time.Millisecond {
				t.Errorf("%v after %v", err, time.Since(began))
			}
		})
		wg.Wait()
		if n := w.ops("query"); n != 1 {
			t.Errorf("%d requests, want 1", n)
		}
		w.set(func(f *fakeWire) { f.delay = time.Hour })
		began := time.Now()
		if _, err := c.Lookup(context.Background(), orders); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != 5*time.Second {
			t.Errorf("%v after %v, want 5 s", err, time.Since(began))
		}
	})
}

func TestDiskCache(t *testing.T) {
	dir := t.TempDir()
	inBubble(t, func(t *testing.T, c *Client, w *fakeWire) {
		w.say(wireOrders, 1, "a:1")
		w.up()
		mustWatch(t, c)
		time.Sleep(2 * time.Second)
	}, WithDiskCache(dir, 0))
	if _, err := os.Stat(filepath.Join(dir, "naming", "public", "DEFAULT_GROUP%40%40orders")); err != nil {
		t.Fatal(err)
	}
	inBubble(t, func(t *testing.T, c *Client, w *fakeWire) {
		async := mustWatch(t, c, WithAsync())
		if async.Snapshot().Len() != 0 {
			t.Error("the disk is not asked before a server has been")
		}
		w.down(errors.New("refused"))
		watch := mustWatch(t, c)
		if s := watch.Snapshot(); addresses(s) != "a:1" || s.Source() != FromDisk || s.Time().IsZero() {
			t.Errorf("%s, %+v", addresses(s), s.Info())
		}
		if s, err := c.Lookup(within(t, time.Second), orders); err != nil || s.Source() != FromDisk {
			t.Errorf("%v, %v", s, err)
		}
		w.say(wireOrders, 1, "a:1")
		w.up()
		if s := watch.Snapshot(); s.Source() != FromServer {
			t.Errorf("%+v", s.Info())
		}
		w.down(errors.New("gone"))
		if s := watch.Snapshot(); s.Source() != FromServer {
			t.Errorf("what a server said is worth more than the disk: %+v", s.Info())
		}
	}, WithDiskCache(dir, 0))
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(filepath.Join(dir, "naming", "public", "DEFAULT_GROUP%40%40orders"), old, old); err != nil {
		t.Fatal(err)
	}
}

func within(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func TestDiskTroubles(t *testing.T) {
	for name, prepare := range map[string]func(t *testing.T, dir string){
		"read only": func(t *testing.T, dir string) {
			if err := os.WriteFile(filepath.Join(dir, "naming"), nil, 0o400); err != nil {
				t.Fatal(err)
			}
		},
		"a corrupt file": func(t *testing.T, dir string) {
			path := filepath.Join(dir, "naming", "public", "DEFAULT_GROUP%40%40orders")
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(`{"hosts":[{`), 0o600)); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			prepare(t, dir)
			inBubble(t, func(t *testing.T, c *Client, w *fakeWire) {
				w.down(errors.New("refused"))
				watch := mustWatch(t, c, WithAsync())
				synctest.Wait()
				if watch.Snapshot().Len() != 0 {
					t.Errorf("shows %s", addresses(watch.Snapshot()))
				}
				w.say(wireOrders, 1, "a:1")
				w.up()
				for n := range int64(5) {
					w.push(wireOrders, n+2, fmt.Sprintf("h%d:1", n))
					time.Sleep(2 * time.Second)
				}
				if got := addresses(watch.Snapshot()); got != "h4:1" {
					t.Errorf("shows %s", got)
				}
			}, WithDiskCache(dir, 0))
		})
	}
}

// TestWatchedAgain: who watches while the last watch is being taken back is subscribed
// afterwards, however long that takes.
func TestWatchedAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Client, w *fakeWire) {
		w.say(wireOrders, 1, "a:1")
		w.set(func(w *fakeWire) {
			w.fail = func(op string, _ wire.Service, _ []wire.Instance) error {
				if op == "unsubscribe" {
					time.Sleep(time.Second)
				}
				return nil
			}
		})
		w.up()
		if err := mustWatch(t, c).Close(); err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // it is on its way
		again := mustWatch(t, c)
		time.Sleep(2 * time.Second)
		if n := w.ops("subscribe"); !w.subs[wireOrders] || n != 2 {
			t.Errorf("subscribed: %t, after %d requests, want 2", w.subs[wireOrders], n)
		}
		if s := c.Status(); s.Watches != 1 || s.Services != 1 || s.Subscribed != 1 {
			t.Errorf("%+v", s)
		}
		_ = again.Close()
		time.Sleep(2 * time.Second)
		if s := c.Status(); w.subs[wireOrders] || s.Watches != 0 || s.Services != 0 || s.Subscribed != 0 {
			t.Errorf("subscribed: %t, %+v", w.subs[wireOrders], s)
		}
	})
}

func TestFailoverSwitch(t *testing.T) {
	dir := t.TempDir()
	namespace := filepath.Join(dir, "naming", "public")
	write := func(name, text string) {
		path := filepath.Join(namespace, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	const lever = "failover00-00---000-VIPSRV_FAILOVER_SWITCH-000---00-00"
	write("failover/DEFAULT_GROUP%40%40orders", rawList(1, "failover:1"))
	inBubble(t, func(t *testing.T, c *Client, w *fakeWire) {
		w.say(wireOrders, 1, "live:1")
		other := wire.Service{Namespace: "public", Group: "DEFAULT_GROUP", Name: "other"}
		w.say(other, 1, "other:1")
		w.up()
		watch := mustWatch(t, c)
		unaffected, err := c.Watch(t.Context(), Service{Name: "other"})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(6 * time.Second)
		if got := addresses(watch.Snapshot()); got != "live:1" {
			t.Errorf("before: %s", got)
		}
		write(lever, "1\n")
		time.Sleep(6 * time.Second)
		if s := watch.Snapshot(); addresses(s) != "failover:1" || s.Source() != FromFailover {
			t.Errorf("on: %s", addresses(s))
		}
		if s, err := c.Lookup(t.Context(), orders); err != nil || s.Source() != FromFailover {
			t.Errorf("on: %v, %v", s, err)
		}
		if got := addresses(unaffected.Snapshot()); got != "other:1" {
			t.Errorf("a service without a file: %s", got)
		}
		late := mustWatch(t, c, WithClusters("DEFAULT"))
		if s := late.Snapshot(); s.Source() != FromFailover {
			t.Errorf("a watch that begins while it is on: %+v", s.Info())
		}
		w.push(wireOrders, 2, "live:2")
		if got := addresses(watch.Snapshot()); got != "failover:1" {
			t.Errorf("a push while it is on: %s", got)
		}
		write(lever, "0\n")
		future := time.Now().Add(time.Hour)
		_ = os.Chtimes(filepath.Join(namespace, lever), future, future)
		time.Sleep(6 * time.Second)
		if got := addresses(watch.Snapshot()); got != "live:2" {
			t.Errorf("off: %s", got)
		}
	}, WithFailoverDir(dir))
	if _, err := os.Stat(filepath.Join(namespace, "DEFAULT_GROUP%40%40orders")); !errors.Is(err, fs.ErrNotExist) {
		t.Error("the failover directory is written to")
	}
}

// TestFailoverFromTheBeginning: the switch is obeyed by the first look-up, and by a watch
// that begins while it is on.
func TestFailoverFromTheBeginning(t *testing.T) {
	dir := t.TempDir()
	failover := filepath.Join(dir, "naming", "public", "failover")
	if err := os.MkdirAll(failover, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"00-00---000-VIPSRV_FAILOVER_SWITCH-000---00-00": "1", "DEFAULT_GROUP%40%40orders": rawList(1, "failover:1"),
		"DEFAULT_GROUP%40%40stock": rawList(1, "failover:2"),
	} {
		if err := os.WriteFile(filepath.Join(failover, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	inBubble(t, func(t *testing.T, c *Client, w *fakeWire) {
		if s, err := c.Lookup(t.Context(), orders); err != nil || s.Source() != FromFailover {
			t.Errorf("a look-up: %v, %v", s, err)
		}
		w.up()
		for name, want := range map[string]string{"orders": "failover:1", "stock": "failover:2"} {
			watch, err := c.Watch(t.Context(), Service{Name: name})
			if err != nil {
				t.Fatal(err)
			}
			if s := watch.Snapshot(); addresses(s) != want || s.Source() != FromFailover {
				t.Errorf("%s: %s, %+v", name, addresses(s), s.Info())
			}
		}
	}, WithFailoverDir(dir))
}

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

func TestServices(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Client, w *fakeWire) {
		var want []string
		for n := range 7 {
			s := wireOrders
			s.Name = fmt.Sprintf("service-%d", n)
			w.say(s, 1)
			want = append(want, s.Name)
		}
		w.up()
		var got []string
		for s, err := range c.Services(t.Context(), ServiceQuery{PageSize: 3}) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, s.Name)
		}
		if !slices.Equal(got, want) || w.ops("services") != 3 {
			t.Errorf("got %v in %d pages", got, w.ops("services"))
		}
	})
}

func names(list []Service) string {
	var all []string
	for _, s := range list {
		all = append(all, s.Name)
	}
	return strings.Join(all, " ")
}

func TestWatchServicesByPolling(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Client, w *fakeWire) {
		add := func(name string) {
			s := wireOrders
			s.Name = name
			w.say(s, 1)
		}
		add("pay-a")
		add("ship-a")
		w.up()
		watch, err := c.WatchServices(t.Context(), Pattern{Name: "pay-*"})
		if err != nil {
			t.Fatal(err)
		}
		if got := names(watch.Services()); got != "pay-a" {
			t.Errorf("got %s", got)
		}
		if u := <-watch.Updates(); names(u.Added) != "pay-a" {
			t.Errorf("got %+v", u)
		}
		add("pay-b")
		time.Sleep(61 * time.Second)
		if u := <-watch.Updates(); names(u.Added) != "pay-b" || names(u.Services) != "pay-a pay-b" || len(u.Removed) != 0 {
			t.Errorf("got %+v", u)
		}
		if _, err := c.WatchServices(t.Context(), Pattern{Group: "*"}); !errors.Is(err, ErrUnsupported) {
			t.Errorf("got %v", err)
		}
		_ = watch.Close()
		if _, ok := <-watch.Updates(); ok {
			t.Error("open after the end")
		}
		n := w.ops("services")
		time.Sleep(time.Hour)
		if w.ops("services") != n {
			t.Error("asked after the end")
		}
	})
}

func TestWatchServicesByPushes(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Client, w *fakeWire) {
		w.set(func(f *fakeWire) { f.fuzzy = true })
		w.up()
		p := wire.Pattern{Namespace: "public", Group: "*", Name: "pay-*"}
		service := func(name string) wire.Service {
			return wire.Service{Namespace: "public", Group: "g", Name: name}
		}
		time.AfterFunc(time.Second, func() {
			w.events.ServicesChanged(wire.ServicesChange{Pattern: p, Added: []wire.Service{service("pay-b")}})
			w.events.ServicesChanged(wire.ServicesChange{Pattern: p, Added: []wire.Service{service("pay-a"), service("pay-b")}, Complete: true})
		})
		watch, err := c.WatchServices(t.Context(), Pattern{Group: "*", Name: "pay-*"})
		if err != nil {
			t.Fatal(err)
		}
		if u := <-watch.Updates(); names(u.Services) != "pay-a pay-b" {
			t.Errorf("got %+v", u)
		}
		w.events.ServicesChanged(wire.ServicesChange{Pattern: p, Removed: []wire.Service{service("pay-a")}})
		if u := <-watch.Updates(); names(u.Services) != "pay-b" || names(u.Removed) != "pay-a" {
			t.Errorf("got %+v", u)
		}
		w.down(errors.New("x"))
		w.up()
		if w.ops("fuzzy+1") != 1 {
			t.Error("the new session was not told what is known")
		}
		_ = watch.Close()
		synctest.Wait()
		if w.ops("fuzzy-") != 1 {
			t.Error("not taken back")
		}
	})
}

func TestReadyAndStatus(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Client, w *fakeWire) {
		w.down(&wire.Error{Kind: wire.NotConnected, Server: "10.0.0.1:9848", Err: errors.New("connection refused")})
		if err := c.Ready(within(t, time.Second)); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "10.0.0.1:9848") {
			t.Errorf("got %v", err)
		}
		var states []State
		done := make(chan struct{})
		go func() {
			defer close(done)
			for s := range c.StatusChanges(context.Background()) {
				if len(states) == 0 || states[len(states)-1] != s.State {
					states = append(states, s.State)
				}
			}
		}()
		synctest.Wait()
		r := mustRegister(t, c, 1, WithAsync())
		w.set(func(f *fakeWire) { f.delay = time.Second })
		w.up()
		if err := c.Ready(t.Context()); err != nil || r.State().Phase == Pending {
			t.Errorf("%v, %v", err, r.State())
		}
		if st := c.Status(); st.State != Connected || st.Server != "10.0.0.1:9848" || st.Protocol != GRPC || st.LastError == nil {
			t.Errorf("status %+v", st)
		}
		_ = c.Close()
		<-done
		if want := []State{Connecting, Connected, Closed}; !slices.Equal(states, want) {
			t.Errorf("states %v, want %v", states, want)
		}
	})
}
