package main

import (
	"strings"
	"testing"
)

func TestQuantile(t *testing.T) {
	for _, tt := range []struct {
		list []float64
		q    float64
		want float64
	}{
		{nil, 0.5, 0},
		{[]float64{3}, 0.5, 3},
		{[]float64{9, 1, 5}, 0.5, 5},
		{[]float64{4, 1, 2, 3}, 0.5, 2.5},
		{[]float64{2, 1}, 1, 2},
		{[]float64{2, 1}, 0, 1},
	} {
		if got := quantile(tt.list, tt.q); got != tt.want {
			t.Errorf("quantile %v of %v: got %v, want %v", tt.q, tt.list, got, tt.want)
		}
	}
}

func TestReplaceBetween(t *testing.T) {
	const page = "a\n<!-- e2e x -->\nold\n<!-- e2e x end -->\nb\n"
	got, err := replaceBetween([]byte(page), "x", []byte("new\n"))
	if want := strings.Replace(page, "old", "new", 1); err != nil || string(got) != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
	if _, err := replaceBetween([]byte(page), "y", nil); err == nil {
		t.Error("markers that are not there are no error")
	}
}

// Requests go through every instance once before they begin anew, and those of one
// kind are of one length, so that contenders get the same bytes to read.
func TestPopulation(t *testing.T) {
	p := &population{prefix: "s-", services: 20, each: 10}
	seen := map[string]bool{}
	for n := range p.size() {
		request := string(p.register().build(nil, n))
		if seen[request] {
			t.Fatalf("request %d was there before: %s", n, request)
		}
		seen[request] = true
		if again := string(p.register().build(nil, n+p.size())); again != request {
			t.Fatalf("request %d is not repeated: %s", n, again)
		}
	}
	growing := &population{prefix: "s-", each: 10}
	if a, b := growing.register().build(nil, 7), growing.register().build(nil, 1_000_007); string(a) == string(b) {
		t.Errorf("a growing population repeats itself: %s", a)
	}
}

func TestFunction(t *testing.T) {
	name, share, ok := function("     0.22s  0.59% 52.79%      5.91s 15.77%  internal/poll.(*FD).RawRead")
	if name != "internal/poll.(*FD).RawRead" || share < 0.157 || share > 0.158 || !ok {
		t.Errorf("got %q %v %t", name, share, ok)
	}
	if _, _, ok := function("Showing nodes accounting for 30.88s, 82.41% of 37.47s total"); ok {
		t.Error("a line of the head counts as a function")
	}
}
