package clienttest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	rollcall "github.com/rollcall-registry/rollcall/client"
	"github.com/rollcall-registry/rollcall/client/balance"
	"github.com/rollcall-registry/rollcall/client/clienttest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func stock() rollcall.Service { return rollcall.Service{Name: "stock"} }

// addresses returns what a snapshot has.
func addresses(s *rollcall.Snapshot) []string {
	list := []string{}
	for in := range s.All() {
		list = append(list, in.Addr())
	}
	return list
}

func want(t *testing.T, got []string, addresses ...string) {
	t.Helper()
	if !slices.Equal(got, addresses) {
		t.Errorf("got %v, want %v", got, addresses)
	}
}

func TestSetIsSeenAtOnce(t *testing.T) {
	r := clienttest.New()
	r.Set(stock(), rollcall.NewInstance("10.0.0.1", 80))
	c := r.Client(t)
	w, err := c.Watch(t.Context(), stock())
	if err != nil {
		t.Fatal(err)
	}
	pick := w.Picker(balance.RoundRobin())
	want(t, addresses(w.Snapshot()), "10.0.0.1:80")
	r.Set(stock(), rollcall.NewInstance("10.0.0.2", 80), rollcall.NewInstance("10.0.0.3", 80))
	want(t, addresses(w.Snapshot()), "10.0.0.2:80", "10.0.0.3:80")
	if in, err := pick.Pick(); err != nil || in.IP == "10.0.0.1" {
		t.Errorf("picked %v, %v", in, err)
	}
	r.Set(stock())
	if _, err := pick.Pick(); !errors.Is(err, rollcall.ErrNoInstances) {
		t.Errorf("got %v", err)
	}
}

func TestClientsSeeEachOther(t *testing.T) {
	r := clienttest.New()
	a, b := r.Client(t), r.Client(t)
	w, err := b.Watch(t.Context(), stock())
	if err != nil {
		t.Fatal(err)
	}
	one, err := a.Register(t.Context(), stock(), rollcall.NewInstance("10.0.0.1", 80))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Register(t.Context(), stock(), rollcall.NewInstance("10.0.0.2", 80, rollcall.Persistent())); err != nil {
		t.Fatal(err)
	}
	want(t, addresses(w.Snapshot()), "10.0.0.1:80", "10.0.0.2:80")
	if err := one.Update(t.Context(), func(in *rollcall.Instance) { in.Weight = 7 }); err != nil {
		t.Fatal(err)
	}
	if got := w.Snapshot().At(0).Weight; got != 7 {
		t.Errorf("weight %v, want 7", got)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	want(t, addresses(w.Snapshot()), "10.0.0.2:80") // what is ephemeral goes with its client
	if got := r.Instances(stock()); len(got) != 1 || got[0].IP != "10.0.0.2" {
		t.Errorf("the registry has %v", got)
	}
}

// TestStopAndStart: clients keep what they know and register again.
func TestStopAndStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := clienttest.New()
		c := r.Client(t)
		w, err := c.Watch(t.Context(), stock())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Register(t.Context(), stock(), rollcall.NewInstance("10.0.0.1", 80)); err != nil {
			t.Fatal(err)
		}
		want(t, addresses(w.Snapshot()), "10.0.0.1:80")
		r.Stop()
		synctest.Wait()
		if s := c.Status(); s.State != rollcall.Connecting || s.LastError == nil {
			t.Errorf("status %+v, want to be connecting", s)
		}
		want(t, addresses(w.Snapshot()), "10.0.0.1:80")
		if got := r.Instances(stock()); len(got) != 0 {
			t.Errorf("the registry has %v", got)
		}
		r.Start()
		time.Sleep(time.Minute)
		if got := r.Instances(stock()); len(got) != 1 {
			t.Errorf("the registry has %v", got)
		}
	})
}

// TestStopAndStartAreSeenAtOnce: without waiting for anything.
func TestStopAndStartAreSeenAtOnce(t *testing.T) {
	r := clienttest.New()
	c := r.Client(t)
	if _, err := c.Register(t.Context(), stock(), rollcall.NewInstance("10.0.0.1", 80)); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		r.Stop()
		if s := c.Status(); s.State != rollcall.Connecting || s.LastError == nil {
			t.Fatalf("status %+v, want to be connecting", s)
		}
		r.Start()
		if s := c.Status(); s.State != rollcall.Connected {
			t.Fatalf("status %+v, want to be connected", s)
		}
		if err := c.Ready(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := len(r.Instances(stock())); n != 1 {
			t.Fatalf("the registry has %d instances, want 1", n)
		}
	}
}

// TestOptionOfTwoClients: they are two, each with what it registered.
func TestOptionOfTwoClients(t *testing.T) {
	r := clienttest.New()
	option := r.Option()
	var clients [2]*rollcall.Client
	for i := range clients {
		c, err := rollcall.New(option)
		if err != nil {
			t.Fatal(err)
		}
		clients[i] = c
		if _, err := c.Register(t.Context(), stock(), rollcall.NewInstance("10.0.0.1", uint16(i+1))); err != nil {
			t.Fatal(err)
		}
	}
	for i, c := range clients {
		if n := len(r.Instances(stock())); n != 2-i {
			t.Errorf("the registry has %d instances, want %d", n, 2-i)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestFail(t *testing.T) {
	r := clienttest.New()
	c := r.Client(t)
	r.Fail(fmt.Errorf("the budget is spent: %w", rollcall.ErrForbidden))
	_, err := c.Register(t.Context(), stock(), rollcall.NewInstance("10.0.0.1", 80))
	if !errors.Is(err, rollcall.ErrForbidden) {
		t.Errorf("got %v", err)
	}
	if _, err := c.Lookup(t.Context(), stock()); !errors.Is(err, rollcall.ErrForbidden) {
		t.Errorf("got %v", err)
	}
	r.Fail(nil)
	if _, err := c.Register(t.Context(), stock(), rollcall.NewInstance("10.0.0.1", 80)); err != nil {
		t.Error(err)
	}
}

func TestServices(t *testing.T) {
	r := clienttest.New()
	c := r.Client(t)
	for n := range 5 {
		r.Set(rollcall.Service{Name: fmt.Sprintf("s%d", n)}, rollcall.NewInstance("10.0.0.1", 80))
	}
	r.Set(rollcall.Service{Group: "other", Name: "x"}, rollcall.NewInstance("10.0.0.1", 80))
	var names []string
	for s, err := range c.Services(t.Context(), rollcall.ServiceQuery{PageSize: 2}) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, s.Name)
	}
	want(t, names, "s0", "s1", "s2", "s3", "s4")

	w, err := c.WatchServices(t.Context(), rollcall.Pattern{Group: "*", Name: "*"})
	if err != nil {
		t.Fatal(err)
	}
	if got := len(w.Services()); got != 6 {
		t.Errorf("%d services match, want 6", got)
	}
	r.Set(rollcall.Service{Name: "s3"})
	r.Set(rollcall.Service{Name: "new"}, rollcall.NewInstance("10.0.0.1", 80))
	names = nil
	for _, s := range w.Services() {
		names = append(names, s.Name)
	}
	want(t, names, "new", "s0", "s1", "s2", "s4", "x")
}

// What no client would show is a mistake of the test.
func TestSetPanics(t *testing.T) {
	for name, set := range map[string]func(r *clienttest.Registry){
		"a service without a name": func(r *clienttest.Registry) { r.Set(rollcall.Service{}) },
		"an instance without a port": func(r *clienttest.Registry) {
			r.Set(rollcall.Service{Name: "stock"}, rollcall.NewInstance("10.0.0.1", 0))
		},
		"an instance without address": func(r *clienttest.Registry) { r.Set(rollcall.Service{Name: "stock"}, rollcall.NewInstance("", 1)) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s was taken", name)
				}
			}()
			set(clienttest.New())
		}()
	}
}

func Example() {
	registry := clienttest.New()
	registry.Set(rollcall.Service{Name: "stock"}, rollcall.NewInstance("10.0.0.1", 8080))

	client, err := rollcall.New(registry.Option()) // in a test: registry.Client(t)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()

	snapshot, err := client.Lookup(context.Background(), rollcall.Service{Name: "stock"})
	if err != nil {
		fmt.Println(err)
		return
	}
	for in := range snapshot.All() {
		fmt.Println(in.Addr())
	}
	// Output: 10.0.0.1:8080
}
