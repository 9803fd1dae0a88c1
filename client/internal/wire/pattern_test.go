package wire

import "testing"

func TestPatterns(t *testing.T) {
	for _, tt := range []struct {
		pattern, text string
		want          bool
	}{
		{"orders", "orders", true},
		{"orders", "orders2", false},
		{"", "", true},
		{"*", "", true},
		{"*", "anything", true},
		{"or*", "orders", true},
		{"or*", "stock", false},
		{"*ers", "orders", true},
		{"o*s", "orders", true},
		{"o*s", "o", false},
		{"ab*b", "ab", false},
		{"a*b*c", "a-b-c", true},
		{"a*b*c", "a-c-b", false},
		{"**", "x", true},
		{"a**b", "ab", true},
		{"*a*", "banana", true},
		{"a.c", "abc", false},
		{"", "x", false},
		{"a*", "ba", false},
		{"*a", "ba", true},
		{"*a", "ab", false},
		{"*a*", "b", false},
		{"a*c", "ac", true},
		{"a*c", "ab", false},
		{"a*a", "a", false},
		{"a*b*c", "aXbYc", true},
	} {
		p := Pattern{"public", "g", tt.pattern}
		if got := p.Matches(Service{"public", "g", tt.text}); got != tt.want {
			t.Errorf("%q matches %q: %v, want %v", tt.pattern, tt.text, got, tt.want)
		}
	}
	if (Pattern{"a", "*", "*"}).Matches(Service{"b", "g", "s"}) {
		t.Error("a pattern matches in another namespace")
	}
}
