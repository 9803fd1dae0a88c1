package grpc

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/rollcall-registry/rollcall/api/grpcv2"
)

// unordered are the members whose elements have no order.
var unordered = []string{"hosts", "serviceNames", "contexts", "data"}

// comparison compares JSON values by the rules of the recordings.
type comparison struct {
	volatile map[string]bool // members of which only the kind counts
}

func newComparison(volatile []string) comparison {
	c := comparison{map[string]bool{"requestId": true}}
	for _, name := range volatile {
		c.volatile[name] = true
	}
	return c
}

// differences tells how got differs from want, at a path and below.
func (c comparison) differences(want, got any, path, name string) []string {
	if kind(want) != kind(got) {
		return []string{fmt.Sprintf("%s: got %s, want %s", path, short(got), short(want))}
	}
	if c.volatile[name] {
		return nil
	}
	switch want := want.(type) {
	case map[string]any:
		return c.objects(want, got.(map[string]any), path)
	case []any:
		return c.arrays(want, got.([]any), path, name)
	case string:
		if !sameText(want, got.(string)) {
			return []string{fmt.Sprintf("%s: got %s, want %s", path, short(got), short(want))}
		}
	case json.Number:
		a, _ := want.Float64()
		if b, _ := got.(json.Number).Float64(); a != b {
			return []string{fmt.Sprintf("%s: got %s, want %s", path, short(got), short(want))}
		}
	default:
		if want != got {
			return []string{fmt.Sprintf("%s: got %s, want %s", path, short(got), short(want))}
		}
	}
	return nil
}

func (c comparison) objects(want, got map[string]any, path string) (list []string) {
	want, got = withoutRuntimeText(want, got)
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if v, ok := got[name]; ok {
			list = append(list, c.differences(want[name], v, path+"."+name, name)...)
		} else {
			list = append(list, fmt.Sprintf("%s: missing key %q", path, name))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if _, ok := want[name]; !ok {
			list = append(list, fmt.Sprintf("%s: extra key %q", path, name))
		}
	}
	return list
}

func (c comparison) arrays(want, got []any, path, name string) (list []string) {
	if len(want) != len(got) {
		return []string{fmt.Sprintf("%s: %d items, want %d: got %s, want %s", path, len(got), len(want), short(got), short(want))}
	}
	if slices.Contains(unordered, name) {
		order := func(a, b any) int { return strings.Compare(c.rank(a), c.rank(b)) }
		want, got = slices.SortedFunc(slices.Values(want), order), slices.SortedFunc(slices.Values(got), order)
	}
	for n := range want {
		list = append(list, c.differences(want[n], got[n], fmt.Sprintf("%s[%d]", path, n), "")...)
	}
	return list
}

// rank returns what elements without an order are sorted by.
func (c comparison) rank(v any) string {
	text := c.content(v)
	if m, ok := v.(map[string]any); ok {
		return fmt.Sprint(m["ip"], " ", m["port"], " ", text)
	}
	return text
}

// content returns a text that is equal for values of equal content.
func (c comparison) content(v any) string {
	b, _ := json.Marshal(c.canonical(v, "")) // of decoded JSON
	return string(b)
}

func (c comparison) canonical(v any, name string) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, x := range v {
			if !c.volatile[k] {
				out[k] = c.canonical(x, k)
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for n, x := range v {
			out[n] = c.canonical(x, "")
		}
		if slices.Contains(unordered, name) {
			slices.SortFunc(out, func(a, b any) int { return cmp.Compare(c.rank(a), c.rank(b)) })
		}
		return out
	case json.Number:
		f, _ := v.Float64()
		return f
	default:
		return v
	}
}

// The original answers a null dereference with a text of its runtime, or none.
const runtimeText = "Cannot invoke"

func withoutRuntimeText(want, got map[string]any) (w, g map[string]any) {
	text, given := want["message"].(string)
	if !given && number(want["errorCode"]) != grpcv2.CodeServerError || given && !strings.HasPrefix(text, runtimeText) {
		return want, got
	}
	w, g = maps.Clone(want), maps.Clone(got)
	delete(w, "message")
	delete(g, "message")
	return w, g
}

// sameText compares texts that may name a connection, or end in a text of the
// original's runtime.
func sameText(want, got string) bool {
	want, _, open := strings.Cut(want, runtimeText+` "`)
	parts := strings.Split(want, "{connection-id}")
	for n := range parts {
		parts[n] = regexp.QuoteMeta(parts[n])
	}
	pattern := "(?s)^" + strings.Join(parts, `[^\s\]]+`)
	if !open {
		pattern += "$"
	}
	return regexp.MustCompile(pattern).MatchString(got)
}

func kind(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "text"
	case json.Number:
		return "number"
	case []any:
		return "array"
	default:
		return "object"
	}
}

func short(v any) string {
	b, _ := json.Marshal(v) // of decoded JSON
	if len(b) > 200 {
		return string(b[:200]) + "…"
	}
	return string(b)
}
