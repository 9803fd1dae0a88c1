package balance

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	rollcall "github.com/rollcall-registry/rollcall/client"
)

func TestRounds(t *testing.T) {
	for _, tt := range []struct {
		weights []float64
		want    string
	}{
		{[]float64{1, 1, 1}, "abc"},
		{[]float64{2, 2}, "ab"},
		{[]float64{0.1, 0.1}, "ab"},
		{[]float64{2, 1}, "aab"},
		{[]float64{5, 1, 1}, "aaabaac"},
		{[]float64{4, 2, 0}, "aab"},
		{[]float64{0.5, 1.5}, "bbab"},
	} {
		s := service(tt.weights...)
		c := candidatesOf(s, options{})
		var got strings.Builder
		for _, in := range newRound(&c) {
			got.WriteByte("`abc"[strings.LastIndexByte("..123", in.IP[len(in.IP)-1])-1])
		}
		if got.String() != tt.want {
			t.Errorf("%v: got %s, want %s", tt.weights, got.String(), tt.want)
		}
	}
}

// TestRoundsAreSmooth: at no moment of a round is an instance a whole pick ahead of its
// share or behind it.
func TestRoundsAreSmooth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		weights := rapid.SliceOfN(rapid.Float64Range(0.01, 10000), 1, 12).Draw(t, "weights")
		if rapid.Bool().Draw(t, "whole") {
			for i := range weights {
				weights[i] = math.Ceil(weights[i] / 100)
			}
		}
		s := service(weights...)
		c := candidatesOf(s, options{})
		round := newRound(&c)
		share := make(map[*rollcall.Instance]float64)
		for _, in := range round {
			share[in] += 1 / float64(len(round))
		}
		count := make(map[*rollcall.Instance]float64)
		for i, in := range round {
			count[in]++
			for _, in := range c.instances {
				if off := count[in] - share[in]*float64(i+1); math.Abs(off) >= 1+1e-9 {
					t.Fatalf("after %d picks of %d, %s is off by %v", i+1, len(round), in.Addr(), off)
				}
			}
		}
		for i, in := range c.instances {
			want := weights[i] / c.total()
			if math.Abs(share[in]-want) > 1.5/float64(len(round))+0.02*want {
				t.Errorf("%s has the share %v, want %v", in.Addr(), share[in], want)
			}
		}
	})
}

// TestLongRoundsAreBounded has weights without a common divisor.
func TestLongRoundsAreBounded(t *testing.T) {
	weights := []float64{10000, 0.01, 3333.33}
	c := candidatesOf(service(weights...), options{})
	if n := len(newRound(&c)); n > maxRound+len(weights) {
		t.Errorf("a round of %d picks", n)
	}
}

// TestTurnsGoOn: when instances change, the picks go on where they were.
func TestTurnsGoOn(t *testing.T) {
	b := roundRobin{random: func() float64 { return 0 }}
	before := b.Build(service(1, 1, 1, 1), nil)
	for range 2 {
		_, _ = before.Pick()
	}
	after := b.Build(service(1, 1, 1, 1, 1, 1, 1, 1), before)
	if in, _ := after.Pick(); in.IP != "10.0.0.5" {
		t.Errorf("went on with %s, want the one in the middle", in.IP)
	}
	empty := b.Build(service(), after)
	if _, err := b.Build(service(1), empty).Pick(); err != nil {
		t.Error(err)
	}
}

func TestTurnsBeginAnywhere(t *testing.T) {
	begun := make(map[string]bool)
	for range 100 {
		in, err := RoundRobin().Build(service(equal(10, 1)...), nil).Pick()
		if err != nil {
			t.Fatal(err)
		}
		begun[in.IP] = true
	}
	if len(begun) < 5 {
		t.Errorf("100 pickers began with %d of 10 instances", len(begun))
	}
}

func ExampleRoundRobin() {
	a := rollcall.NewInstance("10.0.0.1", 80, rollcall.Weighted(2))
	b := rollcall.NewInstance("10.0.0.2", 80)
	s := rollcall.NewSnapshot(rollcall.SnapshotInfo{}, &a, &b)
	pick := RoundRobin().Build(s, nil)
	counts := make(map[string]int)
	for range 300 {
		in, err := pick.Pick()
		if err != nil {
			fmt.Println(err)
			return
		}
		counts[in.Addr()]++
		pick.Done(in, nil)
	}
	fmt.Println(counts)
	// Output: map[10.0.0.1:80:200 10.0.0.2:80:100]
}
