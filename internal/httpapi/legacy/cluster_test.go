package legacy

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/rollcall-registry/rollcall/internal/registry"
)

func TestParseClusters(t *testing.T) {
	got, err := parseClusters(`[
		{"name":"a"},
		{"name":"b","healthChecker":{"type":"HTTP","path":"/x","headers":"K:v"},"defIPPort":"90","defCkport":91,"useIPPort4Check":false,"sitegroup":"s","metadata":{"m":"1"}},
		{"name":"c","healthChecker":{"type":"MYSQL","user":"u","pwd":"p","cmd":"select 1"}},
		{"name":"d","healthChecker":{"type":"NONE"},"defCkport":81}
	]`)
	want := []registry.Cluster{
		{Name: "a", Checker: registry.HealthCheck{Type: "TCP"}, CheckPort: 80, DefaultPort: 80, UseInstancePort: true},
		{
			Name: "b", Checker: registry.HealthCheck{Type: "HTTP", Path: "/x", Headers: "K:v", ExpectedCode: 200},
			CheckPort: 91, DefaultPort: 90, SiteGroup: "s", Metadata: `{"m":"1"}`,
		},
		{
			Name: "c", Checker: registry.HealthCheck{Type: "MYSQL", User: "u", Password: "p", Command: "select 1"},
			CheckPort: 80, DefaultPort: 80, UseInstancePort: true,
		},
		{Name: "d", Checker: registry.HealthCheck{Type: "NONE"}, CheckPort: 81, DefaultPort: 81, UseInstancePort: true},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v\nwant %+v", got, err, want)
	}
}

func TestParseClustersRefuses(t *testing.T) {
	for text, status := range map[string]int{
		"": 500, "{}": 500, "[1]": 500, `[{"name":[]}]`: 500, `[{"name":"a","metadata":1}]`: 500, `[{"name":"a","defCkport":"x"}]`: 500,
		`[{}]`: 400, `[{"name":"a_b"}]`: 400, `[{"name":"a","defCkport":0}]`: 400, `[{"name":"a","defCkport":65536}]`: 400,
		`[{"name":"a","defIPPort":-2}]`: 400, `[{"name":"a","healthChecker":{"type":"tcp"}}]`: 400,
		`[{"name":"a","healthChecker":{"type":"HTTP","path":"/\nx"}}]`:             400,
		`[{"name":"a","sitegroup":"` + strings.Repeat("s", maxSiteGroup+1) + `"}]`: 400,
		"[" + strings.Repeat(`{"name":"a"},`, maxClusters) + `{"name":"a"}]`:       400,
	} {
		got, err := parseClusters(text)
		if r := refusalOf(err); r == nil || r.status != status {
			t.Errorf("%.60s: got %+v, %v, want a refusal with %d", text, got, err, status)
		}
	}
}

// FuzzClusters reads foreign clusters: never a panic, every refusal has a text,
// and what is read is accepted by the core and shown as valid JSON.
func FuzzClusters(f *testing.F) {
	for _, text := range []string{
		`[{"name":"c1","healthChecker":{"type":"HTTP","path":"/x","headers":"A:b|C","expectedResponseCode":"204"},"defIPPort":1,"defCkport":2}]`,
		`[{"name":"c","healthChecker":{"type":"MYSQL","pwd":"\u0000"}},{"name":"c","healthChecker":null}]`,
		"null", "[null]", `[{"name":"a","metadata":{"a":1e5,"b":"\ud800"},"useIPPort4Check":"1"}]`, "[[", "\xff",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		list, err := parseClusters(text)
		if err != nil {
			_, ours := errors.AsType[*refusal](err)
			_, core := errors.AsType[*registry.Error](err)
			if !ours && !core || err.Error() == "" {
				t.Fatalf("%q: %v is no refusal", text, err)
			}
			return
		}
		for _, c := range list {
			if err := errors.Join(registry.CheckCluster(c.Name), registry.CheckProbe(&c)); err != nil {
				t.Fatalf("%q: read %+v: %v", text, c, err)
			}
			if shown := appendCluster(nil, &c, 1); !json.Valid(shown) {
				t.Fatalf("%q: shown as %q", text, shown)
			}
		}
	})
}
