package grpcapi

import (
	"strings"

	"github.com/rollcall-registry/rollcall/internal/registry"
)

// pattern says which services a fuzzy watch means:
// namespace>>group>>service, of which group and service may begin and end with *.
type pattern struct {
	text                      string
	namespace, group, service string
	// broken: the text is no pattern. It is accepted and matches nothing, as in the
	// original.
	broken bool
}

// maxPattern bounds a pattern, in bytes: its names may have 64, 128 and 512
// characters.
const maxPattern = 4 << 10

func parsePattern(text string) pattern {
	parts := strings.Split(text, ">>")
	if len(parts) != 3 {
		return pattern{text: text, broken: true}
	}
	return pattern{text: text, namespace: registry.NamespaceID(parts[0]), group: parts[1], service: parts[2]}
}

func (p *pattern) matches(key registry.ServiceKey) bool {
	return !p.broken && key.Namespace == p.namespace && matchItem(p.group, key.Group) && matchItem(p.service, key.Name)
}

// matchItem reports whether a name matches x, x*, *x, *x* or *.
func matchItem(item, name string) bool {
	if item == "*" {
		return true
	}
	inner, open := strings.CutPrefix(item, "*")
	inner, openEnd := strings.CutSuffix(inner, "*")
	switch {
	case open && openEnd:
		return strings.Contains(name, inner)
	case open:
		return strings.HasSuffix(name, inner)
	case openEnd:
		return strings.HasPrefix(name, inner)
	default:
		return name == item
	}
}

// exactGroup returns the one group that a pattern means; empty when it may mean
// several.
func (p *pattern) exactGroup() string {
	if strings.HasPrefix(p.group, "*") || strings.HasSuffix(p.group, "*") {
		return ""
	}
	return p.group
}

// fuzzyKey is how fuzzy watches write a service.
func fuzzyKey(key registry.ServiceKey) string {
	return key.Namespace + registry.GroupSeparator + key.Group + registry.GroupSeparator + key.Name
}
