package balance

import (
	"math/rand/v2"

	rollcall "github.com/rollcall-registry/rollcall/client"
)

// LeastOutstanding draws two instances as [WeightedRandom] does and picks the one that
// has fewer requests in flight for its weight. Two are nearly as good as looking at
// all, and unlike that do not send everybody to the one that was idle last (M.
// Mitzenmacher, "The power of two choices in randomized load balancing", 2001).
//
// It counts the requests of this program alone, and needs [rollcall.Picker.Done] at
// the end of each. Counts outlive changes of the instances.
func LeastOutstanding(list ...Option) rollcall.Balancer {
	return leastOutstanding{optionsOf(list), rand.Uint64}
}

type leastOutstanding struct {
	options options
	random  func() uint64
}

func (b leastOutstanding) Build(s *rollcall.Snapshot, previous rollcall.Picker) rollcall.Picker {
	c := candidatesOf(s, b.options)
	p := &leastPicker{random: b.random, table: newAlias(c.weights), candidates: c}
	if before, ok := previous.(*leastPicker); ok {
		p.inflight = before.inflight
	}
	p.inflight = p.inflight.follow(s)
	p.counters = p.inflight.of(c.instances)
	return p
}

type leastPicker struct {
	random     func() uint64
	table      alias
	candidates candidates
	inflight   inflight
	counters   []*counter // of the candidates
}

func (p *leastPicker) Pick() (*rollcall.Instance, error) {
	if p.candidates.err != nil {
		return nil, p.candidates.err
	}
	i, j := p.table.draw(p.random()), p.table.draw(p.random())
	if p.load(j) < p.load(i) {
		i = j
	}
	p.counters[i].n.Add(1)
	return p.candidates.instances[i], nil
}

// load is what an instance would have to do with one request more.
func (p *leastPicker) load(i uint32) float64 {
	return float64(p.counters[i].n.Load()+1) / p.candidates.weights[i]
}

func (p *leastPicker) PickKey(uint64) (*rollcall.Instance, error) { return p.Pick() }

func (p *leastPicker) Done(in *rollcall.Instance, _ error) { p.inflight.done(in) }
