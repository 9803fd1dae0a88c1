package values

import (
	"encoding/json"
	"net/url"

	"github.com/rollcall-registry/rollcall/internal/registry"
)

// Selector is what a selector parameter holds. The expression is not checked; see
// [registry.NewSelector].
type Selector struct{ Kind, Expression string }

// ParseSelector reads {"type":…,"expression":…}. A type that does not exist is
// refused with InvalidArgument, and what cannot be read with InvalidSelector: the
// original answers them with different statuses.
func ParseSelector(text string) (Selector, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &fields); err != nil {
		return Selector{}, MalformedSelector("it is no JSON object")
	}
	var s Selector
	if json.Unmarshal(fields["type"], &s.Kind) != nil {
		return Selector{}, MalformedSelector("it has no type")
	}
	switch s.Kind {
	case registry.SelectorNone:
		return s, nil
	case registry.SelectorLabel:
		if json.Unmarshal(fields["expression"], &s.Expression) != nil {
			return Selector{}, MalformedSelector("it has no expression")
		}
		return s, nil
	default:
		return Selector{}, registry.Refuse(registry.InvalidArgument, "selector", s.Kind,
			"Param 'selector' is illegal, its type is %.100q and must be %q or %q.",
			s.Kind, registry.SelectorNone, registry.SelectorLabel)
	}
}

// MalformedSelector refuses a selector that cannot be read.
func MalformedSelector(reason string) error {
	return registry.Refuse(registry.InvalidSelector, "selector", "", "Param 'selector' is illegal, %s.", reason)
}

// ParseEscapedSelector is [ParseSelector] of a text that may be URL-escaped once more
// within its parameter, as it is where a service is made or changed.
func ParseEscapedSelector(text string) (Selector, error) { return ParseSelector(unescape(text)) }

// unescape undoes URL escapes that a parameter has within its value, as 1.4.8
// does for selectors. Text with a broken escape stays as it is.
func unescape(text string) string {
	if plain, err := url.QueryUnescape(text); err == nil {
		return plain
	}
	return text
}
