package values

import (
	"strings"
	"testing"
	"time"

	"github.com/rollcall-registry/rollcall/internal/registry"
)

func TestSearch(t *testing.T) {
	const name = "DEFAULT_GROUP@@shop.orders-v2"
	for _, tt := range []struct {
		expression string
		found      bool
		refused    registry.Code // 0: not
	}{
		{"", true, 0},
		{"orders", true, 0},
		{"Orders", false, 0},
		{"s.op", true, 0},
		{"^DEFAULT", true, 0},
		{"v[0-9]$", true, 0},
		{"a|orders|b", true, 0},
		{"@@shop", true, 0},
		{"%", false, 0},
		{`\.orders`, true, 0},
		{"(", false, registry.InvalidArgument},
		{"[", false, registry.InvalidArgument},
		{"*", false, registry.InvalidArgument},
		{`\`, false, registry.InvalidArgument},
		{"(?<=x)y", false, registry.InvalidArgument}, // Java knows it, RE2 does not
		{strings.Repeat("(a+)+", 2000), false, registry.LimitExceeded},
		{strings.Repeat("a{1000}", 20), false, registry.LimitExceeded},
		{"((a{100}){100}){100}", false, registry.InvalidArgument},
	} {
		s, err := NewSearch("expr", tt.expression)
		if tt.refused != 0 {
			if !refused(err, tt.refused) || !strings.Contains(err.Error(), "'expr'") {
				t.Errorf("%.40q: got %v, want a refusal of 'expr' with code %d", tt.expression, err, tt.refused)
			}
			continue
		}
		if err != nil {
			t.Errorf("%q: %v", tt.expression, err)
			continue
		}
		if found, err := s.Matches(name); found != tt.found || err != nil {
			t.Errorf("%q: got %v, %v, want %v", tt.expression, found, err, tt.found)
		}
	}
}

// TestSearchEnds: a search that has taken too long is given up.
func TestSearchEnds(t *testing.T) {
	s, err := NewSearch("expr", "(x+x+)+y")
	if err != nil {
		t.Fatal(err)
	}
	for n := range 3 * searchBatch {
		found, err := s.Matches(strings.Repeat("x", 100))
		if found || (err != nil) != (n >= searchBatch) {
			t.Fatalf("name %d: got %v, %v", n, found, err)
		}
		if err != nil && !refused(err, registry.LimitExceeded) {
			t.Fatalf("name %d: got %v, want a refusal with LimitExceeded", n, err)
		}
		s.until = time.Now().Add(-time.Nanosecond)
	}
}

func FuzzSearch(f *testing.F) {
	for _, s := range []string{"", "a", "s.c-", "(a+)+", "[", `\pL`, "(?i)x", "a{9}{9}", "^$|.*"} {
		f.Add(s, "DEFAULT_GROUP@@svc-1")
	}
	f.Fuzz(func(t *testing.T, expression, name string) {
		s, err := NewSearch("expr", expression)
		if err != nil {
			if !refused(err, registry.InvalidArgument) && !refused(err, registry.LimitExceeded) {
				t.Fatalf("%q: %v is no refusal", expression, err)
			}
			return
		}
		found, err := s.Matches(name)
		if err != nil {
			t.Fatalf("%q in %q: %v", expression, name, err)
		}
		if s.pattern == nil && found != strings.Contains(name, expression) {
			t.Errorf("%q in %q: got %v", expression, name, found)
		}
	})
}
