package v1

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rollcall-registry/rollcall/internal/httpapi/httpapitest"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// recordedPacket is a datagram that a Nacos 1.4.8 sent.
type recordedPacket struct {
	Packet struct{ Data string }
}

// recordedPackets is the part of the recording that tells what packets hold.
type recordedPackets struct {
	ByAgent []struct {
		Agent   string
		Packets []recordedPacket
	} `json:"packets_by_agent"`
	ByClusters map[string][]recordedPacket `json:"packets_by_clusters"`
	Without    []recordedPacket            `json:"group_namespace_and_cluster_without_hosts"`
	Mixed      []recordedPacket            `json:"unhealthy_disabled_and_weight_0"`
}

// TestPayloadsAreAsRecorded makes the payloads of the recorded packets and
// compares them byte for byte, but for time and checksum.
func TestPayloadsAreAsRecorded(t *testing.T) {
	text, err := os.ReadFile(recordings + "/udp-1.4.8.json")
	if err != nil {
		t.Fatal(err)
	}
	var recorded recordedPackets
	if err := json.Unmarshal(text, &recorded); err != nil {
		t.Fatal(err)
	}
	s := newTestServer(t)
	const java = "Nacos-Java-Client:v1.4.1"
	check := func(key registry.ServiceKey, agent, clusters string, packet recordedPacket) {
		t.Helper()
		got := s.api.Payload(s.store.View(key), key, subscriber(agent, clusters))
		if want := strings.ReplaceAll(packet.Packet.Data, "{svc}", key.Name); still(string(got)) != still(want) {
			t.Errorf("%s %q:\ngot  %s\nwant %s", agent, clusters, got, want)
		}
	}

	for _, of := range recorded.ByAgent {
		if len(of.Packets) == 0 {
			continue // not pushed to
		}
		s.ok(t, "POST", "/instance", "serviceName=svc-a&ip=1.1.1.1&port=8080")
		check(key("svc-a"), of.Agent, "", of.Packets[0])
		s.ok(t, "DELETE", "/instance", "serviceName=svc-a&ip=1.1.1.1&port=8080")
		check(key("svc-a"), of.Agent, "", of.Packets[1])
	}

	s.ok(t, "POST", "/instance", "serviceName=svc-c&ip=1.1.1.1&port=1&clusterName=c1")
	s.ok(t, "POST", "/instance", "serviceName=svc-c&ip=1.1.1.1&port=2&clusterName=c2")
	for clusters, packets := range recorded.ByClusters {
		check(key("svc-c"), java, clusters, packets[0])
	}

	s.ok(t, "POST", "/instance", "serviceName=svc-d&groupName=grp&namespaceId=ns&ip=1.1.1.1&port=1")
	check(registry.ServiceKey{Namespace: "ns", Group: "grp", Name: "svc-d"}, java, "zz", recorded.Without[0])

	s.ok(t, "POST", "/instance", "serviceName=svc-e&ip=1.1.1.1&port=8080&healthy=false")
	s.ok(t, "POST", "/instance", "serviceName=svc-e&ip=1.1.1.1&port=2&enabled=false")
	s.ok(t, "POST", "/instance", "serviceName=svc-e&ip=1.1.1.1&port=3&weight=0")
	got := s.api.Payload(s.store.View(key("svc-e")), key("svc-e"), subscriber(java, ""))
	// The order of hosts is the original's accident: compare the sets of fields.
	want := strings.ReplaceAll(recorded.Mixed[0].Packet.Data, "{svc}", "svc-e")
	for _, host := range strings.SplitAfter(want, "},{") {
		if body := strings.Trim(host[strings.Index(host, `"ip"`):], "{},"); !strings.Contains(string(got), body[:strings.Index(body, `"ephemeral"`)]) {
			t.Errorf("no host %s in %s", body, got)
		}
	}
}

var times = regexp.MustCompile(`"lastRefTime":\d+,"checksum":"[0-9a-f]{32}"`)

// still takes out what differs from time to time.
func still(payload string) string { return times.ReplaceAllString(payload, "") }

func subscriber(agent, clusters string) *registry.Subscriber {
	return &registry.Subscriber{SubscriberKey: registry.SubscriberKey{
		Addr: netip.MustParseAddrPort("127.0.0.1:50000"), Agent: agent, Clusters: clusters,
	}}
}

func TestPayloadOfAServiceThatIsGone(t *testing.T) {
	s := newTestAPI(t, httpapitest.Stopped{})
	got := string(s.api.Payload(nil, key("gone"), subscriber("Nacos-Go-Client:v1.1.4", "a,b")))
	if want := `{"name":"DEFAULT_GROUP@@gone","clusters":"a,b","cacheMillis":10000,"hosts":[]}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestDisabledService(t *testing.T) {
	s := newTestServer(t)
	_, err := s.store.Apply(&registry.CreateService{
		Meta: registry.Meta{At: s.core.Now()}, Service: key("off"),
		Info: registry.ServiceInfo{Disabled: true, Selector: registry.Selector{Type: registry.SelectorNone}},
	})
	if err != nil {
		t.Fatal(err)
	}
	want(t, "list", s.call(t, "GET", "/instance/list", "serviceName=off"), 500, "caused: service is disabled now.;")
	got := string(s.api.Payload(s.store.View(key("off")), key("off"), subscriber("", "")))
	if strings.Contains(got, "hosts") || !json.Valid([]byte(got)) {
		t.Errorf("payload: got %s, want no hosts, so that clients keep theirs", got)
	}
}

func TestSubscribing(t *testing.T) {
	s := newTestServer(t)
	java := []string{"User-Agent", "Nacos-Java-Client:v1.4.2"}
	for _, tt := range []struct {
		name, params string
		headers      []string
		cacheMillis  int64
		target       string // "" for nobody
		refused      bool
	}{
		{"polls", "udpPort=0&clientIP=127.0.0.1", java, 3000, "", false},
		{"own address", "udpPort=50001&clientIP=127.0.0.1", java, 10000, "127.0.0.1:50001", false},
		{"no address", "udpPort=50002", java, 10000, "127.0.0.1:50002", false},
		{"another's address", "udpPort=50003&clientIP=10.9.9.9", java, 3000, "10.9.9.9:50003", true},
		{"a host name", "udpPort=50004&clientIP=me.example", java, 3000, "", false},
		{"a port out of range", "udpPort=99999&clientIP=127.0.0.1", java, 3000, "", false},
		{"a negative port", "udpPort=-5&clientIP=127.0.0.1", java, 3000, "", false},
		{"an unknown agent", "udpPort=50005&clientIP=127.0.0.1", nil, 3000, "", false},
		{
			"0.9, named in Client-Version", "udpPort=50006&clientIP=127.0.0.1",
			[]string{"User-Agent", "Java/1.8.0_281", "Client-Version", "Nacos-Java-Client:v0.9.0"},
			10000, "127.0.0.1:50006", false,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			name := strings.ReplaceAll(tt.name, " ", "-") // no such service, which is no matter
			got := s.list(t, "serviceName="+escape(name)+"&app=x&clusters=c&"+tt.params, tt.headers...)
			if got.CacheMillis != tt.cacheMillis {
				t.Errorf("got cacheMillis %d, want %d", got.CacheMillis, tt.cacheMillis)
			}
			subs := s.store.Subscribers(key(name))
			if tt.target == "" {
				if len(subs) != 0 {
					t.Errorf("got subscriber %+v, want none", subs[0].SubscriberKey)
				}
				return
			}
			if len(subs) != 1 {
				t.Fatalf("got %d subscribers, want 1", len(subs))
			}
			sub := subs[0]
			if sub.Addr.String() != tt.target || (sub.Refused != "") != tt.refused || sub.App != "x" || sub.Clusters != "c" ||
				!strings.HasPrefix(sub.Agent, "Nacos-Java-Client:v") || sub.Protocol != registry.ProtocolUDP {
				t.Errorf("got %+v refused %q app %q", sub.SubscriberKey, sub.Refused, sub.App)
			}
		})
	}
}

func TestSwitchesOfLists(t *testing.T) {
	s := newTestServer(t)
	set := func(entry, value string) {
		t.Helper()
		if err := s.core.SetSwitch(t.Context(), registry.Cause{}, entry, value, true); err != nil {
			t.Fatal(err)
		}
	}
	cacheMillis := func(params string) int64 {
		return s.list(t, "serviceName=sw&"+params, "User-Agent", "Nacos-Java-Client:v1.4.2").CacheMillis
	}
	set("defaultCacheMillis", "4000")
	set("pushCacheMillis", "20000")
	if poll, push := cacheMillis(""), cacheMillis("udpPort=1"); poll != 4000 || push != 20000 {
		t.Errorf("got %d and %d, want 4000 and 20000", poll, push)
	}
	set("pushVersion", "java:1.4.3")
	if got := cacheMillis("udpPort=1"); got != 4000 {
		t.Errorf("below the lowest version: got %d, want 4000", got)
	}
	set("pushVersion", "java:1.4.2")
	set("pushEnabled", "false")
	if got := cacheMillis("udpPort=1"); got != 4000 {
		t.Errorf("without pushes: got %d, want 4000", got)
	}
	set("defaultInstanceEphemeral", "false")
	s.ok(t, "POST", "/instance", "serviceName=sw&ip=1.1.1.1&port=1")
	if s.find("sw", "1.1.1.1", 1).Ephemeral {
		t.Error("the default kind is not that of the switch")
	}
}

func TestProtectThresholdInAList(t *testing.T) {
	s := newTestServer(t)
	s.ok(t, "POST", "/instance", "serviceName=th&ip=1.1.1.1&port=1")
	s.ok(t, "POST", "/instance", "serviceName=th&ip=1.1.1.1&port=2&healthy=false")
	if got := s.list(t, "serviceName=th&healthyOnly=true").ports(); got != "1" {
		t.Errorf("threshold 0: got ports %s, want 1", got)
	}
	err := s.core.UpdateService(t.Context(), registry.Cause{}, key("th"), func(i *registry.ServiceInfo) { i.ProtectThreshold = 0.5 })
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range s.list(t, "serviceName=th&healthyOnly=true").Hosts {
		if !h.Healthy {
			t.Errorf("port %d shows unhealthy below the threshold", h.Port)
		}
	}
	if s.find("th", "1.1.1.1", 2).Healthy {
		t.Error("showing an instance as healthy made it so")
	}
}

func TestChecksum(t *testing.T) {
	s := newTestServer(t)
	sum := func() string { return string(appendChecksum(nil, s.store.View(key("cs")))) }
	s.ok(t, "POST", "/instance", "serviceName=cs&ip=1.1.1.1&port=1")
	first := sum()
	s.ok(t, "POST", "/instance", "serviceName=cs&ip=1.1.1.1&port=2")
	if sum() == first {
		t.Error("a second instance left the checksum")
	}
	s.ok(t, "DELETE", "/instance", "serviceName=cs&ip=1.1.1.1&port=2")
	if got := sum(); got != first || len(got) != checksumLen {
		t.Errorf("got %s after a return to the same state, want %s", got, first)
	}
}

func TestLastRefTimeGrowsWithEachChange(t *testing.T) {
	s := newTestAPI(t, httpapitest.Running(time.Now())).start(t)
	last := int64(0)
	for i := range 50 {
		s.ok(t, "POST", "/instance", fmt.Sprintf("serviceName=lr&ip=1.1.1.1&port=1&metadata=n=%d", i))
		got := s.list(t, "serviceName=lr").LastRefTime
		if got <= last {
			t.Fatalf("lastRefTime went from %d to %d", last, got)
		}
		last = got
	}
}
