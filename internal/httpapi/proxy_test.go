package httpapi_test

import (
	"bytes"
	"io"
	"net"
	"net/netip"
	"testing"

	"github.com/pires/go-proxyproto"

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

func TestProxyProtocol(t *testing.T) {
	cfg := httpapi.DefaultConfig()
	cfg.ProxyProtocol, cfg.TrustedProxies = true, loopback
	address := start(t, cfg, route("GET", "/who", whoIs))
	v2 := proxyproto.HeaderProxyFromAddrs(2, &net.TCPAddr{IP: net.ParseIP("192.0.2.8"), Port: 4711}, &net.TCPAddr{IP: net.ParseIP("127.0.0.1"), Port: 80})
	var v2Bytes bytes.Buffer
	if _, err := v2.WriteTo(&v2Bytes); err != nil {
		t.Fatal(err)
	}
	tests := []struct{ name, header, want string }{
		{"none", "", "127.0.0.1"},
		{"version 1", "PROXY TCP4 192.0.2.7 127.0.0.1 4711 80\r\n", "192.0.2.7"},
		{"version 1, IPv6", "PROXY TCP6 2001:db8::1 ::1 4711 80\r\n", "2001:db8::1"},
		{"version 1, unknown", "PROXY UNKNOWN\r\n", "127.0.0.1"},
		{"version 2", v2Bytes.String(), "192.0.2.8"},
	}
	for _, tt := range tests {
		c := dial(t, address)
		c.send(tt.header + request("GET", "/who"))
		if got := c.receive("GET"); got.body != tt.want {
			t.Errorf("%s: client %s, want %s", tt.name, got.body, tt.want)
		}
		if got := c.ask(request("GET", "/who")); got.body != tt.want {
			t.Errorf("%s, second request: client %s, want %s", tt.name, got.body, tt.want)
		}
	}
	c := dial(t, address)
	c.send("PROXY TCP4 nonsense\r\n" + request("GET", "/who"))
	if _, err := io.ReadAll(c.r); err != nil {
		t.Logf("refused with %v", err)
	}
	// Not asked for: the header is a bad request.
	c = dial(t, start(t, httpapi.DefaultConfig(), route("GET", "/who", whoIs)))
	if got := c.ask("PROXY TCP4 192.0.2.7 127.0.0.1 4711 80\r\n" + request("GET", "/who")); got.StatusCode != 400 {
		t.Errorf("unasked PROXY header: %d", got.StatusCode)
	}
}
