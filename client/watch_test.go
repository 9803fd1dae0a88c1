package rollcall

import (
	"context"
	"errors"
	"fmt"
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

// Who is stopped while it runs is not called again, whatever came meanwhile.
func TestStoppedWhileItRuns(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Client, w *fakeWire) {
		w.say(wireOrders, 1, "a:1")
		w.up()
		watch := mustWatch(t, c)
		for n := range int64(50) {
			calls, hang := 0, make(chan struct{})
			stop := watch.OnUpdate(func(Update) { calls++; <-hang })
			synctest.Wait()
			w.push(wireOrders, n+2, fmt.Sprintf("h%d:1", n))
			stop()
			close(hang)
			synctest.Wait()
			if calls != 1 {
				t.Fatalf("called %d times, want 1", calls)
			}
		}
	})
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

func within(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
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
