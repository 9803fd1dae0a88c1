package workload

import (
	"context"
	"fmt"
	"time"

	"github.com/rollcall-registry/rollcall/internal/bench/fleet"
	"github.com/rollcall-registry/rollcall/internal/bench/target"
)

// holdingKinds are the workloads of clients that are there and do little.
func holdingKinds() []Kind {
	return []Kind{
		{
			Name: "fill", Summary: "hold many instances that beat: memory and processor time at rest",
			Defaults: Config{Services: 10_000, Instances: 10, Connections: 100, Duration: 30 * time.Second},
			Check:    beatRate, Distincts: true, OwnPace: true, New: func(e *Env) Workload { return &fill{Env: e} },
		},
		{
			Name: "idle", Summary: "hold many subscribers of services that do not change",
			Defaults: Config{Services: 100, Instances: 1, Subscribers: 1000, Connections: holders, Duration: 20 * time.Second},
			Check:    calmRate, OwnPace: true, New: func(e *Env) Workload { return &idle{Env: e} },
		},
	}
}

// beatRate sets the rate at which real clients beat: for each instance, or over gRPC
// for each connection, once in 5 s. There are no more connections than services, so that
// each owns an instance.
func beatRate(c *Config) error {
	c.Connections = min(c.Connections, c.Services)
	if c.Instances > c.Connections && c.Protocol == target.GRPC {
		return fmt.Errorf("instances: at most as many as connections, since a connection holds one of a service")
	}
	if c.Rate != 0 {
		return nil
	}
	beating := c.Services * c.Instances
	if c.Protocol == target.GRPC {
		beating = c.Connections
	}
	c.Rate = float64(beating) / beatInterval.Seconds()
	return nil
}

// fill registers instances and keeps them alive. Its units are the beats.
type fill struct {
	*Env
	fleet    *fleet.Fleet
	sessions []target.Session
	pulse    *pulse // of the instances, over gRPC of the connections
	control  *control

	took               time.Duration // to register all
	empty, filled, end int64         // resident memory of the server
}

func (f *fill) Prepare(ctx context.Context) (err error) {
	c := &f.Config
	f.fleet = f.Env.fleet("fill", c.Services, c.Instances, c.Connections)
	f.fleet.Distinct = c.Distinct
	if f.sessions, err = f.dialAll(ctx, c.Connections); err != nil {
		return err
	}
	f.pulse = f.newPulse(f.fleet.Len(), usualTimeout)
	if c.Protocol == target.GRPC {
		f.pulse = f.newPulse(c.Connections, silentClients)
	}
	if f.control, err = f.neglect(ctx); err != nil {
		return err
	}
	f.empty = f.Resident()
	// Clients beat from when they are registered, not from when all are.
	keeper, err := f.keepAlive(ctx, f.fleet.All(), f.pulse)
	if err != nil {
		return err
	}
	defer keeper.close()
	begun := time.Now()
	err = f.each(ctx, func(w int, i fleet.Instance) error {
		err := f.sessions[w].Register(i)
		if err == nil {
			f.beaten(w, i)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("register %d instances: %w", f.fleet.Len(), err)
	}
	f.took = time.Since(begun)
	err = parallel(ctx, len(f.sessions), func(ctx context.Context, w int) error {
		for n := w; n < c.Services && ctx.Err() == nil; n += len(f.sessions) {
			have, err := f.sessions[w].Count(f.fleet.Service(n))
			if err == nil && have != c.Instances {
				err = fmt.Errorf("%d of %d instances are listed", have, c.Instances)
			}
			if err != nil {
				return fmt.Errorf("%s: %w", f.fleet.Service(n).Name(), err)
			}
		}
		return nil
	})
	f.filled = f.Resident()
	return f.pulse.judge(err)
}

// beaten notes that the server has heard of an instance by a worker's session.
func (f *fill) beaten(worker int, i fleet.Instance) {
	if f.Config.Protocol == target.GRPC {
		f.pulse.beaten(worker)
	} else {
		f.pulse.beaten(i.Index())
	}
}

// each calls do for all instances, with the number of their owner.
func (f *fill) each(ctx context.Context, do func(worker int, i fleet.Instance) error) error {
	return parallel(ctx, len(f.sessions), func(ctx context.Context, w int) error {
		for k := 0; k < f.fleet.Rounds() && ctx.Err() == nil; k++ {
			if i, ok := f.fleet.Owned(w, k); ok {
				if err := do(w, i); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

func (f *fill) Step(_ context.Context, worker, n int) error {
	i, ok := f.fleet.Owned(worker, n%f.fleet.Rounds())
	if !ok {
		i, _ = f.fleet.Owned(worker, 0)
	}
	err := f.sessions[worker].Beat(i)
	if err == nil {
		f.beaten(worker, i)
	}
	return err
}

func (f *fill) Verify(ctx context.Context) (Checked, error) {
	f.end = f.Resident()
	keeper, err := f.keepAlive(ctx, f.fleet.All(), f.pulse)
	if err != nil {
		return Checked{}, err
	}
	defer keeper.close()
	checked, err := f.verifyWhole(ctx, f.fleet)
	if err != nil {
		return checked, f.pulse.judge(err)
	}
	return checked, f.control.verify(ctx)
}

func (f *fill) Figures() []Figure {
	n := float64(f.fleet.Len())
	figures := []Figure{{"registered per second", n / f.took.Seconds(), "/s"}}
	if f.end > 0 {
		figures = append(figures,
			Figure{"memory before", float64(f.empty), "B"},
			Figure{"memory just filled", float64(f.filled), "B"},
			Figure{"memory at the end", float64(f.end), "B"})
	}
	figures = append(figures, each("memory an instance", f.empty, f.end, f.fleet.Len())...)
	return append(figures, f.control.figures()...)
}

// grown is the share of the memory before by which it must have grown to tell what one of
// many takes. A server that has held as much before has room in what it took then, and
// one that grew by little may have given other memory back meanwhile.
const grown = 0.25

// each is what one of n takes of memory that was added; nothing where that cannot be
// told.
func each(name string, before, after int64, n int) []Figure {
	added := float64(after - before)
	if before == 0 || added < grown*float64(before) {
		return nil
	}
	return []Figure{{name, added / float64(n), "B"}}
}

func (f *fill) Close(ctx context.Context) {
	f.control.close(ctx)
	if f.Config.Protocol == target.HTTP && ctx.Err() == nil && f.sessions != nil {
		_ = f.each(ctx, func(w int, i fleet.Instance) error {
			_ = f.sessions[w].Deregister(i) // what is left goes by itself
			return nil
		})
	}
	closeAll(f.sessions)
}

// calmRate sets the rate at which real subscribers say that they are there.
func calmRate(c *Config) error {
	calm := float64(c.Subscribers) / renewEvery(c.Protocol).Seconds()
	if c.Rate != 0 && c.Rate != calm {
		return fmt.Errorf("rate: it is that of %d real subscribers, %v a second; leave it out", c.Subscribers, calm)
	}
	c.Rate = calm
	c.Connections = min(c.Connections, c.Subscribers)
	return nil
}

// idle has subscribers that are there. Its units are what each of them sends to stay.
type idle struct {
	*Env
	fixture    *fixture
	audience   *audience
	empty, end int64
}

func (i *idle) Prepare(ctx context.Context) (err error) {
	c := &i.Config
	if i.fixture, err = i.hold(ctx, i.fleet("idle", c.Services, c.Instances, 1)); err != nil {
		return err
	}
	i.empty = i.Resident()
	i.audience = i.newAudience(i.fixture.fleet, c.Subscribers, c.Connections)
	return i.audience.gather(ctx)
}

func (i *idle) Step(_ context.Context, worker, n int) error {
	return i.audience.renewOne(worker, n)
}

// Verify tells all subscribers of a change, to see that they are subscribed.
func (i *idle) Verify(ctx context.Context) (Checked, error) {
	i.end = i.Resident()
	session, err := i.Target.Dial(ctx, i.Config.Protocol)
	if err != nil {
		return Checked{}, err
	}
	defer session.Close()
	for n := range i.Config.Services {
		changed := fleet.Instance{Service: i.fixture.fleet.Service(n), Host: i.Config.Instances, Revision: 1}
		if err := session.Register(changed); err != nil {
			return Checked{}, err
		}
		defer func() { _ = session.Deregister(changed) }() // what is left goes by itself
	}
	missing := i.audience.wait(ctx, func(l *listener) bool { return l.revision.Load() == 1 })
	checked := Checked{Services: i.Config.Services, Subscribers: i.Config.Subscribers - missing}
	if missing > 0 {
		return checked, i.audience.untold(missing, "a change")
	}
	return checked, nil
}

func (i *idle) Figures() []Figure {
	if i.end == 0 {
		return nil
	}
	figures := []Figure{{"memory before", float64(i.empty), "B"}, {"memory at the end", float64(i.end), "B"}}
	return append(figures, each("memory a subscriber", i.empty, i.end, i.Config.Subscribers)...)
}

func (i *idle) Close(ctx context.Context) {
	i.audience.close()
	i.fixture.close(ctx)
}
