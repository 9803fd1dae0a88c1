// Package workload holds the kinds of work that a server is measured by. Each is a
// small type: Prepare brings the server into the state that the work is about, Step
// is one unit of it, and Verify compares what the server then holds with what it was
// sent, so that a server that answers without doing has no figures.
//
// Workloads that watch subscribers record the times of what these hear beside the
// times of the units.
package workload

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/rollcall-registry/rollcall/internal/bench/fleet"
	"github.com/rollcall-registry/rollcall/internal/bench/load"
	"github.com/rollcall-registry/rollcall/internal/bench/target"
)

// Workload is one kind of work on one server. Prepare, Verify and Close are called
// once, in this order, by one goroutine; Step as package load says.
type Workload interface {
	// Prepare returns when the server is in the state that the work is about.
	Prepare(ctx context.Context) error
	// Step does unit n of a worker; see [load.Step].
	Step(ctx context.Context, worker, n int) error
	// Verify returns what was checked, and an error that says what the server holds
	// or did otherwise than it was told.
	Verify(ctx context.Context) (Checked, error)
	// Close ends connections and goroutines, and takes back what was registered if
	// ctx has not ended. It is called after a failed Prepare as well.
	Close(ctx context.Context)
}

// Checked is what a verification looked at.
type Checked struct {
	Services, Instances, Subscribers int
}

// Figure is a result that is no time, such as lost states or bytes.
type Figure struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit,omitempty"`
}

// Figured is a workload with figures of its own, which are asked for after Verify.
type Figured interface {
	Figures() []Figure
}

// Env is what a workload works with.
type Env struct {
	Target *target.Target
	Config Config
	// Prefix begins the names of all services, and is used by no other workload.
	Prefix string
	Seed   uint64
	Rec    *load.Recorder
	// Patience is how long a change may take to reach all subscribers.
	Patience time.Duration
	// Resident returns the resident memory of the server in bytes, 0 when its
	// process is not known.
	Resident func() int64
}

// group is that of all services.
const group = "DEFAULT_GROUP"

func (e *Env) fleet(part string, services, size, owners int) *fleet.Fleet {
	return &fleet.Fleet{Name: e.Prefix + part, Group: group, Services: services, Size: size, Owners: owners, Seed: e.Seed}
}

// dialAll opens n sessions. They end with ctx.
func (e *Env) dialAll(ctx context.Context, n int) ([]target.Session, error) {
	list := make([]target.Session, n)
	err := parallel(ctx, n, func(_ context.Context, i int) (err error) {
		list[i], err = e.Target.Dial(ctx, e.Config.Protocol)
		return err
	})
	if err != nil {
		closeAll(list)
		return nil, fmt.Errorf("connect: %w", err)
	}
	return list, nil
}

func closeAll(list []target.Session) {
	for _, s := range list {
		if s != nil {
			s.Close()
		}
	}
}

// atOnce is how many things are prepared or verified at the same time.
const atOnce = 32

// parallel calls f for 0 to n-1, some at the same time, until one fails.
func parallel(ctx context.Context, n int, f func(ctx context.Context, i int) error) error {
	g, until := errgroup.WithContext(ctx)
	g.SetLimit(atOnce)
	for i := range n {
		if until.Err() != nil {
			break
		}
		g.Go(func() error { return f(until, i) })
	}
	if err := g.Wait(); err != nil {
		return err
	}
	return context.Cause(ctx)
}

// Kind is one kind of workload.
type Kind struct {
	Name    string
	Summary string
	// Defaults fill what a scenario leaves out; what is zero in them the kind does
	// not use.
	Defaults Config
	New      func(*Env) Workload
	// Check completes what depends on the rest, and returns why a configuration is
	// none for this kind; it may be nil.
	Check func(*Config) error
	// Workers is how many do the units, if it is not one for each connection.
	Workers func(*Config) int
	// Distincts: its instances may have metadata that is all different.
	Distincts bool
	// OwnPace: unless a scenario says otherwise, its rate is that of real clients.
	OwnPace bool
	// Restarts: it needs the command that restarts the server. A configuration is
	// complete without it, since the command line may give it.
	Restarts bool
}

// Usual are the settings of a scenario that leaves out what it may, as key and value.
func (k *Kind) Usual() []string {
	d := &k.Defaults
	var list []string
	add := func(key string, value any, there bool) {
		if there {
			list = append(list, fmt.Sprintf("%s: %v", key, value))
		}
	}
	add("services", d.Services, d.Services > 0)
	add("instances", d.Instances, d.Instances > 0)
	add("subscribers", d.Subscribers, d.Subscribers > 0)
	add("connections", d.Connections, d.Connections > 0)
	switch {
	case k.OwnPace:
		add("rate", "that of real clients", true)
	case d.Rate > 0:
		add("rate", d.Rate, true)
	}
	add("count", d.Count, d.Count > 0)
	add("warmup", d.Warmup, d.Warmup > 0)
	add("duration", d.Duration, true)
	add("drain", d.Drain, d.Drain > 0)
	var shares []string
	for _, key := range mixKeys() {
		shares = append(shares, fmt.Sprintf("%s: %d", key, d.Mix[key]))
	}
	add("mix", "{"+strings.Join(shares, ", ")+"}", len(d.Mix) > 0)
	add("distinct", false, k.Distincts)
	add("command", "(needed)", k.Restarts)
	return list
}

// Kinds are all kinds, in the order in which they are documented.
func Kinds() []Kind {
	return slices.Concat(requestKinds(), pushKinds(), holdingKinds(), upheavalKinds())
}

// WorkersOf is how many workers do the units of a complete configuration.
func (k *Kind) WorkersOf(c *Config) int {
	if k.Workers != nil {
		return k.Workers(c)
	}
	return max(c.Connections, 1)
}

// KindOf returns the kind with a name.
func KindOf(name string) (Kind, error) {
	var names []string
	for _, k := range Kinds() {
		if k.Name == name {
			return k, nil
		}
		names = append(names, k.Name)
	}
	return Kind{}, fmt.Errorf("workload: %q is none; there are %s", name, strings.Join(names, ", "))
}
