package workload

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/rollcall-registry/rollcall/internal/bench/fleet"
	"github.com/rollcall-registry/rollcall/internal/bench/load"
	"github.com/rollcall-registry/rollcall/internal/bench/target"
)

// The calls of a mix: a change registers an instance of a service that is looked up, or
// deregisters it the next time.
const (
	mixQuery  = "query"
	mixBeat   = "beat"
	mixChange = "change"
)

// mixKeys are the calls in the order in which shares are dealt out.
func mixKeys() []string { return []string{mixQuery, mixBeat, mixChange} }

func checkMix(c *Config) error {
	known, sum := 0, 0
	for _, key := range mixKeys() {
		share, there := c.Mix[key]
		if share < 0 || share > 1000 {
			return fmt.Errorf("mix: %s: %d is not between 0 and 1000", key, share)
		}
		sum += share
		if there {
			known++
		}
	}
	if known != len(c.Mix) || sum == 0 {
		return fmt.Errorf("mix: give shares to query, beat and change, and to nothing else")
	}
	return nil
}

// mixed does calls of several kinds in an order that the seed decides.
type mixed struct {
	*Env
	fixture  *fixture
	keeper   *keeper
	beats    *pulse // of the instances that come and go; nil over gRPC
	sessions []target.Session
	control  *control
	random   []*rand.Rand // of each worker
	sum      int
	series   map[string]*load.Series
	state    []presence // of each worker's instance
}

// presence is whether an instance is there.
type presence struct {
	there, uncertain bool
}

func (m *mixed) Prepare(ctx context.Context) (err error) {
	c := &m.Config
	if m.fixture, err = m.hold(ctx, m.fleet("mixed", c.Services, c.Instances, 1)); err != nil {
		return err
	}
	if m.sessions, err = m.dialAll(ctx, c.Connections); err != nil {
		return err
	}
	if m.control, err = m.neglect(ctx); err != nil {
		return err
	}
	m.state = make([]presence, c.Connections)
	coming := make([]fleet.Instance, c.Connections)
	for w := range coming {
		coming[w] = m.coming(w)
	}
	if c.Protocol == target.HTTP {
		m.beats = m.newPulse(m.fixture.fleet.Len()+c.Connections, usualTimeout)
	}
	if m.keeper, err = m.keepAlive(ctx, coming, m.beats); err != nil {
		return err
	}
	m.series = map[string]*load.Series{}
	for _, key := range mixKeys() {
		if c.Mix[key] > 0 {
			m.series[key] = m.Rec.Series(key)
			m.sum += c.Mix[key]
		}
	}
	for w := range c.Connections {
		m.random = append(m.random, rand.New(rand.NewPCG(m.Seed, uint64(w)))) //nolint:gosec // the same seed is to give the same load
	}
	return nil
}

// coming is the worker's own instance, which comes and goes: one more of a service that
// all look up.
func (m *mixed) coming(worker int) fleet.Instance {
	f := m.fixture.fleet
	return fleet.Instance{Service: f.Service(worker), Host: f.Size + worker/f.Services}
}

// most is how many instances a service has when all are there that come and go.
func (m *mixed) most(s fleet.Service) int {
	return s.Fleet.Size + (m.Config.Connections-s.N+s.Fleet.Services-1)/s.Fleet.Services
}

func (m *mixed) Step(_ context.Context, worker, _ int) error {
	random := m.random[worker]
	key := m.pick(random.IntN(m.sum))
	begun := m.Rec.Now()
	err := m.call(key, worker, random)
	if err == nil {
		m.series[key].Record(worker, begun, m.Rec.Now())
	}
	return err
}

// pick returns the call that a number below the sum of the shares falls to.
func (m *mixed) pick(n int) string {
	if n -= m.Config.Mix[mixQuery]; n < 0 {
		return mixQuery
	}
	if n -= m.Config.Mix[mixBeat]; n < 0 {
		return mixBeat
	}
	return mixChange
}

func (m *mixed) call(key string, worker int, random *rand.Rand) error {
	session, f := m.sessions[worker], m.fixture.fleet
	switch key {
	case mixQuery:
		s := f.Service(random.IntN(f.Services))
		have, err := session.Count(s)
		if most := m.most(s); err == nil && (have < f.Size || have > most) {
			return fmt.Errorf("%s: %d instances are listed, not %d to %d", s.Name(), have, f.Size, most)
		}
		return err
	case mixBeat:
		return session.Beat(f.Instance(random.IntN(f.Len())))
	default:
		return m.change(session, worker)
	}
}

// change registers the worker's instance or deregisters it.
func (m *mixed) change(session target.Session, worker int) (err error) {
	i, state := m.coming(worker), &m.state[worker]
	if state.there {
		err = session.Deregister(i)
		m.beats.away(i.Index())
	} else if err = session.Register(i); err == nil {
		m.beats.beaten(i.Index())
	}
	state.there, state.uncertain = !state.there, err != nil
	return err
}

// Verify compares all lists with what is there, changes what comes and goes once more,
// and compares again: lists that stay as they are, whatever they are, are wrong once.
func (m *mixed) Verify(ctx context.Context) (Checked, error) {
	checked, err := m.settled(ctx)
	if err == nil && !m.Target.Yardstick {
		if err = parallel(ctx, len(m.sessions), func(_ context.Context, w int) error { return m.change(m.sessions[w], w) }); err != nil {
			return checked, fmt.Errorf("change once more: %w", err)
		}
		checked, err = m.settled(ctx)
	}
	if err != nil {
		return checked, m.fixture.pulse.judge(m.beats.judge(err))
	}
	return checked, m.control.verify(ctx)
}

// settleTime is how long after a change a list may be the old one. Source: Nacos makes
// the lists of a service anew when it pushes them, 500 ms after a change.
const settleTime = 2 * time.Second

// settled compares all lists with what is there, again and again until they are right
// or should be.
func (m *mixed) settled(ctx context.Context) (Checked, error) {
	for end := time.Now().Add(settleTime); ; {
		checked, err := m.verify(ctx, m.fixture.fleet, m.check)
		if err == nil || time.Now().After(end) || sleep(ctx, settleTime/10) != nil {
			return checked, err
		}
	}
}

func (m *mixed) check(s fleet.Service, hosts []fleet.Host) error {
	state := func(host int) presence {
		if host < m.fixture.fleet.Size {
			return presence{there: true}
		}
		return m.state[(host-m.fixture.fleet.Size)*s.Fleet.Services+s.N]
	}
	whole := *s.Fleet
	whole.Size = m.most(s)
	for host := range whole.Size {
		if state(host).uncertain {
			return nil
		}
	}
	s.Fleet = &whole
	return s.Check(hosts, func(host int) (fleet.Instance, bool) {
		return fleet.Instance{Service: s, Host: host}, state(host).there
	})
}

func (m *mixed) Figures() []Figure { return m.control.figures() }

func (m *mixed) Close(ctx context.Context) {
	m.keeper.close()
	if m.Config.Protocol == target.HTTP && m.state != nil && ctx.Err() == nil {
		_ = parallel(ctx, len(m.sessions), func(_ context.Context, w int) error {
			if m.sessions[w] != nil && (m.state[w].there || m.state[w].uncertain) {
				_ = m.sessions[w].Deregister(m.coming(w)) // what is left goes by itself
			}
			return nil
		})
	}
	m.control.close(ctx)
	m.fixture.close(ctx)
	closeAll(m.sessions)
}
