package hosts

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/rollcall-registry/rollcall/internal/naming"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

func instance(ip, cluster string, change ...func(*registry.Instance)) registry.Instance {
	i := registry.Instance{
		IP: ip, Port: 8080, Cluster: cluster, Weight: 1, Healthy: true, Enabled: true, Ephemeral: true,
	}
	for _, f := range change {
		f(&i)
	}
	return i
}

func unhealthy(i *registry.Instance) { i.Healthy = false }

func disabled(i *registry.Instance) { i.Enabled = false }

// viewOf returns a view of the service orders with these instances.
func viewOf(t *testing.T, info *registry.ServiceInfo, list ...registry.Instance) *registry.View {
	t.Helper()
	key := registry.ServiceKey{Namespace: "public", Group: "g", Name: "orders"}
	store := registry.NewStore(registry.DefaultConfig(), naming.Sinks{})
	if info != nil {
		if _, err := store.Apply(&registry.CreateService{Service: key, Info: *info}); err != nil {
			t.Fatal(err)
		}
	}
	for _, i := range list {
		if _, err := store.Apply(&registry.Register{Service: key, Instance: i}); err != nil {
			t.Fatal(err)
		}
	}
	return store.View(key)
}

func TestAppend(t *testing.T) {
	const times = `"instanceHeartBeatInterval":5000,"instanceHeartBeatTimeOut":15000,"ipDeleteTimeout":30000`
	for _, tt := range []struct{ name, metadata, want string }{
		// source: golden/v2-2.5.1 v2-register-minimal, v2-register-beat-metadata, v2-beat-full-unknown
		{"no metadata", `{}`, times + `,"instanceIdGenerator":"simple"}`},
		{"metadata", `{"a":"1"}`, times + `}`},
		{"a generator", `{"preserved.instance.id.generator":"nope"}`, times + `,"instanceIdGenerator":"nope"}`},
		{
			"life times", `{"preserved.heart.beat.interval":"1000","preserved.heart.beat.timeout":"3000","preserved.ip.delete.timeout":"6000"}`,
			`"instanceHeartBeatInterval":1000,"instanceHeartBeatTimeOut":3000,"ipDeleteTimeout":6000}`,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m, err := registry.ParseMetadata(tt.metadata)
			if err != nil {
				t.Fatal(err)
			}
			view := viewOf(t, nil, instance("10.0.0.1", "DEFAULT", func(i *registry.Instance) { i.Metadata = m }))
			got := string(Append(nil, view.Instances[0], true, view.Grouped))
			want := `{"instanceId":"10.0.0.1#8080#DEFAULT#g@@orders","ip":"10.0.0.1","port":8080,"weight":1.0,"healthy":true,` +
				`"enabled":true,"ephemeral":true,"clusterName":"DEFAULT","serviceName":"g@@orders","metadata":` + m.JSON() + `,` + tt.want
			if got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
	hidden := instance("10.0.0.1", "DEFAULT", func(i *registry.Instance) { i.HideID = true })
	if got := string(Append(nil, &hidden, false, "g@@orders")); !strings.HasPrefix(got, `{"ip":"10.0.0.1"`) || !strings.Contains(got, `"healthy":false`) {
		t.Errorf("got %s", got)
	}
}

func TestSelect(t *testing.T) {
	list := []registry.Instance{
		instance("10.0.0.1", "c1"), instance("10.0.0.2", "c1", unhealthy), instance("10.0.0.3", "c2"),
		instance("10.0.0.4", "c2", disabled), instance("10.0.0.5", "c3", unhealthy),
	}
	for _, tt := range []struct {
		name      string
		info      *registry.ServiceInfo
		filter    Filter
		want      string // the last part of each address, with - when it shows as unhealthy
		protected bool
	}{
		{"all", nil, Filter{}, "1 2- 3 5-", false},
		{"healthy", nil, Filter{HealthyOnly: true}, "1 3", false},
		{"clusters", nil, Filter{Clusters: " c2,c1,,c2"}, "1 2- 3", false},
		{"every cluster", nil, Filter{Clusters: "c3,c2,c1"}, "1 2- 3 5-", false},
		{"one known cluster", nil, Filter{Clusters: "c9,c2"}, "3", false},
		{"unknown clusters", nil, Filter{Clusters: "c8,c9"}, "", false},
		{"only commas", nil, Filter{Clusters: ",,"}, "1 2- 3 5-", false},
		{"threshold", &registry.ServiceInfo{ProtectThreshold: 0.5}, Filter{}, "1 2 3 5", true},
		{"threshold, healthy", &registry.ServiceInfo{ProtectThreshold: 0.5}, Filter{HealthyOnly: true}, "1 3", false},
		{"all unhealthy, no settings", nil, Filter{Clusters: "c3"}, "5-", false},
		{"all unhealthy, settings", &registry.ServiceInfo{}, Filter{Clusters: "c3"}, "5", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := naming.NewEncoder(naming.DefaultEncoderBudget)
			view := viewOf(t, tt.info, list...)
			for range 2 { // the second is kept
				got := Select(e, view, tt.filter)
				if want := fmt.Sprintf(`"hosts":%s,"lastRefTime":%d,"reachProtectionThreshold":%t}}`, got.Array, view.Revision, tt.protected); string(got.Tail) != want {
					t.Errorf("got the tail\n%s\nwant\n%s", got.Tail, want)
				}
				if s := summary(string(got.Array)); s != tt.want || got.Protected != tt.protected {
					t.Errorf("got %q, protected %v; want %q, %v", s, got.Protected, tt.want, tt.protected)
				}
			}
		})
	}
	if got := Select(naming.NewEncoder(0), nil, Filter{}); string(got.Array) != "[]" || got.Tail != nil || got.Protected {
		t.Errorf("no service: got %s", got.Array)
	}
}

// A name may look like what follows the array.
func TestArrayEndsWhereItEnds(t *testing.T) {
	m, err := registry.ParseMetadata(`{"a":",\"lastRefTime\":1"}`)
	if err != nil {
		t.Fatal(err)
	}
	view := viewOf(t, nil, instance("10.0.0.1", "c1", func(i *registry.Instance) { i.Metadata = m }))
	if got := Select(naming.NewEncoder(0), view, Filter{}).Array; !json.Valid(got) {
		t.Errorf("got %s", got)
	}
}

// summary names the instances of an array, in order.
func summary(array string) string {
	var words []string
	for _, part := range strings.Split(array, `"ip":"10.0.0.`)[1:] {
		word := part[:1]
		if strings.Contains(part, `"healthy":false`) {
			word += "-"
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}
