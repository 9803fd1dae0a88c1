package naming

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/rollcall-registry/rollcall/internal/registry"
)

func TestParseAddressClient(t *testing.T) {
	for _, tt := range []struct {
		id   string
		want AddressClient
		ok   bool
	}{
		{"10.0.0.1:80#true", AddressClient{IP: "10.0.0.1", Port: 80, Ephemeral: true}, true},
		{"orders.example:0#false", AddressClient{IP: "orders.example"}, true},
		{"fe80::1:8080#true", AddressClient{IP: "fe80::1", Port: 8080, Ephemeral: true}, true},
		{"1700000000000_10.0.0.5_51234", AddressClient{}, false},
		{"10.0.0.1#true", AddressClient{}, false},
		{"10.0.0.1:x#true", AddressClient{}, false},
		{"10.0.0.1:80#maybe", AddressClient{}, false},
		{"", AddressClient{}, false},
	} {
		if tt.ok {
			tt.want.ID = tt.id
		}
		if got, ok := ParseAddressClient(tt.id); got != tt.want || ok != tt.ok {
			t.Errorf("%q: got %+v, %v; want %+v, %v", tt.id, got, ok, tt.want, tt.ok)
		}
	}
}

func TestClients(t *testing.T) {
	r := newRig(t)
	r.store.OpenClient("conn")
	held := registration(key("10.0.0.3", 80, "DEFAULT"))
	held.Client = "conn"
	other := registration(key("10.0.0.1", 80, "c1"))
	other.Service.Name = "other"
	r.register(registration(key("10.0.0.1", 80, "DEFAULT")))
	r.register(registration(key("10.0.0.2", 80, "DEFAULT"), persistent))
	r.register(held)
	r.advance(3 * time.Second)
	r.register(other)
	r.subscribe("10.0.0.4:5000", "")
	r.subscribe("10.0.0.4:5000", "c1")
	r.advance(2 * time.Second)

	want := []string{"10.0.0.1:80#true", "10.0.0.2:80#false", "10.0.0.4:5000#true"}
	if got := r.AddressClients(); !slices.Equal(got, want) {
		t.Errorf("got clients %v, want %v", got, want)
	}
	if got := r.CountAddressClients(); got != (ClientCounts{Ephemeral: 2, Persistent: 1}) {
		t.Errorf("got %+v", got)
	}
	start := int64(1795996800000)
	for id, updated := range map[string]int64{
		"10.0.0.1:80#true": start + 3000, "10.0.0.2:80#false": 0, "10.0.0.4:5000#true": start + 3000,
	} {
		if got, ok := r.AddressClient(id); !ok || got.Updated != updated {
			t.Errorf("%s: got %+v, %v; want updated %d", id, got, ok, updated)
		}
	}
	for _, id := range []string{"10.0.0.1:80#false", "10.0.0.1:81#true", "10.0.0.3:80#true", "conn", "nobody"} {
		if got, ok := r.AddressClient(id); ok {
			t.Errorf("%s: got %+v, want none", id, got)
		}
	}
	for id, want := range map[string]string{
		"10.0.0.1:80#true": "[orders 10.0.0.1:80/DEFAULT other 10.0.0.1:80/c1]",
		"conn":             "[orders 10.0.0.3:80/DEFAULT]",
		"nobody":           "[]",
	} {
		if got := fmt.Sprint(publicationTexts(r.Publications(id))); got != want {
			t.Errorf("%s published %s, want %s", id, got, want)
		}
	}
	if got := len(r.Subscriptions("10.0.0.4:5000#true")); got != 1 {
		t.Errorf("%d subscriptions, want one for the service", got)
	}
	if got := len(r.Subscriptions("10.0.0.1:80#true")); got != 0 {
		t.Errorf("%d subscriptions, want none", got)
	}
	var clients []string
	for _, p := range r.Publishers(orders) {
		clients = append(clients, p.Client)
	}
	if want := []string{"10.0.0.1:80#true", "10.0.0.2:80#false", "conn"}; !reflect.DeepEqual(clients, want) {
		t.Errorf("publishers %v, want %v", clients, want)
	}
	for _, s := range r.store.Subscribers(orders) {
		if got := SubscriberClient(s); got != "10.0.0.4:5000#true" {
			t.Errorf("subscriber %s", got)
		}
	}
	if got := SubscriberClient(&registry.Subscriber{SubscriberKey: registry.SubscriberKey{Client: "conn"}}); got != "conn" {
		t.Errorf("subscriber %s", got)
	}
}

func publicationTexts(list []Publication) (texts []string) {
	for _, p := range list {
		texts = append(texts, fmt.Sprintf("%s %s:%d/%s", p.Service.Name, p.Instance.IP, p.Instance.Port, p.Instance.Cluster))
	}
	return texts
}
