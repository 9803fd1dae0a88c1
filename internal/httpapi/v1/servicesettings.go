package v1

import (
	"math"

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
