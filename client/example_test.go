package rollcall_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	rollcall "github.com/rollcall-registry/rollcall/client"
	"github.com/rollcall-registry/rollcall/client/balance"
	"github.com/rollcall-registry/rollcall/client/clienttest"
)

// connect returns a client of a registry in memory, where a program would write
// rollcall.New(rollcall.WithServers("10.0.0.1:8848")).
func connect(registry *clienttest.Registry) *rollcall.Client {
	c, err := rollcall.New(registry.Option())
	if err != nil {
		panic(err)
	}
	return c
}

// A provider registers, a consumer finds it and picks it.
func Example() {
	registry := clienttest.New()
	ctx := context.Background()

	provider := connect(registry)
	defer provider.Close()
	orders := rollcall.Service{Name: "orders"}
	if _, err := provider.Register(ctx, orders, rollcall.NewInstance("10.0.0.7", 8080)); err != nil {
		fmt.Println(err)
		return
	}

	consumer := connect(registry)
	defer consumer.Close()
	w, err := consumer.Watch(ctx, orders)
	if err != nil {
		fmt.Println(err)
		return
	}
	pick := w.Picker(balance.WeightedRandom())
	in, err := pick.Pick()
	fmt.Println(in.Addr(), err)
	pick.Done(in, nil)
	// Output: 10.0.0.7:8080 <nil>
}

func ExampleNew() {
	c, err := rollcall.New(
		rollcall.WithServers("10.0.0.1:8848", "10.0.0.2:8848"),
		rollcall.WithNamespace("test"),
		rollcall.WithCredentials(func(context.Context) (rollcall.Credentials, error) {
			password, err := os.ReadFile("/run/secrets/registry")
			return rollcall.Credentials{Username: "orders", Password: strings.TrimSpace(string(password))}, err
		}),
		rollcall.WithLogger(slog.Default()),
		rollcall.WithDiskCache("/var/cache/orders", time.Hour),
	)
	if err != nil {
		fmt.Println(err) // an option is wrong
		return
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := c.Ready(ctx); err != nil {
		fmt.Println("starting without the registry:", err)
	}
}

// A registration can be changed, and can leave without anybody noticing.
func ExampleRegistration_Drain() {
	registry := clienttest.New()
	c := connect(registry)
	defer c.Close()
	ctx := context.Background()
	r, err := c.Register(ctx, rollcall.Service{Name: "orders"}, rollcall.NewInstance("10.0.0.7", 8080, rollcall.Weighted(2)))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(r.State().Phase)
	if err := r.Update(ctx, func(i *rollcall.Instance) { i.Weight = 5 }); err != nil {
		fmt.Println(err)
	}
	fmt.Println(r.Instance().Weight)
	if err := r.Drain(ctx, 10*time.Millisecond); err != nil { // seconds, in a real program
		fmt.Println(err)
	}
	fmt.Println(r.State().Phase)
	// Output:
	// registered
	// 5
	// removed
}

// All ends with the context, and tells each change from what was seen before.
func ExampleWatch_All() {
	registry := clienttest.New()
	stock := rollcall.Service{Name: "stock"}
	registry.Set(stock, rollcall.NewInstance("10.0.0.1", 80))
	c := connect(registry)
	defer c.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	w, err := c.Watch(ctx, stock)
	if err != nil {
		fmt.Println(err)
		return
	}
	for u, err := range w.All(ctx) {
		if err != nil {
			fmt.Println("the end:", err)
			break
		}
		fmt.Println(u.Snapshot.Len(), "instances,", len(u.Added), "new,", len(u.Removed), "gone")
		switch u.Snapshot.Len() {
		case 1:
			registry.Set(stock, rollcall.NewInstance("10.0.0.2", 80), rollcall.NewInstance("10.0.0.3", 80))
		case 2:
			cancel()
		}
	}
	// Output:
	// 1 instances, 1 new, 0 gone
	// 2 instances, 2 new, 1 gone
	// the end: watch public/DEFAULT_GROUP/stock: context canceled
}

func ExampleClient_Lookup() {
	registry := clienttest.New()
	stock := rollcall.Service{Name: "stock"}
	down := rollcall.NewInstance("10.0.0.2", 80)
	down.Healthy = false
	registry.Set(stock, rollcall.NewInstance("10.0.0.1", 80), down)
	c := connect(registry)
	defer c.Close()
	s, err := c.Lookup(context.Background(), stock, rollcall.WithHealth(rollcall.OnlyHealthy))
	if err != nil {
		fmt.Println(err)
		return
	}
	for in := range s.All() {
		fmt.Println(in.Addr())
	}
	// Output: 10.0.0.1:80
}

func ExampleClient_WatchServices() {
	registry := clienttest.New()
	for _, name := range []string{"pay-card", "pay-invoice", "ship"} {
		registry.Set(rollcall.Service{Name: name}, rollcall.NewInstance("10.0.0.1", 80))
	}
	c := connect(registry)
	defer c.Close()
	w, err := c.WatchServices(context.Background(), rollcall.Pattern{Name: "pay-*"})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, s := range w.Services() {
		fmt.Println(s.Name)
	}
	// Output:
	// pay-card
	// pay-invoice
}
