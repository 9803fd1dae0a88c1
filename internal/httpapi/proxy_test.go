package httpapi_test

import (
	"net/netip"
	"testing"

	"github.com/rollcall-registry/rollcall/internal/httpapi"
)

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("10.0.0.0/8")}

func whoIs(x *httpapi.Exchange) { x.Text(200, x.Client().String()) }

func TestForwardedFor(t *testing.T) {
	trusting := httpapi.DefaultConfig()
	trusting.TrustedProxies = loopback
	tests := []struct {
		header, want string
	}{
		{"", "127.0.0.1"},
		{"192.0.2.7", "192.0.2.7"},
		{"203.0.113.9, 192.0.2.7", "192.0.2.7"}, // the last one, which a trusted proxy has seen
		{"192.0.2.7, 10.1.1.1,10.1.1.2", "192.0.2.7"},
		{"10.1.1.1", "10.1.1.1"},
		{"192.0.2.7:4711", "192.0.2.7"},
		{"[2001:db8::1]:4711", "2001:db8::1"},
		{"::ffff:192.0.2.7", "192.0.2.7"},
		{"nonsense", "127.0.0.1"},
		{"192.0.2.7, nonsense", "127.0.0.1"},
		{"192.0.2.7, nonsense, 10.1.1.1", "10.1.1.1"},
		{"203.0.113.9\r\nX-Forwarded-For: 192.0.2.7", "192.0.2.7"}, // a proxy that adds a line of its own
		{"192.0.2.7\r\nX-Forwarded-For: 10.1.1.1, 10.1.1.2", "192.0.2.7"},
	}
	address, strict := start(t, trusting, route("GET", "/who", whoIs)), start(t, httpapi.DefaultConfig(), route("GET", "/who", whoIs))
	for _, tt := range tests {
		ask := request("GET", "/who", "X-Forwarded-For: "+tt.header)
		if got := dial(t, address).ask(ask); got.body != tt.want {
			t.Errorf("%q: client %s, want %s", tt.header, got.body, tt.want)
		}
		if got := dial(t, strict).ask(ask); got.body != "127.0.0.1" {
			t.Errorf("%q, nobody trusted: client %s", tt.header, got.body)
		}
	}
}
