package registry

import (
	"errors"
	"math"
	"net/netip"
	"strings"
	"testing"
)

func TestCanonicalIP(t *testing.T) {
	for _, tt := range []struct{ ip, want string }{
		{"10.0.0.1", "10.0.0.1"},
		{"010.0.0.1", "010.0.0.1"}, // a host name like any other
		{"256.1.1.1", "256.1.1.1"},
		{"my-Host.example", "my-Host.example"},
		{"", ""},
		{"::1", "::1"},
		{"[::1]", "::1"},
		{"0:0:0:0:0:0:0:1", "::1"},
		{"2001:DB8::A", "2001:db8::a"},
		{"2001:0db8:0000::000a", "2001:db8::a"},
		{"::ffff:10.0.0.1", "10.0.0.1"},
		{"[::FFFF:a00:1]", "10.0.0.1"},
		{"fe80::1%eth0", "fe80::1%eth0"},
		{"FE80:0::1%eth0", "fe80::1%eth0"},
		{"[::1", "[::1"},
		{"::1]:80", "::1]:80"},
		{"[]", "[]"},
		{"a:b", "a:b"},
	} {
		if got := CanonicalIP(tt.ip); got != tt.want {
			t.Errorf("%q: got %q, want %q", tt.ip, got, tt.want)
		}
	}
}

func FuzzCanonicalIP(f *testing.F) {
	for _, ip := range []string{"10.0.0.1", "[::1]", "::ffff:1.2.3.4", "fe80::1%z", "host", "[[::1]]", "::%[::1]"} {
		f.Add(ip)
	}
	f.Fuzz(func(t *testing.T, ip string) {
		got := CanonicalIP(ip)
		if again := CanonicalIP(got); again != got {
			t.Errorf("%q became %q, and that %q", ip, got, again)
		}
		a, errA := netip.ParseAddr(ip)
		b, errB := netip.ParseAddr(got)
		if errA == nil && (errB != nil || a.Unmap() != b) {
			t.Errorf("%q became %q, another address", ip, got)
		}
	})
}

func TestServiceKey(t *testing.T) {
	for _, tt := range []struct{ text, group, name string }{
		{"g@@s", "g", "s"}, {"g@@s@@x", "g", "s@@x"}, {"@@s", "", "s"}, {"g@@", "g", ""}, {"@@", "", ""},
	} {
		if group, name, ok := ParseGrouped(tt.text); !ok || group != tt.group || name != tt.name {
			t.Errorf("%q: got %q, %q, %v", tt.text, group, name, ok)
		}
	}
	if group, name, ok := ParseGrouped("g@s"); ok || group != "" || name != "g@s" {
		t.Errorf("g@s: got %q, %q, %v", group, name, ok)
	}
	key := ServiceKey{Namespace: "n", Group: "g", Name: "s"}
	if key.Grouped() != "g@@s" || key.String() != "n##g@@s" {
		t.Errorf("got %s and %s", key.Grouped(), key)
	}
	if NamespaceID("") != "public" || NamespaceID("public") != "public" || NamespaceID("Public") != "Public" {
		t.Error("the default namespace has other spellings than the empty one")
	}
}

// One identity for all spellings of an IPv6 address, and for all ports at or
// below zero. The latest spelling is shown.
func TestInstanceIdentity(t *testing.T) {
	w := newWorld(t)
	for _, k := range []InstanceKey{
		at("2001:db8::1", 1), at("2001:DB8:0::1", 1), at("[2001:db8::1]", 1),
		at("10.0.0.1", 0), at("10.0.0.1", -1), at("::ffff:10.0.0.1", -2),
		at("10.0.0.1", 65535), at("10.0.0.1", 65536),
		{IP: "10.0.0.1", Port: 0, Cluster: "other"},
	} {
		w.register(httpOwner, k)
	}
	var shown []string
	for _, i := range w.View(orders()).Instances {
		shown = append(shown, i.ID("g@@s"))
	}
	want := `::ffff:10.0.0.1#-2#DEFAULT#g@@s 10.0.0.1#0#other#g@@s 10.0.0.1#65535#DEFAULT#g@@s ` +
		`10.0.0.1#65536#DEFAULT#g@@s [2001:db8::1]#1#DEFAULT#g@@s`
	if got := strings.Join(shown, " "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := w.find(at("2001:0db8::0001", 1)); got == nil || got.IP != "[2001:db8::1]" {
		t.Errorf("another spelling finds %v", got)
	}
	if !w.beat(at("2001:0DB8::1", 1)).Known || !w.beat(at("10.0.0.1", -7)).Known {
		t.Error("a beat in another spelling is not known")
	}
	w.deregister(httpOwner, at("2001:0DB8::1", 1))
	w.deregister(httpOwner, at("10.0.0.1", -9))
	if n := len(w.View(orders()).Instances); n != 3 {
		t.Errorf("%d instances are left, want 3", n)
	}
}

func TestCheckNames(t *testing.T) {
	key := func(ns, group, name string) error {
		return CheckServiceV1(ServiceKey{Namespace: ns, Group: group, Name: name})
	}
	for _, tt := range []struct {
		what string
		err  error
		code Code // 0 when accepted
	}{
		{"service", key("n", "a:b.c_d-e", "orders@2"), 0},
		{"inner separator", key("n", "a@@b", "c"), 0},
		{"very long", key("n", "g", strings.Repeat("a", maxName)), 0},
		{"too long", key("n", "g", strings.Repeat("a", maxName+1)), InvalidArgument},
		{"group with a space", key("n", "a b", "c"), InvalidServiceName},
		{"group with a slash", key("n", "a/b", "c"), InvalidServiceName},
		{"CJK group", key("n", "中", "c"), InvalidServiceName},
		{"long namespace", key(strings.Repeat("n", 128), "g", "s"), 0},
		{"too long namespace", key(strings.Repeat("n", 129), "g", "s"), InvalidArgument},
		{"zero-width space in a namespace", key("pub\u200blic", "g", "s"), InvalidArgument},
		{"direction mark in an address", CheckIP("a\u202eb"), InvalidArgument},
		{"control character", key("a\x00", "g", "s"), InvalidArgument},
		{"cluster", CheckCluster("c-1"), 0},
		{"cluster None", CheckCluster("None"), 0},
		{"no cluster", CheckCluster(""), InvalidClusterName},
		{"cluster with _", CheckCluster("a_b"), InvalidClusterName},
		{"long cluster", CheckCluster(strings.Repeat("c", 65)), InvalidArgument},
		{"host name", CheckIP("my-host.example"), 0},
		{"no address", CheckIP("256.1.1.1"), 0},
		{"odd address", CheckIP("a#b@c"), 0},
		{"blank", CheckIP(""), InvalidArgument},
		{"space", CheckIP("a b"), InvalidArgument},
		{"CJK", CheckIP("中"), InvalidArgument},
		{"invalid UTF-8", CheckIP("a\xff"), InvalidArgument},
		{"long address", CheckIP(strings.Repeat("1", 129)), InvalidArgument},
		{"weight 0", CheckWeight(0), 0},
		{"weight 10000", CheckWeight(10000), 0},
		{"weight 10000.1", CheckWeight(10000.1), InvalidWeight},
		{"negative weight", CheckWeight(-0.1), InvalidWeight},
		{"infinite weight", CheckWeight(math.Inf(1)), InvalidWeight},
		{"no weight", CheckWeight(math.NaN()), InvalidWeight},
	} {
		var refusal *Error
		if errors.As(tt.err, &refusal); tt.code == 0 && tt.err != nil || tt.code != 0 && (refusal == nil || refusal.Code != tt.code) {
			t.Errorf("%s: got %v, want code %d", tt.what, tt.err, tt.code)
		}
	}
	for weight, want := range map[float64]float64{0: 0, 0.001: 0.01, 0.01: 0.01, 0.5: 0.5, -1: -1, 20000: 20000} {
		if got := ClampWeight(weight); got != want {
			t.Errorf("weight %v became %v, want %v", weight, got, want)
		}
	}
	for weight, want := range map[float64]float64{-1: 0, 0.5: 0.5, 20000: 10000} {
		if got := FitWeight(weight); got != want {
			t.Errorf("weight %v was fitted to %v, want %v", weight, got, want)
		}
	}
}
