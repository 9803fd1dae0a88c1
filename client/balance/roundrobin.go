package balance

import (
	"container/heap"
	"math"
	"math/rand/v2"
	"sync/atomic"

	rollcall "github.com/rollcall-registry/rollcall/client"
)

// RoundRobin picks the instances in turn, each as often as its weight says and spread
// evenly over the round: with weights 5, 1 and 1 in seven picks, no instance is ever
// more than one pick ahead of its share or behind it. It begins anywhere, so that
// clients that start together do not meet, and goes on from there when the instances
// change.
//
// All who pick share one counter; where that is too hot, [WeightedRandom] has none.
func RoundRobin(list ...Option) rollcall.Balancer {
	return roundRobin{optionsOf(list), rand.Float64}
}

type roundRobin struct {
	options options
	random  func() float64
}

func (b roundRobin) Build(s *rollcall.Snapshot, previous rollcall.Picker) rollcall.Picker {
	c := candidatesOf(s, b.options)
	p := &turnPicker{round: newRound(&c), err: c.err}
	begin := b.random()
	if before, ok := previous.(*turnPicker); ok && len(before.round) > 0 {
		begin = float64(before.next.Load()%uint64(len(before.round))) / float64(len(before.round))
	}
	p.next.Store(uint64(begin * float64(len(p.round))))
	return p
}

type turnPicker struct {
	next  atomic.Uint64
	round []*rollcall.Instance // a whole round; after it comes the first again
	err   error
}

func (p *turnPicker) Pick() (*rollcall.Instance, error) {
	if p.err != nil {
		return nil, p.err
	}
	return p.round[(p.next.Add(1)-1)%uint64(len(p.round))], nil
}

func (p *turnPicker) PickKey(uint64) (*rollcall.Instance, error) { return p.Pick() }

func (p *turnPicker) Done(*rollcall.Instance, error) {}

// maxRound is the length of a round in which weights are not exact. An instance whose
// share is less than one pick in a round has one all the same.
const maxRound = 4096

// grain is the step in which weights are told apart, the least weight of servers.
const grain = 0.01

// newRound returns the order in which the candidates are picked.
//
// Each has, for each of its turns, a window of the round in which the turn must lie: the
// k-th of n turns in a round of length l has k·l/n to (k+1)·l/n. Taking always the one
// whose window ends first of those that have begun meets all windows (S. K. Baruah and
// others, "Proportionate progress", 1996).
func newRound(c *candidates) []*rollcall.Instance {
	if len(c.instances) == 0 {
		return nil
	}
	if c.equal() {
		return c.instances
	}
	turns, length := turnsOf(c)
	waiting := make([][]*window, length) // by the slot with which they begin
	for i, n := range turns {
		waiting[0] = append(waiting[0], &window{instance: c.instances[i], place: i, turns: n, end: end(0, n, length)})
	}
	open := make(windows, 0, len(turns))
	round := make([]*rollcall.Instance, length)
	for now := range length {
		for _, w := range waiting[now] {
			heap.Push(&open, w)
		}
		w := heap.Pop(&open).(*window)
		round[now] = w.instance
		if w.turn++; w.turn < w.turns {
			w.end = end(w.turn, w.turns, length)
			begin := max(w.turn*length/w.turns, now+1)
			waiting[begin] = append(waiting[begin], w)
		}
	}
	return round
}

// turnsOf returns how many turns each candidate has in a round, and how long it is. If
// the weights have a common divisor that makes the round short enough, they are exact.
func turnsOf(c *candidates) (turns []int, length int) {
	limit := max(maxRound, 2*len(c.weights))
	turns = make([]int, len(c.weights))
	divisor, sum := 0, 0
	for i, w := range c.weights {
		turns[i] = max(int(math.Round(w/grain)), 1)
		divisor = gcd(divisor, turns[i])
		sum += turns[i]
	}
	if sum/divisor <= limit {
		for i := range turns {
			turns[i] /= divisor
		}
		return turns, sum / divisor
	}
	scale := float64(limit) / c.total()
	for i, w := range c.weights {
		turns[i] = max(int(math.Round(w*scale)), 1)
		length += turns[i]
	}
	return turns, length
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// window is where the next turn of an instance must lie.
type window struct {
	instance    *rollcall.Instance
	place       int // of the instance among the candidates
	turn, turns int
	end         int // the slot after the last
}

// end rounds the end of a window up to whole slots.
func end(turn, turns, length int) int { return ((turn+1)*length + turns - 1) / turns }

// windows is a heap, the one that ends first on top.
type windows []*window

func (w windows) Len() int      { return len(w) }
func (w windows) Swap(i, j int) { w[i], w[j] = w[j], w[i] }
func (w *windows) Push(x any)   { *w = append(*w, x.(*window)) }

func (w windows) Less(i, j int) bool {
	return w[i].end < w[j].end || w[i].end == w[j].end && w[i].place < w[j].place
}

func (w *windows) Pop() any {
	last := len(*w) - 1
	x := (*w)[last]
	*w = (*w)[:last]
	return x
}
