// Command grpc measures the gRPC side of a server against the yardstick of a bare
// grpc-go server that echoes as many bytes, in the same run: CPU of the server per
// call, the time from a change until its subscribers have been told, and the memory
// and CPU of idle connections. The server is a process of its own with one
// processor, the generator has another.
//
//	go run ./bench/grpc [-run register,query,fanout,idle,drop] [-d 5s] [-n 1000]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"time"
)

// options are what a run is told.
type options struct {
	cases    []string
	duration time.Duration // of each case
	clients  int           // of fanout and idle
	workers  int           // calls at once
}

func main() {
	log.SetFlags(0)
	child := flag.String("child", "", "what this process serves; used by the program itself")
	run := flag.String("run", "register,query,fanout,idle,drop", "cases to measure")
	o := options{}
	flag.DurationVar(&o.duration, "d", 5*time.Second, "how long each case is measured")
	flag.IntVar(&o.clients, "n", 1000, "connections of fanout and idle")
	flag.IntVar(&o.workers, "w", 16, "calls at once")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if *child != "" {
		if err := serveChild(ctx, *child); err != nil {
			log.Fatal(err)
		}
		return
	}
	runtime.GOMAXPROCS(1)
	o.cases = strings.Split(*run, ",")
	if err := measure(ctx, o); err != nil {
		log.Fatal(err)
	}
}

func measure(ctx context.Context, o options) error {
	for _, c := range []struct {
		name string
		f    func(context.Context, options, *target) (result, error)
	}{{"register", register}, {"query", query}, {"fanout", fanout}, {"idle", idle}, {"drop", drop}} {
		if !slices.Contains(o.cases, c.name) {
			continue
		}
		var results []result
		for _, kind := range []string{echoServer, rollcallServer} {
			r, err := measureOne(ctx, kind, func(t *target) (result, error) { return c.f(ctx, o, t) })
			if err != nil {
				return fmt.Errorf("%s of %s: %w", c.name, kind, err)
			}
			results = append(results, r)
		}
		report(c.name, results[0], results[1])
	}
	return nil
}

func measureOne(ctx context.Context, kind string, f func(*target) (result, error)) (r result, err error) {
	t, err := start(ctx, kind)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, t.stop()) }()
	return f(t)
}

// result is what was measured: figures in the order in which they are printed.
type result []figure

type figure struct {
	name  string
	value float64
	unit  string
}

func report(name string, yardstick, ours result) {
	fmt.Printf("%s\n", name)
	for n, f := range ours {
		bare := yardstick[n].value
		fmt.Printf("  %-34s %10.1f %-6s bare %10.1f, %.2f times\n", f.name, f.value, f.unit, bare, f.value/bare)
	}
}
