package balance

import (
	"fmt"
	"math"
	"testing"

	rollcall "github.com/rollcall-registry/rollcall/client"
)

// TestEvenLoadByWeight: while all have as much to do for their weight, picks are by
// weight, however much that is.
func TestEvenLoadByWeight(t *testing.T) {
	for name, weights := range map[string][]float64{
		"equal":     {1, 1, 1, 1},
		"two":       {1, 9},
		"several":   {1, 3, 6},
		"fractions": {0.1, 0.3, 0.6},
	} {
		for _, busy := range []float64{0, 20} {
			t.Run(fmt.Sprintf("%s/%v in flight", name, busy), func(t *testing.T) {
				s := service(weights...)
				p := leastOutstanding{random: seeded().Uint64}.Build(s, nil).(*leastPicker)
				total := 0.0
				for _, w := range weights {
					total += w
				}
				for i := range p.candidates {
					c := &p.candidates[i]
					c.requests.n.Store(int64(math.Round(busy * c.weight / total)))
				}
				chi2(t, endsAtOnce{p}, s, 100_000)
			})
		}
	}
}

// endsAtOnce has requests take no time.
type endsAtOnce struct{ rollcall.Picker }

func (p endsAtOnce) Pick() (*rollcall.Instance, error) {
	in, err := p.Picker.Pick()
	p.Done(in, err)
	return in, err
}

// TestSlowInstanceGetsLess: an instance that never answers gets few requests.
func TestSlowInstanceGetsLess(t *testing.T) {
	s := service(1, 1, 1, 1)
	slow := s.At(0)
	p := leastOutstanding{random: seeded().Uint64}.Build(s, nil)
	given := 0
	for range 10_000 {
		in, _ := p.Pick()
		if in == slow {
			given++
			continue
		}
		p.Done(in, nil)
	}
	// It is picked only when it is drawn twice, which is one time in 16.
	if given > 10_000/16+200 {
		t.Errorf("the slow one got %d of 10000", given)
	}
}

// TestLoadIsByWeight: requests that do not end are spread by weight.
func TestLoadIsByWeight(t *testing.T) {
	s := service(1, 3, 6)
	p := leastOutstanding{random: seeded().Uint64}.Build(s, nil)
	counts := make(map[*rollcall.Instance]int)
	for range 10_000 {
		in, _ := p.Pick()
		counts[in]++
	}
	for in, n := range counts {
		if want := int(in.Weight * 1000); n < want-100 || n > want+100 {
			t.Errorf("weight %v has %d of 10000, want about %d", in.Weight, n, want)
		}
	}
}

// TestCountsOutliveChanges: Done finds the count of an instance that was replaced, or
// was away for a while.
func TestCountsOutliveChanges(t *testing.T) {
	b := LeastOutstanding()
	before := service(1)
	p := b.Build(before, nil)
	for range 3 {
		_, _ = p.Pick()
	}
	gone := b.Build(service(), p)
	gone.Done(before.At(0), nil)
	back := b.Build(service(5), gone)
	if n := back.(*leastPicker).candidates[0].requests.n.Load(); n != 2 {
		t.Errorf("%d in flight, want 2", n)
	}
	for range 4 {
		back.Done(before.At(0), nil)
	}
	if n := back.(*leastPicker).candidates[0].requests.n.Load(); n != 0 {
		t.Errorf("%d in flight, want 0", n)
	}
	if n := len(b.Build(service(), back).(*leastPicker).inflight.all); n != 0 {
		t.Errorf("%d counters are kept for what is gone, want 0", n)
	}
}

func ExampleLeastOutstanding() {
	a, b := rollcall.NewInstance("10.0.0.1", 80), rollcall.NewInstance("10.0.0.2", 80)
	s := rollcall.NewSnapshot(rollcall.SnapshotInfo{}, &a, &b)
	pick := LeastOutstanding().Build(s, nil)
	in, err := pick.Pick()
	if err != nil {
		fmt.Println(err)
		return
	}
	// … send the request to in.Addr()
	pick.Done(in, err)
	fmt.Println("done")
	// Output: done
}
