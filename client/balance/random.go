package balance

import (
	"math"
	"math/bits"
	"math/rand/v2"

	rollcall "github.com/rollcall-registry/rollcall/client"
)

// WeightedRandom picks each instance with a chance in proportion to its weight. It is
// the balancer for most: it needs no memory of what was picked before, so that many
// clients do not fall into step.
func WeightedRandom(list ...Option) rollcall.Balancer {
	return weightedRandom{optionsOf(list), rand.Uint64}
}

type weightedRandom struct {
	options options
	random  func() uint64
}

func (b weightedRandom) Build(s *rollcall.Snapshot, _ rollcall.Picker) rollcall.Picker {
	c := candidatesOf(s, b.options)
	return &randomPicker{b.random, newAlias(c.weights), c.instances, c.err}
}

type randomPicker struct {
	random    func() uint64
	table     alias
	instances []*rollcall.Instance
	err       error
}

func (p *randomPicker) Pick() (*rollcall.Instance, error) {
	if p.err != nil {
		return nil, p.err
	}
	return p.instances[p.table.draw(p.random())], nil
}

func (p *randomPicker) PickKey(uint64) (*rollcall.Instance, error) { return p.Pick() }

func (p *randomPicker) Done(*rollcall.Instance, error) {}

// alias is an alias table, by which a number is drawn with a given chance in constant
// time (M. D. Vose, "A linear algorithm for generating random numbers with a given
// distribution", 1991): each column is shared by at most two.
type alias []column

type column struct {
	keep  uint64 // the share of the column's owner, as a fraction of 2⁶⁴
	other uint32 // who has the rest
}

// whole is the fraction that stands for all of a column.
const whole = ^uint64(0)

// newAlias returns the table for weights that are all above 0.
func newAlias(weights []float64) alias {
	n := len(weights)
	sum := 0.0
	for _, w := range weights {
		sum += w
	}
	table := make(alias, n)
	share := make([]float64, n) // of a column; what is left of it
	var small, large []uint32
	for i, w := range weights {
		table[i] = column{whole, uint32(i)}
		share[i] = w / sum * float64(n)
		if share[i] < 1 {
			small = append(small, uint32(i))
		} else {
			large = append(large, uint32(i))
		}
	}
	for len(small) > 0 && len(large) > 0 {
		s, l := small[len(small)-1], large[len(large)-1]
		small = small[:len(small)-1]
		table[s] = column{uint64(share[s] * (1 << 63) * 2), l}
		if share[l] -= 1 - share[s]; share[l] < 1 {
			large = large[:len(large)-1]
			small = append(small, l)
		}
	}
	return table // what is left in either list is 1 but for rounding
}

// draw turns a random number into one of those that the table has, which must not be
// empty: the whole part of random·n/2⁶⁴ is the column, the fraction decides within it.
func (a alias) draw(random uint64) uint32 {
	i, fraction := bits.Mul64(random, uint64(len(a)))
	c := &a[i]
	drawn := uint32(i)
	if fraction >= c.keep { // without a jump, which could not be foreseen
		drawn = c.other
	}
	return drawn
}

// drawTwo draws two numbers with the two halves of a random one, each of which still
// tells chances of one in 2³² apart.
func (a alias) drawTwo(random uint64) (uint32, uint32) {
	return a.draw(random &^ math.MaxUint32), a.draw(random << 32)
}
