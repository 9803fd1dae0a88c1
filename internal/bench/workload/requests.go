package workload

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rollcall-registry/rollcall/internal/bench/fleet"
	"github.com/rollcall-registry/rollcall/internal/bench/load"
	"github.com/rollcall-registry/rollcall/internal/bench/target"
)

// requestKinds are the workloads of single calls.
func requestKinds() []Kind {
	usual := Config{Connections: 64, Warmup: time.Second, Duration: 5 * time.Second}
	with := func(services int) Config {
		c := usual
		c.Services, c.Instances = services, 10
		return c
	}
	limited := with(0)
	limited.Count = 200_000
	prepared := with(0)
	prepared.Count, prepared.Warmup = 30_000, 0 // so few that they are registered before the first one goes for want of beats
	turning := with(0)
	turning.Count = 1_000_000
	mixture := with(100)
	mixture.Mix = map[string]int{mixQuery: 60, mixBeat: 30, mixChange: 10}
	return []Kind{
		{
			Name: "register", Summary: "register new instances",
			Defaults: limited, Check: checkSilent, New: func(e *Env) Workload { return &register{Env: e} },
		},
		{
			Name: "deregister", Summary: "deregister instances that were registered before",
			Defaults: prepared, Check: checkSilent, New: func(e *Env) Workload { return &deregister{Env: e} },
		},
		{
			Name: "turnover", Summary: "register a new instance, look it up and deregister it",
			Defaults: turning, Check: checkOwners, New: func(e *Env) Workload { return &turnover{register{Env: e}} },
		},
		{
			Name: "beat", Summary: "say that an instance (over gRPC: a client) is alive",
			Defaults: with(100), Check: checkBeat, New: func(e *Env) Workload { return &beat{Env: e} },
		},
		{
			Name: "query", Summary: "look a service up",
			Defaults: with(100), New: func(e *Env) Workload { return &query{Env: e} },
		},
		{
			Name: "mixed", Summary: "look-ups, beats and changes in random order",
			Defaults: mixture, Check: checkMix, New: func(e *Env) Workload { return &mixed{Env: e} },
		},
	}
}

// silentTime is how long instances that do not beat may be measured: after 15 s they
// are unhealthy.
const silentTime = 12 * time.Second

func checkSilent(c *Config) error {
	if c.Protocol == target.HTTP && c.Warmup+c.Duration > silentTime {
		return fmt.Errorf("warmup and duration: together at most %v, since the instances do not beat", silentTime)
	}
	return checkOwners(c)
}

// checkOwners is for units that are instances of which each connection owns some.
func checkOwners(c *Config) error {
	if c.Protocol == target.GRPC && c.Instances > c.Connections {
		return fmt.Errorf("instances: at most as many as connections, since a connection holds one of a service")
	}
	return nil
}

// enough is the fleet whose instances are at least Count.
func (e *Env) enough(part string) *fleet.Fleet {
	c := &e.Config
	round := c.Connections * c.Instances
	return e.fleet(part, (c.Count+round-1)/round*c.Connections, c.Instances, c.Connections)
}

// register registers instances that never were.
type register struct {
	*Env
	sessions []target.Session
	ledger   *ledger
	silence  *pulse
}

func (r *register) Prepare(ctx context.Context) (err error) {
	r.ledger = newLedger(r.enough("new"))
	r.sessions, err = r.dialAll(ctx, r.Config.Connections)
	r.silence = r.Env.silence()
	return err
}

func (r *register) Step(_ context.Context, worker, n int) error {
	i, ok := r.ledger.fleet.Owned(worker, n)
	if !ok {
		return load.ErrDone
	}
	err := r.sessions[worker].Register(i)
	r.ledger.note(worker, n, err)
	return err
}

func (r *register) Verify(ctx context.Context) (Checked, error) {
	checked, err := r.verify(ctx, r.ledger.fleet, r.ledger.checkRegistered)
	return checked, r.silence.judge(err)
}

// checkRegistered compares a list with what was registered so far, healthy or not, as
// nobody beats.
func (l *ledger) checkRegistered(s fleet.Service, hosts []fleet.Host) error {
	for n := range hosts {
		hosts[n].Healthy = true
	}
	if !l.certain(s) {
		return nil
	}
	return s.Check(hosts, func(host int) (fleet.Instance, bool) {
		i := fleet.Instance{Service: s, Host: host}
		return i, l.fate(i) == changed
	})
}

func (r *register) Close(ctx context.Context) {
	if r.Config.Protocol == target.HTTP && r.ledger != nil && r.sessions != nil {
		r.ledger.undo(ctx, r.sessions, target.Session.Deregister)
	}
	closeAll(r.sessions)
}

// turnover registers instances that never were, looks whether they are there, and
// deregisters them at once, so that the server has a long history and holds nothing
// of it.
type turnover struct{ register }

func (t *turnover) Step(ctx context.Context, worker, n int) error {
	i, ok := t.ledger.fleet.Owned(worker, n)
	if !ok {
		return load.ErrDone
	}
	if err := t.register.Step(ctx, worker, n); err != nil {
		return err
	}
	err := t.seen(worker, i)
	t.ledger.note(worker, n, err)
	return err
}

// seen looks an instance up and deregisters it.
func (t *turnover) seen(worker int, i fleet.Instance) error {
	have, err := t.sessions[worker].Count(i.Service)
	if err == nil && have == 0 {
		err = fmt.Errorf("%s: nobody is listed after a registration", i.Name())
	}
	return errors.Join(err, t.sessions[worker].Deregister(i))
}

func (t *turnover) Verify(ctx context.Context) (Checked, error) {
	return t.verify(ctx, t.ledger.fleet, func(s fleet.Service, hosts []fleet.Host) error {
		if !t.ledger.certain(s) {
			return nil
		}
		return s.Check(hosts, func(int) (fleet.Instance, bool) { return fleet.Instance{}, false })
	})
}

func (t *turnover) Close(context.Context) { closeAll(t.sessions) }

// deregister removes instances that were registered before the clock starts.
type deregister struct {
	*Env
	sessions []target.Session
	ledger   *ledger
	silence  *pulse
}

func (d *deregister) Prepare(ctx context.Context) (err error) {
	f := d.enough("old")
	d.ledger = newLedger(f)
	if d.sessions, err = d.dialAll(ctx, d.Config.Connections); err != nil {
		return err
	}
	d.silence = d.Env.silence()
	err = parallel(ctx, len(d.sessions), func(ctx context.Context, w int) error {
		for k := 0; k < f.Rounds() && ctx.Err() == nil; k++ {
			if i, ok := f.Owned(w, k); ok {
				if err := d.sessions[w].Register(i); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("register: %w", err)
	}
	_, err = d.Verify(ctx)
	return err
}

func (d *deregister) Step(_ context.Context, worker, n int) error {
	i, ok := d.ledger.fleet.Owned(worker, n)
	if !ok || n >= d.ledger.fleet.Rounds() {
		return load.ErrDone
	}
	err := d.sessions[worker].Deregister(i)
	d.ledger.note(worker, n, err)
	return err
}

// Verify checks that nobody is left who was deregistered, and that who was not is
// there, healthy or not, as nobody beats.
func (d *deregister) Verify(ctx context.Context) (Checked, error) {
	checked, err := d.verify(ctx, d.ledger.fleet, func(s fleet.Service, hosts []fleet.Host) error {
		for n := range hosts {
			hosts[n].Healthy = true
		}
		if !d.ledger.certain(s) {
			return nil
		}
		return s.Check(hosts, func(host int) (fleet.Instance, bool) {
			i := fleet.Instance{Service: s, Host: host}
			return i, d.ledger.fate(i) == untouched
		})
	})
	return checked, d.silence.judge(err)
}

func (d *deregister) Close(ctx context.Context) {
	if d.Config.Protocol == target.HTTP && d.sessions != nil && ctx.Err() == nil {
		f := d.ledger.fleet
		_ = parallel(ctx, len(d.sessions), func(ctx context.Context, w int) error {
			for k := d.ledger.done[w]; k < f.Rounds() && ctx.Err() == nil; k++ {
				if i, ok := f.Owned(w, k); ok {
					_ = d.sessions[w].Deregister(i) // what is left goes by itself
				}
			}
			return nil
		})
	}
	closeAll(d.sessions)
}

// beat keeps instances alive that nobody else keeps alive: they ask for so short a
// timeout that a server that does nothing with beats is found out.
type beat struct {
	*Env
	fleet    *fleet.Fleet
	sessions []target.Session
	pulse    *pulse   // nil over gRPC
	control  *control // as is this
}

// shortTimeout is after how long without a beat the instances are unhealthy, and
// beatAtLeast how often each must get one at least.
const (
	shortTimeout = 5 * time.Second
	beatAtLeast  = 2 * time.Second
)

func checkBeat(c *Config) error {
	least := float64(c.Services*c.Instances) / beatAtLeast.Seconds()
	if c.Protocol == target.HTTP && c.Rate > 0 && c.Rate < least {
		return fmt.Errorf("rate: at least %.0f a second, so that each of %d instances beats every %v", least, c.Services*c.Instances, beatAtLeast)
	}
	return nil
}

func (b *beat) Prepare(ctx context.Context) (err error) {
	b.fleet = b.Env.fleet("beat", b.Config.Services, b.Config.Instances, 1)
	if b.sessions, err = b.dialAll(ctx, b.Config.Connections); err != nil {
		return err
	}
	if b.Config.Protocol == target.HTTP {
		b.fleet.BeatTimeoutMillis = int(shortTimeout.Milliseconds())
		b.pulse = b.newPulse(b.fleet.Len(), shortTimeout)
	}
	if b.control, err = b.neglect(ctx); err != nil {
		return err
	}
	return parallel(ctx, len(b.sessions), func(ctx context.Context, w int) error {
		for n := w; n < b.fleet.Services && ctx.Err() == nil; n += len(b.sessions) {
			if err := b.sessions[w].RegisterService(b.fleet.Service(n)); err != nil {
				return err
			}
		}
		return nil
	})
}

func (b *beat) Step(_ context.Context, worker, n int) error {
	i := b.fleet.Instance(n*b.Config.Connections + worker)
	err := b.sessions[worker].Beat(i)
	if err == nil {
		b.pulse.beaten(i.Index())
	}
	return err
}

func (b *beat) Verify(ctx context.Context) (Checked, error) {
	checked, err := b.verifyWhole(ctx, b.fleet)
	if err != nil {
		return checked, b.pulse.judge(err)
	}
	return checked, b.control.verify(ctx)
}

func (b *beat) Figures() []Figure { return b.control.figures() }

func (b *beat) Close(ctx context.Context) {
	b.control.close(ctx)
	if b.Config.Protocol == target.HTTP {
		withdraw(ctx, b.sessions, b.fleet)
	}
	closeAll(b.sessions)
}

// query looks services up and checks how many instances each answer has.
type query struct {
	*Env
	fixture  *fixture
	sessions []target.Session
}

func (q *query) Prepare(ctx context.Context) (err error) {
	q.fixture, err = q.hold(ctx, q.fleet("query", q.Config.Services, q.Config.Instances, 1))
	if err != nil {
		return err
	}
	q.sessions, err = q.dialAll(ctx, q.Config.Connections)
	return err
}

func (q *query) Step(_ context.Context, worker, n int) error {
	s := q.fixture.fleet.Scattered(n*q.Config.Connections + worker)
	have, err := q.sessions[worker].Count(s)
	if err == nil && have != q.Config.Instances {
		return fmt.Errorf("%s: %d instances are listed, not %d", s.Name(), have, q.Config.Instances)
	}
	return err
}

func (q *query) Verify(ctx context.Context) (Checked, error) {
	checked, err := q.verifyWhole(ctx, q.fixture.fleet)
	return checked, q.fixture.pulse.judge(err)
}

func (q *query) Close(ctx context.Context) {
	q.fixture.close(ctx)
	closeAll(q.sessions)
}
