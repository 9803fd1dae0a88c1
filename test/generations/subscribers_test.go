package generations

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rollcall-registry/rollcall/internal/grpcapi/grpctest"
	"github.com/rollcall-registry/rollcall/server"
	"github.com/rollcall-registry/rollcall/servertest"
)

// The tests here are trials made from public reports on subscribers: what they are
// sent, whichever way they came.

// state is what a push says of a service.
type state struct {
	LastRefTime int64
	Hosts       []struct {
		IP      string
		Port    int
		Weight  float64
		Healthy bool
	}
	ReachProtectionThreshold bool
}

// says lists the hosts, in their order.
func (s *state) says() string {
	hosts := make([]string, 0, len(s.Hosts))
	for _, h := range s.Hosts {
		hosts = append(hosts, fmt.Sprintf("%s:%d weight %v healthy %v", h.IP, h.Port, h.Weight, h.Healthy))
	}
	return fmt.Sprint(hosts)
}

// listener collects the states that one subscriber is sent, and acknowledges them.
type listener struct {
	name   string
	news   chan struct{} // holds one when states has grown
	mu     sync.Mutex
	states []state
}

func newListener(name string) *listener { return &listener{name: name, news: make(chan struct{}, 1)} }

func (l *listener) add(s state) {
	l.mu.Lock()
	l.states = append(l.states, s)
	l.mu.Unlock()
	select {
	case l.news <- struct{}{}:
	default:
	}
}

func (l *listener) seen() []state {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.states)
}

// until waits for states that are right.
func (l *listener) until(t *testing.T, want string, right func([]state) bool) {
	t.Helper()
	patience := time.After(grpctest.Patience)
	for !right(l.seen()) {
		select {
		case <-l.news:
		case <-patience:
			t.Fatalf("%s was told %+v, and not in the end %s", l.name, l.seen(), want)
		}
	}
}

// awaits waits until the latest state says that.
func (l *listener) awaits(t *testing.T, want string) {
	t.Helper()
	l.until(t, want, func(seen []state) bool { return len(seen) > 0 && seen[len(seen)-1].says() == want })
}

// meets waits until one of the states said that.
func (l *listener) meets(t *testing.T, want string) {
	t.Helper()
	l.until(t, want, func(seen []state) bool {
		return slices.ContainsFunc(seen, func(s state) bool { return s.says() == want })
	})
}

// subscribeGRPC subscribes a connection of its own.
func subscribeGRPC(t *testing.T, address, service string) *listener {
	t.Helper()
	l := newListener("a client of gRPC")
	c := grpctest.Dial(t, address)
	stream := setUp(t, c)
	c.Call(t, "SubscribeServiceRequest", fmt.Sprintf(`{"namespace":"public","serviceName":%q,"groupName":"g","subscribe":true,"clusters":""}`, service))
	var reading sync.WaitGroup
	reading.Go(func() {
		for f := range stream.Frames() {
			if f.Err != nil {
				return
			}
			var push struct {
				RequestID   string
				ServiceInfo state
			}
			if err := json.Unmarshal(f.Body, &push); err != nil {
				t.Errorf("%s: %v", f.Body, err)
			}
			l.add(push.ServiceInfo)
			stream.Say(t, "NotifySubscriberResponse", fmt.Sprintf(`{"resultCode":200,"errorCode":0,"requestId":%q}`, push.RequestID))
		}
	})
	t.Cleanup(func() { c.Close(); reading.Wait() })
	return l
}

// setUp opens the stream of a connection as a client of 2.x.
func setUp(t *testing.T, c *grpctest.Client) *grpctest.Stream {
	t.Helper()
	stream := c.Open(t)
	stream.Say(t, "ConnectionSetupRequest", `{"clientVersion":"Nacos-Java-Client:v2.5.1","tenant":"","labels":{"module":"naming"},"abilityTable":{}}`)
	stream.Expect(t, "SetupAckRequest")
	return stream
}

// subscribeUDP subscribes a socket on loopback as a Java client of 1.x.
func (s *site) subscribeUDP(t *testing.T, service string) *listener {
	t.Helper()
	l := newListener("a client of UDP")
	socket, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var reading sync.WaitGroup
	reading.Go(func() { l.read(t, socket) })
	t.Cleanup(func() { _ = socket.Close(); reading.Wait() })
	params := query("serviceName="+service, "groupName=g", "clientIP=127.0.0.1", fmt.Sprint("udpPort=", socket.LocalAddr().(*net.UDPAddr).Port))
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/v1/ns/instance/list?"+params.Encode(), http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("User-Agent", "Nacos-Java-Client:v1.4.2")
	resp, err := s.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	return l
}

func (l *listener) read(t *testing.T, socket net.PacketConn) {
	buf := make([]byte, 64<<10)
	for {
		n, from, err := socket.ReadFrom(buf)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		packet := struct {
			Data        string
			LastRefTime int64
		}{}
		if err == nil {
			err = json.Unmarshal(plain(buf[:n]), &packet)
		}
		var s state
		if err == nil {
			err = json.Unmarshal([]byte(packet.Data), &s)
		}
		if err != nil {
			t.Error(err)
			return
		}
		l.add(s)
		_, _ = fmt.Fprintf(packetTo{socket, from}, `{"type":"push-ack","lastRefTime":"%d","data":""}`, packet.LastRefTime)
	}
}

// packetTo writes datagrams to one address.
type packetTo struct {
	socket net.PacketConn
	to     net.Addr
}

func (p packetTo) Write(b []byte) (int, error) { return p.socket.WriteTo(b, p.to) }

// plain returns a packet as it was before it was compressed, if it was.
func plain(packet []byte) []byte {
	z, err := gzip.NewReader(bytes.NewReader(packet))
	if err != nil {
		return packet
	}
	b, err := io.ReadAll(z)
	if err != nil {
		return packet
	}
	return b
}

// TestEachSubscriberSeesEachState: no change passes by any of several subscribers,
// the empty list included, and its revision is above that of the one before.
func TestEachSubscriberSeesEachState(t *testing.T) {
	t.Parallel()
	running := servertest.New(t)
	s := connect(t, running)
	var all []*listener
	for range 4 {
		all = append(all, subscribeGRPC(t, running.Addr(), "seen"), s.subscribeUDP(t, "seen"))
	}
	for n := range 12 {
		want := "[]"
		if n%4 == 3 {
			s.http(t, "DELETE", "/v1/ns/instance", query(base("seen")...))
		} else {
			s.http(t, "POST", "/v1/ns/instance", query(base("seen", fmt.Sprint("weight=", n+1))...))
			want = fmt.Sprintf("[10.0.0.1:80 weight %d healthy true]", n+1)
		}
		for _, l := range all {
			l.awaits(t, want)
		}
	}
	for _, l := range all {
		latest := state{}
		for _, one := range l.seen() {
			if one.LastRefTime < latest.LastRefTime || one.LastRefTime == latest.LastRefTime && one.says() != latest.says() {
				t.Errorf("%s was sent %s at %d after %s at %d", l.name, one.says(), one.LastRefTime, latest.says(), latest.LastRefTime)
			}
			latest = one
		}
	}
}

// TestThresholdInPushes: where the protect threshold makes a look-up show everybody
// as healthy, it does so in pushes, too.
func TestThresholdInPushes(t *testing.T) {
	t.Parallel()
	running := servertest.New(t)
	s := connect(t, running)
	s.http(t, "POST", "/v1/ns/service", query("serviceName=sick", "groupName=g", "protectThreshold=0.6"))
	over, datagrams := subscribeGRPC(t, running.Addr(), "sick"), s.subscribeUDP(t, "sick")
	for port, want := range []string{
		"[10.0.0.1:1 weight 1 healthy true]",
		"[10.0.0.1:1 weight 1 healthy true 10.0.0.1:2 weight 1 healthy true]", // 1 of 2 is protected
	} {
		s.http(t, "POST", "/v1/ns/instance", query("serviceName=sick", "groupName=g", "ip=10.0.0.1",
			fmt.Sprint("port=", port+1), fmt.Sprint("healthy=", port == 0)))
		over.awaits(t, want)
		datagrams.awaits(t, want)
	}
	pushed := over.seen()
	if !pushed[len(pushed)-1].ReachProtectionThreshold {
		t.Error("the push does not say that the threshold is reached")
	}
	var polled struct{ Data state }
	answer := s.http(t, "GET", "/v2/ns/instance/list", query("serviceName=sick", "groupName=g"))
	if err := json.Unmarshal([]byte(answer), &polled); err != nil || polled.Data.says() != pushed[len(pushed)-1].says() || !polled.Data.ReachProtectionThreshold {
		t.Errorf("a look-up shows %s (%v), a push %s", answer, err, pushed[len(pushed)-1].says())
	}
}

// TestConnectionOverIPv6: the instance of a connection between IPv6 addresses lives
// by the connection and needs no beats, its subscriber is pushed to and shown
// with a readable address, and both go with it.
func TestConnectionOverIPv6(t *testing.T) {
	t.Parallel()
	if probe, err := net.Listen("tcp", "[::1]:0"); err != nil {
		t.Skipf("no IPv6 loopback: %v", err)
	} else {
		_ = probe.Close()
	}
	running := servertest.New(t, func(c *server.Config) { c.Listen = append(c.Listen, "[::1]:0") })
	s := connect(t, running)
	address := running.Addrs().HTTP[1].String()
	l := subscribeGRPC(t, address, "six")

	c := grpctest.Dial(t, address)
	setUp(t, c)
	const times = `"metadata":{"preserved.heart.beat.interval":"100","preserved.heart.beat.timeout":"1000","preserved.ip.delete.timeout":"1500"}`
	c.Call(t, "InstanceRequest", `{"namespace":"public","serviceName":"six","groupName":"g","type":"registerInstance",`+
		`"instance":{"ip":"10.0.0.1","port":80,"weight":1,"healthy":true,"enabled":true,"ephemeral":true,`+times+`}}`)
	l.awaits(t, "[10.0.0.1:80 weight 1 healthy true]")
	// An instance of HTTP with the same times lives shorter than it takes to see this.
	s.http(t, "POST", "/v1/ns/instance", query("serviceName=six", "groupName=g", "ip=2001:db8::20", "port=80",
		"metadata={"+times[len(`"metadata":{`):]))
	l.meets(t, "[10.0.0.1:80 weight 1 healthy true 2001:db8::20:80 weight 1 healthy true]")
	l.awaits(t, "[10.0.0.1:80 weight 1 healthy true]")

	var listed struct {
		Subscribers []struct{ AddrStr, IP string }
	}
	answer := s.http(t, "GET", "/v1/ns/service/subscribers", query("serviceName=six", "groupName=g"))
	if err := json.Unmarshal([]byte(answer), &listed); err != nil || len(listed.Subscribers) != 1 {
		t.Fatalf("subscribers: %s (%v)", answer, err)
	}
	if host, _, err := net.SplitHostPort(listed.Subscribers[0].AddrStr); err != nil || host != "::1" || listed.Subscribers[0].IP != "::1" {
		t.Errorf("the subscriber shows as %+v", listed.Subscribers[0])
	}
	c.Close()
	l.awaits(t, "[]")
}
