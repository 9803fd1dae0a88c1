package udppush

import (
	"math/rand/v2"
	"testing"

	"github.com/rollcall-registry/rollcall/internal/registry"
)

// subscribers makes n subscribers.
func subscribers(n int) []*registry.Subscriber {
	list := make([]*registry.Subscriber, n)
	for i := range list {
		list[i] = &registry.Subscriber{SubscriberKey: registry.SubscriberKey{Addr: endpoint(i)}}
	}
	return list
}

func deliveries(subs []*registry.Subscriber, p *packet) []delivery {
	var list []delivery
	for _, s := range subs {
		list = append(list, delivery{sub: s, packet: p})
	}
	return list
}

func TestOutboxServesServicesInTurn(t *testing.T) {
	o := newOutbox()
	large, small := subscribers(1000), subscribers(3)
	o.add(serviceKey("large"), deliveries(large, &packet{1, []byte("x")}))
	o.add(serviceKey("small"), deliveries(small, &packet{2, []byte("x")}))
	batch, full := o.take(nil, 64, 1<<20)
	if len(batch) != 64 || !full {
		t.Fatalf("took %d, full %v, want 64", len(batch), full)
	}
	found := 0
	for _, d := range batch {
		if d.packet.number == 2 {
			found++
		}
	}
	if found != 3 {
		t.Errorf("%d packets of the small service were in the first burst, want 3", found)
	}
	if n := o.len(); n != 1000+3-64 {
		t.Errorf("%d left, want %d", n, 1000+3-64)
	}
}

func TestOutboxLimitsBytes(t *testing.T) {
	o := newOutbox()
	o.add(serviceKey("a"), deliveries(subscribers(10), &packet{1, make([]byte, 60_000)}))
	if batch, full := o.take(nil, 64, 100_000); len(batch) != 2 || !full {
		t.Errorf("took %d packets of 60,000 bytes, full %v, want 2 for 100,000", len(batch), full)
	}
	if batch, full := o.take(nil, 64, 1); len(batch) != 1 || !full {
		t.Errorf("took %d packets, full %v, want one however large", len(batch), full)
	}
	if batch, full := o.take(nil, 64, 1<<20); len(batch) != 7 || full {
		t.Errorf("took %d packets, full %v, want all that are left", len(batch), full)
	}
}

// TestOutboxKeepsTheNewest adds at random and looks that each subscriber has one
// packet, the newest.
func TestOutboxKeepsTheNewest(t *testing.T) {
	for seed := range uint64(50) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		o := newOutbox()
		subs := subscribers(20)
		want := map[*registry.Subscriber]int64{}
		added, replaced := 0, 0
		for range 200 {
			p := &packet{rnd.Int64N(1000) + 1, []byte("x")}
			var some []*registry.Subscriber
			for _, s := range subs {
				if rnd.IntN(3) == 0 {
					some = append(some, s)
					want[s] = max(want[s], p.number)
				}
			}
			n, _ := o.add(serviceKey("a"), deliveries(some, p))
			added += len(some)
			replaced += n
			if rnd.IntN(10) == 0 {
				batch, _ := o.take(nil, 7, 1<<20)
				for _, d := range batch {
					if want[d.sub] != d.packet.number {
						t.Fatalf("seed %d: took number %d, want %d", seed, d.packet.number, want[d.sub])
					}
					delete(want, d.sub)
					added--
				}
			}
		}
		if o.len() != len(want) || added-replaced != len(want) {
			t.Fatalf("seed %d: %d queued, %d added and not replaced, want %d", seed, o.len(), added-replaced, len(want))
		}
		rest, _ := o.take(nil, 1000, 1<<20)
		for _, d := range rest {
			if want[d.sub] != d.packet.number {
				t.Errorf("seed %d: number %d is left, want %d", seed, d.packet.number, want[d.sub])
			}
		}
		if o.len() != 0 || len(o.lanes) != 0 || len(o.turns) != 0 {
			t.Errorf("seed %d: %d packets, %d lanes, %d turns are left", seed, o.len(), len(o.lanes), len(o.turns))
		}
	}
}
