package v1

import (
	"encoding/json"
	"math"
	"net/url"
	"strconv"

	"github.com/rollcall-registry/rollcall/internal/httpapi"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// boundThreshold returns the protect threshold of a POST, 0 when it is not sent.
func boundThreshold(p *httpapi.Params) (float32, error) {
	f, err := p.BoundFloat("protectThreshold", 0)
	if err != nil {
		return 0, err
	}
	return threshold(f)
}

// requiredThreshold returns the protect threshold of a PUT. As in 1.4.8 text that
// is no number counts as 0.
func requiredThreshold(p *httpapi.Params) (float32, error) {
	text, err := p.Required("protectThreshold")
	if err != nil {
		return 0, err
	}
	f, _ := httpapi.ParseJavaDouble(text)
	return threshold(f)
}

// threshold refuses what is no finite number, which no JSON could show. Any other
// number is kept: 1.4.8 has no range, and shares compare with it in any case.
func threshold(f float64) (float32, error) {
	if math.IsNaN(f) || math.Abs(f) > math.MaxFloat32 {
		return 0, registry.Refuse(registry.InvalidArgument, "protectThreshold", "",
			"Param 'protectThreshold' is illegal, it must be a number.")
	}
	return float32(f), nil
}

// selector is the JSON of a selector parameter.
type selector struct{ kind, expression string }

// parseSelector reads {"type":…,"expression":…}. A type that does not exist is
// refused with InvalidArgument, and what cannot be read with InvalidSelector: the
// original answers them with different statuses.
func parseSelector(text string) (selector, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &fields); err != nil {
		return selector{}, malformedSelector("it is no JSON object")
	}
	var s selector
	if json.Unmarshal(fields["type"], &s.kind) != nil {
		return selector{}, malformedSelector("it has no type")
	}
	switch s.kind {
	case registry.SelectorNone:
		return s, nil
	case registry.SelectorLabel:
		if json.Unmarshal(fields["expression"], &s.expression) != nil {
			return selector{}, malformedSelector("it has no expression")
		}
		return s, nil
	default:
		return selector{}, registry.Refuse(registry.InvalidArgument, "selector", s.kind,
			"Param 'selector' is illegal, its type is %q and must be %q or %q.",
			short(s.kind), registry.SelectorNone, registry.SelectorLabel)
	}
}

func malformedSelector(reason string) error {
	return registry.Refuse(registry.InvalidSelector, "selector", "", "Param 'selector' is illegal, %s.", reason)
}

// unescape undoes URL escapes that a parameter has within its value, as 1.4.8
// does for selectors. Text with a broken escape stays as it is.
func unescape(text string) string {
	if plain, err := url.QueryUnescape(text); err == nil {
		return plain
	}
	return text
}

// appendSelector appends a selector as JSON.
func appendSelector(b []byte, s registry.Selector) []byte {
	b = append(b, `{"type":`...)
	b = registry.AppendJSONString(b, s.Type)
	if s.Type == registry.SelectorLabel {
		b = append(b, `,"expression":`...)
		b = registry.AppendJSONString(b, s.Expression)
		b = append(b, `,"labels":`...)
		b = appendStrings(b, s.Labels)
	}
	return append(b, '}')
}

// appendChecker appends a cluster's probe as JSON.
func appendChecker(b []byte, c registry.HealthCheck) []byte {
	b = append(b, `{"type":`...)
	b = registry.AppendJSONString(b, string(c.Type))
	switch c.Type {
	case registry.CheckHTTP:
		b = append(b, `,"path":`...)
		b = registry.AppendJSONString(b, c.Path)
		b = append(b, `,"headers":`...)
		b = registry.AppendJSONString(b, c.Headers)
		b = append(b, `,"expectedResponseCode":`...)
		b = strconv.AppendInt(b, int64(c.ExpectedCode), 10)
	case registry.CheckMySQL:
		b = append(b, `,"user":`...)
		b = registry.AppendJSONString(b, c.User)
		b = append(b, `,"pwd":`...)
		b = registry.AppendJSONString(b, c.Password)
		b = append(b, `,"cmd":`...)
		b = registry.AppendJSONString(b, c.Command)
	case registry.CheckTCP, registry.CheckNone:
	}
	return append(b, '}')
}
