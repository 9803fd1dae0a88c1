package udppush

import (
	"net/netip"
	"testing"

	"github.com/rollcall-registry/rollcall/internal/registry"
)

func TestAdmission(t *testing.T) {
	on, off := registry.DefaultSwitches(), registry.DefaultSwitches()
	off.PushEnabled = false
	type result struct {
		target string // empty: not subscribed
		pushed bool
	}
	poll := result{}
	for _, test := range []struct {
		name     string
		clientIP string
		port     int
		peer     string
		want     result
	}{
		{"its own address", "10.0.0.7", 55002, "10.0.0.7", result{"10.0.0.7:55002", true}},
		{"with blanks around", " 10.0.0.7 ", 55002, "10.0.0.7", result{"10.0.0.7:55002", true}},
		{"none named", "", 55002, "10.0.0.7", result{"10.0.0.7:55002", true}},
		{"a blank", "  ", 55002, "10.0.0.7", result{"10.0.0.7:55002", true}},
		{"somebody else's", "10.0.0.8", 55002, "10.0.0.7", result{"10.0.0.8:55002", false}},
		{"in an allowed range", "172.20.5.5", 55002, "10.0.0.7", result{"172.20.5.5:55002", true}},
		{"beside an allowed range", "172.21.5.5", 55002, "10.0.0.7", result{"172.21.5.5:55002", false}},

		{"a placeholder of clients", "resolve_failed", 55002, "10.0.0.7", poll},
		{"a host name", "localhost", 55002, "127.0.0.1", poll},
		{"out of range", "256.1.1.1", 55002, "10.0.0.7", poll},
		{"two words", "host name", 55002, "10.0.0.7", poll},
		{"leading zeros", "010.0.0.7", 55002, "10.0.0.7", poll},
		{"with a port", "10.0.0.7:80", 55002, "10.0.0.7", poll},
		{"a range", "10.0.0.0/8", 55002, "10.0.0.7", poll},
		{"no address at all", "0.0.0.0", 55002, "0.0.0.0", poll},
		{"everybody", "255.255.255.255", 55002, "10.0.0.7", poll},
		{"multicast", "224.0.0.1", 55002, "224.0.0.1", poll},

		{"no port", "10.0.0.7", 0, "10.0.0.7", poll},
		{"a negative port", "10.0.0.7", -1, "10.0.0.7", poll},
		{"too large a port", "10.0.0.7", 65536, "10.0.0.7", poll},
		{"the largest port", "10.0.0.7", 65535, "10.0.0.7", result{"10.0.0.7:65535", true}},

		{"loopback from loopback", "127.0.0.1", 1, "127.0.0.1", result{"127.0.0.1:1", true}},
		{"another loopback", "127.0.0.9", 1, "127.0.0.1", result{"127.0.0.9:1", true}},
		{"loopback from the IPv6 one", "127.0.0.1", 1, "::1", result{"127.0.0.1:1", true}},
		{"this machine from loopback", "192.0.2.1", 1, "127.0.0.1", result{"192.0.2.1:1", true}},
		{"loopback from this machine", "127.0.0.1", 1, "192.0.2.1", result{"127.0.0.1:1", true}},
		{"loopback from elsewhere", "127.0.0.1", 1, "10.0.0.7", result{"127.0.0.1:1", false}},
		{"this machine from elsewhere", "192.0.2.1", 1, "10.0.0.7", result{"192.0.2.1:1", false}},
		{"elsewhere from loopback", "10.0.0.7", 1, "127.0.0.1", result{"10.0.0.7:1", false}},

		{"IPv6", "2001:db8::7", 1, "2001:db8::7", result{"[2001:db8::7]:1", true}},
		{"IPv6 in another spelling", "2001:0DB8:0:0::0007", 1, "2001:db8::7", result{"[2001:db8::7]:1", true}},
		{"IPv6 in brackets", "[2001:db8::7]", 1, "2001:db8::7", result{"[2001:db8::7]:1", true}},
		{"half a bracket", "[2001:db8::7", 1, "2001:db8::7", poll},
		{"mapped IPv4", "::ffff:10.0.0.7", 1, "10.0.0.7", result{"10.0.0.7:1", true}},
		{"peer is mapped IPv4", "10.0.0.7", 1, "::ffff:10.0.0.7", result{"10.0.0.7:1", true}},
		{"IPv6 of this machine", "2001:db8::1", 1, "::1", result{"[2001:db8::1]:1", true}},
		{"IPv6 in an allowed range", "2001:db8:5::1", 1, "2001:db8::7", result{"[2001:db8:5::1]:1", true}},
		{"link-local without its zone", "fe80::7", 1, "fe80::7%eth0", result{"[fe80::7%eth0]:1", true}},
		{"link-local with its zone", "fe80::7%eth0", 1, "fe80::7%eth0", result{"[fe80::7%eth0]:1", true}},
		{"a zone of the client's own", "fe80::7%en3", 1, "fe80::7%eth0", result{"[fe80::7%eth0]:1", true}},
		{"IPv6 multicast", "ff02::1", 1, "fe80::7%eth0", poll},
		{"none named, peer unknown", "", 1, "", poll},
		{"named, peer unknown", "10.0.0.7", 1, "", result{"10.0.0.7:1", false}},
	} {
		t.Run(test.name, func(t *testing.T) {
			a := Admission{hosts: &hosts{}}
			a.hosts.set(netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1"))
			a.SetAllowed([]netip.Prefix{netip.MustParsePrefix("172.20.0.0/16"), netip.MustParsePrefix("2001:db8:5::/48")})
			r := Request{ClientIP: test.clientIP, Port: test.port, Eligible: true, Switches: on}
			if test.peer != "" {
				r.Peer = netip.MustParseAddr(test.peer)
			}
			v := a.Judge(r)
			got := result{pushed: v.Pushable()}
			if v.Subscribe {
				got.target = v.Target.String()
			}
			if got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
			if refused := v.Subscribe && !got.pushed; refused != (v.Refused != "") || refused != (a.Refusals() == 1) {
				t.Errorf("refused %q, counted %d", v.Refused, a.Refusals())
			}

			r.Eligible = false
			if v := a.Judge(r); v.Subscribe {
				t.Errorf("an agent that cannot be pushed to is subscribed: %+v", v)
			}
			r.Eligible, r.Switches = true, off
			if v := a.Judge(r); v.Subscribe {
				t.Errorf("subscribed while pushes are switched off: %+v", v)
			}
		})
	}
}

func TestHostsKnowThisMachine(t *testing.T) {
	var h hosts
	loopback := netip.MustParseAddrPort("127.0.0.1:7")
	if !h.own(loopback.Addr()) {
		t.Error("loopback is not this machine's before the first refresh")
	}
	if err := h.refresh(); err != nil {
		t.Fatal(err)
	}
	if a := h.alias(loopback); !a.IsValid() || a != h.alias(netip.MustParseAddrPort("[::1]:7")) {
		t.Error("the two loopback addresses have two aliases")
	}
	if h.alias(loopback) == h.alias(netip.MustParseAddrPort("127.0.0.1:8")) {
		t.Error("two ports have one alias")
	}
	if far := h.alias(netip.MustParseAddrPort("203.0.113.9:7")); far.IsValid() {
		t.Errorf("another machine has the alias %v", far)
	}
}

func TestConfig(t *testing.T) {
	for _, cfg := range []Config{DefaultConfig(), {Port: 65535, Host: "::1"}} {
		if err := cfg.Validate(); err != nil {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
	for _, cfg := range []Config{{Port: -1}, {Port: 65536}, {Host: "localhost"}, {Host: "1.2.3"}} {
		if cfg.Validate() == nil {
			t.Errorf("%+v is valid, want a fault", cfg)
		}
	}
}
