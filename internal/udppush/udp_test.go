package udppush

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"
	"time"
)

// bound is a registry that pushes over a real socket.
func bound(t testing.TB, cfg Config) (r *rig, stop func()) {
	t.Helper()
	r = newRig(t, cfg)
	if err := r.sender.Listen(); err != nil {
		t.Fatal(err)
	}
	return r, r.run()
}

// reach returns the address at which a client on host reaches the sender.
func (r *rig) reach(host string) netip.AddrPort {
	return netip.AddrPortFrom(netip.MustParseAddr(host), r.sender.Addr().Port())
}

func TestPacketOverUDP(t *testing.T) {
	for _, test := range []struct{ bind, client string }{
		{"", "127.0.0.1"}, {"", "::1"}, {"127.0.0.1", "127.0.0.1"}, {"::1", "::1"}, {"0.0.0.0", "127.0.0.1"},
	} {
		t.Run(test.bind+" to "+test.client, func(t *testing.T) {
			c := newClient(t, test.client)
			r, stop := bound(t, Config{Host: test.bind})
			defer stop()
			r.subscribe("svc", c.addr(), javaAgent, "c1,c2")
			r.register("svc", 1, 1, "")
			p := c.next()
			if p.Type != "dom" || p.LastRefTime <= 0 || p.LastRefTime >= 1<<53 || p.from != r.reach(test.client) {
				t.Errorf("got %+v from %v", p, p.from)
			}
			var list struct {
				Name, Clusters string
				Hosts          []struct{ Port int }
			}
			if err := json.Unmarshal([]byte(p.Data), &list); err != nil {
				t.Fatal(err)
			}
			if list.Name != "DEFAULT_GROUP@@svc" || list.Clusters != "c1,c2" || len(list.Hosts) != 1 {
				t.Errorf("got %+v", list)
			}
			c.send(p.from, stringAck(p.LastRefTime))
			eventually(t, "the packet is acknowledged", func() bool { return r.counts.outcome(Acked) == 1 })
			if r.sender.Unacked() != 0 {
				t.Errorf("%d packets wait, want 0", r.sender.Unacked())
			}
		})
	}
}

// TestAcks sends what clients send, and what they do not; see retry_by_ack of the
// recording udp-1.4.8.
func TestAcks(t *testing.T) {
	for _, test := range []struct {
		name      string
		ack       string // %d is the number
		otherPort bool
		acked     bool
	}{
		{"string", `{"type":"push-ack","lastRefTime":"%d","data":""}`, false, true},
		{"number", `{"type":"push-ack","lastRefTime":%d,"data":""}`, false, true},
		{"minimal", `{"type":"push-ack","lastRefTime":"%d"}`, false, true},
		{"wrong", `{"type":"push-ack","lastRefTime":"1%d","data":""}`, false, false},
		{"otherport", `{"type":"push-ack","lastRefTime":"%d","data":""}`, true, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, other := newClient(t, "127.0.0.1"), newClient(t, "127.0.0.1")
			r, stop := bound(t, DefaultConfig())
			defer stop()
			r.subscribe("svc", c.addr(), javaAgent, "")
			r.register("svc", 1, 1, "")
			p := c.next()
			from := c
			if test.otherPort {
				from = other
			}
			from.send(p.from, fmt.Sprintf(test.ack, p.LastRefTime))
			if test.acked {
				eventually(t, "the packet is acknowledged", func() bool { return r.counts.outcome(Acked) == 1 })
				return
			}
			eventually(t, "the acknowledgement is ignored", func() bool { return r.counts.ignoredFor(UnknownAck) == 1 })
			if r.sender.Unacked() != 1 {
				t.Errorf("%d packets wait, want 1", r.sender.Unacked())
			}
		})
	}
}

// TestClientOfThisMachineUnderAnOuterAddress: it calls over loopback, names an
// outer address, and acknowledges from whichever the system chooses.
func TestClientOfThisMachineUnderAnOuterAddress(t *testing.T) {
	var h hosts
	if err := h.refresh(); err != nil {
		t.Fatal(err)
	}
	for outer := range *h.addrs.Load() {
		if !outer.Is4() || outer.IsLoopback() {
			continue
		}
		c := newClient(t, "0.0.0.0")
		r, stop := bound(t, Config{Host: "127.0.0.1"})
		v := r.sender.Admission().Judge(Request{
			ClientIP: outer.String(), Port: int(c.addr().Port()), Peer: netip.MustParseAddr("127.0.0.1"),
			Eligible: true, Switches: r.store.Switches(),
		})
		if !v.Pushable() {
			t.Fatalf("got %+v, want %v pushable", v, outer)
		}
		r.subscribe("svc", v.Target, javaAgent, "")
		r.register("svc", 1, 1, "")
		p := c.next()
		c.send(p.from, stringAck(p.LastRefTime))
		eventually(t, "the packet is acknowledged", func() bool { return r.counts.outcome(Acked) == 1 })
		stop()
		return
	}
	t.Skip("this machine has no IPv4 address but loopback")
}

// TestOnePortWithThreeKeys: three subscriptions of one client are three packets.
func TestOnePortWithThreeKeys(t *testing.T) {
	c := newClient(t, "127.0.0.1")
	r, stop := bound(t, DefaultConfig())
	defer stop()
	r.subscribe("svc", c.addr(), javaAgent, "")
	r.subscribe("svc", c.addr(), javaAgent, "DEFAULT")
	r.subscribe("other", c.addr(), javaAgent, "")
	r.register("svc", 1, 1, "")
	r.register("other", 1, 1, "")
	names := map[string]int{}
	for range 3 {
		p := c.next()
		names[p.name(t)]++
		c.send(p.from, stringAck(p.LastRefTime))
	}
	eventually(t, "all are acknowledged", func() bool { return r.counts.outcome(Acked) == 3 })
	if names["DEFAULT_GROUP@@svc"] != 2 || names["DEFAULT_GROUP@@other"] != 1 {
		t.Errorf("got %v", names)
	}
}

// TestLargeLists: whatever fits a datagram once compressed is sent.
func TestLargeLists(t *testing.T) {
	c := newClient(t, "127.0.0.1")
	r, stop := bound(t, DefaultConfig())
	defer stop()
	rnd := rand.New(rand.NewPCG(1, 1))
	port := 0
	for _, hosts := range []int{1, 3, 100, 400, 1000, 3000} {
		for ; port < hosts; port++ {
			r.register("svc", port+1, 1, strings.Repeat(fmt.Sprintf("%x", rnd.Uint32()), 25))
		}
		r.subscribe("svc", c.addr(), javaAgent, "")
		r.register("svc", 1, float64(hosts)+2, "")
		for { // what was registered before may still come
			p := c.next()
			var list struct{ Hosts []struct{ Weight float64 } }
			if err := json.Unmarshal([]byte(p.Data), &list); err != nil {
				t.Fatal(err)
			}
			if len(list.Hosts) == hosts && list.Hosts[0].Weight == float64(hosts)+2 {
				t.Logf("%d hosts: %d bytes, %d plain", hosts, len(p.raw), len(p.plain))
				break
			}
		}
	}
}

// TestGarbage: what strangers send does not disturb.
func TestGarbage(t *testing.T) {
	r, stop := bound(t, DefaultConfig())
	c, stranger := newClient(t, "127.0.0.1"), newClient(t, "127.0.0.1")
	large := make([]byte, 65507)
	for i := range large {
		large[i] = byte(rand.Uint32())
	}
	garbage := []string{
		"", string(large), "OPTIONS sip:x SIP/2.0\r\n\r\n", "\x1f\x8b\x08garbage", `{"type":"other"}`,
		`{"type":"push-ack","lastRefTime":"5"}`, `{"type":"push-ack","lastRefTime":`,
	}
	ctx, cancel := context.WithCancel(t.Context())
	flooded := make(chan int)
	go func() { // about 10,000 a second
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		n := 0
		for ; ctx.Err() == nil; <-tick.C {
			for range 10 {
				_, _ = stranger.conn.WriteToUDPAddrPort([]byte(garbage[n%len(garbage)]), r.reach("127.0.0.1"))
				n++
			}
		}
		flooded <- n
	}()
	r.subscribe("svc", c.addr(), javaAgent, "")
	for i := range 100 {
		r.register("svc", 1, float64(i+1), "")
		p := c.next()
		c.send(p.from, stringAck(p.LastRefTime))
		eventually(t, "the packet is acknowledged", func() bool { return r.counts.outcome(Acked) == i+1 })
	}
	cancel()
	t.Logf("%d datagrams, %d of them heard", <-flooded, r.counts.ignoredFor(NoAck)+r.counts.ignoredFor(UnknownAck))
	stop()
	if n := strings.Count(r.log.String(), "\n"); n > 2 {
		t.Errorf("%d lines were logged:\n%s", n, r.log)
	}
}

// TestDeadSubscribersDoNotDisturb: most have gone, and their port is closed.
func TestDeadSubscribersDoNotDisturb(t *testing.T) {
	c, gone := newClient(t, "127.0.0.1"), newClient(t, "127.0.0.1")
	port := gone.addr().Port()
	_ = gone.conn.Close()
	r, stop := bound(t, DefaultConfig())
	defer stop()
	for n := range 500 {
		r.subscribe("svc", netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 1, byte(n >> 8), byte(n)}), port), javaAgent, "")
	}
	r.subscribe("svc", c.addr(), javaAgent, "")
	r.register("svc", 1, 1, "")
	p := c.next()
	c.send(p.from, stringAck(p.LastRefTime))
	eventually(t, "the packet is acknowledged", func() bool { return r.counts.outcome(Acked) == 1 })
	eventually(t, "the rest waits", func() bool { return r.sender.Unacked() == 500 })
}
