package golden

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"unicode/utf8"
)

// The words of Step.Volatile that are no keys.
const (
	volatileBody = "body" // the body and its type do not count
	volatileAll  = "*"    // values do not count, only the shape of keys
)

// differences compares the answer that a step got with what was recorded.
func (s *Step) differences(got Answer) []string {
	want := s.Expect
	var out []string
	if want.Status != got.Status {
		out = append(out, fmt.Sprintf("status %d, want %d (body %s)", got.Status, want.Status, got.text()))
	}
	if slices.Contains(s.Volatile, volatileBody) {
		return out
	}
	if want.Type != got.Type {
		out = append(out, fmt.Sprintf("content type %q, want %q", got.Type, want.Type))
	}
	c := comparison{
		volatile:  setOf(s.Volatile),
		unordered: setOf(append([]string{"hosts"}, s.Unordered...)),
		keysOnly:  slices.Contains(s.Volatile, volatileAll),
	}
	switch {
	case want.JSON.present && !got.JSON.present:
		out = append(out, fmt.Sprintf("body %s, want JSON %s", got.text(), want.text()))
	case want.JSON.present:
		c.compare("", "", want.JSON.value, got.JSON.value)
		out = append(out, c.found...)
	case got.JSON.present, want.Body != got.Body && !c.keysOnly:
		out = append(out, fmt.Sprintf("body %s, want %s", got.text(), want.text()))
	}
	return out
}

// comparison walks through two JSON values and gathers how they differ.
type comparison struct {
	volatile  map[string]bool
	unordered map[string]bool
	keysOnly  bool
	found     []string
}

func setOf(names []string) map[string]bool {
	set := make(map[string]bool, len(names))
	for _, name := range names {
		set[name] = true
	}
	return set
}

func (c *comparison) differ(where, format string, args ...any) {
	c.found = append(c.found, where+": "+fmt.Sprintf(format, args...))
}

// compare compares two values at the path where. key is the name under which
// they stand in their object, and empty for the top level and items of arrays.
func (c *comparison) compare(where, key string, want, got any) {
	same := kindOf(want) == kindOf(got)
	switch {
	case c.volatile[key] && same:
	case c.volatile[key]:
		c.differ(where, "a %s, not a %s", kindOf(got), kindOf(want))
	case !same:
		c.differ(where, "got %s, want %s", short(got), short(want))
	default:
		switch want := want.(type) {
		case map[string]any:
			c.compareObjects(where, want, got.(map[string]any))
		case []any:
			c.compareArrays(where, key, want, got.([]any))
		default:
			if !c.keysOnly && !equalScalars(want, got) {
				c.differ(where, "got %s, want %s", short(got), short(want))
			}
		}
	}
}

func (c *comparison) compareObjects(where string, want, got map[string]any) {
	for _, k := range slices.Sorted(maps.Keys(want)) {
		if _, ok := got[k]; !ok {
			c.differ(where, "missing key %q", k)
		}
	}
	for _, k := range slices.Sorted(maps.Keys(got)) {
		if _, ok := want[k]; !ok {
			c.differ(where, "extra key %q", k)
			continue
		}
		c.compare(where+"."+k, k, want[k], got[k])
	}
}

func (c *comparison) compareArrays(where, key string, want, got []any) {
	switch {
	case c.keysOnly:
		if len(want) > 0 && len(got) > 0 {
			c.compare(where+"[0]", "", want[0], got[0])
		}
		return
	case len(want) != len(got):
		c.differ(where, "%d items, want %d: got %s want %s", len(got), len(want), short(got), short(want))
		return
	case c.unordered[key]:
		want, got = c.sorted(want), c.sorted(got)
	}
	for i := range want {
		c.compare(fmt.Sprintf("%s[%d]", where, i), "", want[i], got[i])
	}
}

// sorted orders the items of an array by their text without what is volatile.
func (c *comparison) sorted(items []any) []any {
	type item struct {
		text  string
		value any
	}
	list := make([]item, len(items))
	for i, value := range items {
		list[i] = item{text(c.scrub(value)), value}
	}
	slices.SortStableFunc(list, func(a, b item) int {
		switch {
		case a.text < b.text:
			return -1
		case a.text > b.text:
			return 1
		}
		return 0
	})
	ordered := make([]any, len(list))
	for i, one := range list {
		ordered[i] = one.value
	}
	return ordered
}

// scrub returns v without volatile members, and with numbers of equal value
// written alike.
func (c *comparison) scrub(v any) any {
	switch v := v.(type) {
	case map[string]any:
		kept := make(map[string]any, len(v))
		for k, one := range v {
			if !c.volatile[k] {
				kept[k] = c.scrub(one)
			}
		}
		return kept
	case []any:
		kept := make([]any, len(v))
		for i, one := range v {
			kept[i] = c.scrub(one)
		}
		return kept
	case json.Number:
		if _, err := v.Int64(); err == nil {
			return v
		}
		if f, err := v.Float64(); err == nil {
			return json.Number(strconv.FormatFloat(f, 'f', -1, 64))
		}
		return v
	default:
		return v
	}
}

func kindOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "bool"
	case json.Number:
		return "number"
	case string:
		return "string"
	case []any:
		return "array"
	default:
		return "object"
	}
}

// equalScalars compares two values of one kind. Whole numbers are compared as
// such, others as floating point.
func equalScalars(a, b any) bool {
	x, ok := a.(json.Number)
	if !ok {
		return a == b
	}
	y, _ := b.(json.Number)
	i, errI := x.Int64()
	j, errJ := y.Int64()
	if errI == nil && errJ == nil {
		return i == j
	}
	f, errF := x.Float64()
	g, errG := y.Float64()
	return errF == nil && errG == nil && f == g
}

// text is v as one line of JSON with sorted keys.
func text(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(data)
}

// maxShown bounds how much of a value a difference shows.
const maxShown = 300

func short(v any) string {
	s := text(v)
	if utf8.RuneCountInString(s) <= maxShown {
		return s
	}
	return string([]rune(s)[:maxShown]) + "…"
}

// text is the body of an answer for messages.
func (a *Answer) text() string {
	if a.JSON.present {
		return short(a.JSON.value)
	}
	return short(a.Body)
}
