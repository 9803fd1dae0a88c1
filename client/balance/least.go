package balance

import (
	"math/rand/v2"

	rollcall "github.com/rollcall-registry/rollcall/client"
)

// LeastOutstanding draws two instances as [WeightedRandom] does and picks the one that
// has fewer requests in flight for its weight, and the first if they have the same, so
// that what is idle is picked by weight. Two are nearly as good as looking at all, and unlike that do not send everybody to the one that was idle last (M.
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
	p := &leastPicker{random: b.random, table: newAlias(c.weights), err: c.err}
	if before, ok := previous.(*leastPicker); ok {
		p.inflight = before.inflight
	}
	p.inflight = p.inflight.follow(s)
	p.candidates = p.inflight.of(&c)
	return p
}

type leastPicker struct {
	random     func() uint64
	table      alias
	candidates []candidate
	inflight   inflight
	err        error
}

func (p *leastPicker) Pick() (*rollcall.Instance, error) {
	if p.err != nil {
		return nil, p.err
	}
	first, second := p.table.drawTwo(p.random())
	chosen, other := &p.candidates[first], &p.candidates[second]
	if other.load() < chosen.load() {
		chosen = other
	}
	chosen.requests.n.Add(1)
	return chosen.instance, nil
}

func (p *leastPicker) PickKey(uint64) (*rollcall.Instance, error) { return p.Pick() }

func (p *leastPicker) Done(in *rollcall.Instance, _ error) { p.inflight.done(in) }
