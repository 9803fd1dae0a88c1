package v1

import (
	"math"
	"testing"

	"github.com/rollcall-registry/rollcall/internal/registry"
)

func TestPage(t *testing.T) {
	for _, tt := range []struct{ number, size, length, from, to int }{
		{1, 10, 5, 0, 5},
		{1, 2, 5, 0, 2},
		{2, 2, 5, 2, 4},
		{3, 2, 5, 4, 5},
		{4, 2, 5, 5, 5},
		{0, 2, 5, 0, 2}, // as the first
		{-7, 2, 5, 0, 2},
		{1, 0, 5, 0, 0},
		{1, math.MaxInt32, 5, 0, 5},
		{0, math.MaxInt32, 5, 0, 5},
		{math.MaxInt32, math.MaxInt32, 5, 5, 5},
		{math.MinInt32, math.MaxInt32, 5, 0, 5},
		{1, 10, 0, 0, 0},
	} {
		p, err := newPage(tt.number, tt.size)
		if err != nil {
			t.Errorf("page %d of %d: %v", tt.number, tt.size, err)
			continue
		}
		if from, to := p.of(tt.length); from != tt.from || to != tt.to {
			t.Errorf("page %d of %d in %d: got %d to %d, want %d to %d", tt.number, tt.size, tt.length, from, to, tt.from, tt.to)
		}
	}
	if _, err := newPage(1, -1); !isRefusal(err, registry.InvalidArgument) {
		t.Errorf("a negative size: got %v, want a refusal", err)
	}
}

func TestParseAddress(t *testing.T) {
	for _, tt := range []struct {
		text string
		ip   string
		port int32
		want bool
	}{
		{"10.0.0.1", "10.0.0.1", 80, true},
		{"10.0.0.1:80", "10.0.0.1", 80, true},
		{"10.0.0.1:81", "10.0.0.1", 80, false},
		{"10.0.0.2", "10.0.0.1", 80, false},
		{"node-7.example", "node-7.example", 80, true},
		{"node-7.example:80", "node-7.example", 80, true},
		{"::1", "0:0:0:0:0:0:0:1", 80, true},
		{"[::1]", "::1", 80, true},
		{"[::1]:80", "0:0::1", 80, true},
		{"[::1]:81", "::1", 80, false},
		{"10.0.0.1:", "10.0.0.1", 80, false},
	} {
		if got := parseAddress(tt.text).is(&registry.Instance{IP: tt.ip, Port: tt.port}); got != tt.want {
			t.Errorf("%s of %s port %d: got %v, want %v", tt.text, tt.ip, tt.port, got, tt.want)
		}
	}
	if parseAddress("") != nil {
		t.Error("no text is an address")
	}
}
