package legacy

import (
	"reflect"
	"strings"
	"testing"

	"github.com/rollcall-registry/rollcall/internal/registry"
)

func TestRegDomRefuses(t *testing.T) {
	s := newTestServer(t)
	s.ok(t, "regDom", "serviceName=there")
	for _, tt := range []struct {
		params string
		status int
		body   string
	}{
		{"", 400, "Param 'serviceName' is required.\n"},
		{"serviceName=there&clusterName=a_b", 400, "specified dom already exists, dom : there\n"},
		{"serviceName=a@b", 400, "dom name can only have these characters: 0-9a-zA-Z.:_-; current: a@b\n"},
		{"serviceName=+", 400, "dom name can only have these characters: 0-9a-zA-Z.:_-; current: \n"},
		{"serviceName=a&clusterName=a_b", 400, "cluster name can only have these characters: 0-9a-zA-Z-, current: a_b\n"},
		{"serviceName=a&serviceMetadata=zzz", 500, "Param 'serviceMetadata' is illegal, it is no JSON object of texts."},
		{"serviceName=a&clusterMetadata=a=1", 500, "Param 'clusterMetadata' is illegal, it is no JSON object of texts."},
		{"serviceName=a&clusters=zzz", 500, "Param 'clusters' is illegal, it does not describe clusters in JSON."},
		{"serviceName=a&cktype=HTTP&expectedResponseCode=x", 400, "For input string: \"x\"\n"},
		{"serviceName=a&defCkport=x", 400, "Param 'defCkport' is illegal, it must be within 1 and 65535.\n"},
		{"serviceName=a&defIPPort=70000", 400, "Param 'defIPPort' is illegal, it must be within 0 and 65535.\n"},
		{"serviceName=a&protectThreshold=NaN", 400, "Param 'protectThreshold' is illegal, it must be a number.\n"},
		{"serviceName=a&protectThreshold=1e300", 400, "Param 'protectThreshold' is illegal, it must be a number.\n"},
		{"serviceName=a&envAndSites=x&disabledSites=y", 400, "envAndSite and disabledSites are not allowed both not empty.\n"},
		{"serviceName=a&token=" + strings.Repeat("t", 513), 400, "Param 'token' is illegal, it has 513 bytes and may have 512.\n"},
		{"serviceName=a&owners=" + strings.Repeat("o", 4097), 400, "Param 'owners' is illegal, it has 4097 bytes and may have 4096.\n"},
	} {
		if got := s.get(t, "regDom", tt.params); got.status != tt.status || got.body != tt.body {
			t.Errorf("%.80s: got %d %q, want %d %q", tt.params, got.status, got.body, tt.status, tt.body)
		}
	}
	if n := s.store.Counts(); n.Services != 1 {
		t.Errorf("%d services, want the one that was there", n.Services)
	}
}

func TestRegDomWithClusters(t *testing.T) {
	s := newTestServer(t)
	s.ok(t, "regDom", "serviceName=a&enableHealthCheck=true&clusters="+escape(`[{"name":"x","healthChecker":{"type":"HTTP","path":"/p","headers":"A:b:c|D|E:f"}},{"name":"y","defCkport":81}]`))
	got := s.json(t, "dom", "dom=a")
	var names []any
	for _, c := range got["clusters"].([]any) {
		names = append(names, c.(map[string]any)["name"])
	}
	if !reflect.DeepEqual(names, []any{"x", "y"}) || got["enableHealthCheck"] != true {
		t.Errorf("got %v", got)
	}
	checker := got["clusters"].([]any)[0].(map[string]any)["healthChecker"].(map[string]any)
	if !reflect.DeepEqual(checker["customHeaders"], map[string]any{"A": "b:c", "E": "f"}) {
		t.Errorf("got %v", checker)
	}
}

// TestRegServiceDeclaresDom: settings of the service that a registration carries
// count for one that is not there yet.
func TestRegServiceDeclaresDom(t *testing.T) {
	s := newTestServer(t)
	s.ok(t, "regService", "serviceName=a&ip=1.1.1.1&port=1&owners=me&protectThreshold=0.5&enableClientBeat=false&clusterName=c1")
	info := s.store.View(key("a")).Info
	if info.ProtectThreshold != 0.5 || !info.Set || !reflect.DeepEqual(info.Legacy.Owners, []string{"me"}) {
		t.Errorf("settings %+v, %+v", info, info.Legacy)
	}
	if i := s.find("a", "1.1.1.1", 1, "c1"); i == nil || i.Ephemeral {
		t.Errorf("instance %+v", i)
	}
	s.ok(t, "regService", "serviceName=a&ip=1.1.1.1&port=2&owners=you")
	if owners := s.store.View(key("a")).Info.Legacy.Owners; !reflect.DeepEqual(owners, []string{"me"}) {
		t.Errorf("owners %v", owners)
	}
}

func TestUpdateDom(t *testing.T) {
	s := newTestServer(t)
	s.ok(t, "regDom", "serviceName=a&token=t&owners=a,b&resetWeight=true&protectThreshold=0.2")
	for _, tt := range []struct {
		params string
		status int
		body   string
	}{
		{"", 400, "Param 'dom' is required.\n"},
		{"dom=nobody", 500, "dom not found"},
		{"dom=a&protectThreshold=zz", 400, "For input string: \"zz\"\n"},
		{"dom=a&protectThreshold=-Infinity", 400, "Param 'protectThreshold' is illegal, it must be a number.\n"},
		{"dom=a&cluster=c9&sitegroup=s", 500, "cluster not found"},
		{"dom=a&cktype=ZZZ", 400, "unsupported health check type: ZZZ\n"},
		{"dom=a&cktype=HTTP", 400, "Param 'path' is required.\n"},
		{"dom=a&cktype=MYSQL&user=u&pwd=p", 400, "Param 'cmd' is required.\n"},
		{"dom=a&defIPPort=x", 400, "For input string: \"x\"\n"},
		{"dom=a&defCkPort=0", 400, "Param 'defCkport' is illegal, it must be within 1 and 65535.\n"},
	} {
		if got := s.get(t, "updateDom", tt.params); got.status != tt.status || got.body != tt.body {
			t.Errorf("%s: got %d %q, want %d %q", tt.params, got.status, got.body, tt.status, tt.body)
		}
	}
	before := s.json(t, "dom", "dom=a")
	s.ok(t, "updateDom", "dom=a&serviceEnabled=false&sitegroup=s&ipPort4Check=false&defIPPort=90&defCkPort=91&cktype=HTTP&path=/p&useSpecifiedURL=true&newToken=n")
	after := s.json(t, "dom", "dom=a")
	for _, kept := range []string{"owners", "resetWeight", "protectThreshold", "enableClientBeat", "name"} {
		if !reflect.DeepEqual(before[kept], after[kept]) {
			t.Errorf("%s: %v became %v", kept, before[kept], after[kept])
		}
	}
	cluster := after["clusters"].([]any)[0].(map[string]any)
	if after["enable"] != false || after["token"] != "n" || after["useSpecifiedURL"] != true ||
		cluster["sitegroup"] != "s" || cluster["useIPPort4Check"] != false || cluster["defIPPort"] != 90.0 || cluster["defCkport"] != 91.0 {
		t.Errorf("got %v", after)
	}
	if got := s.get(t, "srvIPXT", "dom=a"); got != (answer{500, "text/plain;charset=UTF-8", "domain is disabled now."}) {
		t.Errorf("a look-up of a disabled service: %+v", got)
	}
	s.ok(t, "updateDom", "dom=a")
	s.json(t, "srvIPXT", "dom=a")
}

func TestAddCluster(t *testing.T) {
	s := newTestServer(t)
	s.ok(t, "regDom", "serviceName=a&defCkport=99")
	for params, body := range map[string]string{
		"serviceName=a&cktype=MYSQL":                         "Param 'cmd' is required.\n",
		"serviceName=a&clusterJson=zzz":                      "Param 'clusterJson' is illegal, it is no JSON object of a cluster.\n",
		"serviceName=a&clusterJson=null":                     "Param 'clusterJson' is illegal, it is no JSON object of a cluster.\n",
		"serviceName=a&clusterJson=" + escape(`{"name":""}`): "cluster name can only have these characters: 0-9a-zA-Z-, current: \n",
		"serviceName=a&clusterName=c&defCkport=-1":           "Param 'defCkport' is illegal, it must be within 1 and 65535.\n",
	} {
		if got := s.get(t, "addCluster4Dom", params); got.status != 400 || got.body != body {
			t.Errorf("%s: got %d %q, want 400 %q", params, got.status, got.body, body)
		}
	}
	if c := s.store.View(key("a")).Cluster("DEFAULT"); c.CheckPort != 99 {
		t.Errorf("the default cluster is reset: %+v", c)
	}
	s.ok(t, "addCluster4Dom", "serviceName=a&clusterName=c&cktype=MYSQL&user=u&pwd=p&cmd=select&siteGroup=s&clusterMetadata="+escape(`{"k":"v"}`))
	want := registry.Cluster{
		Name: "c", Checker: registry.HealthCheck{Type: "MYSQL", User: "u", Password: "p", Command: "select"},
		CheckPort: 80, DefaultPort: 80, UseInstancePort: true, SiteGroup: "s", Metadata: `{"k":"v"}`,
	}
	if c := s.store.View(key("a")).Cluster("c"); *c != want {
		t.Errorf("got %+v, want %+v", *c, want)
	}
}

func TestRemvDom(t *testing.T) {
	s := newTestServer(t)
	s.ok(t, "regService", "serviceName=a&ip=1.1.1.1&port=1")
	s.ok(t, "remvDom", "dom=a")
	if got := s.get(t, "remvDom", "dom=a"); got != (answer{500, "text/plain;charset=UTF-8", "specified domain doesn't exists."}) {
		t.Errorf("got %+v", got)
	}
	if n := s.store.Counts(); n != (registry.Counts{}) {
		t.Errorf("left: %+v", n)
	}
}
