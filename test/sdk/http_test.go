package sdk

import (
	"context"
	"log/slog"
	"testing"
	"time"

	rollcall "github.com/rollcall-registry/rollcall/client"
	"github.com/rollcall-registry/rollcall/servertest"
)

// patience is how long a test waits for what must come: only a test that hangs needs it.
// How long things take is measured by benchmarks, and tried in bubbles of synctest.
const patience = time.Minute

func within(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// dial makes a client of a server, which is closed with the test.
func dial(t testing.TB, options ...rollcall.Option) *rollcall.Client {
	t.Helper()
	c, err := rollcall.New(append([]rollcall.Option{rollcall.WithLogger(slog.New(slog.NewTextHandler(t.Output(), nil)))}, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// see waits until a watch shows what is asked for.
func see(t testing.TB, w *rollcall.Watch, what string, ok func(s *rollcall.Snapshot) bool) *rollcall.Snapshot {
	t.Helper()
	ctx := within(t)
	for u, err := range w.All(ctx) {
		if err != nil {
			t.Fatalf("waiting for %s: %v; there is %d of %v", what, err, w.Snapshot().Len(), w.Snapshot().Info())
		}
		if ok(u.Snapshot) {
			return u.Snapshot
		}
	}
	return nil
}

func count(n int) func(*rollcall.Snapshot) bool {
	return func(s *rollcall.Snapshot) bool { return s.Len() == n && s.Source() == rollcall.FromServer }
}

var orders = rollcall.Service{Name: "orders"}

func TestHTTPLife(t *testing.T) {
	server := servertest.New(t)
	provider := dial(t, rollcall.WithServers(server.Addr()), rollcall.WithProtocol(rollcall.HTTP))
	consumer := dial(t, rollcall.WithServers(server.Addr()), rollcall.WithProtocol(rollcall.HTTP))
	ctx := within(t)
	w, err := consumer.Watch(ctx, orders)
	if err != nil {
		t.Fatal(err)
	}
	if s := w.Snapshot(); s.Len() != 0 || s.Source() != rollcall.FromServer {
		t.Errorf("an unknown service is %d instances from %v", s.Len(), s.Source())
	}
	r, err := provider.Register(ctx, orders, rollcall.NewInstance("10.0.0.7", 8080, rollcall.Tagged("version", "2")))
	if err != nil {
		t.Fatal(err)
	}
	if st := r.State(); st.Phase != rollcall.Registered {
		t.Errorf("state %v", st)
	}
	s := see(t, w, "the instance", count(1))
	if in := s.At(0); in.Addr() != "10.0.0.7:8080" || in.Metadata["version"] != "2" || !in.Available() || in.Cluster != "DEFAULT" {
		t.Errorf("got %+v", in)
	}
	if err := r.Update(ctx, func(i *rollcall.Instance) { i.Weight = 2.5 }); err != nil {
		t.Fatal(err)
	}
	see(t, w, "the weight", func(s *rollcall.Snapshot) bool { return s.Len() == 1 && s.At(0).Weight == 2.5 })
	found, err := provider.Lookup(ctx, orders)
	if err != nil || found.Len() != 1 {
		t.Errorf("looked up %v, %v", found, err)
	}
	for s, err := range provider.Services(ctx, rollcall.ServiceQuery{}) {
		if err != nil || s.Name != "orders" {
			t.Errorf("listed %v, %v", s, err)
		}
	}
	if err := r.Drain(ctx, 100*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	see(t, w, "nothing", count(0))
	if st := r.State(); st.Phase != rollcall.Removed {
		t.Errorf("state %v", st)
	}
	t.Log(consumer.Status())
}
