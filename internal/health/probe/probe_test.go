package probe

import (
	"context"
	"net"
	"net/netip"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rollcall-registry/rollcall/internal/registry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// quick is a prober that gives up soon.
func quick() *Prober { return New(Config{Timeout: 300 * time.Millisecond}) }

// listen serves each connection with handle until the test ends. It closes what
// handle leaves open.
func listen(t *testing.T, network, address string, handle func(net.Conn)) *net.TCPAddr {
	t.Helper()
	l, err := net.Listen(network, address)
	if err != nil {
		t.Skipf("no %s here: %v", network, err)
	}
	accepting := make(chan struct{})
	go func() {
		defer close(accepting)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = conn.Close() }()
				handle(conn)
			}()
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-accepting
	})
	return l.Addr().(*net.TCPAddr)
}

// closedPort returns a port on which nobody listens.
func closedPort(t *testing.T) int32 {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return int32(l.Addr().(*net.TCPAddr).Port)
}

func at(addr *net.TCPAddr, check registry.HealthCheck) Target {
	return Target{Host: addr.IP.String(), Port: int32(addr.Port), Check: check}
}

func want(t *testing.T, got Result, outcome Outcome, detail string) {
	t.Helper()
	if got.Outcome != outcome || !strings.Contains(got.Detail, detail) {
		t.Errorf("got %v %q, want %v with %q", got.Outcome, got.Detail, outcome, detail)
	}
}

func TestTCP(t *testing.T) {
	check := registry.HealthCheck{Type: registry.CheckTCP}
	four := listen(t, "tcp4", "127.0.0.1:0", func(net.Conn) {})
	p := quick()
	want(t, p.Probe(t.Context(), at(four, check)), Up, "")
	want(t, p.Probe(t.Context(), Target{Host: "localhost", Port: int32(four.Port), Check: check}), Up, "")
	want(t, p.Probe(t.Context(), Target{Host: "127.0.0.1", Port: closedPort(t), Check: check}), Refused, "connection refused")
	want(t, p.Probe(t.Context(), Target{Host: "127.0.0.1", Port: 70000, Check: check}), Down, "invalid port")
	want(t, p.Probe(t.Context(), Target{Port: int32(four.Port), Check: check}), Down, "no address")
	t.Run("IPv6", func(t *testing.T) {
		six := listen(t, "tcp6", "[::1]:0", func(net.Conn) {})
		want(t, p.Probe(t.Context(), at(six, check)), Up, "")
	})
}

// full returns the address of a listener that accepts nobody and whose queue is
// full, so that a connection attempt gets no answer.
func full(t *testing.T) *net.TCPAddr {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("needs to fill the queue of a listener")
	}
	addr, fill := fullListener(t)
	for range 8 {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr.String())
		cancel()
		if err != nil {
			return addr
		}
		fill(conn)
	}
	t.Skip("the queue of a listener does not fill up here")
	return nil
}

func TestTimeout(t *testing.T) {
	addr := full(t)
	start := time.Now()
	got := New(Config{Timeout: 50 * time.Millisecond}).Probe(t.Context(), at(addr, registry.HealthCheck{Type: registry.CheckTCP}))
	want(t, got, Down, "no answer in time")
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("took %v", took)
	}
	for _, kind := range []registry.CheckType{registry.CheckTCP, registry.CheckHTTP, registry.CheckMySQL} {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		got := New(Config{Timeout: time.Minute}).Probe(ctx, at(addr, registry.HealthCheck{Type: kind}))
		want(t, got, Down, "")
	}
}

func TestRanges(t *testing.T) {
	addr := listen(t, "tcp4", "127.0.0.1:0", func(net.Conn) {})
	loopback, private := netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("10.0.0.0/8")
	for _, test := range []struct {
		name        string
		allow, deny []netip.Prefix
		want        Outcome
	}{
		{"none", nil, nil, Up},
		{"allowed", []netip.Prefix{private, loopback}, nil, Up},
		{"not among the allowed", []netip.Prefix{private}, nil, Denied},
		{"denied", nil, []netip.Prefix{loopback}, Denied},
		{"denied over allowed", []netip.Prefix{loopback}, []netip.Prefix{loopback}, Denied},
		{"another denied", nil, []netip.Prefix{private}, Up},
	} {
		p := New(Config{Timeout: time.Second, Allow: test.allow, Deny: test.deny})
		for _, host := range []string{"127.0.0.1", "localhost", "::ffff:127.0.0.1"} {
			got := p.Probe(t.Context(), Target{Host: host, Port: int32(addr.Port), Check: registry.HealthCheck{Type: registry.CheckTCP}})
			if got.Outcome != test.want && !(host == "localhost" && got.Outcome == Refused) { // only on ::1
				t.Errorf("%s: %s: got %v, want %v", test.name, host, got, test.want)
			}
		}
	}
	for _, kind := range []registry.CheckType{registry.CheckHTTP, registry.CheckMySQL} {
		p := New(Config{Timeout: time.Second, Deny: []netip.Prefix{loopback}})
		want(t, p.Probe(t.Context(), at(addr, registry.HealthCheck{Type: kind})), Denied, "denies")
	}
}

func TestOutcomeNames(t *testing.T) {
	for o, name := range map[Outcome]string{0: "none", Up: "up", Down: "down", Refused: "refused", Denied: "denied"} {
		if o.String() != name {
			t.Errorf("%d is called %s", o, o)
		}
	}
}

func BenchmarkTCP(b *testing.B) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_ = conn.Close()
		}
	}()
	p := quick()
	target := at(l.Addr().(*net.TCPAddr), registry.HealthCheck{Type: registry.CheckTCP})
	b.ReportAllocs()
	for b.Loop() {
		if got := p.Probe(b.Context(), target); got.Outcome != Up {
			b.Fatal(got)
		}
	}
	_ = l.Close()
	<-done
}
