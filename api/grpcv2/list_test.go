package grpcv2

import (
	"bytes"
	"fmt"
	"maps"
	"strings"
	"testing"
)

func readList(data string) (info ServiceInfo, hosts []Host, err error) {
	err = ReadServiceInfo([]byte(data), &info, func(h *Host) { hosts = append(hosts, *h) })
	return info, hosts, err
}

func TestReadServiceInfo(t *testing.T) {
	up := Host{Weight: 1, Healthy: true, Enabled: true, Ephemeral: true}
	with := func(change func(*Host)) []Host { h := up; change(&h); return []Host{h} }
	tests := map[string]struct {
		data  string
		info  ServiceInfo
		hosts []Host
	}{
		"1.4.8": {
			`{"hosts":[{"ip":"1.1.1.1","port":8080,"valid":true,"healthy":true,"marked":false,"instanceId":"1.1.1.1#8080#DEFAULT#G@@s","metadata":{"a":"b"},"enabled":true,"weight":2.5,"clusterName":"DEFAULT","serviceName":"G@@s","ephemeral":true}],"dom":"G@@s","name":"G@@s","cacheMillis":10000,"lastRefTime":1795999226612,"checksum":"f7","useSpecifiedURL":false,"clusters":"","env":"","metadata":{}}`,
			ServiceInfo{Name: "G@@s", CacheMillis: 10000, LastRefTime: 1795999226612, HasHosts: true},
			[]Host{{ID: []byte("1.1.1.1#8080#DEFAULT#G@@s"), IP: "1.1.1.1", Port: 8080, Weight: 2.5, Healthy: true, Enabled: true, Ephemeral: true, Cluster: "DEFAULT", Service: "G@@s", Metadata: `{"a":"b"}`}},
		},
		"0.9.0": {
			`{"metadata":{},"dom":"s","cacheMillis":10000,"hosts":[{"valid":false,"port":1,"ip":"1.1.1.1","weight":1,"enabled":true}],"lastRefTime":7}`,
			ServiceInfo{Name: "s", CacheMillis: 10000, LastRefTime: 7, HasHosts: true},
			with(func(h *Host) { h.IP, h.Port, h.Healthy = "1.1.1.1", 1, false }),
		},
		"no such service": {
			`{"name":"G@@s","clusters":"","cacheMillis":3000,"hosts":[]}`,
			ServiceInfo{Name: "G@@s", CacheMillis: 3000, HasHosts: true},
			nil,
		},
		"no hosts":            {`{"name":"s","groupName":"G"}`, ServiceInfo{Name: "s", Group: "G"}, nil},
		"null hosts":          {`{"hosts":null,"reachProtectionThreshold":true}`, ServiceInfo{Protected: true}, nil},
		"a weight of no sort": {`{"hosts":[{"ip":"a","port":1,"weight":"NaN"}]}`, ServiceInfo{HasHosts: true}, with(func(h *Host) { h.IP, h.Port, h.Weight = "a", 1, 0 })},
		"no address, no port": {`{"hosts":[{"port":1},{"ip":"a"},{"ip":"a","port":70000}]}`, ServiceInfo{HasHosts: true}, nil},
		"a null host":         {`{"hosts":[null]}`, ServiceInfo{HasHosts: true}, nil},
		"numbers as text":     {`{"lastRefTime":"12","cacheMillis":3e3}`, ServiceInfo{LastRefTime: 12, CacheMillis: 3000}, nil},
	}
	for name, test := range tests {
		info, hosts, err := readList(test.data)
		if err != nil || info != test.info || fmt.Sprintf("%+v", hosts) != fmt.Sprintf("%+v", test.hosts) {
			t.Errorf("%s: got %+v %+v %v, want %+v %+v", name, info, hosts, err, test.info, test.hosts)
		}
	}
	for _, bad := range []string{``, `null`, `[]`, `{`, `{"hosts":[{}`, `{"hosts":{}}`, `{"hosts":[1]}`, `{} x`, `{"lastRefTime":1e99}`, `{"hosts":[{"metadata":[]}]}`} {
		if info, hosts, err := readList(bad); err == nil {
			t.Errorf("%s: read as %+v %+v", bad, info, hosts)
		}
	}
}

func entries(metadata string) map[string]string {
	m := make(map[string]string)
	EachMetadata(metadata, func(k, v string) bool { m[k] = v; return true })
	return m
}

func TestEachMetadata(t *testing.T) {
	tests := map[string]map[string]string{
		``:     {},
		`null`: {},
		`{}`:   {},
		`{"a":"b","n":1,"t":true,"gone":null,"e":"\n"}`: {"a": "b", "n": "1", "t": "true", "e": "\n"},
	}
	for metadata, want := range tests {
		if got := entries(metadata); !maps.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", metadata, got, want)
		}
	}
	n := 0
	EachMetadata(`{"a":"1","b":"2"}`, func(string, string) bool { n++; return false })
	if n != 1 {
		t.Errorf("went on after the caller had seen enough: %d", n)
	}
}

// FuzzReadServiceInfo checks that no input does harm, and that what the server
// appends is read as it was meant.
func FuzzReadServiceInfo(f *testing.F) {
	f.Add([]byte(`{"name":"s","hosts":[{"ip":"a","port":1,"weight":0.5,"metadata":{"a":"b\n"},"instanceId":"x"}],"lastRefTime":1}`))
	f.Add([]byte(`{"hosts":[{"ip":"é","port":65535,"valid":false},null],"dom":"x"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var info ServiceInfo
		var hosts []Host
		if ReadServiceInfo(data, &info, func(h *Host) { hosts = append(hosts, *h) }) != nil {
			return
		}
		for i := range hosts {
			h := &hosts[i]
			if h.Metadata == "" {
				h.Metadata = "{}"
			}
			b := append(AppendHost([]byte(`{"hosts":[`), h), `]}`...)
			var again []Host
			if err := ReadServiceInfo(b, &info, func(h *Host) { again = append(again, *h) }); err != nil || len(again) != 1 {
				t.Fatalf("%s: %v, %d hosts", b, err, len(again))
			}
			a := &again[0]
			if !bytes.Equal(a.ID, h.ID) || a.IP != h.IP || a.Port != h.Port || a.Weight != h.Weight || !maps.Equal(entries(a.Metadata), entries(h.Metadata)) {
				t.Fatalf("got %+v, want %+v", a, h)
			}
		}
	})
}

func BenchmarkReadServiceInfo(b *testing.B) {
	const n = 10000
	list := []byte(`{"name":"s","hosts":[`)
	for i := range n {
		if i > 0 {
			list = append(list, ',')
		}
		list = AppendHost(list, &Host{
			ID: []byte("10.0.0.1#8080#DEFAULT#DEFAULT_GROUP@@orders"), IP: fmt.Sprintf("10.0.%d.%d", i/256, i%256), Port: 8080, Cluster: "DEFAULT",
			Service: "DEFAULT_GROUP@@orders", Metadata: `{"version":"1.2.3","zone":"eu-1","build":"` + strings.Repeat("x", 20) + `"}`, Weight: 1, Healthy: true, Enabled: true, Ephemeral: true,
			BeatIntervalMillis: 5000, BeatTimeoutMillis: 15000, DeleteTimeoutMillis: 30000, IDGenerator: "simple",
		})
	}
	list = append(list, `],"lastRefTime":1}`...)
	b.SetBytes(int64(len(list)))
	b.ReportAllocs()
	var info ServiceInfo
	for b.Loop() {
		seen := 0
		if err := ReadServiceInfo(list, &info, func(*Host) { seen++ }); err != nil || seen != n {
			b.Fatal(err, seen)
		}
	}
}
