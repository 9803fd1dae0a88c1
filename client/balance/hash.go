package balance

import (
	"math"
	"math/bits"
	"math/rand/v2"

	rollcall "github.com/rollcall-registry/rollcall/client"
)

// ConsistentHash picks by key: the same key gives the same instance in every program
// that sees the same instances, and when instances come, go or change their weight,
// only keys that were or are theirs move. Of the keys each has its share by weight, give
// or take some percent. Pick without a key picks by chance.
//
// When the mean weight doubles or halves, and when there are more than 1024 instances
// and their number doubles or halves, the circle is divided anew and more keys move.
//
// [Key] makes keys of texts.
func ConsistentHash(list ...Option) rollcall.Balancer {
	return consistentHash{optionsOf(list), rand.Uint64}
}

// BoundedLoad has ConsistentHash pass over instances that have more than factor times
// their share of the requests in flight, so that a key that everybody wants does not
// drown one of them (V. Mirrokni and others, "Consistent hashing with bounded loads",
// 2018). factor is at least 1; 1.25 is usual. It needs [rollcall.Picker.Done] at the end
// of each request.
func BoundedLoad(factor float64) Option { return func(o *options) { o.bound = max(factor, 1) } }

// Key returns the key of a text, which is the same everywhere: its FNV-1a hash.
func Key(text string) uint64 {
	hash := uint64(14695981039346656037)
	for i := range len(text) {
		hash = (hash ^ uint64(text[i])) * 1099511628211
	}
	return hash
}

type consistentHash struct {
	options options
	random  func() uint64
}

func (b consistentHash) Build(s *rollcall.Snapshot, previous rollcall.Picker) rollcall.Picker {
	c := candidatesOf(s, b.options)
	p := &hashPicker{random: b.random, circle: newCircle(&c), candidates: c}
	if b.options.bound == 0 {
		return p
	}
	l := &load{factor: b.options.bound / c.total()}
	if before, ok := previous.(*hashPicker); ok && before.load != nil {
		l.total, l.inflight = before.load.total, before.load.inflight
	} else {
		l.total = new(counter)
	}
	l.inflight = l.inflight.follow(s)
	l.counters = l.inflight.of(c.instances)
	p.load = l
	return p
}

type hashPicker struct {
	random     func() uint64
	circle     circle
	candidates candidates
	load       *load // nil if it is not bounded
}

// load is what is known of requests in flight.
type load struct {
	factor   float64 // the bound for each unit of weight and request in flight
	total    *counter
	inflight inflight
	counters []*counter // of the candidates
}

func (p *hashPicker) Pick() (*rollcall.Instance, error) { return p.PickKey(p.random()) }

func (p *hashPicker) PickKey(key uint64) (*rollcall.Instance, error) {
	if p.candidates.err != nil {
		return nil, p.candidates.err
	}
	at := p.circle.find(uint32(mix(key) >> 32))
	if p.load != nil {
		at = p.bounded(at)
	}
	return p.candidates.instances[p.circle.points[at].owner], nil
}

// bounded returns the first point from at on whose owner is not too busy, and counts
// the request. One of them is never too busy; if requests that come meanwhile make it
// so, the key stays where it belongs.
func (p *hashPicker) bounded(at int) int {
	l, points := p.load, p.circle.points
	unit := l.factor * float64(l.total.n.Add(1))
	chosen := at
	for i := range points {
		next := (at + i) % len(points)
		owner := points[next].owner
		if float64(l.counters[owner].n.Load()) < math.Ceil(unit*p.candidates.weights[owner]) {
			chosen = next
			break
		}
	}
	l.counters[points[chosen].owner].n.Add(1)
	return chosen
}

func (p *hashPicker) Done(in *rollcall.Instance, _ error) {
	if p.load != nil {
		p.load.inflight.done(in)
		p.load.total.end()
	}
}

// circle is the circle of hashes, on which each instance has points. A hash belongs to
// the next point.
type circle struct {
	points []point  // sorted
	starts []uint32 // for each value of the high bits, the first point of it or later
	shift  int      // from a hash to its high bits
}

type point struct {
	hash  uint32
	owner uint32
}

const (
	// pointsEach is how many points an instance of mean weight has: the shares are
	// then even within about 1/√160, 8 %.
	pointsEach = 160
	// manyInstances is from where on they have fewer, so that a circle has some
	// hundred thousand points at the most.
	manyInstances = 1024
)

// newCircle gives each candidate points in proportion to its weight. The points of an
// instance depend on its address alone, and fewer are the first of more.
func newCircle(c *candidates) circle {
	n := len(c.instances)
	if n == 0 {
		return circle{}
	}
	each := float64(pointsEach)
	for many := manyInstances; n > many && each > 1; many *= 2 {
		each /= 2
	}
	unit := math.Exp2(math.Round(math.Log2(c.total() / float64(n)))) // few changes change it
	var all []point
	for i, in := range c.instances {
		seed := mix(Key(in.Addr() + "@" + in.Cluster))
		for range max(int(math.Round(each*c.weights[i]/unit)), 1) {
			seed += gamma
			all = append(all, point{uint32(mix(seed) >> 32), uint32(i)})
		}
	}
	return sortPoints(all)
}

// sortPoints sorts points into as many buckets as there are points, about, which is
// fast since hashes are spread evenly, and keeps the buckets to find points by.
func sortPoints(all []point) circle {
	width := bits.Len(uint(len(all)))
	c := circle{points: make([]point, len(all)), starts: make([]uint32, 1<<width+1), shift: 32 - width}
	for _, p := range all {
		c.starts[p.hash>>c.shift+1]++
	}
	for b := range 1 << width {
		c.starts[b+1] += c.starts[b]
	}
	fill := append([]uint32(nil), c.starts...)
	for _, p := range all {
		first, at := c.starts[p.hash>>c.shift], fill[p.hash>>c.shift]
		fill[p.hash>>c.shift]++
		for ; at > first && p.before(c.points[at-1]); at-- {
			c.points[at] = c.points[at-1]
		}
		c.points[at] = p
	}
	return c
}

// before orders points by hash and then by owner, as instances are sorted by address.
func (p point) before(o point) bool {
	return p.hash < o.hash || p.hash == o.hash && p.owner < o.owner
}

// find returns the first point at hash or after it, around the circle.
func (c *circle) find(hash uint32) int {
	at := int(c.starts[hash>>c.shift])
	for at < len(c.points) && c.points[at].hash < hash {
		at++
	}
	if at == len(c.points) {
		return 0
	}
	return at
}

// gamma is the step of SplitMix64, of which mix is the other half (G. L. Steele and
// others, "Fast splittable pseudorandom number generators", 2014).
const gamma = 0x9e3779b97f4a7c15

// mix spreads the bits of a number.
func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
