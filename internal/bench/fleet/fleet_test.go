package fleet

import (
	"encoding/json"
	"fmt"
	"maps"
	"testing"
)

func TestOwnedDealsOutEachInstanceOnce(t *testing.T) {
	for _, f := range []*Fleet{
		{Services: 100, Size: 10, Owners: 64},
		{Services: 128, Size: 1, Owners: 64},
		{Services: 3, Size: 5, Owners: 1},
		{Services: 7, Size: 3, Owners: 7},
	} {
		t.Run(fmt.Sprintf("%d of %d over %d", f.Services, f.Size, f.Owners), func(t *testing.T) {
			owners := map[Instance]int{}
			for owner := range f.Owners {
				services := map[int]bool{}
				for k := range f.Rounds() {
					i, ok := f.Owned(owner, k)
					if !ok {
						continue
					}
					if _, twice := owners[i]; twice {
						t.Fatalf("instance %d of service %d comes twice", i.Host, i.N)
					}
					owners[i] = owner
					if o, back := i.Owner(); o != owner || back != k {
						t.Fatalf("instance %d of %d is owned by %d as %d, not by %d as %d", i.Host, i.N, o, back, owner, k)
					}
					if services[i.N] && f.Size <= f.Owners {
						t.Fatalf("owner %d has two instances of service %d", owner, i.N)
					}
					services[i.N] = true
				}
			}
			if len(owners) != f.Len() {
				t.Errorf("%d instances were dealt out, not %d", len(owners), f.Len())
			}
		})
	}
}

func TestOrdersMeetAll(t *testing.T) {
	f := &Fleet{Services: 120, Size: 4, Owners: 1, Seed: 7}
	instances, services := map[Instance]bool{}, map[Service]bool{}
	for n := range f.Len() {
		i := f.Instance(n)
		if i.Index() != n {
			t.Errorf("instance %d has the index %d", n, i.Index())
		}
		instances[i] = true
	}
	for n := range f.Services {
		services[f.Scattered(n)] = true
	}
	if len(instances) != f.Len() || len(services) != f.Services {
		t.Errorf("got %d instances and %d services, want %d and %d", len(instances), len(services), f.Len(), f.Services)
	}
}

func TestNumber(t *testing.T) {
	f := &Fleet{Name: "bench-a", Group: "G", Services: 12, Size: 1, Owners: 1}
	for name, want := range map[string]int{
		"bench-a-0000011": 11, "G@@bench-a-0000003": 3,
		"bench-a-0000012": -1, "bench-b-0000001": -1, "bench-a-": -1, "bench-a": -1, "": -1, "H@@bench-a-0000001": -1,
	} {
		if n, ok := f.Number(name); ok != (want >= 0) || ok && n != want {
			t.Errorf("%q: got %d %t, want %d", name, n, ok, want)
		}
	}
	if n, ok := f.Number(f.Service(5).Name()); n != 5 || !ok {
		t.Errorf("the name of service 5 is of %d %t", n, ok)
	}
}

func TestRevision(t *testing.T) {
	i := Instance{Service: Service{&Fleet{Name: "x", Services: 1, Size: 1}, 0}, Revision: 42}
	own := Instance{Service: Service{&Fleet{Name: "x", Services: 2, Size: 3, Distinct: true, BeatTimeoutMillis: 5}, 1}, Host: 2, Revision: 1}
	var decoded map[string]string
	if err := json.Unmarshal(append(own.AppendMetadata([]byte("{"), `"`, ",", ":"), '}'), &decoded); err != nil || !maps.Equal(decoded, own.Metadata()) {
		t.Errorf("the metadata is encoded as %v, %v, and is %v", decoded, err, own.Metadata())
	}
	weight := func(i Instance) string { return string(i.AppendWeight(nil)) }
	last := i
	last.Revision = MaxRevision
	for text, want := range map[string]int64{
		"": 0, "weight": 0, `"weight":1.0`: 0, `"weight":1`: 0, `"weight":1.5`: 50, `"weight": 2`: 100, `"weight":1e9`: 0, `"weight":99999`: 0,
		`{"weight":1.0,"x":1},{"weight":1.31},{"weight":1.07}`: 31,
		`"weight":` + weight(i):                                42,
		`\"weight\":` + weight(i) + `,`:                        42,
		`\\\"weight\\\":` + weight(i) + `,`:                    42,
		`"weight":` + weight(last):                             MaxRevision,
		string(own.AppendMetadata(nil, `"`, ",", ":")):         0,
	} {
		if got := Revision([]byte(text)); got != want {
			t.Errorf("%q: got %d, want %d", text, got, want)
		}
	}
}

func TestCheck(t *testing.T) {
	f := &Fleet{Name: "x", Services: 2, Size: 3, Owners: 1}
	s := f.Service(1)
	all := func(n int) (Instance, bool) { return Instance{Service: s, Host: n}, true }
	list := func() []Host {
		var hosts []Host
		for n := range f.Size {
			i, _ := all(n)
			hosts = append(hosts, Host{i.IP(), i.Port(), 1, true, true, i.Metadata()})
		}
		return hosts
	}
	for _, tt := range []struct {
		name  string
		spoil func([]Host) []Host
		ok    bool
	}{
		{"as sent", func(h []Host) []Host { return h }, true},
		{"none", func([]Host) []Host { return nil }, false},
		{"one is missing", func(h []Host) []Host { return h[1:] }, false},
		{"one too many", func(h []Host) []Host { return append(h, Host{IP: "127.9.9.9", Healthy: true}) }, false},
		{"twice", func(h []Host) []Host { return append(h, h[0]) }, false},
		{"unhealthy", func(h []Host) []Host { h[2].Healthy = false; return h }, false},
		{"disabled", func(h []Host) []Host { h[2].Enabled = false; return h }, false},
		{"weight", func(h []Host) []Host { h[0].Weight = 2; return h }, false},
		{"metadata", func(h []Host) []Host { h[1].Metadata["zone"] = "x"; return h }, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if err := s.Check(tt.spoil(list()), all); (err == nil) != tt.ok {
				t.Errorf("got %v", err)
			}
		})
	}
}
