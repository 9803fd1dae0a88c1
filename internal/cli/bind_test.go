package cli

import (
	"strings"
	"testing"
)

func TestCheckBind(t *testing.T) {
	for _, tt := range []struct {
		auth, address string
		refusal       string // empty: allowed
	}{
		{"", "127.0.0.1:8848", ""},
		{"", "127.8.8.8:0", ""},
		{"", "[::1]:8848", ""},
		{"", "[::ffff:127.0.0.1]:8848", ""},
		{"", "localhost:8848", ""},
		{"", ":8848", "say --auth=off"},
		{"", "0.0.0.0:8848", "0.0.0.0:8848 can be reached from other machines"},
		{"", "[::]:8848", "say --auth=off"},
		{"", "10.0.0.7:8848", "say --auth=off"},
		{"", "registry.example:8848", "say --auth=off"},
		{"", "8848", "say --auth=off"},
		{"off", "0.0.0.0:8848", ""},
		{"on", "127.0.0.1:8848", "this version has no authentication"},
		{"on", "0.0.0.0:8848", "this version has no authentication"},
	} {
		err := checkBind(tt.auth, []string{"127.0.0.1:1", tt.address})
		if (err == nil) != (tt.refusal == "") || err != nil && !strings.Contains(err.Error(), tt.refusal) {
			t.Errorf("auth %q on %s: got %v, want a refusal with %q", tt.auth, tt.address, err, tt.refusal)
		}
	}
}
