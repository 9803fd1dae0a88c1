package ledger

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/rollcall-registry/rollcall/internal/registry"
)

// mixed emits n events of several kinds, services and instances.
func mixed(h *house, n int) {
	for i := range n {
		e := registration(i)
		e.Service.Name = fmt.Sprintf("orders-%d", i%7)
		e.Service.Group = []string{"DEFAULT_GROUP", "g2"}[i%2]
		e.Service.Namespace = []string{"public", "test", "数据"}[i%3]
		e.Instance.IP = fmt.Sprintf("10.0.0.%d", i%11)
		e.Instance.Port = int32(8080 + i%2)
		e.Instance.Cluster = []string{"DEFAULT", `a"b\c`}[i%2]
		switch i % 5 {
		case 1:
			e.Kind = registry.InstanceRemoved
		case 2:
			e.Kind = registry.InstanceUnhealthy
		case 3:
			e.Owner = registry.Owner{Kind: registry.OwnerConnection, Client: "c-1"}
		case 0:
			e.Kind, e.Instance, e.Base = registry.PushAcknowledged, nil, nil
			e.Subscriber = &registry.Subscriber{Protocol: registry.ProtocolUDP, SubscriberKey: registry.SubscriberKey{
				Addr: netip.AddrPortFrom(netip.MustParseAddr("10.0.0.9"), uint16(4000+i%3)),
			}}
		case 4:
			*e = registry.Event{Kind: registry.SwitchSet, At: e.At, Detail: `"ip":"10.0.0.4","p":8080,"s":"orders-1"`}
		}
		h.Emit(e)
	}
}

// Each filter finds what a look at every record finds, in both orders, from memory
// and from disk.
func TestQuery(t *testing.T) {
	at := func(n int) time.Time { return time.UnixMilli(1764556800000 + int64(n)) }
	tests := []struct {
		name string
		f    Filter
		want func(*Record) bool
	}{
		{"all", Filter{}, func(*Record) bool { return true }},
		{"service", Filter{Service: "orders-1"}, func(r *Record) bool { return r.Event.Service.Name == "orders-1" }},
		{"group", Filter{Group: "g2"}, func(r *Record) bool { return r.Event.Service.Group == "g2" }},
		{"namespace", Filter{Namespace: "数据"}, func(r *Record) bool { return r.Event.Service.Namespace == "数据" }},
		{"client", Filter{ClientID: "c-1"}, func(r *Record) bool { return r.Event.Owner.Client == "c-1" }},
		{"kinds", Filter{Kinds: []registry.EventKind{registry.InstanceRemoved, registry.SwitchSet}}, func(r *Record) bool {
			return r.Event.Kind == registry.InstanceRemoved || r.Event.Kind == registry.SwitchSet
		}},
		{"cluster with quotes", Filter{Cluster: `a"b\c`}, func(r *Record) bool {
			return r.Event.Instance != nil && r.Event.Instance.Cluster == `a"b\c`
		}},
		{"instance", Filter{IP: "10.0.0.4", Port: 8081, Service: "orders-5"}, func(r *Record) bool {
			i := r.Event.Instance
			return i != nil && i.IP == "10.0.0.4" && i.Port == 8081 && r.Event.Service.Name == "orders-5"
		}},
		{"address in another spelling", Filter{IP: "::ffff:10.0.0.4"}, func(r *Record) bool {
			return r.Event.Instance != nil && r.Event.Instance.IP == "10.0.0.4"
		}},
		{"subscriber", Filter{Subscriber: netip.MustParseAddrPort("10.0.0.9:4001")}, func(r *Record) bool {
			return r.Event.Subscriber != nil && r.Event.Subscriber.Addr.Port() == 4001
		}},
		{"part of a port", Filter{Port: 808}, func(*Record) bool { return false }},
		{"since", Filter{Since: at(350)}, func(r *Record) bool { return r.Event.At.Wall >= 1764556800350 }},
		{"until", Filter{Until: at(50)}, func(r *Record) bool { return r.Event.At.Wall <= 1764556800050 }},
		{"a moment", Filter{Since: at(200), Until: at(200)}, func(r *Record) bool { return r.Event.At.Wall == 1764556800200 }},
		{"after", Filter{After: 390}, func(r *Record) bool { return r.Seq > 390 }},
		{"before", Filter{Before: 12}, func(r *Record) bool { return r.Seq < 12 }},
		{"between", Filter{After: 100, Before: 300, Service: "orders-2"}, func(r *Record) bool {
			return r.Seq > 100 && r.Seq < 300 && r.Event.Service.Name == "orders-2"
		}},
		{"nothing", Filter{Service: "none"}, func(*Record) bool { return false }},
	}
	cfg := quick(t.TempDir())
	cfg.BacklogBytes = 1 << 20
	h := newHouse(t, cfg, 0).run(t)
	mixed(h, 400)
	h.waitFor(t, "flush", func(s Stats) bool { return s.Unwritten == 0 })
	everything := h.all(t)
	if len(everything) != 401 {
		t.Fatalf("%d records, want 401", len(everything))
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var want []Record
			for _, r := range everything {
				if tt.want(&r) {
					want = append(want, r)
				}
			}
			for _, tt.f.OldestFirst = range []bool{true, false} {
				for _, tt.f.Limit = range []int{1000, 3} {
					if got := h.pages(t, tt.f); !reflect.DeepEqual(got, want) {
						t.Errorf("oldest first %t, pages of %d: got %d records, want %d\n%s",
							tt.f.OldestFirst, tt.f.Limit, len(got), len(want), kinds(got))
					}
				}
				slices.Reverse(want)
			}
		})
	}
}

// pages asks for page after page.
func (h *house) pages(t testing.TB, f Filter) (all []Record) {
	t.Helper()
	for {
		page, err := h.Query(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, page.Records...)
		if !page.Truncated {
			return all
		}
		if f.OldestFirst {
			f.After = page.Cursor
		} else {
			f.Before = page.Cursor
		}
	}
}

func TestQueryIPv6(t *testing.T) {
	h := newHouse(t, quick(""), 0)
	for _, ip := range []string{"2001:db8::1", "[2001:DB8:0::1]", "::ffff:a00:4", "10.0.0.4", "h.example"} {
		e := registration(1)
		e.Instance.IP = ip
		h.Emit(e)
	}
	for ip, want := range map[string]int{"2001:db8:0:0::1": 2, "10.0.0.4": 2, "::FFFF:10.0.0.4": 2, "h.example": 1, "example": 0} {
		page, err := h.Query(t.Context(), Filter{IP: ip})
		if err != nil || len(page.Records) != want {
			t.Errorf("%s: %d records, %v, want %d", ip, len(page.Records), err, want)
		}
	}
}

// A gap shows in every answer that it may concern.
func TestQueryShowsGaps(t *testing.T) {
	cfg, content := written(t, 3)
	put(t, cfg.Dir, 1, append(content, lostPiece(4, 9).data...))
	h := newHouse(t, cfg, 0)
	for _, tt := range []struct {
		f    Filter
		want bool
	}{
		{Filter{Service: "none"}, true},
		{Filter{IP: "10.0.0.1", Port: 8080}, true},
		{Filter{Service: "none", Kinds: []registry.EventKind{Lost}}, false},
		{Filter{Kinds: []registry.EventKind{Lost}}, true},
		{Filter{Kinds: []registry.EventKind{registry.InstanceRegistered}}, false},
		{Filter{Service: "none", After: 9}, false},
	} {
		page, err := h.Query(t.Context(), tt.f)
		if err != nil {
			t.Fatal(err)
		}
		got := slices.ContainsFunc(page.Records, func(r Record) bool { return r.Seq == 9 && r.Count == 6 })
		if got != tt.want {
			t.Errorf("%+v: gap shown: %t, want %t", tt.f, got, tt.want)
		}
	}
}

func TestQueryLimits(t *testing.T) {
	cfg := quick("")
	cfg.MemoryBytes, cfg.BacklogBytes = 8<<20, 8<<20
	h := newHouse(t, cfg, 0)
	h.emit(MaxLimit + 100)
	for limit, want := range map[int]int{-1: DefaultLimit, 0: DefaultLimit, 1: 1, MaxLimit + 1: MaxLimit} {
		page, err := h.Query(t.Context(), Filter{Limit: limit})
		if err != nil || len(page.Records) != want || !page.Truncated {
			t.Errorf("limit %d: %d records, truncated %t, %v", limit, len(page.Records), page.Truncated, err)
		}
	}
}

// A scan over much gives up after its budget, and goes on where it was.
func TestScanBudget(t *testing.T) {
	cfg, _ := written(t, 2000)
	h := newHouse(t, cfg, 0)
	for _, backwards := range []bool{true, false} {
		var seen []uint64
		s := scan{before: 1 << 62, since: -1 << 62, until: 1 << 62, backwards: backwards, budget: blockBytes}
		s.visit = func(_ []byte, head head) bool {
			seen = append(seen, head.seq)
			return true
		}
		calls := 0
		for {
			calls++
			end, err := h.scan(t.Context(), s)
			if err != nil {
				t.Fatal(err)
			}
			if !end.stopped {
				break
			}
			if backwards {
				s.before = end.last
			} else {
				s.after = end.last
			}
		}
		if backwards {
			slices.Reverse(seen)
		}
		if len(seen) != 2001 || !slices.IsSorted(seen) || calls < 2 {
			t.Errorf("backwards %t: %d records in %d calls, sorted %t", backwards, len(seen), calls, slices.IsSorted(seen))
		}
	}
}

// Once a segment was read through, it is not opened again for another time.
func TestTimesOfSegments(t *testing.T) {
	cfg, _ := written(t, 100)
	put(t, cfg.Dir, 101, appendRecord(header(time.Now()), 101, registration(101), 0))
	h := newHouse(t, cfg, 0)
	for i, want := range []bool{true, false} {
		end, err := h.scan(t.Context(), scan{
			before: 1 << 62, since: time.Now().UnixMilli(), until: 1 << 62, backwards: true, budget: 1 << 62,
			visit: func([]byte, head) bool { return true },
		})
		if err != nil || end.bytes > 0 != want {
			t.Errorf("scan %d read %d bytes, %v", i, end.bytes, err)
		}
	}
}

func TestQueryCancelled(t *testing.T) {
	cfg, _ := written(t, 10)
	h := newHouse(t, cfg, 0)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := h.Query(ctx, Filter{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
	for range querySlots { // all busy
		h.slots <- struct{}{}
	}
	ctx, cancel = context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := h.Query(ctx, Filter{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want %v", err, context.DeadlineExceeded)
	}
}
