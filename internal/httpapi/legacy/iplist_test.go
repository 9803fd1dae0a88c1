package legacy

import (
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/rollcall-registry/rollcall/internal/registry"
)

// plainIP is what 0.9 makes of an address alone.
func plainIP(ip string, port int32) registry.Instance {
	return registry.Instance{
		IP: ip, Port: port, Cluster: "DEFAULT", Weight: 1, Healthy: true, Enabled: true, HideID: true,
	}
}

// with returns i changed.
func with(i registry.Instance, change func(*registry.Instance)) registry.Instance {
	change(&i)
	return i
}

func TestParseIPList(t *testing.T) {
	one := plainIP("1.1.1.1", 80)
	for _, tt := range []struct {
		text string
		want []registry.Instance
	}{
		{"1.1.1.1:80", []registry.Instance{one}},
		{"1.1.1.1", []registry.Instance{plainIP("1.1.1.1", 0)}},
		{"1.1.1.1:", []registry.Instance{plainIP("1.1.1.1", 0)}},
		{" 1.1.1.1:80 , 2.2.2.2:1", []registry.Instance{one, plainIP("2.2.2.2", 1)}},
		{"1.1.1.1:80,", []registry.Instance{one}},
		{"1.1.1.1:80_2.5", []registry.Instance{with(one, func(i *registry.Instance) { i.Weight = 2.5 })}},
		{"1.1.1.1:80_x", []registry.Instance{one}},
		{"1.1.1.1:80_NaN", []registry.Instance{one}},
		{"1.1.1.1:80_20000", []registry.Instance{with(one, func(i *registry.Instance) { i.Weight = 10000 })}},
		{"1.1.1.1:80_-3", []registry.Instance{with(one, func(i *registry.Instance) { i.Weight = 0 })}},
		{"1.1.1.1:80_1_false", []registry.Instance{with(one, func(i *registry.Instance) { i.Healthy = false })}},
		{"1.1.1.1:80_1_c1", []registry.Instance{with(one, func(i *registry.Instance) { i.Cluster = "c1" })}},
		{"1.1.1.1:80_1_false_c1", []registry.Instance{with(one, func(i *registry.Instance) { i.Healthy, i.Cluster = false, "c1" })}},
		{"1.1.1.1:80_1_true_true", []registry.Instance{with(one, func(i *registry.Instance) { i.Marked = true })}},
		{"1.1.1.1:80_1_true_true_c1", []registry.Instance{with(one, func(i *registry.Instance) { i.Marked, i.Cluster = true, "c1" })}},
		{"1.1.1.1:80_1_", []registry.Instance{one}},
		{"host.example:80", []registry.Instance{plainIP("host.example", 80)}},
		{"::1", []registry.Instance{plainIP("::1", 0)}},
		{"[::1]:80_1_true", []registry.Instance{plainIP("::1", 80)}},
		{"[::1]", []registry.Instance{plainIP("::1", 0)}},
		{
			`{"ip":"1.1.1.1","port":80},2.2.2.2:1,{"ip":"3.3.3.3","port":"3","metadata":{"a":"x,y"}}`,
			[]registry.Instance{one, plainIP("2.2.2.2", 1), with(plainIP("3.3.3.3", 3), func(i *registry.Instance) { i.Metadata = `{"a":"x,y"}` })},
		},
	} {
		got, err := parseIPList(tt.text)
		if err != nil || !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%q:\n got %+v, %v\nwant %+v", tt.text, got, err, tt.want)
		}
	}
}

func TestParseIPListRefuses(t *testing.T) {
	for _, text := range []string{
		"1.1.1.1:x", "1.1.1.1:65536", "1.1.1.1:-1", "a b:80", "[::1]80", "[::1]:x", "_1", ":80",
		`{"ip":"1.1.1.1"`, `{"ip":[]}`, `{"ip":"a"}x`, "1.1.1.1:80,,2.2.2.2:80", "中:80",
	} {
		got, err := parseIPList(text)
		r := refusalOf(err)
		if r == nil || r.status != 400 || !r.typed || !strings.HasPrefix(r.text, "malfomed ip config: ") {
			t.Errorf("%q: got %+v, %v, want a refusal", text, got, err)
		}
	}
}

func TestParseIPArray(t *testing.T) {
	got, err := parseIPArray(`[
		{"ip":"1.1.1.1","port":80},
		{"ip":"1.1.1.1","port":"81","weight":"2","healthy":false,"enabled":"false","marked":1,"clusterName":"c1","app":"x","instanceId":"y","metadata":{"a":1,"b":null}},
		{"ip":"1.1.1.2","valid":false,"weight":null,"clusterName":" ","metadata":null,"unknown":{}}
	]`)
	want := []registry.Instance{
		plainIP("1.1.1.1", 80),
		{IP: "1.1.1.1", Port: 81, Weight: 2, Marked: true, Cluster: "c1", App: "x", Metadata: `{"a":"1"}`},
		with(plainIP("1.1.1.2", 0), func(i *registry.Instance) { i.Healthy = false }),
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v\nwant %+v", got, err, want)
	}
	for _, text := range []string{
		"", "zzz", "{}", "1", `["a"]`, `[{"ip":{}}]`, `[{"port":"x"}]`, `[{"port":2147483648}]`, `[{"weight":"NaN"}]`,
		`[{"weight":1e400}]`, `[{"valid":"perhaps"}]`, `[{"metadata":[]}]`, `[{"metadata":{"a":{}}}]`, `[{"metadata":"a=b"}]`, `[{}] x`,
	} {
		got, err := parseIPArray(text)
		if r := refusalOf(err); r == nil || r.status != 500 || !strings.HasPrefix(r.text, "Param 'ipList' is illegal, ") {
			t.Errorf("%q: got %+v, %v, want a refusal", text, got, err)
		}
	}
	if got, err := parseIPArray("null"); err != nil || len(got) != 0 {
		t.Errorf("null: got %+v, %v, want nothing", got, err)
	}
}

func TestIPListIsBounded(t *testing.T) {
	for name, parse := range map[string]func(string) ([]registry.Instance, error){
		strings.Repeat("1.1.1.1,", maxIPs+1):                  parseIPList,
		"[" + strings.Repeat("{},", maxIPs) + "{}]":           parseIPArray,
		`[{"app":"` + strings.Repeat("a", maxApp+1) + `"}]`:   parseIPArray,
		`{"ip":"a","app":"` + strings.Repeat("a", 600) + `"}`: parseIPList,
	} {
		if _, err := parse(name); refusalOf(err) == nil {
			t.Errorf("%.40s: got %v, want a refusal", name, err)
		}
	}
	if list, err := parseIPList(strings.Repeat("1.1.1.1,", maxIPs)); err != nil || len(list) != maxIPs {
		t.Errorf("got %d, %v", len(list), err)
	}
}

// FuzzIPList reads foreign lists: never a panic, every refusal has a text, and
// what is read can be listed as valid JSON.
func FuzzIPList(f *testing.F) {
	for _, text := range []string{
		"1.1.1.1:80_1_true_false_c1,[::1]:1", `[{"ip":"1.1.1.1","port":80,"weight":2,"valid":true,"metadata":{"a":"b"}}]`,
		`{"ip":"a","weight":1e300},{`, "_,:,[],[:]", `[{"ip":"\ud800","port":1e3}]`, "null", "[[[[", "\xff\x00_\xff",
	} {
		f.Add(text, true)
		f.Add(text, false)
	}
	f.Fuzz(func(t *testing.T, text string, array bool) {
		parse := parseIPList
		if array {
			parse = parseIPArray
		}
		list, err := parse(text)
		if err != nil {
			if r, ok := errors.AsType[*refusal](err); !ok || r.text == "" {
				t.Fatalf("%q: %v is no refusal", text, err)
			}
			return
		}
		for _, i := range list {
			if math.IsNaN(i.Weight) || i.Weight < 0 || i.Weight > 10000 || i.Cluster == "" {
				t.Fatalf("%q: read %+v", text, i)
			}
			for _, host := range [][]byte{appendHost(nil, &i, true, "d"), appendIP(nil, &i, true)} {
				if !json.Valid(host) {
					t.Fatalf("%q: listed as %q", text, host)
				}
			}
		}
	})
}
