package balance

import (
	"errors"
	"fmt"
	"testing"

	rollcall "github.com/rollcall-registry/rollcall/client"
)

func TestPrefer(t *testing.T) {
	make := func(zone, cluster string, weight float64, healthy bool) *rollcall.Instance {
		in := rollcall.NewInstance("10.0.0.1", 80, rollcall.Weighted(weight), rollcall.Tagged("zone", zone), rollcall.InCluster(cluster))
		in.Healthy = healthy
		return &in
	}
	for _, tt := range []struct {
		name   string
		b      rollcall.Balancer
		list   []*rollcall.Instance
		picked map[string]bool // zones
	}{
		{"near", PreferZone("a", 0, RoundRobin()), []*rollcall.Instance{make("a", "X", 1, true), make("b", "X", 1, true)}, map[string]bool{"a": true}},
		{"only far", PreferZone("a", 0, RoundRobin()), []*rollcall.Instance{make("b", "X", 1, true)}, map[string]bool{"b": true}},
		{"near is sick", PreferZone("a", 0, RoundRobin()), []*rollcall.Instance{make("a", "X", 1, false), make("b", "X", 1, true)}, map[string]bool{"b": true}},
		{"near drains", PreferZone("a", 0, RoundRobin()), []*rollcall.Instance{make("a", "X", 0, true), make("b", "X", 1, true)}, map[string]bool{"b": true}},
		{"too few near", PreferZone("a", 0.5, RoundRobin()), []*rollcall.Instance{make("a", "X", 1, true), make("b", "X", 2, true)}, map[string]bool{"a": true, "b": true}},
		{"just enough near", PreferZone("a", 0.5, RoundRobin()), []*rollcall.Instance{make("a", "X", 1, true), make("b", "X", 1, true)}, map[string]bool{"a": true}},
		{"cluster", PreferCluster("Y", 0, RoundRobin()), []*rollcall.Instance{make("a", "X", 1, true), make("b", "Y", 1, true)}, map[string]bool{"b": true}},
		{
			"cluster, then zone", PreferCluster("Y", 0, PreferZone("b", 0, RoundRobin())),
			[]*rollcall.Instance{make("b", "X", 1, true), make("a", "Y", 1, true), make("b", "Y", 1, true)},
			map[string]bool{"b": true},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := tt.b.Build(snapshot(tt.list...), nil)
			got := map[string]bool{}
			for range 20 {
				in, err := p.Pick()
				if err != nil {
					t.Fatal(err)
				}
				got[in.Metadata["zone"]] = true
			}
			if fmt.Sprint(got) != fmt.Sprint(tt.picked) {
				t.Errorf("picked %v, want %v", got, tt.picked)
			}
		})
	}
	if _, err := PreferZone("a", 0, RoundRobin()).Build(snapshot(make("b", "X", 1, false)), nil).Pick(); !errors.Is(err, rollcall.ErrNoHealthyInstances) {
		t.Errorf("got %v", err)
	}
}

// TestPreferKeepsCounts: what base counts survives going to another zone and back.
func TestPreferKeepsCounts(t *testing.T) {
	a := rollcall.NewInstance("10.0.0.1", 80, rollcall.Tagged("zone", "a"))
	b := rollcall.NewInstance("10.0.0.2", 80, rollcall.Tagged("zone", "b"))
	balancer := PreferZone("a", 0, LeastOutstanding())
	p := balancer.Build(snapshot(&a, &b), nil)
	_, _ = p.Pick()
	p = balancer.Build(snapshot(&b), p)
	p = balancer.Build(snapshot(&a, &b), p)
	if n := p.(*leastPicker).candidates[0].requests.n.Load(); n != 1 {
		t.Errorf("%d in flight, want 1", n)
	}
}

func ExamplePreferZone() {
	near := rollcall.NewInstance("10.0.0.1", 80, rollcall.Tagged("zone", "a"))
	far := rollcall.NewInstance("10.0.0.2", 80, rollcall.Tagged("zone", "b"))
	s := rollcall.NewSnapshot(rollcall.SnapshotInfo{}, &near, &far)
	// The other zones help as soon as zone a has less than a third of all weight.
	pick := PreferZone("a", 1.0/3, WeightedRandom()).Build(s, nil)
	in, _ := pick.Pick()
	fmt.Println(in.Addr())
	// Output: 10.0.0.1:80
}
