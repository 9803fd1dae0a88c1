package balance

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"

	rollcall "github.com/rollcall-registry/rollcall/client"
)

// ConsistentHash picks by key: the same key gives the same instance in every program
// that sees the same instances, and when instances come, go or change their weight,
// only keys that were or are theirs move.
//
// Of the keys each has about its share by weight. Of equal instances, the one that is
// farthest from it was 6 % off among 10, 8 % among 50, 42 % among 1,000 and 40 % among
// 10,000; a weight of 0.01 beside two of 1 was 5 % off (go test -v -run
// TestSharesOfTheCircle). The lighter an instance is, the less even: one with less than
// a thousandth of the mean weight has no keys, or several times the few that are its
// share.
//
// When the mean weight doubles or halves, and when there are more than 1024 instances
// and their number doubles or halves, the circle is divided anew and more keys move.
//
// It is the one that takes longest to build when addresses or weights have changed: in
// proportion to the instances, some tens of milliseconds for 10,000. Picks go on meanwhile
// with the picker before, but for the one that builds.
//
// [Key] makes keys of texts.
func ConsistentHash(list ...Option) rollcall.Balancer {
	return consistentHash{optionsOf(list), rand.Uint64}
}

// BoundedLoad has ConsistentHash pass over instances that have more than factor times
// their share of the requests in flight, so that a key that everybody wants does not
// drown one of them (V. Mirrokni and others, "Consistent hashing with bounded loads",
// 2018). factor is at least 1, which what is less counts as; 1.25 is usual. It needs
// [rollcall.Picker.Done] at the end of each request.
func BoundedLoad(factor float64) Option {
	if !(factor >= 1) { // or it is NaN
		factor = 1
	}
	return func(o *options) { o.bound = factor }
}

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
	p := hashPicker{random: b.random, circle: circleFor(&c, previous), owners: c}
	if b.options.bound == 0 {
		return &p
	}
	bounded := &boundedPicker{hashPicker: p, factor: b.options.bound / c.total(), total: new(counter)}
	if before, ok := previous.(*boundedPicker); ok {
		bounded.total, bounded.inflight = before.total, before.inflight
	}
	bounded.inflight = bounded.inflight.follow(s)
	bounded.candidates = bounded.inflight.of(&c)
	return bounded
}

type hashPicker struct {
	random func() uint64
	circle circle
	owners candidates
}

// circleFor returns the circle of candidates, that of the picker before if they are the
// same in what it depends on.
func circleFor(c *candidates, previous rollcall.Picker) circle {
	var before *hashPicker
	switch p := previous.(type) {
	case *hashPicker:
		before = p
	case *boundedPicker:
		before = &p.hashPicker
	}
	if before != nil && slices.Equal(before.owners.weights, c.weights) && slices.EqualFunc(before.owners.instances, c.instances, sameAddress) {
		return before.circle
	}
	return newCircle(c)
}

func sameAddress(a, b *rollcall.Instance) bool { return a == b || addressOf(a) == addressOf(b) }

func (p *hashPicker) Pick() (*rollcall.Instance, error) { return p.PickKey(p.random()) }

func (p *hashPicker) PickKey(key uint64) (*rollcall.Instance, error) {
	if p.owners.err != nil {
		return nil, p.owners.err
	}
	return p.owners.instances[p.circle[p.circle.find(key)]], nil
}

func (p *hashPicker) Done(*rollcall.Instance, error) {}

// boundedPicker is a hashPicker that knows of the requests in flight.
type boundedPicker struct {
	hashPicker
	factor     float64  // the bound for each unit of weight and request in flight
	total      *counter // of all requests, those too whose instance is gone
	inflight   inflight
	candidates []candidate // the owners of the circle
}

func (p *boundedPicker) Pick() (*rollcall.Instance, error) { return p.PickKey(p.random()) }

// PickKey picks the first owner from the slot of the key on who is not too busy. One is
// never too busy; if requests that come meanwhile make them all so, the key stays where
// it belongs.
func (p *boundedPicker) PickKey(key uint64) (*rollcall.Instance, error) {
	if p.owners.err != nil {
		return nil, p.owners.err
	}
	bound := p.factor * float64(p.total.n.Add(1))
	at := p.circle.find(key)
	chosen := &p.candidates[p.circle[at]]
	if chosen.load() >= bound {
		chosen = p.next(at, bound)
	}
	chosen.requests.n.Add(1)
	return chosen.instance, nil
}

// next returns the first owner after a slot who is not too busy.
func (p *boundedPicker) next(at int, bound float64) *candidate {
	for i := range p.circle {
		owner := &p.candidates[p.circle[(at+i)%len(p.circle)]]
		if owner.load() < bound {
			return owner
		}
	}
	return &p.candidates[p.circle[at]]
}

func (p *boundedPicker) Done(in *rollcall.Instance, _ error) {
	if p.inflight.done(in) {
		p.total.end()
	}
}

// circle is the circle of hashes, divided into a power of two of equal slots. Each
// instance has points on it, and a slot belongs to the owner of the first point in it
// or after it. So an instance that comes takes slots from others and one that goes
// gives its own away, and no slot changes hands otherwise.
type circle []uint32

const (
	// pointsEach is how many points an instance of mean weight has where there are up to
	// manyInstances: the standard deviation of its share is then about 1/√1024, 3 %.
	// leastPoints is where there are very many, so that building takes no longer for them.
	pointsEach  = 1024
	leastPoints = 128
	// leastSlots is how many slots there are for up to manyInstances; above that it
	// grows with the instances, so that each has some dozens.
	leastSlots    = 1 << 16
	manyInstances = 1024
)

// newCircle gives each candidate points in proportion to its weight. The points of an
// instance depend on its address alone, and fewer are the first of more. So does whether
// it has one for the fraction that is left: of many with a tenth of a point, a tenth have
// one, and together they have what is theirs.
func newCircle(c *candidates) circle {
	n := len(c.instances)
	if n == 0 {
		return nil
	}
	first := make([]uint64, slotsFor(n)) // the first point in each slot; what is left of its hash, and its owner
	for i := range first {
		first[i] = math.MaxUint64
	}
	shift := shiftOf(len(first))
	unit := math.Exp2(math.Round(math.Log2(c.total() / float64(n)))) // few changes change it
	each := max(pointsEach*leastSlots/len(first), leastPoints)
	for i, in := range c.instances {
		seed := mix(Key(in.Addr() + "@" + in.Cluster))
		fraction := float64(mix(^seed)>>11) / (1 << 53) // from 0 to less than 1, even
		for range int(float64(each)*c.weights[i]/unit + fraction) {
			seed += gamma
			hash := mix(seed)
			slot, rest := hash>>shift, hash<<(64-shift)>>32
			first[slot] = min(first[slot], rest<<32|uint64(i))
		}
	}
	return fill(first)
}

// slotsFor returns how many slots there are for n instances.
func slotsFor(n int) int {
	slots := leastSlots
	for many := manyInstances; many < n; many *= 2 {
		slots *= 2
	}
	return slots
}

// shiftOf returns by how much a hash is shifted to have its slot.
func shiftOf(slots int) int { return 65 - bits.Len(uint(slots)) }

// fill gives slots without a point to the owner of the next one, around the circle.
func fill(first []uint64) circle {
	begin := 0 // a slot with a point, of which there is one at least
	for first[begin] == math.MaxUint64 {
		begin++
	}
	slots := make(circle, len(first))
	next := uint32(first[begin]) // of the last slots, which are before it on the circle
	for i := len(first) - 1; i >= 0; i-- {
		if first[i] != math.MaxUint64 {
			next = uint32(first[i])
		}
		slots[i] = next
	}
	return slots
}

// find returns the slot of a key.
func (c circle) find(key uint64) int { return int(mix(key) >> shiftOf(len(c))) }

// gamma is the step of SplitMix64, of which mix is the other half (G. L. Steele and
// others, "Fast splittable pseudorandom number generators", 2014).
const gamma = 0x9e3779b97f4a7c15

// mix spreads the bits of a number.
func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
