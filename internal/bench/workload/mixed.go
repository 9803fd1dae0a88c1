package workload

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/rollcall-registry/rollcall/internal/bench/fleet"
	"github.com/rollcall-registry/rollcall/internal/bench/load"
	"github.com/rollcall-registry/rollcall/internal/bench/target"
)

// The calls of a mix: a change registers an instance, or deregisters it the next time.
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
	coming   *fleet.Fleet // each worker's own instance, which comes and goes
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
	m.coming = m.fleet("coming", c.Connections, 1, 1)
	m.state = make([]presence, c.Connections)
	if c.Protocol == target.HTTP {
		m.beats = m.newPulse(m.coming.Len(), usualTimeout)
	}
	if m.keeper, err = m.keepAlive(ctx, m.coming.All(), m.beats); err != nil {
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
		if err == nil && have != f.Size {
			return fmt.Errorf("%s: %d instances are listed, not %d", s.Name(), have, f.Size)
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
	i, state := fleet.Instance{Service: m.coming.Service(worker)}, &m.state[worker]
	if state.there {
		err = session.Deregister(i)
		m.beats.away(worker)
	} else if err = session.Register(i); err == nil {
		m.beats.beaten(worker)
	}
	state.there, state.uncertain = !state.there, err != nil
	return err
}

func (m *mixed) Verify(ctx context.Context) (Checked, error) {
	checked, err := m.verifyWhole(ctx, m.fixture.fleet)
	if err != nil {
		return checked, m.fixture.pulse.judge(err)
	}
	_, err = m.verify(ctx, m.coming, func(s fleet.Service, hosts []fleet.Host) error {
		state := m.state[s.N]
		if state.uncertain {
			return nil
		}
		return s.Check(hosts, func(int) (fleet.Instance, bool) { return fleet.Instance{Service: s}, state.there })
	})
	return checked, m.beats.judge(err)
}

func (m *mixed) Close(ctx context.Context) {
	m.fixture.close(ctx)
	m.keeper.close()
	if m.Config.Protocol == target.HTTP {
		withdraw(ctx, m.sessions, m.coming)
	}
	closeAll(m.sessions)
}
