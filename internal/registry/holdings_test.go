package registry

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestEachHolding(t *testing.T) {
	w := newWorld(t)
	w.OpenClient("c1")
	w.register(httpOwner, at("10.0.0.1", 80))
	w.advance(3 * time.Second)
	w.register(connection("c1"), at("10.0.0.1", 80))
	w.register(durableOwner, at("10.0.0.2", 80))
	w.registerIn(named("other"), httpOwner, at("10.0.0.1", 80))
	var got []string
	w.EachHolding(func(h Holding) {
		got = append(got, fmt.Sprintf("%s %s %s%s %v", h.Service.Name, h.Instance.IP, h.Owner.Kind, h.Owner.Client, h.LastBeat))
	})
	slices.Sort(got)
	want := []string{
		"orders 10.0.0.1 connectionc1 0s", "orders 10.0.0.1 http 0s",
		"orders 10.0.0.2 durable 0s", "other 10.0.0.1 http 3s",
	}
	if !slices.Equal(got, want) {
		t.Errorf("holdings:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestViewAt(t *testing.T) {
	w := newWorld(t)
	for _, k := range []InstanceKey{
		{"10.0.0.1", 80, "c2"}, {"10.0.0.1", 80, "c1"}, {"10.0.0.1", 81, "c1"}, {"10.0.0.2", 80, "c1"}, {"fe80::1", 80, "c1"},
	} {
		w.register(httpOwner, k)
	}
	for _, tt := range []struct {
		ip   string
		port int32
		want string
	}{
		{"10.0.0.1", 80, "c1 c2"},
		{"10.0.0.1", 81, "c1"},
		{"10.0.0.1", 79, ""},
		{"10.0.0.3", 80, ""},
		{"[FE80:0::1]", 80, "c1"},
	} {
		var clusters []string
		for _, i := range w.View(orders()).At(tt.ip, tt.port) {
			clusters = append(clusters, i.Cluster)
		}
		if got := strings.Join(clusters, " "); got != tt.want {
			t.Errorf("%s:%d: in %q, want %q", tt.ip, tt.port, got, tt.want)
		}
	}
}
