package workload

import (
	"slices"
	"testing"
)

// A change is timed by when it was sent or not at all, however late it is told and
// whatever a server makes up.
func TestChanges(t *testing.T) {
	c := newChanges(1)
	for r := int64(1); r <= 3; r++ {
		c.begin(0, r, 10*r)
	}
	for _, tt := range []struct {
		name        string
		after, upTo int64
		want        []int64
	}{
		{"one", 1, 2, []int64{20}},
		{"merged", 0, 3, []int64{10, 20, 30}},
		{"none", 3, 3, nil},
		{"never sent", 2, c.kept + 1, []int64{30}},
	} {
		var got []int64
		c.each(0, tt.after, tt.upTo, func(sent int64) { got = append(got, sent) })
		if !slices.Equal(got, tt.want) || c.lost.Load() != 0 {
			t.Errorf("%s: got %v and %d lost, want %v", tt.name, got, c.lost.Load(), tt.want)
		}
	}
	for r := int64(4); r <= c.kept+2; r++ {
		c.begin(0, r, 10*r)
	}
	var got []int64
	c.each(0, 0, 3, func(sent int64) { got = append(got, sent) })
	if !slices.Equal(got, []int64{30}) || c.lost.Load() != 2 {
		t.Errorf("later than is kept: got %v and %d lost", got, c.lost.Load())
	}
}

// However many services there are, what is kept of their changes is bounded.
func TestChangesAreBounded(t *testing.T) {
	for services, want := range map[int]int64{1: mostKept, 100: allKept / 100, 200_000: leastKept} {
		if got := newChanges(services).kept; got != want {
			t.Errorf("%d services: %d revisions of each are kept, want %d", services, got, want)
		}
	}
}
