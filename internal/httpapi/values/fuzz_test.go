package values

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/rollcall-registry/rollcall/internal/registry"
)

// refused reports whether err is the core's refusal with that code.
func refused(err error, code registry.Code) bool {
	refusal, ok := errors.AsType[*registry.Error](err)
	return ok && refusal.Code == code
}

// fullBeat is one of a Java client.
const fullBeat = `{"cluster":"DEFAULT","ip":"10.1.2.3","metadata":{"side":"provider"},"period":5000,"port":8080,"scheduled":false,"serviceName":"DEFAULT_GROUP@@orders","stopped":false,"weight":1.0}`

// FuzzParseBeat reads foreign beats: never a panic, and what is read can be
// registered and listed as valid JSON.
func FuzzParseBeat(f *testing.F) {
	for _, text := range []string{
		fullBeat, `{}`, `null`, `[`, `{"ip":"1.1.1.1","port":"8080","weight":"1.5","ephemeral":"false"}`,
		`{"ip":"\ud800","port":1e3,"metadata":{"a":1,"b":null,"c":"\u0000"},"cluster":1}`,
		`{"port":-1.9,"weight":NaN}`, `{"port":2147483648}`, `{"ip":"a","ip":{}}`, `{"a":"b"}{}`, "{\"ip\":\"\xff\"}",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		body, err := ParseBeat(text)
		if err != nil {
			if _, ok := errors.AsType[*registry.Error](err); !ok || !strings.Contains(err.Error(), "'beat'") {
				t.Fatalf("%q: %v is no refusal of the parameter", text, err)
			}
			return
		}
		if math.IsNaN(body.Weight) || math.IsInf(body.Weight, 0) {
			t.Fatalf("%q: weight %v", text, body.Weight)
		}
		r, err := body.Registration(registry.ServiceKey{Namespace: "public", Group: "g", Name: "f"}, registry.InstanceKey{IP: body.IP, Port: body.Port, Cluster: body.Cluster})
		if err != nil {
			return
		}
		if shown := r.Instance.Metadata.JSON(); !json.Valid([]byte(shown)) {
			t.Fatalf("%q: metadata %q", text, shown)
		}
	})
}

// FuzzSelector reads foreign selectors: never a panic, and what is accepted can be
// shown.
func FuzzSelector(f *testing.F) {
	for _, text := range []string{
		`{"type":"none"}`, `{"type":"label","expression":"CONSUMER.label.a = PROVIDER.label.a & CONSUMER.label.b = PROVIDER.label.b"}`,
		`{"type":"label","expression":""}`, `{}`, `null`, `[`, `{"type":"\ud800"}`, `{"type":"label","expression":1}`,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseEscapedSelector(text)
		if err != nil {
			if !strings.Contains(err.Error(), "'selector'") {
				t.Fatalf("%q: %v does not name the parameter", text, err)
			}
			return
		}
		if s.Kind == "" {
			t.Fatalf("%q: no kind", text)
		}
	})
}

// FuzzChecker reads foreign probes likewise.
func FuzzChecker(f *testing.F) {
	for _, text := range []string{
		`{"type":"TCP"}`, `{"type":"HTTP","path":"/x","headers":"A:1|B:2","expectedResponseCode":200}`, `{"type":"MYSQL","user":"u"}`,
		`{"type":"tcp"}`, `{}`, `null`, `{"type":"HTTP","expectedResponseCode":"200"}`, `[`, `{"type":"HTTP","path":"\ud800"}`,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, err := ParseChecker(text)
		if err != nil {
			if !strings.Contains(err.Error(), "'healthChecker'") {
				t.Fatalf("%q: %v does not name the parameter", text, err)
			}
			return
		}
		shown := AppendChecker(nil, c)
		again, err := ParseChecker(string(shown))
		if err != nil || again != c {
			t.Fatalf("%q: shown as %s, read again as %+v (%v), want %+v", text, shown, again, err, c)
		}
	})
}

// FuzzInstances reads foreign lists of instances: never a panic, and none that is
// no list.
func FuzzInstances(f *testing.F) {
	for _, text := range []string{
		`[{"ip":"1.1.1.1","port":"8080","clusterName":"c","ephemeral":false}]`, `[]`, `{}`, `[1]`, `[{"ip":{}}]`, `[{"port":1e99}]`, `zz`,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		list, err := ParseInstances(text)
		if err != nil && (len(list) > 0 || !refused(err, registry.InvalidArgument)) {
			t.Fatalf("%q: got %v, %v", text, list, err)
		}
		for _, one := range list {
			if one.Cluster == "" {
				t.Fatalf("%q: no cluster in %+v", text, one)
			}
		}
	})
}
