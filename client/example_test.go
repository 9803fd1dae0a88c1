package rollcall_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	rollcall "github.com/rollcall-registry/rollcall/client"
	"github.com/rollcall-registry/rollcall/client/balance"
	"github.com/rollcall-registry/rollcall/client/clienttest"
)

// connect returns a client of a registry in memory. A program has rollcall.New(
// rollcall.WithServers(…)) in its place.
func connect(r *clienttest.Registry) *rollcall.Client {
	c, err := rollcall.New(r.Option())
	if err != nil {
		panic(err)
	}
	return c
}

// A service registers itself, and a caller finds it and picks.
func Example() {
	ctx := context.Background()
	registry := clienttest.New()
	orders := rollcall.Service{Name: "orders"}

	provider := connect(registry)
	defer provider.Close()
	registration, err := provider.Register(ctx, orders, rollcall.NewInstance("10.0.0.7", 8080, rollcall.Tagged("zone", "a")))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(registration.State().Phase)

	caller := connect(registry)
	defer caller.Close()
	watch, err := caller.Watch(ctx, orders)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer watch.Close()
	pick := watch.Picker(balance.WeightedRandom())
	in, err := pick.Pick()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(in.Addr(), in.Metadata["zone"])
	pick.Done(in, nil) // when the request has ended
	// Output:
	// registered
	// 10.0.0.7:8080 a
}

// Everything that is not said has a default. New returns all faults of the options at
// once; that no server answers is told by what is asked of it.
func ExampleNew() {
	c, err := rollcall.New(
		rollcall.WithServers("10.0.0.1:8848", "10.0.0.2:8848"),
		rollcall.WithNamespace("prod"),
		rollcall.WithDiskCache(os.TempDir(), time.Hour),
		rollcall.WithUserPassword("orders", "secret"),
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()

	_, err = rollcall.New(rollcall.WithServers("not a host"), rollcall.WithTimeout(-time.Second))
	fmt.Println(errors.Is(err, rollcall.ErrInvalidArgument))
	// Output: true
}

// An instance that goes is drained first: it gets no new requests while clients hear of
// that, and is deregistered then.
func ExampleRegistration_Drain() {
	ctx := context.Background()
	registry := clienttest.New()
	c := connect(registry)
	defer c.Close()
	orders := rollcall.Service{Name: "orders"}
	r, err := c.Register(ctx, orders, rollcall.NewInstance("10.0.0.7", 8080))
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := r.Drain(ctx, 10*time.Millisecond); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(r.State().Phase, len(registry.Instances(orders)))
	// Output: removed 0
}

// All yields the state of the service and then what changes.
func ExampleWatch_All() {
	ctx := context.Background()
	registry := clienttest.New()
	c := connect(registry)
	defer c.Close()
	orders := rollcall.Service{Name: "orders"}
	registry.Set(orders, rollcall.NewInstance("10.0.0.7", 8080))
	w, err := c.Watch(ctx, orders)
	if err != nil {
		fmt.Println(err)
		return
	}
	for update, err := range w.All(ctx) {
		if err != nil {
			fmt.Println(errors.Is(err, rollcall.ErrClosed))
			return
		}
		for _, in := range update.Added {
			fmt.Println("added", in.Addr())
		}
		_ = w.Close() // ends the loop
	}
	// Output:
	// added 10.0.0.7:8080
	// true
}

// Services lists names, however many there are.
func ExampleClient_Services() {
	registry := clienttest.New()
	registry.Set(rollcall.Service{Name: "orders"}, rollcall.NewInstance("10.0.0.7", 8080))
	registry.Set(rollcall.Service{Name: "stock"}, rollcall.NewInstance("10.0.0.8", 8080))
	c := connect(registry)
	defer c.Close()
	for s, err := range c.Services(context.Background(), rollcall.ServiceQuery{}) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(s)
	}
	// Output:
	// public/DEFAULT_GROUP/orders
	// public/DEFAULT_GROUP/stock
}
