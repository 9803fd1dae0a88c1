package main

import (
	"strings"
	"testing"
)

func TestMedian(t *testing.T) {
	for _, tt := range []struct {
		list []float64
		want float64
	}{
		{nil, 0}, {[]float64{3}, 3}, {[]float64{9, 1, 5}, 5}, {[]float64{4, 1, 2, 3}, 2.5},
	} {
		if got := median(tt.list); got != tt.want {
			t.Errorf("median of %v: got %v, want %v", tt.list, got, tt.want)
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

func TestFunction(t *testing.T) {
	name, share, ok := function("     0.22s  0.59% 52.79%      5.91s 15.77%  internal/poll.(*FD).RawRead")
	if name != "internal/poll.(*FD).RawRead" || share < 0.157 || share > 0.158 || !ok {
		t.Errorf("got %q %v %t", name, share, ok)
	}
	if _, _, ok := function("Showing nodes accounting for 30.88s, 82.41% of 37.47s total"); ok {
		t.Error("a line of the head counts as a function")
	}
}
