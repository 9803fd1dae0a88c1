package v1

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/rollcall-registry/rollcall/internal/registry"
)

// The tests here are trials made from public reports on Nacos and its kin. Each
// is about a whole kind of fault.

// listAnswer is what clients read of a list.
type listAnswer struct {
	Name        string `json:"name"`
	Dom         string `json:"dom"`
	Clusters    string `json:"clusters"`
	CacheMillis int64  `json:"cacheMillis"`
	LastRefTime int64  `json:"lastRefTime"`
	Hosts       []struct {
		IP          string            `json:"ip"`
		Port        int               `json:"port"`
		Weight      float64           `json:"weight"`
		Healthy     bool              `json:"healthy"`
		Enabled     bool              `json:"enabled"`
		Cluster     string            `json:"clusterName"`
		InstanceID  string            `json:"instanceId"`
		ServiceName string            `json:"serviceName"`
		Metadata    map[string]string `json:"metadata"`
	} `json:"hosts"`
}

func (s *testServer) list(t testing.TB, params string, headers ...string) listAnswer {
	t.Helper()
	got := s.call(t, "GET", "/instance/list", params, headers...)
	if got.status != 200 || got.contentType != "application/json" {
		t.Fatalf("list %s: got %d %s %q", params, got.status, got.contentType, got.body)
	}
	var list listAnswer
	if err := json.Unmarshal([]byte(got.body), &list); err != nil {
		t.Fatalf("list %s: %v in %q", params, err, got.body)
	}
	return list
}

// ports lists the ports of the hosts in order, as text.
func (l listAnswer) ports() string {
	var ports []string
	for _, h := range l.Hosts {
		ports = append(ports, fmt.Sprint(h.Port))
	}
	return strings.Join(ports, " ")
}

// want fails unless the answer has that status and holds text.
func want(t testing.TB, what string, got answer, status int, text string) {
	t.Helper()
	if got.status != status || !strings.Contains(got.body, text) {
		t.Errorf("%s: got %d %q, want %d with %q", what, got.status, got.body, status, text)
	}
}

func TestGroupInTheNameWins(t *testing.T) {
	s := newTestServer(t)
	const params = "serviceName=gY@@n&groupName=gX&ip=1.1.1.1&port=1"
	s.ok(t, "POST", "/instance", params)
	if got := s.list(t, params); got.Name != "gY@@n" || len(got.Hosts) != 1 {
		t.Errorf("list: got %+v, want one host of gY@@n", got)
	}
	want(t, "beat", s.call(t, "PUT", "/instance/beat", params), 200, beatOK)
	if got := s.list(t, "serviceName=n&groupName=gX"); len(got.Hosts) != 0 {
		t.Errorf("the other group has %+v", got.Hosts)
	}
	s.ok(t, "DELETE", "/instance", params)
	if got := s.list(t, "serviceName=n&groupName=gY"); len(got.Hosts) != 0 {
		t.Errorf("after the deregistration: %+v", got.Hosts)
	}
}

func TestSeparatorsInNames(t *testing.T) {
	s := newTestServer(t)
	for _, tt := range []struct {
		params, name, dom string
	}{
		{"serviceName=a@b&groupName=g", "g@@a@b", "a@b"},
		{"serviceName=@n@&groupName=@g@", "@g@@@@n@", "@n@"},
		{"serviceName=a@@b&groupName=g", "a@@b", "b"},
		{"serviceName=g1@@g2@@n", "g1@@g2@@n", "g2"}, // recorded: reg-group-odd
		{"dom=d", "DEFAULT_GROUP@@d", "d"},
	} {
		s.ok(t, "POST", "/instance", tt.params+"&ip=1.1.1.1&port=1")
		if got := s.list(t, tt.params); got.Name != tt.name || got.Dom != tt.dom || len(got.Hosts) != 1 {
			t.Errorf("%s: got %+v, want one host of %s, dom %s", tt.params, got, tt.name, tt.dom)
		}
	}
	for _, params := range []string{"serviceName=@@a", "serviceName=a@@", "serviceName=@@", "serviceName=a@@@@", "serviceName=%20"} {
		want(t, params, s.call(t, "POST", "/instance", params+"&ip=1.1.1.1&port=1"), 400, "Param 'serviceName' is illegal")
	}
}

func TestNestedMetadataLeavesTheOldOne(t *testing.T) {
	s := newTestServer(t)
	const instance = "serviceName=e&ip=1.1.1.1&port=1"
	s.ok(t, "POST", "/instance", instance+"&metadata="+escape(`{"v":"1"}`))
	for _, text := range []string{`{"v":"2","tags":["a"]}`, `{"v":"2","o":{"k":"1"}}`} {
		for _, method := range []string{"POST", "PUT", "PATCH"} {
			want(t, method, s.call(t, method, "/instance", instance+"&metadata="+escape(text)), 500, "metadata format incorrect:"+text)
		}
		if got := s.list(t, instance).Hosts[0].Metadata; len(got) != 1 || got["v"] != "1" {
			t.Errorf("after %s: got %v, want v=1", text, got)
		}
	}
	s.ok(t, "PUT", "/instance", instance+"&metadata="+escape(`{"v":2,"b":true}`))
	if got := s.list(t, instance).Hosts[0].Metadata; got["v"] != "2" || got["b"] != "true" {
		t.Errorf("got %v, want numbers and booleans as text", got)
	}
}

func TestBothSyntaxesOfMetadata(t *testing.T) {
	s := newTestServer(t)
	const zone = `{"zone":"z1","ver":"2.1"}`
	s.ok(t, "POST", "/instance", "serviceName=f&ip=1.1.1.1&port=1&metadata=zone=z1,ver=2.1")
	s.ok(t, "POST", "/instance", "serviceName=f&ip=1.1.1.1&port=2&metadata="+escape(zone))
	s.ok(t, "POST", "/instance", "serviceName=f&ip=1.1.1.1&port=3")
	s.ok(t, "PUT", "/instance", "serviceName=f&ip=1.1.1.1&port=3&metadata=zone=z1,ver=2.1")
	s.ok(t, "POST", "/instance", "serviceName=f&ip=1.1.1.1&port=4")
	s.ok(t, "PATCH", "/instance", "serviceName=f&ip=1.1.1.1&port=4&metadata=zone=z1,ver=2.1")
	s.ok(t, "POST", "/instance", "serviceName=f&ip=1.1.1.1&port=5")
	got := s.call(t, "PUT", "/instance/metadata/batch", "serviceName=f&metadata=zone=z1,ver=2.1&instances="+escape(`[{"ip":"1.1.1.1","port":5}]`))
	want(t, "batch", got, 200, `{"updated":["1.1.1.1:5:unknown:DEFAULT:ephemeral"]}`)
	for _, h := range s.list(t, "serviceName=f").Hosts {
		if len(h.Metadata) != 2 || h.Metadata["zone"] != "z1" || h.Metadata["ver"] != "2.1" {
			t.Errorf("port %d: got %v, want zone and ver", h.Port, h.Metadata)
		}
	}
}

func TestPatchKeepsWhatWasNotSent(t *testing.T) {
	s := newTestServer(t)
	const instance = "serviceName=h&ip=1.1.1.1&port=1"
	s.ok(t, "POST", "/instance", instance+"&weight=3&enabled=false&app=shop&metadata=k=v")
	check := func(step string, weight float64, enabled bool, app string, metadata registry.Metadata) {
		t.Helper()
		i := s.find("h", "1.1.1.1", 1)
		if i.Weight != weight || i.Enabled != enabled || i.App != app || i.Metadata != metadata {
			t.Errorf("%s: got %+v", step, *i)
		}
	}
	s.ok(t, "PATCH", "/instance", instance+"&weight=7")
	check("weight", 7, false, "shop", `{"k":"v"}`)
	s.ok(t, "PATCH", "/instance", instance+"&metadata=k2=v2")
	check("metadata", 7, false, "shop", `{"k2":"v2"}`)
	s.ok(t, "PATCH", "/instance", instance+"&weight=&metadata=%20&enabled=&app=%20")
	check("blanks", 7, false, "shop", `{"k2":"v2"}`)
	s.ok(t, "PUT", "/instance", instance)
	check("PUT", 1, true, "DEFAULT", "")
	want(t, "PATCH of an unknown port", s.call(t, "PATCH", "/instance", "serviceName=h&ip=1.1.1.1&port=2&weight=2"), 400, "instance not found")
	if s.find("h", "1.1.1.1", 2) != nil {
		t.Error("PATCH registered an instance")
	}
}

func TestSpellingsOfTheDefaultNamespace(t *testing.T) {
	s := newTestServer(t)
	spellings := []string{"", "&namespaceId=", "&namespaceId=public", "&namespaceId=%20"}
	for i, ns := range spellings {
		s.ok(t, "POST", "/instance", fmt.Sprintf("serviceName=i&ip=1.1.1.1&port=901%d%s", i, ns))
	}
	s.ok(t, "POST", "/instance", "serviceName=i&ip=1.1.1.1&port=9019&namespaceId=PUBLIC")
	for _, ns := range spellings {
		if got := s.list(t, "serviceName=i"+ns).ports(); got != "9010 9011 9012 9013" {
			t.Errorf("list%s: got ports %s", ns, got)
		}
	}
	if got := s.list(t, "serviceName=i&namespaceId=PUBLIC").ports(); got != "9019" {
		t.Errorf("PUBLIC: got ports %s, want 9019", got)
	}
	want(t, "beat", s.call(t, "PUT", "/instance/beat", "serviceName=i&ip=1.1.1.1&port=9011&namespaceId=public"), 200, beatOK)
}

func TestClusterFilter(t *testing.T) {
	s := newTestServer(t)
	s.ok(t, "POST", "/instance", "serviceName=j&ip=1.1.1.1&port=1&clusterName=a")
	s.ok(t, "POST", "/instance", "serviceName=j&ip=1.1.1.1&port=2&clusterName=b")
	s.ok(t, "POST", "/instance", "serviceName=j&ip=1.1.1.1&port=3")
	for _, tt := range []struct{ params, ports, echo string }{
		{"", "1 2 3", ""},
		{"&clusters=", "1 2 3", ""},
		{"&clusters=,", "1 2 3", ","},
		{"&clusters=a", "1", "a"},
		{"&clusters=a,b", "1 2", "a,b"},
		{"&clusters=b,a", "2 1", "b,a"},
		{"&clusters=a,%20b", "1 2", "a, b"},
		{"&clusters=a,a", "1 1", "a,a"},
		{"&clusters=" + strings.Repeat("a,", 1000) + "a", "1 1", strings.Repeat("a,", 1000) + "a"},
		{"&clusters=a,,zzz", "1", "a,,zzz"},
		{"&clusters=zzz", "", "zzz"},
		{"&clusters=A", "", "A"},
	} {
		for range 2 { // from the encoder, and from what it kept
			got := s.list(t, "serviceName=j"+tt.params)
			if got.ports() != tt.ports || got.Clusters != tt.echo {
				t.Errorf("%s: got ports %q, clusters %q, want %q, %q", tt.params, got.ports(), got.Clusters, tt.ports, tt.echo)
			}
		}
	}
}

func TestOneClusterIsOneForm(t *testing.T) {
	s := newTestServer(t)
	s.ok(t, "POST", "/instance", "serviceName=j&ip=1.1.1.1&port=1")
	for _, params := range []string{"", "&clusters=DEFAULT", "&clusters=DEFAULT,zzz", "&clusters=a1", "&clusters=a2", "&env=x"} {
		s.list(t, "serviceName=j"+params)
	}
	if n := s.store.View(key("j")).Encodings.Len(); n != 2 {
		t.Errorf("got %d forms of the view, want that of all and that of nobody", n)
	}
}

func TestFirstRegistrationIsSeenAtOnce(t *testing.T) {
	s := newTestServer(t)
	s.ok(t, "POST", "/instance", "serviceName=k&ip=1.1.1.1&port=1")
	if got := s.list(t, "serviceName=k").ports(); got != "1" {
		t.Errorf("got ports %q, want 1", got)
	}
	java := []string{"User-Agent", "Nacos-Java-Client:v1.4.2"}
	want(t, "update of another port", s.call(t, "PUT", "/instance", "serviceName=k&ip=1.1.1.1&port=2", java...), 500, "instance not exist")
	want(t, "update in no service", s.call(t, "PUT", "/instance", "serviceName=k2&ip=1.1.1.1&port=2", java...), 500, "service not found")
	if got := s.list(t, "serviceName=k").ports(); got != "1" {
		t.Errorf("an update registered: ports %q", got)
	}
}

func TestHostNamesAndAddresses(t *testing.T) {
	s := newTestServer(t)
	for _, ip := range []string{"node-7.internal.example", "localhost", "999.1.1.1", "192.0.2.1,192.0.2.2", "a#b"} {
		s.ok(t, "POST", "/instance", "serviceName=h&port=1&ip="+escape(ip))
		if s.find("h", ip, 1) == nil {
			t.Errorf("%q is not listed verbatim", ip)
		}
	}
	for _, ip := range []string{"%20", "a%20b", "%E4%B8%AD", "a%00b", "a%0Ab", strings.Repeat("a", 200)} {
		want(t, ip, s.call(t, "POST", "/instance", "serviceName=h&port=1&ip="+ip), 400, "Param 'ip' is")
	}
	want(t, "no ip", s.call(t, "POST", "/instance", "serviceName=h&port=1"), 400, "Param 'ip' is required.")
	for _, ip := range []string{"2001:db8::1", "2001:DB8:0::1", "[2001:db8::1]"} {
		s.ok(t, "POST", "/instance", "serviceName=six&port=1&ip="+escape(ip))
	}
	if got := s.list(t, "serviceName=six"); len(got.Hosts) != 1 {
		t.Errorf("one IPv6 address shows as %+v", got.Hosts)
	}
}

func TestMissingParameters(t *testing.T) {
	s := newTestServer(t)
	s.ok(t, "POST", "/instance", "serviceName=m&ip=1.1.1.1&port=1")
	all := []string{"serviceName=m", "ip=1.1.1.1", "port=1"}
	var calls sync.WaitGroup
	for _, method := range []string{"POST", "PUT", "PATCH", "DELETE", "GET"} {
		for missing, name := range []string{"serviceName", "ip", "port"} {
			rest := append(append([]string{}, all[:missing]...), all[missing+1:]...)
			calls.Go(func() {
				want(t, method+" without "+name, s.call(t, method, "/instance", strings.Join(rest, "&")), 400, "Param '"+name+"' is required.")
			})
		}
		calls.Go(func() {
			want(t, method+" without anything", s.call(t, method, "/instance", ""), 400, "Param 'serviceName' is required.")
		})
	}
	calls.Wait()
	want(t, "beat without a service", s.call(t, "PUT", "/instance/beat", "ip=1.1.1.1&port=1"), 400, "Param 'serviceName' is required.")
	want(t, "beat without an address", s.call(t, "PUT", "/instance/beat", "serviceName=m"), 200, beatUnknown)
	want(t, "list without a service", s.call(t, "GET", "/instance/list", ""), 400, "Param 'serviceName' is required.")
	want(t, "batch without metadata", s.call(t, "PUT", "/instance/metadata/batch", "serviceName=m"), 400, "Param 'metadata' is required.")
}

func TestInstanceIDEverywhere(t *testing.T) {
	s := newTestServer(t)
	const id = "1.1.1.1#1#c#DEFAULT_GROUP@@n"
	s.ok(t, "POST", "/instance", "serviceName=n&ip=1.1.1.1&port=1&clusterName=c")
	if got := s.list(t, "serviceName=n").Hosts[0].InstanceID; got != id {
		t.Errorf("list: got %q, want %q", got, id)
	}
	want(t, "detail", s.call(t, "GET", "/instance", "serviceName=n&ip=1.1.1.1&port=1&clusterName=c"), 200, `"instanceId":"`+id+`"`)
}

func TestParametersInQueryAndForm(t *testing.T) {
	s := newTestServer(t)
	const half, other = "serviceName=p&ip=1.1.1.1", "port=1&weight=2"
	for _, contentType := range []string{
		"application/x-www-form-urlencoded", "application/x-www-form-urlencoded; charset=UTF-8",
		"application/x-www-form-urlencoded;charset=utf8", "APPLICATION/x-www-form-urlencoded", "",
	} {
		for _, method := range []string{"POST", "PUT", "PATCH", "DELETE"} {
			for _, split := range [][2]string{{half + "&" + other, ""}, {"", half + "&" + other}, {half, other}} {
				got := s.send(t, method, "/instance?"+split[0], split[1], "Content-Type", contentType)
				want(t, method+" "+contentType+" "+split[0], got, 200, "ok")
			}
			if i := s.find("p", "1.1.1.1", 1); (i != nil) != (method != "DELETE") {
				t.Errorf("%s %s: got instance %v", method, contentType, i)
			}
		}
	}
	s.ok(t, "POST", "/instance", half+"&"+other)
	want(t, "beat in the form", s.form(t, "PUT", "/instance/beat", half+"&port=1"), 200, beatOK)
	got := s.send(t, "POST", "/instance", `{"serviceName":"p"}`, "Content-Type", "application/json")
	want(t, "JSON body", got, 400, "Param 'serviceName' is required.")
}

func TestRepeatedParameters(t *testing.T) {
	s := newTestServer(t)
	got := s.send(t, "POST", "/instance?ip=1.1.1.1&ip=2.2.2.2&port=9601&port=9603&serviceName=s1&serviceName=s3&ServiceName=s4",
		"port=9602&serviceName=s2", "Content-Type", "application/x-www-form-urlencoded")
	want(t, "register", got, 200, "ok")
	if s.find("s1", "1.1.1.1", 9601) == nil || s.store.Counts().Services != 1 {
		t.Error("the first value of each parameter does not count")
	}
}

func TestWeights(t *testing.T) {
	s := newTestServer(t)
	port := 0
	for _, tt := range []struct {
		weight string
		status int
		stored float64
	}{
		{"", 200, 1},
		{"0", 200, 0},
		{"10000", 200, 10000},
		{"1e3", 200, 1000},
		{"0.001", 200, 0.01},
		{"1f", 200, 1},
		{"0x1p3", 200, 8}, // recorded: reg-weight-odd
		{"NaN", 400, 0},
		{"1,5", 400, 0},
		{"x", 400, 0},
		{"1_0", 400, 0},
		{"0x1", 400, 0},
		{"nan", 400, 0},
		{"inf", 400, 0},
		{"Infinity", 500, 0},
		{"-Infinity", 500, 0},
		{"-1", 500, 0},
		{"10000.1", 500, 0},
		{"1e300", 500, 0},
		{"1e999", 500, 0},
	} {
		for _, method := range []string{"POST", "PUT"} {
			port++
			got := s.call(t, method, "/instance", fmt.Sprintf("serviceName=w&ip=1.1.1.1&port=%d&weight=%s", port, escape(tt.weight)))
			if got.status != tt.status {
				t.Errorf("%s weight=%s: got %d %q, want %d", method, tt.weight, got.status, got.body, tt.status)
			}
			i := s.find("w", "1.1.1.1", int32(port))
			if (i != nil) != (tt.status == 200) || i != nil && i.Weight != tt.stored {
				t.Errorf("%s weight=%s: stored %+v, want weight %v", method, tt.weight, i, tt.stored)
			}
		}
	}
	s.list(t, "serviceName=w") // is JSON
}

func TestPorts(t *testing.T) {
	s := newTestServer(t)
	for port, stored := range map[string]int32{"0": 0, "65536": 65536, "+80": 80, "70000": 70000} { // recorded: reg-port-range
		s.ok(t, "POST", "/instance", "serviceName=p&ip=1.1.1.1&port="+escape(port))
		if s.find("p", "1.1.1.1", stored) == nil {
			t.Errorf("port=%s is not listed", port)
		}
	}
	for _, port := range []string{"x", "1.5", "99999999999", "%20", "1 2"} {
		want(t, port, s.call(t, "POST", "/instance", "serviceName=p&ip=1.1.1.1&port="+strings.ReplaceAll(port, " ", "+")), 400, "For input string")
	}
}

func TestTextOfEveryAlphabet(t *testing.T) {
	s := newTestServer(t)
	for _, tt := range []struct{ sent, read string }{
		{`{"k":"é漢😀"}`, "é漢😀"},
		{`{"k":"\ud800"}`, "\ufffd"},
		{`{"k":"a\u0000b"}`, "a\x00b"},
		{`{"k":"\"\\/<>&\u2028"}`, "\"\\/<>&\u2028"},
	} {
		s.ok(t, "POST", "/instance", "serviceName=t&ip=1.1.1.1&port=1&metadata="+escape(tt.sent))
		for _, accept := range []string{"text/plain", "application/xml", "*/*", ""} {
			if got := s.list(t, "serviceName=t", "Accept", accept).Hosts[0].Metadata["k"]; got != tt.read {
				t.Errorf("%s: got %q, want %q", tt.sent, got, tt.read)
			}
		}
	}
	want(t, "ok", s.call(t, "DELETE", "/instance", "serviceName=t&ip=1.1.1.1&port=1"), 200, "ok")
}

func TestAgents(t *testing.T) {
	s := newTestServer(t)
	s.ok(t, "POST", "/instance", "serviceName=a&ip=1.1.1.1&port=1")
	for _, tt := range []struct {
		agent              string
		grouped, subscribe bool
	}{
		{"", false, false},
		{"x", false, false},
		{strings.Repeat("a", 4096), false, false},
		{"\xff\xfe", false, false},
		{"Nacos-Java-Client:", false, false},
		{"Nacos-Java-Client:vABC", false, false},
		{"Nacos-Java-Client:v1", false, false},
		{"Nacos-Java-Client:v0.9.0", false, true},
		{"Nacos-Java-Client:v1.0.0", true, true},
		{"Nacos-Java-Client:v1.4.2", true, true},
		{"Nacos-Go-Client:v1.1.4", false, true},
		{"Nacos-CSharp-Client:v0.8.0", false, false},
		{"Nacos-Server:v1.4.8", false, false},
	} {
		before := s.store.Counts().Subscribers
		got := s.list(t, "serviceName=a&udpPort=55001&clientIP=127.0.0.1", "User-Agent", tt.agent)
		name := "a"
		if tt.grouped {
			name = "DEFAULT_GROUP@@a"
		}
		if got.Name != "DEFAULT_GROUP@@a" || got.Dom != name || len(got.Hosts) != 1 || got.Hosts[0].ServiceName != name {
			t.Errorf("%.40q: got %+v, want dom %s", tt.agent, got, name)
		}
		subscribed := s.store.Counts().Subscribers > before
		if subscribed != tt.subscribe || (got.CacheMillis == 10000) != tt.subscribe {
			t.Errorf("%.40q: subscribed %v, cacheMillis %d, want %v", tt.agent, subscribed, got.CacheMillis, tt.subscribe)
		}
	}
}

func TestNoNewInstancesWhileTheSwitchIsOn(t *testing.T) {
	s := newTestServer(t)
	s.ok(t, "POST", "/instance", "serviceName=off&ip=1.1.1.1&port=1")
	if err := s.core.SetSwitch(t.Context(), registry.Cause{}, "disableAddIP", "true", true); err != nil {
		t.Fatal(err)
	}
	want(t, "a new instance", s.call(t, "POST", "/instance", "serviceName=off&ip=1.1.1.1&port=2"), 400, "disableAddIP is on")
	want(t, "a beat of a new instance", s.beat(t, "serviceName=off", `{"ip":"1.1.1.1","port":3}`), 400, "disableAddIP is on")
	s.ok(t, "POST", "/instance", "serviceName=off&ip=1.1.1.1&port=1&weight=2")
	if got := s.list(t, "serviceName=off"); len(got.Hosts) != 1 || got.Hosts[0].Weight != 2 {
		t.Errorf("got %+v, want the known instance with its new weight", got.Hosts)
	}
}

func TestLongInput(t *testing.T) {
	s := newTestServer(t)
	long := strings.Repeat("a", 100_000)
	for _, tt := range []struct{ params, text string }{
		{"serviceName=" + long + "&ip=1.1.1.1&port=1", "Param 'serviceName' is illegal"},
		{"serviceName=l&groupName=" + long + "&ip=1.1.1.1&port=1", "Param 'groupName' is illegal"},
		{"serviceName=l&namespaceId=" + long + "&ip=1.1.1.1&port=1", "Param 'namespaceId' is illegal"},
		{"serviceName=l&ip=1.1.1.1&port=1&clusterName=" + long, "Param 'clusterName' is illegal"},
		{"serviceName=l&ip=1.1.1.1&port=1&app=" + long, "Param 'app' is illegal"},
		{"serviceName=l&ip=" + long + "&port=1", "Param 'ip' is illegal"},
		{"serviceName=l&ip=1.1.1.1&port=1&metadata=k=" + long, "Param 'metadata' is illegal"},
	} {
		got := s.form(t, "POST", "/instance", tt.params)
		want(t, tt.params[:20], got, http.StatusBadRequest, tt.text)
	}
	got := s.form(t, "POST", "/instance", "serviceName=l&ip=1.1.1.1&port=1&metadata="+long)
	want(t, "metadata", got, 500, "metadata format incorrect:aaa")
	if len(got.body) > 4<<10 {
		t.Errorf("the error text has %d bytes", len(got.body))
	}
	s.list(t, "serviceName=l&udpPort=1&clientIP=127.0.0.1&clusters="+long[:20_000], "User-Agent", "Nacos-Java-Client:v1.4.2")
	if n := s.store.Counts().Subscribers; n != 0 {
		t.Errorf("got %d subscribers with an endless cluster list, want 0", n)
	}
	if n := s.store.Counts().Services; n != 0 {
		t.Errorf("refused registrations left %d services", n)
	}
}
