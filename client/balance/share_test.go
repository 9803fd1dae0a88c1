package balance

import (
	"math"
	"slices"
	"testing"
)

// TestSharesOfTheCircle has what is said of [ConsistentHash]: how far from its share by
// weight an instance is at worst. With -v it logs what it measures. Addresses decide it,
// which are the same in each run.
func TestSharesOfTheCircle(t *testing.T) {
	for _, tt := range []struct {
		name    string
		weights []float64
		most    float64 // of the share
	}{
		{"10 equal", equal(10, 1), 0.1},
		{"50 equal", equal(50, 1), 0.1},
		{"1,000 equal", equal(1000, 1), 0.45},
		{"10,000 equal", equal(10000, 1), 0.45},
		{"a light one", []float64{0.01, 1, 1}, 0.3},
		{"light ones", slices.Concat(equal(5, 0.1), equal(5, 1)), 0.2},
		{"1 to 1,000", []float64{1, 1000}, 1},
		{"1 to 10,000", []float64{10000, 1}, 1},
		{"many very light ones", slices.Concat(equal(10, 1), equal(100, 0.0001)), 6}, // a single point
	} {
		t.Run(tt.name, func(t *testing.T) {
			worst := 0.0
			for _, share := range sharesOf(tt.weights) {
				worst = max(worst, math.Abs(share-1))
			}
			t.Logf("the worst share is off by %.0f %%", 100*worst)
			if worst > tt.most {
				t.Errorf("want at most %.0f %%", 100*tt.most)
			}
		})
	}
}

// sharesOf returns what each has of the circle, divided by what it should have.
func sharesOf(weights []float64) []float64 {
	p := ConsistentHash().Build(service(weights...), nil).(*hashPicker)
	slot := p.owners.total() / float64(len(p.circle))
	shares := make([]float64, len(weights))
	for _, owner := range p.circle {
		shares[owner] += slot / weights[owner]
	}
	return shares
}
