package balance

import (
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	rollcall "github.com/rollcall-registry/rollcall/client"
)

const keys = 5000

func owners(t interface{ Fatal(...any) }, p rollcall.Picker) []string {
	list := make([]string, keys)
	for key := range list {
		in, err := p.PickKey(uint64(key))
		if err != nil {
			t.Fatal(err)
		}
		list[key] = in.Addr()
	}
	return list
}

// TestSameKeySameInstance holds in every program: a change of these numbers would send
// keys elsewhere while a fleet is updated.
func TestSameKeySameInstance(t *testing.T) {
	p := ConsistentHash().Build(service(1, 2, 1, 0, 1), nil)
	for key, want := range map[uint64]string{
		0: "10.0.0.2:80", 1: "10.0.0.2:80", 2: "10.0.0.5:80", 1 << 40: "10.0.0.2:80", Key("alice"): "10.0.0.5:80", Key(""): "10.0.0.2:80",
	} {
		if in, _ := p.PickKey(key); in.Addr() != want {
			t.Errorf("key %d: %s, want %s", key, in.Addr(), want)
		}
	}
	for _, text := range []string{"", "alice", "\xff\x00"} {
		h := fnv.New64a()
		h.Write([]byte(text))
		if got, want := Key(text), h.Sum64(); got != want {
			t.Errorf("Key(%q): %#x, want %#x", text, got, want)
		}
	}
}

// TestOnlyItsKeysMove: a key moves only from what left or to what came.
func TestOnlyItsKeysMove(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 16).Draw(t, "n")
		gone := rapid.IntRange(0, n-1).Draw(t, "gone")
		weights := equal(n, 3)
		before := owners(t, ConsistentHash().Build(service(weights...), nil))
		weights[gone] = 0
		after := owners(t, ConsistentHash().Build(service(weights...), nil))
		left := service(weights...).At(gone).Addr()
		moved := 0
		for key := range before {
			if before[key] != left && before[key] != after[key] {
				t.Fatalf("key %d moved from %s to %s, when %s left", key, before[key], after[key], left)
			}
			if before[key] != after[key] {
				moved++
			}
		}
		if fair := keys / n; moved > 2*fair+10 {
			t.Errorf("%d keys moved, want about %d", moved, fair)
		}
	})
}

// TestKeysGoByWeight has shares within 15 %, most of which is by the chance of the keys.
func TestKeysGoByWeight(t *testing.T) {
	weights := []float64{1, 2, 4, 1, 0.5}
	s := service(weights...)
	counts := make(map[string]int)
	for _, addr := range owners(t, ConsistentHash().Build(s, nil)) {
		counts[addr]++
	}
	for i, w := range weights {
		want := keys * w / 8.5
		if got := float64(counts[s.At(i).Addr()]); math.Abs(got-want) > 0.15*want {
			t.Errorf("weight %v: %v keys, want about %v", w, got, want)
		}
	}
}

// TestWithoutKeyByChance does not give all that have no key to one instance.
func TestWithoutKeyByChance(t *testing.T) {
	p := consistentHash{random: seeded().Uint64}.Build(service(1, 1, 1), nil)
	picked := make(map[string]bool)
	for range 100 {
		in, _ := p.Pick()
		picked[in.Addr()] = true
	}
	if len(picked) != 3 {
		t.Errorf("picked %v, want all three", picked)
	}
}

// TestBoundedLoad gives one key to everybody.
func TestBoundedLoad(t *testing.T) {
	s := service(1, 1, 2)
	b := ConsistentHash(BoundedLoad(1.25))
	p := b.Build(s, nil)
	var picked []*rollcall.Instance
	for range 400 {
		in, err := p.PickKey(7)
		if err != nil {
			t.Fatal(err)
		}
		picked = append(picked, in)
		if len(picked) == 200 {
			p = b.Build(s, p) // what is in flight is not forgotten
		}
	}
	counts := make(map[*rollcall.Instance]int)
	for _, in := range picked {
		counts[in]++
	}
	for in, n := range counts {
		if most := math.Ceil(1.25 * 400 * in.Weight / 4); float64(n) > most {
			t.Errorf("%s has %d of 400, want at most %v", in.Addr(), n, most)
		}
	}
	for _, in := range picked {
		p.Done(in, nil)
	}
	first, _ := p.PickKey(7)
	p.Done(first, nil)
	for range 10 {
		in, _ := p.PickKey(7)
		p.Done(in, nil)
		if in != first {
			t.Error("an idle service moved a key")
		}
	}
}

// What a circle does not depend on does not have it divided anew.
func TestCircleIsKept(t *testing.T) {
	for name, b := range map[string]rollcall.Balancer{"plain": ConsistentHash(), "bounded": ConsistentHash(BoundedLoad(2))} {
		s := service(1, 2, 3)
		before := b.Build(s, nil)
		list := slices.Collect(s.All())
		tagged := *list[1]
		tagged.Metadata = map[string]string{"version": "2"}
		list[1] = &tagged
		after := b.Build(snapshot(list...), before)
		if got, want := circleOf(after), circleOf(before); &got[0] != &want[0] {
			t.Errorf("%s: new metadata divides the circle", name)
		}
		if in, _ := after.PickKey(firstKeyOf(t, after, &tagged)); in != &tagged {
			t.Errorf("%s: the instance of before is picked", name)
		}
		tagged.Weight = 4
		if got := b.Build(snapshot(list...), after); slices.Equal(circleOf(got), circleOf(after)) {
			t.Errorf("%s: a new weight changes nothing", name)
		}
	}
}

func circleOf(p rollcall.Picker) circle {
	if bounded, ok := p.(*boundedPicker); ok {
		return bounded.circle
	}
	return p.(*hashPicker).circle
}

// firstKeyOf returns a key that belongs to an instance.
func firstKeyOf(t *testing.T, p rollcall.Picker, in *rollcall.Instance) uint64 {
	t.Helper()
	for key := range uint64(1000) {
		picked, err := p.PickKey(key)
		p.Done(picked, err)
		if picked == in {
			return key
		}
	}
	t.Fatal("no key is its own")
	return 0
}

// Done for what was never picked does not loosen the bound.
func TestDoneTooOften(t *testing.T) {
	s := service(1, 1)
	p := ConsistentHash(BoundedLoad(1)).Build(s, nil).(*boundedPicker)
	if _, err := p.PickKey(7); err != nil {
		t.Fatal(err)
	}
	gone := rollcall.NewInstance("10.9.9.9", 1)
	p.Done(nil, nil)
	p.Done(&gone, nil)
	if n := p.total.n.Load(); n != 1 {
		t.Errorf("%d requests in flight, want 1", n)
	}
	for range 3 {
		p.Done(s.At(0), nil)
		p.Done(s.At(1), nil)
	}
	for i := range p.candidates {
		if n := p.candidates[i].requests.n.Load(); n != 0 {
			t.Errorf("%d requests in flight, want 0", n)
		}
	}
}

// TestManyInstances: each has slots, whatever their number.
func TestManyInstances(t *testing.T) {
	for _, n := range []int{1, 1000, 1025, 5000} {
		p := ConsistentHash().Build(service(equal(n, 1)...), nil).(*hashPicker)
		counts := make([]int, n)
		for _, owner := range p.circle {
			counts[owner]++
		}
		fair := len(p.circle) / n
		if fair < 32 {
			t.Errorf("%d instances share %d slots", n, len(p.circle))
		}
		for owner, slots := range counts {
			if slots < fair/4 || slots > fair*3 {
				t.Errorf("instance %d of %d has %d slots, want about %d", owner, n, slots, fair)
			}
		}
	}
}

func ExampleConsistentHash() {
	a, b := rollcall.NewInstance("10.0.0.1", 80), rollcall.NewInstance("10.0.0.2", 80)
	s := rollcall.NewSnapshot(rollcall.SnapshotInfo{}, &a, &b)
	pick := ConsistentHash().Build(s, nil)
	first, _ := pick.PickKey(Key("alice"))
	again, _ := pick.PickKey(Key("alice"))
	fmt.Println(first == again)
	// Output: true
}
