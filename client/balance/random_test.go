package balance

import (
	"math"
	"slices"
	"testing"

	rollcall "github.com/rollcall-registry/rollcall/client"
)

// TestChancesAreTheWeights tries the hypothesis that picks are spread by weight, with
// Pearson's χ² test, and fails when chance would look so in one of 1000 runs. The
// numbers are seeded, so that it does not.
func TestChancesAreTheWeights(t *testing.T) {
	for name, weights := range map[string][]float64{
		"two":         {1, 1},
		"fractions":   {0.5, 0.25, 0.25, 0.01},
		"wide":        {0.01, 1, 100, 10000},
		"zeros":       {0, 3, 0, 0, 1, 7, 0},
		"not numbers": {math.NaN(), 2, 3, -1},
		"clamped":     {10000, 1e9, math.Inf(1)},
		"one":         {3},
		"many":        weights1000(),
		"all tiny":    {1e-9, 3e-9},
	} {
		t.Run(name, func(t *testing.T) {
			s := service(weights...)
			random := weightedRandom{random: seeded().Uint64}
			p := random.Build(s, nil)
			chi2(t, p, s, 100_000)
		})
	}
}

// chi2 picks n times and compares with the weights.
func chi2(t *testing.T, p rollcall.Picker, s *rollcall.Snapshot, n int) {
	t.Helper()
	counts := make(map[*rollcall.Instance]int)
	for range n {
		in, err := p.Pick()
		if err != nil {
			t.Fatal(err)
		}
		counts[in]++
	}
	c := candidatesOf(s, options{})
	statistic, freedom, rare, rareCount := 0.0, -1, 0.0, 0
	for i, in := range c.instances {
		expected := float64(n) * c.weights[i] / c.total()
		if expected < 5 { // the usual bound of the test: they are taken together
			rare += expected
			rareCount += counts[in]
			continue
		}
		d := float64(counts[in]) - expected
		statistic += d * d / expected
		freedom++
	}
	if rare >= 5 {
		d := float64(rareCount) - rare
		statistic += d * d / rare
		freedom++
	} else if float64(rareCount) > rare+20 {
		t.Errorf("picked the rare ones %d times, want about %v", rareCount, rare)
	}
	if freedom < 1 {
		return
	}
	if limit := critical(float64(freedom)); statistic > limit {
		t.Errorf("χ² = %.1f with %d degrees of freedom, want at most %.1f", statistic, freedom, limit)
	}
	for in := range counts {
		if !slices.Contains(c.instances, in) {
			t.Errorf("picked %s, which may not be picked", in.Addr())
		}
	}
}

// critical returns the value that χ² exceeds with a chance of 0.001, by the
// approximation of Wilson and Hilferty.
func critical(freedom float64) float64 {
	const z = 3.0902 // of the normal distribution
	k := 2 / (9 * freedom)
	return freedom * math.Pow(1-k+z*math.Sqrt(k), 3)
}

// TestAliasIsExact adds up the parts of the columns.
func TestAliasIsExact(t *testing.T) {
	weights := weights1000()
	table := newAlias(weights)
	got := make([]float64, len(weights))
	for i, c := range table {
		share := float64(c.keep) / (1 << 63) / 2
		got[i] += share
		got[c.other] += 1 - share
	}
	sum := 0.0
	for _, w := range weights {
		sum += w
	}
	for i, w := range weights {
		if want := w / sum * float64(len(weights)); math.Abs(got[i]-want) > 1e-9 {
			t.Fatalf("number %d has %v columns, want %v", i, got[i], want)
		}
	}
}
