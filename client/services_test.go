package rollcall

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollcall-registry/rollcall/client/internal/wire"
)

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

// A server that has always one page more is given up.
func TestServicesWithoutEnd(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Client, w *fakeWire) {
		w.set(func(f *fakeWire) { f.endless = true })
		w.up()
		seen, last := 0, error(nil)
		for _, err := range c.Services(t.Context(), ServiceQuery{}) {
			seen, last = seen+1, err
		}
		if !errors.Is(last, errEndless) || seen != maxPages+1 {
			t.Errorf("%d services, then %v", seen-1, last)
		}
	})
}

// A client that is closed lists nothing, and says why, however its context is.
func TestServicesOfAClosedClient(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Client, _ *fakeWire) {
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		for _, ctx := range []context.Context{context.Background(), ended} {
			for _, err := range c.Services(ctx, ServiceQuery{}) {
				if !errors.Is(err, ErrClosed) || !strings.Contains(err.Error(), "closed") {
					t.Errorf("got %v, want ErrClosed", err)
				}
			}
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

// A watch that comes to a server which cannot tell the list says so, and again that it can.
func TestWatchServicesMoves(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Client, w *fakeWire) {
		w.set(func(f *fakeWire) { f.fuzzy = true })
		w.up()
		p := Pattern{Namespace: "public", Group: "*", Name: "*"}
		w.say(wireOrders, 1)
		watch, err := c.WatchServices(t.Context(), p, WithAsync())
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		tell := func() {
			w.events.ServicesChanged(wire.ServicesChange{Pattern: wire.Pattern(p), Added: []wire.Service{wireOrders}, Complete: true})
		}
		tell()
		if u := <-watch.Updates(); names(u.Services) != "orders" || u.Err != nil {
			t.Errorf("%+v", u)
		}
		w.set(func(f *fakeWire) { f.fuzzy = false })
		w.down(errors.New("x"))
		w.up()
		if u := <-watch.Updates(); names(u.Services) != "orders" || !errors.Is(u.Err, ErrUnsupported) {
			t.Errorf("%+v", u)
		}
		w.set(func(f *fakeWire) { f.fuzzy = true })
		w.down(errors.New("x"))
		w.up()
		if u := <-watch.Updates(); names(u.Services) != "orders" || u.Err != nil {
			t.Errorf("%+v", u)
		}
	})
}

// TestServiceWatchesAreLikeWatches: what a Watch offers to its readers, a ServiceWatch
// does.
func TestServiceWatchesAreLikeWatches(t *testing.T) {
	counts := new(counter)
	inBubble(t, func(t *testing.T, c *Client, w *fakeWire) {
		add := func(name string) { w.say(wire.Service{Namespace: "public", Group: "DEFAULT_GROUP", Name: name}, 1) }
		add("pay-a")
		watch, err := c.WatchServices(t.Context(), Pattern{Name: "pay-*"}, WithAsync())
		if err != nil {
			t.Fatal(err)
		}
		if p := watch.Pattern(); p != (Pattern{"public", "DEFAULT_GROUP", "pay-*"}) {
			t.Errorf("pattern %v", p)
		}
		if u := <-watch.Updates(); u.Known || len(u.Services) != 0 {
			t.Errorf("before it is known: %+v", u)
		}
		calls, told := 0, ""
		watch.OnUpdate(func(ServicesUpdate) { calls++; panic("of the user") })
		stop := watch.OnUpdate(func(u ServicesUpdate) { told = names(u.Services) })
		synctest.Wait()
		w.up()
		synctest.Wait()
		if u := <-watch.Updates(); !u.Known || names(u.Added) != "pay-a" || told != "pay-a" || calls != 2 || counts.all()["panic"] != 2 {
			t.Errorf("%+v, told %q in %d calls", u, told, calls)
		}
		stop()
		stop()
		for _, name := range []string{"pay-b", "pay-c"} {
			add(name)
			time.Sleep(73 * time.Second)
		}
		if u := <-watch.Updates(); names(u.Added) != "pay-b pay-c" || told != "pay-a" { // those who are slow get the whole difference
			t.Errorf("%+v, told %q", u, told)
		}
		for u, err := range watch.All(t.Context()) {
			if err != nil || names(u.Added) != "pay-a pay-b pay-c" {
				t.Errorf("%+v, %v", u, err)
			}
			break
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(context.Canceled)
		if err := ends(ctx, watch); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		second, err := c.WatchServices(t.Context(), Pattern{Name: "pay-*"})
		if err != nil || names(second.Services()) != "pay-a pay-b pay-c" {
			t.Fatalf("%v, %v", second, err)
		}
		_ = watch.Close()
		if err := ends(t.Context(), watch); !errors.Is(err, ErrClosed) || names(watch.Services()) != "pay-a pay-b pay-c" {
			t.Errorf("after the end: %v, %v", watch.Services(), err)
		}
		add("pay-d")
		time.Sleep(73 * time.Second)
		if got := names(second.Services()); got != "pay-a pay-b pay-c pay-d" {
			t.Errorf("the end of one watch ends another: %s", got)
		}
	}, WithMetrics(counts))
}

// ends returns the error with which a loop over a watch ends.
func ends(ctx context.Context, w *ServiceWatch) (last error) {
	for _, last = range w.All(ctx) {
	}
	return last
}

// A watch that is not patient ends with its context, and says what was in the way.
func TestWatchServicesWaits(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Client, w *fakeWire) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := c.WatchServices(ctx, Pattern{}); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, ErrNotConnected) {
			t.Errorf("got %v", err)
		}
		synctest.Wait()
		c.mu.Lock()
		defer c.mu.Unlock()
		if len(c.patterns) != 0 {
			t.Errorf("%d patterns are left", len(c.patterns))
		}
	})
}
