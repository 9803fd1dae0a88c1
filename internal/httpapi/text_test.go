package httpapi

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestErrorText(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", maxErrorText) // two bytes each
	for _, tt := range []struct{ name, text, want string }{
		{"short", "no such service", "no such service"},
		{"as long as may be", long[:maxErrorText], long[:maxErrorText]},
		{"longer", long, long[:maxErrorText] + "…"},
		{"between two characters", "x" + long, "x" + long[:maxErrorText-2] + "…"},
	} {
		if got := ErrorText(tt.text); got != tt.want || !utf8.ValidString(got) {
			t.Errorf("%s: got %d bytes, want %d", tt.name, len(got), len(tt.want))
		}
	}
}
