package balance

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	rollcall "github.com/rollcall-registry/rollcall/client"
	"github.com/rollcall-registry/rollcall/client/clienttest"
)

// service returns a snapshot of instances with these weights, at 10.0.0.1:80 and on.
func service(weights ...float64) *rollcall.Snapshot {
	list := make([]*rollcall.Instance, len(weights))
	for i, w := range weights {
		in := rollcall.NewInstance(fmt.Sprintf("10.%d.%d.%d", i/65536, i/256%256, i%256+1), 80, rollcall.Weighted(w))
		list[i] = &in
	}
	return snapshot(list...)
}

func snapshot(list ...*rollcall.Instance) *rollcall.Snapshot {
	return rollcall.NewSnapshot(rollcall.SnapshotInfo{Service: rollcall.Service{Name: "orders"}, Source: rollcall.FromServer}, list...)
}

func equal(n int, weight float64) []float64 { return slices.Repeat([]float64{weight}, n) }

// seeded returns random numbers that are the same in each run.
func seeded() *rand.Rand { return rand.New(rand.NewPCG(1, 2)) }

// all are the balancers of the package, by name.
func all(list ...Option) map[string]rollcall.Balancer {
	return map[string]rollcall.Balancer{
		"WeightedRandom":   WeightedRandom(list...),
		"RoundRobin":       RoundRobin(list...),
		"ConsistentHash":   ConsistentHash(list...),
		"BoundedLoad":      ConsistentHash(append(list, BoundedLoad(1.25))...),
		"LeastOutstanding": LeastOutstanding(list...),
		"PreferZone":       PreferZone("a", 0.5, WeightedRandom(list...)),
	}
}

func TestWhoMayBePicked(t *testing.T) {
	type change func(*rollcall.Instance)
	sick := func(in *rollcall.Instance) { in.Healthy = false }
	off := func(in *rollcall.Instance) { in.Enabled = false }
	weigh := func(w float64) change { return func(in *rollcall.Instance) { in.Weight = w } }
	fine := func(*rollcall.Instance) {}
	for _, tt := range []struct {
		name      string
		instances []change
		protected bool
		options   []Option
		want      []int // which are picked
		err       error
	}{
		{"all", []change{fine, fine}, false, nil, []int{0, 1}, nil},
		{"none", nil, false, nil, nil, rollcall.ErrNoInstances},
		{"the healthy", []change{fine, sick}, false, nil, []int{0}, nil},
		{"the enabled", []change{off, fine}, false, nil, []int{1}, nil},
		{"those with weight", []change{weigh(0), fine, weigh(-1), weigh(math.NaN())}, false, nil, []int{1}, nil},
		{"endless weight", []change{weigh(math.Inf(1))}, false, nil, []int{0}, nil},
		{"tiny weight", []change{weigh(1e-300)}, false, nil, []int{0}, nil},
		{"all drain", []change{weigh(0), weigh(0)}, false, nil, nil, rollcall.ErrNoInstances},
		{"all disabled", []change{off}, false, nil, nil, rollcall.ErrNoInstances},
		{"all sick", []change{sick, sick, weigh(0)}, false, nil, nil, rollcall.ErrNoHealthyInstances},
		{"sick and draining", []change{func(in *rollcall.Instance) { in.Healthy, in.Weight = false, 0 }}, false, nil, nil, rollcall.ErrNoInstances},
		{"protected", []change{sick, fine, weigh(0), off}, true, nil, []int{0, 1}, nil},
		{"unhealthy at need", []change{sick, weigh(0), off}, false, []Option{AllowUnhealthy()}, []int{0}, nil},
		{"unhealthy without need", []change{sick, fine}, false, []Option{AllowUnhealthy()}, []int{1}, nil},
	} {
		base := service(equal(len(tt.instances), 1)...)
		list := make([]*rollcall.Instance, base.Len())
		for i, f := range tt.instances {
			list[i] = base.At(i)
			f(list[i])
		}
		s := rollcall.NewSnapshot(rollcall.SnapshotInfo{Service: rollcall.Service{Name: "orders"}, Protected: tt.protected}, list...)
		for name, b := range all(tt.options...) {
			t.Run(tt.name+"/"+name, func(t *testing.T) {
				p := b.Build(s, nil)
				picked := make(map[int]bool)
				for key := range uint64(200) {
					in, err := p.Pick()
					if !errors.Is(err, tt.err) || (err == nil) != (in != nil) {
						t.Fatalf("Pick: %v, %v, want error %v", in, err, tt.err)
					}
					keyed, err := p.PickKey(key)
					if !errors.Is(err, tt.err) || (err == nil) != (keyed != nil) {
						t.Fatalf("PickKey: %v, %v, want error %v", keyed, err, tt.err)
					}
					if in != nil {
						picked[slices.Index(list, in)], picked[slices.Index(list, keyed)] = true, true
					}
					p.Done(in, err)
					p.Done(keyed, err)
				}
				for i := range list {
					if picked[i] != slices.Contains(tt.want, i) {
						t.Errorf("picked %v, want %v", picked, tt.want)
					}
				}
			})
		}
	}
}

func TestErrorSaysTheService(t *testing.T) {
	_, err := WeightedRandom().Build(service(), nil).Pick()
	if got, want := err.Error(), "pick orders: no instances"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestPicksAllocateNothing holds for Pick, PickKey and Done.
func TestPicksAllocateNothing(t *testing.T) {
	s := service(weights1000()...)
	for name, b := range all() {
		p := b.Build(s, nil)
		if n := testing.AllocsPerRun(100, func() {
			in, err := p.Pick()
			p.Done(in, err)
			in, err = p.PickKey(7)
			p.Done(in, err)
		}); n != 0 {
			t.Errorf("%s: %v allocations a pick, want 0", name, n)
		}
	}
}

// TestConcurrentPicks is for the race detector, and counts that all requests end.
func TestConcurrentPicks(t *testing.T) {
	s := service(1, 2, 3, 0, 5)
	for name, b := range all() {
		p := b.Build(s, nil)
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for key := range uint64(1000) {
					in, err := p.PickKey(key)
					if err != nil {
						t.Errorf("%s: %v", name, err)
					}
					p.Done(in, nil)
				}
			})
		}
		for range 10 {
			p.Done(nil, nil) // harms nobody
			b.Build(s, p)
		}
		wg.Wait()
		if l, ok := p.(*leastPicker); ok {
			for i := range l.candidates {
				if n := l.candidates[i].requests.n.Load(); n != 0 {
					t.Errorf("%s: %d requests in flight, want 0", name, n)
				}
			}
		}
	}
}

// weights1000 are weights of all sizes.
func weights1000() []float64 {
	weights := make([]float64, 1000)
	for i := range weights {
		weights[i] = float64(i%10+1) / 2
	}
	return weights
}

func BenchmarkPick(b *testing.B) {
	s := service(weights1000()...)
	for name, balancer := range all() {
		p := balancer.Build(s, nil)
		b.Run(name+"/Pick", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _ = p.Pick()
			}
		})
		b.Run(name+"/PickKeyDone", func(b *testing.B) {
			b.ReportAllocs()
			key := uint64(0)
			for b.Loop() {
				in, err := p.PickKey(key)
				p.Done(in, err)
				key++
			}
		})
		b.Run(name+"/parallel", func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					in, err := p.Pick()
					p.Done(in, err)
				}
			})
		})
	}
}

// BenchmarkWatchPick is a pick as programs do it, from a live watch.
func BenchmarkWatchPick(b *testing.B) {
	registry, orders := clienttest.New(), rollcall.Service{Name: "orders"}
	list := make([]rollcall.Instance, 0, 1000)
	for in := range service(weights1000()...).All() {
		list = append(list, *in)
	}
	registry.Set(orders, list...)
	w, err := registry.Client(b).Watch(b.Context(), orders)
	if err != nil {
		b.Fatal(err)
	}
	for name, balancer := range all() {
		p := w.Picker(balancer)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _ = p.Pick()
			}
		})
	}
}

func BenchmarkBuild(b *testing.B) {
	for _, n := range []int{10, 1000, 10000} {
		s := service(slices.Repeat(weights1000(), 10)[:n]...)
		for name, balancer := range all() {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				b.ReportAllocs()
				p := balancer.Build(s, nil)
				for b.Loop() {
					p = balancer.Build(s, p)
				}
			})
		}
	}
}
