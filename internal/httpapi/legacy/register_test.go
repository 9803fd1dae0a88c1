package legacy

import (
	"strings"
	"testing"
	"time"

	"github.com/rollcall-registry/rollcall/internal/registry"
)

func TestRegServiceRefuses(t *testing.T) {
	s := newTestServer(t)
	const typed, plain = "application/json", "text/plain;charset=UTF-8"
	for _, tt := range []struct {
		call, params string
		want         answer
	}{
		{"regService", "", answer{400, typed, "Param 'serviceName' is required.\n"}},
		{"regService", "serviceName=a", answer{400, typed, "Param 'ip' is required.\n"}},
		{"regService", "serviceName=a&ip=1.1.1.1", answer{400, typed, "Param 'port' is required.\n"}},
		{"regService", "serviceName=a&ip=1.1.1.1&port=x", answer{400, typed, "For input string: \"x\"\n"}},
		{"regService", "serviceName=a&ip=1.1.1.1&port=1&weight=x", answer{400, typed, "For input string: \"x\"\n"}},
		{"regService", "serviceName=a&ip=1.1.1.1&port=4&weight=20000", answer{400, typed, "malfomed ip config: 1.1.1.1:4:unknown_20000.0_true_false_DEFAULT\n"}},
		{"regService", "serviceName=a&ip=1.1.1.1&port=4&weight=NaN&healthy=no&clusterName=c", answer{400, typed, "malfomed ip config: 1.1.1.1:4:unknown_NaN_false_false_c\n"}},
		{"regService", "serviceName=a&ip=1.1.1.1&port=1&metadata=zzz", answer{400, plain, "metadata format incorrect:zzz"}},
		{"regService", "serviceName=a+b&ip=1.1.1.1&port=1", answer{400, typed, "dom not found: a b\n"}},
		{"regService", "serviceName=g@@a&ip=1.1.1.1&port=1", answer{400, typed, "dom not found: g@@a\n"}},
		{"regService", "serviceName=a+b&owners=me&ip=1.1.1.1&port=1", answer{400, typed, "dom not found: a b\n"}},
		{"regService", "serviceName=a&ip=1.1.1.1&port=1&clusterName=a_b", answer{400, typed, "cluster name can only have these characters: 0-9a-zA-Z-, current: a_b\n"}},
		{"regService", "serviceName=a&ip=+&port=1", answer{400, typed, "Param 'ip' is required.\n"}},
		{"regService", "serviceName=a&ip=1.1.1.1&port=1&app=" + strings.Repeat("a", 513), answer{400, typed, "Param 'app' is illegal, it has 513 bytes and may have 512.\n"}},
		{"deRegService", "", answer{400, typed, "Param 'ip' is required.\n"}},
		{"deRegService", "ip=1.1.1.1", answer{400, typed, "Param 'port' is required.\n"}},
		{"deRegService", "ip=1.1.1.1&port=1", answer{400, typed, "Param 'serviceName' is required.\n"}},
		{"addIP4Dom", "dom=a", answer{400, typed, "Param 'ipList' is required.\n"}},
		{"addIP4Dom", "ipList=1.1.1.1", answer{400, typed, "Param 'dom' is required.\n"}},
		{"addIP4Dom", "dom=a&ipList=1.1.1.1", answer{500, plain, "dom doesn't exist: a"}},
		{"addIP4Dom", "dom=a&ipList=zzz&json=true", answer{500, plain, "Param 'ipList' is illegal, it is no JSON array of instances."}},
		{"remvIP4Dom", "ipList=1.1.1.1", answer{400, typed, "Param 'dom' is required.\n"}},
		{"remvIP4Dom", "dom=a&ipList=1.1.1.1", answer{500, plain, "dom doesn't exist: a"}},
	} {
		if got := s.get(t, tt.call, tt.params); got != tt.want {
			t.Errorf("%s?%.80s:\n got %+v\nwant %+v", tt.call, tt.params, got, tt.want)
		}
	}
	if n := s.store.Counts(); n != (registry.Counts{}) {
		t.Errorf("something is left behind: %+v", n)
	}
}

// TestIdentity: to 0.9 an address and port is one instance, whatever its cluster.
func TestIdentity(t *testing.T) {
	s := newTestServer(t)
	s.ok(t, "regService", "serviceName=a&ip=::1&port=1&clusterName=c1")
	s.ok(t, "regService", "serviceName=a&ip=0:0::1&port=1&cluster=c2&weight=3")
	if view := s.store.View(key("a")); len(view.Instances) != 1 || view.Instances[0].Cluster != "c2" || view.Instances[0].Weight != 3 {
		t.Fatalf("after a move: %+v", view.Instances)
	}
	s.ok(t, "regService", "serviceName=a&ip=::1&port=2&clusterName=c1")
	s.ok(t, "deRegService", "serviceName=a&ip=::1&port=1")
	if s.find("a", "::1", 1, "c2") != nil || s.find("a", "::1", 2, "c1") == nil {
		t.Errorf("after a deregistration: %+v", s.store.View(key("a")).Instances)
	}
	s.ok(t, "deRegService", "serviceName=a&ip=9.9.9.9&port=1")
	s.ok(t, "deRegService", "serviceName=nobody&ip=9.9.9.9&port=1")
}

func TestBeatFindsTheInstanceInItsCluster(t *testing.T) {
	clock := &movable{}
	s := newTestAPI(t, clock)
	beat := "clientBeat?serviceName=a&beat=" + escape(`{"ip":"1.1.1.1","port":"80","metadata":{"k":"v"}}`)
	s.replay(t, "GET", "regService?serviceName=a&ip=1.1.1.1&port=80&clusterName=c1", "")
	clock.at = 14 * time.Second
	if got := s.replay(t, "GET", beat, ""); got.body != `{"clientBeatInterval":5000}` {
		t.Fatalf("got %+v", got)
	}
	clock.at = 16 * time.Second
	s.store.Expire(clock.Now())
	view := s.store.View(key("a"))
	if len(view.Instances) != 1 || !view.Instances[0].Healthy || view.Instances[0].Metadata != "" {
		t.Errorf("got %+v, want the one that was registered", view.Instances[0])
	}
}

// movable is a clock that stands where the test puts it.
type movable struct{ at time.Duration }

func (m *movable) Now() registry.Instant {
	return registry.Instant{Wall: 1700000000000 + m.at.Milliseconds(), Lease: m.at}
}

func TestBeatRefuses(t *testing.T) {
	s := newTestServer(t)
	for _, tt := range []struct {
		params string
		status int
		body   string
	}{
		{"", 400, "Param 'beat' is required.\n"},
		{"dom=a&beat=null", 500, "Param 'beat' is illegal, it is no JSON object of a beat."},
		{"dom=a&beat=[]", 500, "Param 'beat' is illegal, it is no JSON object of a beat."},
		{"dom=a&beat=" + escape(`{"ip":"1.1.1.1","port":{}}`), 500, "Param 'beat' is illegal, it is no JSON object of a beat."},
		{"dom=a&beat=" + escape(`{"ip":"1.1.1.1","metadata":"x"}`), 500, "Param 'beat' is illegal, it is no JSON object of a beat."},
		{"dom=a&beat=" + escape(`{"ip":"1.1.1.1","metadata":{"a":{}}}`), 500, "Param 'beat' is illegal, its metadata is no JSON object of texts."},
		{"dom=a&beat=" + escape(`{"port":1}`), 400, "Param 'ip' is required.\n"},
		{"dom=a+b&beat=" + escape(`{"ip":"1.1.1.1"}`), 400, "dom name can only have these characters: 0-9a-zA-Z.:_-; current: a b\n"},
		{"dom=a&beat=" + escape(`{"ip":"1.1.1.1","cluster":"a_b"}`), 400, "cluster name can only have these characters: 0-9a-zA-Z-, current: a_b\n"},
	} {
		if got := s.get(t, "clientBeat", tt.params); got.status != tt.status || got.body != tt.body {
			t.Errorf("%s: got %d %q, want %d %q", tt.params, got.status, got.body, tt.status, tt.body)
		}
	}
	large := "dom=a&beat=" + escape(`{"ip":"`+strings.Repeat("a", maxBeat)+`"}`)
	got := s.send(t, "POST", "/nacos/v1/ns/api/clientBeat", large, "Content-Type", "application/x-www-form-urlencoded")
	if got.status != 500 || got.body != "Param 'beat' is illegal, it is larger than 1 MiB." {
		t.Errorf("got %d %.100q", got.status, got.body)
	}
}

func TestAddAndRemoveIPs(t *testing.T) {
	s := newTestServer(t)
	s.ok(t, "regDom", "serviceName=a&defIPPort=90")
	s.ok(t, "addIP4Dom", "dom=a&ipList="+escape("1.1.1.1,1.1.1.2:2_0.001_false_true_c2,1.1.1.3:3"))
	if i := s.find("a", "1.1.1.1", 90, "DEFAULT"); i == nil || !i.Ephemeral || i.App != "" {
		t.Errorf("without a port: %+v", i)
	}
	if i := s.find("a", "1.1.1.2", 2, "c2"); i == nil || i.Healthy || !i.Marked || i.Weight != 0.01 {
		t.Errorf("with all fields: %+v", i)
	}
	got := s.get(t, "addIP4Dom", "dom=a&updateOnly=true&ipList="+escape("1.1.1.1:90,9.9.9.9:9,8.8.8.8:8_2"))
	want := "these IPs are not present: [9.9.9.9:9:unknown_1.0_true_false_DEFAULT, 8.8.8.8:8:unknown_2.0_true_false_DEFAULT], if you want to add them, remove updateOnly flag\n"
	if got.status != 400 || got.body != want {
		t.Errorf("updateOnly: got %+v", got)
	}
	s.ok(t, "addIP4Dom", "dom=a&updateOnly=true&ipList="+escape("1.1.1.1:90_7"))
	if i := s.find("a", "1.1.1.1", 90, "DEFAULT"); i.Weight != 7 {
		t.Errorf("updated: %+v", i)
	}
	for _, params := range []string{"dom=a&json=true&ipList=[]", "dom=a&ipList=,"} {
		if got := s.get(t, "addIP4Dom", params); got.status != 400 || got.body != "Empty ip list\n" {
			t.Errorf("%s: got %+v", params, got)
		}
	}
	s.ok(t, "remvIP4Dom", "dom=a&ipList="+escape("1.1.1.1,1.1.1.2:2,9.9.9.9:9"))
	if view := s.store.View(key("a")); len(view.Instances) != 1 || view.Instances[0].IP != "1.1.1.3" {
		t.Errorf("left: %+v", view.Instances)
	}
}

// TestAddIPsIsWhole: a list of which one is refused changes nothing.
func TestAddIPsIsWhole(t *testing.T) {
	s := newTestServer(t)
	s.ok(t, "regDom", "serviceName=a")
	for _, list := range []string{`[{"ip":"1.1.1.1"},{"ip":""}]`, `[{"ip":"1.1.1.1"},{"ip":"1.1.1.2","clusterName":"a_b"}]`, `[{"ip":"1.1.1.1"},{"ip":"中"}]`} {
		if got := s.get(t, "addIP4Dom", "dom=a&json=true&ipList="+escape(list)); got.status != 400 {
			t.Errorf("%s: got %+v", list, got)
		}
	}
	if view := s.store.View(key("a")); len(view.Instances) != 0 {
		t.Errorf("listed: %+v", view.Instances)
	}
}

func TestDisableAddIP(t *testing.T) {
	s := newTestServer(t)
	s.ok(t, "regDom", "serviceName=a")
	s.ok(t, "updateSwitch", "entry=disableAddIP&disableAddIP=true")
	for call, params := range map[string]string{"regService": "serviceName=a&ip=1.1.1.1&port=1", "addIP4Dom": "dom=a&ipList=1.1.1.1:1"} {
		if got := s.get(t, call, params); got.status != 500 || got.body != "Adding IP for dom is forbidden now." {
			t.Errorf("%s: got %+v", call, got)
		}
	}
}
