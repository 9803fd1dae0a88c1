package workload

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/rollcall-registry/rollcall/internal/bench/fleet"
	"github.com/rollcall-registry/rollcall/internal/bench/target"
)

// oneRollout deploys all services once, all at the same time, unless told otherwise.
func oneRollout(c *Config) error {
	if c.Instances < 2 {
		return errors.New("instances: at least 2, so that one can be deployed while another serves")
	}
	if c.Count == 0 {
		c.Count = c.Services * c.Instances
	}
	return c.boundClients()
}

// rollout deploys services: one instance after the other of each service is taken out
// of the lists, stopped after a while, and started anew. Each worker deploys a
// service; each instance has a session of its own, as it is a program of its own.
type rollout struct {
	*Env
	fleet    *fleet.Fleet
	keeper   *keeper
	sessions []target.Session // of each instance, service by service
	changes  *changes
	beats    *pulse
	audience *audience
	rolls    []int64 // of each service
	revision []int64 // of each instance: that of its last start

	watching  atomic.Bool
	undrained atomic.Int64
	short     atomic.Int64
	empty     atomic.Int64
}

func (r *rollout) Prepare(ctx context.Context) (err error) {
	c := &r.Config
	r.fleet = r.Env.fleet("rollout", c.Services, c.Instances, 1)
	r.changes = newChanges(c.Services)
	r.rolls, r.revision = make([]int64, c.Services), make([]int64, r.fleet.Len())
	if r.sessions, err = r.dialAll(ctx, r.fleet.Len()); err != nil {
		return err
	}
	err = parallel(ctx, len(r.sessions), func(_ context.Context, n int) error {
		return r.sessions[n].Register(r.instance(n/c.Instances, n%c.Instances))
	})
	if err != nil {
		return err
	}
	r.beats = r.newPulse(r.fleet.Len(), usualTimeout)
	if r.keeper, err = r.keepAlive(ctx, r.fleet.All(), r.beats); err != nil {
		return err
	}
	r.audience = r.newAudience(r.fleet, c.Subscribers, holders)
	r.audience.time(r.changes)
	r.audience.heard = r.heard
	if err := r.audience.gather(ctx); err != nil {
		return err
	}
	r.audience.keep(ctx)
	if missing := r.audience.wait(ctx, r.sees(int64(c.Instances))); missing > 0 {
		return errors.New("subscribers do not see all instances")
	}
	r.watching.Store(true)
	return nil
}

// sees returns whether a listener was told of so many instances at last.
func (r *rollout) sees(n int64) func(*listener) bool {
	return func(l *listener) bool { return l.hosts.Load() == n }
}

// instance is an instance as it started last.
func (r *rollout) instance(service, host int) fleet.Instance {
	return fleet.Instance{Service: r.fleet.Service(service), Host: host, Revision: r.revision[service*r.fleet.Size+host]}
}

// heard looks at what subscribers are told: never may more than the one instance that
// is deployed be missing.
func (r *rollout) heard(_ *listener, s target.Seen) {
	if !r.watching.Load() {
		return
	}
	if s.Enabled == 0 {
		r.empty.Add(1)
	} else if s.Enabled < r.fleet.Size-1 {
		r.short.Add(1)
	}
}

// Step deploys the next instance of a worker's service.
func (r *rollout) Step(ctx context.Context, service, n int) error {
	host := n % r.fleet.Size
	at := service*r.fleet.Size + host
	session, i := r.sessions[at], r.instance(service, host)
	i.Disabled = true
	if err := session.Register(i); err != nil {
		return err
	}
	if err := sleep(ctx, r.Config.Drain); err != nil {
		return err
	}
	for _, l := range r.audience.list {
		if l.service.N == service && l.enabled.Load() >= int64(r.fleet.Size) {
			r.undrained.Add(1)
		}
	}
	if err := session.Deregister(i); err != nil {
		return err
	}
	session.Close()
	next, err := r.Target.Dial(ctx, r.Config.Protocol)
	if err != nil {
		return err
	}
	r.sessions[at] = next
	r.rolls[service]++
	r.revision[at] = r.rolls[service]
	r.changes.begin(service, r.rolls[service], r.Rec.Now())
	return next.Register(r.instance(service, host))
}

func (r *rollout) Verify(ctx context.Context) (Checked, error) {
	lost := r.audience.wait(ctx, func(l *listener) bool {
		return l.revision.Load() >= r.rolls[l.service.N] && l.hosts.Load() == int64(r.fleet.Size)
	})
	checked, err := r.verify(ctx, r.fleet, func(s fleet.Service, hosts []fleet.Host) error {
		return s.Check(hosts, func(host int) (fleet.Instance, bool) { return r.instance(s.N, host), true })
	})
	checked.Subscribers = len(r.audience.list) - lost
	if err == nil && lost > 0 {
		err = r.audience.untold(lost, "the final state")
	}
	return checked, r.beats.judge(err)
}

func (r *rollout) Figures() []Figure {
	return []Figure{
		{"stopped while a subscriber still saw it", float64(r.undrained.Load()), ""},
		{"lists with more than one missing", float64(r.short.Load()), ""},
		{"empty lists", float64(r.empty.Load()), ""},
	}
}

func (r *rollout) Close(ctx context.Context) {
	r.audience.close()
	r.keeper.close()
	if r.Config.Protocol == target.HTTP && ctx.Err() == nil && r.revision != nil {
		for n, s := range r.sessions {
			_ = s.Deregister(r.instance(n/r.fleet.Size, n%r.fleet.Size)) // what is left goes by itself
		}
	}
	closeAll(r.sessions)
}
