package httpmode

import (
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollcall-registry/rollcall/client/internal/wire"
	"github.com/rollcall-registry/rollcall/test/faulttest"
)

// Who finds no interface at all has not heard that an instance is gone.
func TestNoInterfaceIsNoAnswer(t *testing.T) {
	inWorld(t, []string{first}, nil, func(t *testing.T, w *world) {
		w.fakes[first].set(func(f *fake) { f.status, f.text = http.StatusNotFound, "404 page not found" })
		w.mu.Lock()
		w.up = false // as of a transport that does not run
		w.mu.Unlock()
		i := instance(1)
		i.Ephemeral = false
		err := w.DeregisterPersistent(t.Context(), orders, i)
		if wire.KindOf(err) != wire.NotReady || !strings.Contains(err.Error(), first+" answered 404: no known interface: 404 page not found") {
			t.Errorf("kind %d: %v", wire.KindOf(err), err)
		}
		if e, ok := errors.AsType[*wire.Error](err); !ok || e.Server != first || e.HTTPStatus != http.StatusNotFound {
			t.Errorf("got %+v", e)
		}
	})
}

// A server that shows its figures to nobody is known by its address all the same.
func TestServerThatForbids(t *testing.T) {
	inWorld(t, []string{first}, nil, func(t *testing.T, w *world) {
		w.fakes[first].set(func(f *fake) { f.status, f.text = http.StatusForbidden, "authorization failed!" })
		d, server, err := w.detect(t.Context())
		if err != nil || d != (v1{}) || server != first {
			t.Errorf("got %T at %q, %v; want 1.x at %s", d, server, err, first)
		}
	})
}

// However many requests fail at once, the server is looked for soon.
func TestManyFailuresAreOne(t *testing.T) {
	inWorld(t, []string{first}, nil, func(t *testing.T, w *world) {
		for range 10 {
			w.net.Set(first, faulttest.Refused)
			var failing sync.WaitGroup
			for range 100 {
				failing.Go(func() { _, _ = w.call(t.Context(), &request{method: http.MethodGet, path: "/v1/ns/operator/metrics"}) })
			}
			failing.Wait()
			synctest.Wait()
			w.net.Set(first, faulttest.Healthy)
			time.Sleep(500 * time.Millisecond)
			if !w.isUp() {
				t.Fatal("not found within 0.5 s")
			}
		}
	})
}

// The failure of a login is told to all who wait for it, each of whom has an error of his own.
func TestFailedLoginIsShared(t *testing.T) {
	inWorld(t, []string{first}, user("wrong"), func(t *testing.T, w *world) {
		w.fakes[first].set(func(f *fake) { f.token = "x" })
		var asking sync.WaitGroup
		errs := make([]error, 8)
		for n := range errs {
			asking.Go(func() { _, errs[n] = w.Query(t.Context(), orders) })
		}
		asking.Wait()
		seen := make(map[*wire.Error]bool)
		for _, err := range errs {
			e, ok := errors.AsType[*wire.Error](err)
			if !ok || e.Kind != wire.Unauthorized || seen[e] {
				t.Errorf("got %v, of another one: %t", err, seen[e])
			}
			seen[e] = true
		}
	})
}
