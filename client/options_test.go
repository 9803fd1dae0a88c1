package rollcall

import (
	"crypto/tls"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
)

// TestOptionsTellAllFaults gives everything that can be wrong in one go: the error has
// each fault, with the option and the value.
func TestOptionsTellAllFaults(t *testing.T) {
	_, err := New(
		WithServers("a b", "ftp://x", "host:99999", "", "10.0.0.1", "http://10.0.0.1:8848"),
		WithEndpoint("ftp://x"), WithServerSource(nil), nil,
		WithNamespace("a\nb"), WithGroup("g@@h"), WithContextPath("/nacos?x"),
		WithGRPCPort(0), WithGRPCPortOffset(70000), WithProtocol(9),
		WithTLS(nil), WithDialer(nil), WithLogger(nil), WithMetrics(nil),
		WithCredentials(nil), WithUserPassword("u", ""), WithAccessKey("", "s"),
		WithTimeout(3), WithBackoff(2, 1), WithResync(-time.Second), WithEmptyProtection(48*time.Hour),
		WithDiskCache("", -time.Second), WithFailoverDir(""),
		WithLocalIP("10.0.0.300"), WithAppName("a\x00"), WithLabels(map[string]string{"": "x"}), WithUDP("10.0.0.7"),
		WithTransport(nil),
	)
	if !errors.Is(err, ErrInvalidArgument) {
		t.Fatalf("got %v", err)
	}
	for _, want := range []string{
		`WithServers("a b"): server "a b": no host name`, `WithServers("ftp://x")`, `WithServers("host:99999")`, `WithServers("")`,
		`WithServers("http://10.0.0.1:8848"): it is the same server as "10.0.0.1"`,
		`WithEndpoint("ftp://x")`, `WithServerSource(nil)`, "option 4 of New is nil",
		"WithServers and WithEndpoint and WithServerSource: each gives the servers",
		`WithNamespace("a\nb"): it has control characters`, `WithGroup("g@@h"): @@`, `WithContextPath("/nacos?x"): give a plain path`,
		"WithGRPCPort(0)", "WithGRPCPortOffset(70000)", "WithGRPCPort and WithGRPCPortOffset", "WithProtocol(9): give Auto",
		"WithTLS(nil)", "WithDialer(nil)", "WithLogger(nil)", "WithMetrics(nil)", "WithCredentials(nil)",
		"WithUserPassword: user name or password is empty", "WithAccessKey: access or secret key is empty",
		"WithCredentials and WithUserPassword and WithAccessKey: each gives the credentials",
		"WithTimeout(3ns): give 1ms to 24h", "WithBackoff(2ns, 1ns)", "WithResync(-1s): give 1ms to 24h0m0s, or 0 for never",
		"WithEmptyProtection(48h0m0s)", `WithDiskCache(""): give a directory`, `WithDiskCache("", -1s)`, `WithFailoverDir("")`,
		`WithLocalIP("10.0.0.300")`, `WithAppName("a\x00")`, `WithLabels: ""="x"`, `WithUDP("10.0.0.7"): give an address`,
		"WithTransport(nil)",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("nothing of %s", want)
		}
	}
	if t.Failed() {
		t.Log(err)
	}
}

// The path of a server may be that of all calls, as addresses of Nacos have it, and no other.
func TestServersWithPath(t *testing.T) {
	for _, tt := range []struct {
		server, path string
		want         string // in the error; empty for none
	}{
		{"http://10.0.0.1:8848/nacos", "/nacos", ""},
		{"http://10.0.0.1:8848/nacos/", "nacos/", ""},
		{"http://10.0.0.1:8848/", "/nacos", ""},
		{"http://10.0.0.1:8848/base/nacos", "/base/nacos", ""},
		{"http://10.0.0.1:8848/nacos", "/", "the path of calls is /; leave out /nacos"},
		{"http://10.0.0.1:8848/other", "/nacos", "the path of calls is /nacos; leave out /other, or give it by WithContextPath"},
	} {
		_, err := configOf([]Option{WithServers(tt.server), WithContextPath(tt.path)})
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s with %s: got %v, want %q", tt.server, tt.path, err, tt.want)
		}
	}
}

// A port of HTTP to which no 1000 can be added is good where gRPC has a port of its own or
// is not wanted.
func TestHighPorts(t *testing.T) {
	high := WithServers("10.0.0.1:65000")
	if _, err := configOf([]Option{high}); err == nil || !strings.Contains(err.Error(), "the gRPC port would be 66000; say which it is, or use HTTP alone") {
		t.Errorf("got %v", err)
	}
	for _, option := range []Option{WithGRPCPort(9848), WithGRPCPortOffset(-1000), WithProtocol(HTTP)} {
		if _, err := configOf([]Option{high, option}); err != nil {
			t.Error(err)
		}
	}
}

func TestOptionsThatDoNotGoTogether(t *testing.T) {
	servers := WithServers("10.0.0.1")
	for _, tt := range []struct {
		options []Option
		want    string
	}{
		{nil, "give WithServers, WithEndpoint or WithServerSource"},
		{[]Option{WithServers()}, "WithServers(): name at least one server"},
		{[]Option{WithServers("host:65000")}, "the gRPC port would be 66000"},
		{[]Option{servers, WithGRPCPort(9848), WithGRPCPortOffset(1)}, "each gives the gRPC port"},
		{[]Option{WithServers("host:65000"), WithProtocol(HTTP)}, ""},
		{[]Option{servers, WithGRPCPort(9848), WithProtocol(HTTP)}, ""}, // what servers are like goes with every protocol
		{[]Option{servers, WithUserPassword("a", "b"), WithUserPassword("c", "d")}, "each gives the credentials"},
		{[]Option{servers, WithUDP("off"), WithProtocol(GRPC)}, ""},
		{[]Option{servers, WithUDP("[::1]:0"), WithResync(0), WithEmptyProtection(0), WithNamespace(""), WithGroup(""), WithContextPath("")}, ""},
		{[]Option{servers, WithTLS(new(tls.Config)), WithTimeout(time.Second), WithTimeout(2 * time.Second)}, ""},
	} {
		_, err := build(tt.options)
		switch {
		case tt.want == "" && err != nil:
			t.Errorf("refused: %v", err)
		case tt.want != "" && (!errors.Is(err, ErrInvalidArgument) || !strings.Contains(err.Error(), tt.want)):
			t.Errorf("got %v, want %s", err, tt.want)
		}
	}
	if _, err := New(); !errors.Is(err, ErrNoServers) {
		t.Errorf("got %v", err)
	}
}

// Faults in credentials do not show them.
func TestFaultsKeepSecrets(t *testing.T) {
	_, err := New(WithServers("10.0.0.1"), WithUserPassword("", "hush-hush"), WithAccessKey("", "hush-hush"))
	if err == nil || strings.Contains(err.Error(), "hush") {
		t.Errorf("got %v", err)
	}
}

// What is passed in stays the caller's, who may change it afterwards.
func TestOptionsCopy(t *testing.T) {
	labels, entries := map[string]string{"zone": "a"}, []string{"10.0.0.1"}
	options := []Option{WithLabels(labels), WithServers(entries...), WithLabels(map[string]string{"rack": "7"})}
	labels["zone"], entries[0] = "b", "a b"
	c, err := build(options)
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(c.cfg.labels, c.cfg.entries); got != "map[rack:7 zone:a] [10.0.0.1]" {
		t.Errorf("got %s", got)
	}
	clusters := []string{"a"}
	var f filter
	option := WithClusters(clusters...)
	clusters[0] = "b"
	option(&f)
	if f.clusters[0] != "a" {
		t.Errorf("got %v", f.clusters)
	}
}

// TestBadArguments: what is wrong with an operation is told at once, all of it, and no
// server is asked.
func TestBadArguments(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Client, w *fakeWire) {
		w.up()
		good := NewInstance("10.0.0.1", 1)
		register := func(s Service, in Instance, options ...RegisterOption) error {
			_, err := c.Register(t.Context(), s, in, options...)
			return err
		}
		change := func(f func(*Instance)) error { in := good; f(&in); return register(orders, in) }
		watch := func(options ...WatchOption) error { _, err := c.Watch(t.Context(), orders, options...); return err }
		lookup := func(options ...QueryOption) error { _, err := c.Lookup(t.Context(), orders, options...); return err }
		services := func(q ServiceQuery) (err error) {
			for _, err = range c.Services(t.Context(), q) {
			}
			return err
		}
		pattern := func(p Pattern) error { _, err := c.WatchServices(t.Context(), p); return err }
		for _, tt := range []struct {
			err  error
			want []string
		}{
			{register(Service{}, good), []string{"Service.Name is empty"}},
			{register(Service{Name: "a@@b", Group: "g\n"}, good), []string{`Service.Name "a@@b": @@ parts`, `Service.Group "g\n": it has control`}},
			{register(Service{Name: strings.Repeat("x", 600)}, good), []string{"longer than 512 bytes"}},
			{register(Service{}, Instance{Weight: -1, Cluster: "a_b"}, nil, WithHeartbeat(0, 0, 0)), []string{
				"Service.Name is empty", "Instance.IP", "Instance.Port is 0", "Instance.Weight -1", `Instance.Cluster "a_b"`,
				"option 1 is nil", "WithHeartbeat(0s, 0s, 0s)",
			}},
			{change(func(i *Instance) { i.IP = "a b" }), []string{`Instance.IP "a b": it is neither`}},
			{change(func(i *Instance) { i.IP = "10.0.0.7:8080" }), []string{`"10.0.0.7:8080": it is neither an address nor a host name; the port is`}},
			{change(func(i *Instance) { i.IP = "[::1]" }), []string{"neither"}},
			{change(func(i *Instance) { i.IP = "0.0.0.0" }), []string{"nobody can connect to it"}},
			{change(func(i *Instance) { i.IP = strings.Repeat("x", 254) }), []string{"at most 253 bytes"}},
			{change(func(i *Instance) { i.Weight = math.NaN() }), []string{"Instance.Weight NaN: give 0 to 10000"}},
			{change(func(i *Instance) { i.Weight = math.Inf(1) }), []string{"Instance.Weight +Inf"}},
			{change(func(i *Instance) { i.Weight = 10001 }), []string{"Instance.Weight 10001"}},
			{change(func(i *Instance) { i.Metadata = map[string]string{"k": strings.Repeat("x", 1<<20)} }), []string{"Instance.Metadata has 1048577 bytes"}},
			{register(orders, good, WithHeartbeat(5*time.Second, time.Second, time.Second)), []string{"WithHeartbeat(5s, 1s, 1s)"}},
			{watch(nil, WithClusters(), WithHealth(9), WithMetadata("", "x"), WithFilter(nil)), []string{
				"option 1 is nil", "WithClusters(): name", "WithHealth(9)", `WithMetadata("", "x")`, "WithFilter(nil)",
			}},
			{lookup(nil, WithClusters("a,b")), []string{"option 1 is nil", `WithClusters("a,b")`}},
			{services(ServiceQuery{PageSize: -1, Group: "a@@b"}), []string{"ServiceQuery.PageSize -1", "ServiceQuery.Group"}},
			{services(ServiceQuery{PageSize: 100_001}), []string{"ServiceQuery.PageSize 100001"}},
			{pattern(Pattern{Name: "a\x00"}), []string{`Pattern.Name "a\x00"`}},
		} {
			if !errors.Is(tt.err, ErrInvalidArgument) {
				t.Errorf("got %v, want %s", tt.err, tt.want)
				continue
			}
			for _, want := range tt.want {
				if !strings.Contains(tt.err.Error(), want) {
					t.Errorf("nothing of %s in: %v", want, tt.err)
				}
			}
		}
		if w.ops("") != 0 {
			t.Error("a server was asked")
		}
		r := mustRegister(t, c, 1, WithHeartbeat(time.Second, 3*time.Second, 9*time.Second))
		if err := r.Update(t.Context(), func(i *Instance) { i.Port = 2 }); !errors.Is(err, ErrInvalidArgument) {
			t.Errorf("got %v", err)
		}
		if m := r.Instance().Metadata; m["preserved.heart.beat.interval"] != "1000" || m["preserved.heart.beat.timeout"] != "3000" || m["preserved.ip.delete.timeout"] != "9000" {
			t.Errorf("metadata %v", m)
		}
	})
}

// FuzzInstance: what passes the checks can be registered, and is found under the same
// key.
func FuzzInstance(f *testing.F) {
	f.Add("10.0.0.7", uint16(80), 1.0, "DEFAULT", "k", "v")
	f.Add("[::1]", uint16(0), math.Inf(1), "a_b", "", "")
	f.Fuzz(func(t *testing.T, ip string, port uint16, weight float64, cluster, key, value string) {
		in := Instance{IP: ip, Port: port, Weight: weight, Cluster: cluster, Metadata: map[string]string{key: value}}
		want, err := in.normal()
		if err != nil {
			if !errors.Is(err, ErrInvalidArgument) {
				t.Fatalf("got %v", err)
			}
			return
		}
		again, err := Instance(want).normal()
		if err != nil || again.Key() != want.Key() || again.Weight != want.Weight {
			t.Fatalf("%+v became %+v, %v", want, again, err)
		}
		if want.Port == 0 || !(want.Weight == 0 || want.Weight >= minWeight && want.Weight <= maxWeight) {
			t.Fatalf("taken: %+v", want)
		}
	})
}

// Arguments can be checked without registering anything.
func TestCheckRegister(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Client, w *fakeWire) {
		w.up()
		good, bad := NewInstance("10.0.0.1", 1), NewInstance("", 0)
		if err := c.CheckRegister(orders, good); err != nil {
			t.Error(err)
		}
		_, registering := c.Register(t.Context(), Service{}, bad)
		if err := c.CheckRegister(Service{}, bad); !errors.Is(err, ErrInvalidArgument) || err.Error() != registering.Error() {
			t.Errorf("got %v, registering %v", err, registering)
		}
		if n := w.ops("publish"); n != 0 || c.Status().Registrations != 0 {
			t.Errorf("%d requests, status %+v", n, c.Status())
		}
	})
}
