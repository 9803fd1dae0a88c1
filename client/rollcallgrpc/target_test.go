package rollcallgrpc

import (
	"net/url"
	"testing"

	rollcall "github.com/rollcall-registry/rollcall/client"
)

func TestTargets(t *testing.T) {
	for _, tt := range []struct {
		target   string
		want     rollcall.Service
		clusters bool
		bad      bool
	}{
		{target: "rollcall:///orders", want: rollcall.Service{Name: "orders"}},
		{target: "rollcall:///shop/orders", want: rollcall.Service{Group: "shop", Name: "orders"}},
		{target: "rollcall://prod/shop/orders", want: rollcall.Service{Namespace: "prod", Group: "shop", Name: "orders"}},
		{target: "rollcall://Prod-1/orders", want: rollcall.Service{Namespace: "Prod-1", Name: "orders"}},
		{target: "rollcall:///orders?cluster=a,b", want: rollcall.Service{Name: "orders"}, clusters: true},
		{target: "rollcall:///com.shop.Orders:1.0:", want: rollcall.Service{Name: "com.shop.Orders:1.0:"}},
		{target: "rollcall:///a%2Fb/c%3Fd", want: rollcall.Service{Group: "a/b", Name: "c?d"}},
		{target: "rollcall:orders", bad: true},
		{target: "rollcall:///", bad: true},
		{target: "rollcall:///orders/", bad: true},
		{target: "rollcall://a/b/c/d", bad: true},
		{target: "rollcall:///orders?clusters=a", bad: true},
	} {
		u, err := url.Parse(tt.target)
		if err != nil {
			t.Fatal(err)
		}
		got, filters, err := parse(u)
		if (err != nil) != tt.bad || err == nil && (got != tt.want || (len(filters) > 0) != tt.clusters) {
			t.Errorf("%s: %+v, %d filters, %v", tt.target, got, len(filters), err)
		}
	}
}

func FuzzTarget(f *testing.F) {
	f.Add("prod", "shop", "orders")
	f.Add("", "", "a/b?c#d%")
	f.Fuzz(func(t *testing.T, namespace, group, name string) {
		want := rollcall.Service{Namespace: namespace, Group: group, Name: name}
		u, err := url.Parse(Target(want))
		if err != nil || name == "" {
			return // a namespace that no URL can have as its host
		}
		got, _, err := parse(u)
		if err != nil || got != want {
			t.Errorf("%s: got %+v, %v, want %+v", u, got, err, want)
		}
	})
}
