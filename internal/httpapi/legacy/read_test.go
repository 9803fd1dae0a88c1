package legacy

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/rollcall-registry/rollcall/internal/registry"
)

func TestLookups(t *testing.T) {
	s := newTestServer(t)
	s.ok(t, "regService", "serviceName=a&ip=1.1.1.1&port=1&clusterName=c1")
	s.ok(t, "regService", "serviceName=a&ip=1.1.1.1&port=2&clusterName=c2&healthy=false")
	s.ok(t, "regService", "serviceName=a&ip=1.1.1.1&port=3&clusterName=c2&enable=false")
	for _, tt := range []struct {
		params string
		want   string // port and valid of each host
	}{
		{"dom=a", "1:true 2:false 3:true"},
		{"dom=a&healthyOnly=true", "1:true 3:true"},
		{"dom=a&healthyOnly=1", "1:true 2:false 3:true"},
		{"dom=a&clusters=c1", "1:true"},
		{"dom=a&clusters=c2,+c1", "2:false 3:true 1:true"},
		{"dom=a&clusters=,", "1:true 2:false 3:true"},
		{"dom=DEFAULT_GROUP@@a&env=e", "1:true 2:false 3:true"},
	} {
		got := s.json(t, "srvIPXT", tt.params)
		var hosts []string
		for _, h := range got["hosts"].([]any) {
			host := h.(map[string]any)
			hosts = append(hosts, fmt.Sprint(host["port"], ":", host["valid"]))
		}
		if strings.Join(hosts, " ") != tt.want || got["dom"] != "a" {
			t.Errorf("%s: got %v", tt.params, got)
		}
	}
	s.ok(t, "deRegService", "serviceName=a&ip=1.1.1.1&port=1")
	s.ok(t, "deRegService", "serviceName=a&ip=1.1.1.1&port=3")
	if got := s.get(t, "srvIPXT", "dom=a"); !strings.Contains(got.body, `"valid":true`) {
		t.Errorf("only the dead one: %s", got.body)
	}
	if got := s.get(t, "ip4Dom2", "dom=a"); got.body != `{"ips":["1.1.1.1:2_false"]}` {
		t.Errorf("its real health: %s", got.body)
	}
	const typed, plain = "application/json", "text/plain;charset=UTF-8"
	for call, want := range map[string]answer{
		"srvIPXT?dom=a&clusters=c1,c9":                {400, typed, "can not find cluster: c9, dom:a\n"},
		"srvIPXT?dom=nobody":                          {404, plain, "dom not found: nobody"},
		"srvIPXT?dom=a&namespaceId=n":                 {404, plain, "dom not found: a"},
		"srvIPXT?dom=g@@a":                            {404, plain, "dom not found: g@@a"},
		"srvIPXT?dom=a&udpPort=x":                     {400, typed, "For input string: \"x\"\n"},
		"srvIPXT?":                                    {400, typed, "Param 'dom' is required.\n"},
		"srvIPXT?dom=a&isCheck=true":                  {200, typed, "{}"},
		"ip4Dom?dom=a&clusters=c9":                    {400, typed, "can not find cluster: c9, dom:a\n"},
		"ip4Dom?dom=nobody":                           {400, typed, "dom: nobody not found!\n"},
		"ip4Dom?":                                     {400, typed, "Param 'dom' is required.\n"},
		"ip4Dom2?dom=n%23%23a":                        {404, plain, "dom: a not found."},
		"dom?dom=nobody":                              {404, plain, "Dom doesn't exist"},
		"rt4Dom?dom=nobody":                           {400, typed, "request dom doesn't exist\n"},
		"responsible?dom=nobody":                      {400, typed, "dom not found\n"},
		"responsible?dom=a":                           {200, typed, `{"responsible":true}`},
		"getResponsibleServer4Dom?dom=a":              {200, typed, `{"responsibleServer":"10.0.0.1:8848"}`},
		"getHealthyServerList?":                       {200, typed, `{"healthyList":["10.0.0.1:8848"]}`},
		"domCount?":                                   {200, typed, `{"count":1}`},
		"updateClusterConf?action=view":               {200, typed, `{"list":["10.0.0.1:8848"]}`},
		"updateClusterConf?action=x":                  {400, typed, "action is not qualified, action: x\n"},
		"updateClusterConf?":                          {400, typed, "Param 'action' is required.\n"},
		"containerNotify?type=t&domain=d&ip=i":        {400, typed, "Param 'port' is required.\n"},
		"containerNotify?type=t&domain=d&ip=i&port=p": {200, plain, "ok"},
	} {
		path, params, _ := strings.Cut(call, "?")
		if got := s.get(t, path, params); got != want {
			t.Errorf("%s:\n got %+v\nwant %+v", call, got, want)
		}
	}
	for _, call := range []string{"onAddIP4Dom", "onRemvIP4Dom", "serverStatus", "domStatus", "updateClusterConf"} {
		if got := s.get(t, call, "action=add&ips=1.1.1.1"); got.status != 403 && got.status != 400 || !strings.Contains(got.body, "Rollcall") {
			t.Errorf("%s: got %+v, want a refusal", call, got)
		}
	}
}

func TestWholeWeights(t *testing.T) {
	s := newTestServer(t)
	for port, weight := range []string{"0", "0.4", "2.7"} {
		s.ok(t, "regService", fmt.Sprintf("serviceName=a&ip=1.1.1.1&port=%d&weight=%s", port+1, weight))
	}
	weights := func(params string) (list []any) {
		for _, ip := range s.json(t, "ip4Dom", params)["ips"].([]any) {
			list = append(list, ip.(map[string]any)["weight"])
		}
		return list
	}
	if got := weights("dom=a"); !reflect.DeepEqual(got, []any{0.0, 1.0, 2.0}) {
		t.Errorf("old clients: %v", got)
	}
	if got := weights("dom=a&header:Client-Version=Nacos-Java-Client:v1.5.0"); !reflect.DeepEqual(got, []any{0.0, 0.4, 2.7}) {
		t.Errorf("1.5.0: %v", got)
	}
}

func TestSubscribing(t *testing.T) {
	s := newTestServer(t)
	old := []string{"Client-Version", "Nacos-Java-Client:v0.9.0", "User-Agent", "Java/1.8.0_281"}
	s.ok(t, "regService", "serviceName=a&ip=1.1.1.1&port=1")
	for _, tt := range []struct {
		name, params string
		headers      []string
		cacheMillis  float64
		refused      string // of the subscriber; "none" when there is none
	}{
		{"polls", "dom=a", old, 10000, "none"},
		{"unknown client", "dom=a&udpPort=1&clientIP=127.0.0.1", nil, 10000, "none"},
		{"port out of range", "dom=a&udpPort=70000&clientIP=127.0.0.1", old, 10000, "none"},
		{"foreign address", "dom=a&udpPort=2&clientIP=9.9.9.9&clusters=", old, 3000, "the address is not its own"},
		{"own address", "dom=a&udpPort=3&clientIP=127.0.0.1&app=x", old, 10000, ""},
	} {
		got := s.json(t, "srvIPXT", tt.params, tt.headers...)
		refused := "none"
		for _, sub := range s.store.Subscribers(key("a")) {
			if strings.Contains(tt.params, fmt.Sprintf("udpPort=%d&", sub.Addr.Port())) {
				refused = sub.Refused
				if sub.Agent != "Nacos-Java-Client:v0.9.0" || sub.Protocol != registry.ProtocolUDP {
					t.Errorf("%s: subscriber %+v", tt.name, sub)
				}
			}
		}
		if got["cacheMillis"] != tt.cacheMillis || refused != tt.refused {
			t.Errorf("%s: told %v, refused %q; want %v, %q", tt.name, got["cacheMillis"], refused, tt.cacheMillis, tt.refused)
		}
	}
	s.get(t, "srvIPXT", "dom=later&udpPort=4&clientIP=127.0.0.1", old...)
	if len(s.store.Subscribers(key("later"))) != 1 {
		t.Error("a service that is not there yet has no subscriber")
	}
	s.ok(t, "updateSwitch", "entry=defaultCacheMillis&millis=4000")
	if got := s.json(t, "srvIPXT", "dom=a"); got["cacheMillis"] != 4000.0 {
		t.Errorf("after an operator has set the period: %v", got["cacheMillis"])
	}
}

// TestByAge: who says to be of 1.0.0 or later is answered as by 1.4.8.
func TestByAge(t *testing.T) {
	s := newTestServer(t)
	s.ok(t, "regService", "serviceName=a&ip=1.1.1.1&port=1")
	beat := "dom=a&beat=" + escape(`{"ip":"1.1.1.1","port":1}`)
	for agent, later := range map[string]bool{
		"": false, "curl/8.0": false, "x:v2.0.0": false, "Nacos-Java-Client:v0.9.0": false, "Nacos-Java-Client": false,
		"nacos-go-sdk:v0.9.0": false, "Nacos-DNS:v0.9.0": false,
		"Nacos-DNS:v1.0.1": true, "Nacos-Java-Client:v1.4.8": true, "Nacos-Go-Client:v1.0.1": true,
	} {
		for _, header := range []string{"User-Agent", "Client-Version"} {
			_, listed := s.json(t, "srvIPXT", "dom=a", header, agent)["name"]
			_, beaten := s.json(t, "clientBeat", beat, header, agent)["code"]
			if listed != later || beaten != later {
				t.Errorf("%s %q: 1.4.8's list %v, beat %v; want %v", header, agent, listed, beaten, later)
			}
		}
	}
}

func TestNames(t *testing.T) {
	s := newTestServer(t)
	s.ok(t, "regService", "serviceName=ab&ip=1.1.1.1&port=1")
	s.ok(t, "regDom", "serviceName=b.c&owners=me,you")
	s.ok(t, "regService", "serviceName=ns-only&namespaceId=n&ip=::1&port=2")
	s.send(t, "POST", "/nacos/v1/ns/instance?serviceName=x&groupName=g&ip=1.1.1.1&port=9", "")
	list := func(call, params string, headers ...string) string {
		t.Helper()
		got := s.get(t, call, params, headers...)
		return got.body
	}
	for _, tt := range []struct{ call, params, want string }{
		{"allDomNames", "", `{"doms":{"n":["ns-only"],"public":["ab","b.c","g@@x"]},"count":4}`},
		{"searchDom", "expr=", "Param 'expr' is required.\n"},
		{"searchDom", "expr=b", `{"doms":["ab","b.c"]}`},
		{"searchDom", "expr=b.c", `{"doms":["b.c"]}`},
		{"searchDom", "expr=%5Ea", `{"doms":["ab"]}`},
		{"searchDom", "expr=me,+you", `{"doms":["b.c"]}`},
		{"searchDom", "expr=ns&namespaceId=n", `{"doms":["ns-only"]}`},
		{"searchDom", "expr=ns&namespaceId=nowhere", `{"doms":[]}`},
		{"searchDom", "expr=(", "Param 'expr' is illegal, it is no regular expression.\n"},
		{"searchDom", "expr=a%7B9%7D", "Param 'expr' is illegal, a pattern may have 64 bytes and no counted repetition.\n"},
		{"getDomsByIP", "", "Param 'ip' is required.\n"},
		{"getDomsByIP", "ip=1.1.1.1", `{"doms":["public##ab","public##g@@x"]}`},
		{"getDomsByIP", "ip=1.1.1.1:9", `{"doms":["public##g@@x"]}`},
		{"getDomsByIP", "ip=0:0::1", `{"doms":["n##ns-only"]}`},
		{"getDomsByIP", "ip=[::1]:2", `{"doms":["n##ns-only"]}`},
		{"getDomsByIP", "ip=1.1.1.1:x", `{"doms":[]}`},
		{"ip4Dom2", "dom=n%23%23ns-only", `{"ips":["::1:2_true"]}`},
		{"ip4Dom2", "dom=g@@x", `{"ips":["1.1.1.1:9_true"]}`},
	} {
		if got := list(tt.call, tt.params); got != tt.want {
			t.Errorf("%s?%s: got %s, want %s", tt.call, tt.params, got, tt.want)
		}
	}
	if got := list("allDomNames", "", "Client-Version", "Nacos-DNS:v1.0.1"); got != `{"doms":["ab","b.c","g@@x"],"count":3}` {
		t.Errorf("the old DNS client: %s", got)
	}
	if got := list("allDomNames", "", "User-Agent", "Nacos-DNS:v1.0.2"); !strings.HasPrefix(got, `{"doms":{`) {
		t.Errorf("a later DNS client: %s", got)
	}
	if got := s.json(t, "srvIPXT", "dom=g@@x"); got["dom"] != "g@@x" {
		t.Errorf("a service of another group: %v", got)
	}
}

// TestEveryVerb: 0.9 takes any method, and parameters in query or form.
func TestEveryVerb(t *testing.T) {
	s := newTestServer(t)
	for n, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE"} {
		params := fmt.Sprintf("serviceName=a&ip=1.1.1.1&port=%d", n+1)
		got := s.send(t, method, "/v1/ns/api/regService?"+params, "")
		if method != "GET" && got.body == "ok" {
			got = s.send(t, method, "/nacos/v1/ns/api/regService/", strings.Replace(params, "ip=1", "ip=2", 1), "Content-Type", "application/x-www-form-urlencoded")
		}
		if got.status != 200 || got.body != "ok" {
			t.Errorf("%s: got %+v", method, got)
		}
	}
	if n := len(s.store.View(key("a")).Instances); n != 9 {
		t.Errorf("%d instances, want 9", n)
	}
	if got := s.send(t, "HEAD", "/nacos/v1/ns/api/hello", ""); got.status != 200 || got.body != "" {
		t.Errorf("HEAD: %+v", got)
	}
}

func TestHello(t *testing.T) {
	s := newTestServer(t)
	want := answer{200, "application/json", `{"msg":"Hello! I am Nacos-Naming and healthy! total services: raft 0, local port:8848"}`}
	if got := s.get(t, "hello", ""); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestOperatorKeys(t *testing.T) {
	s := newTestServer(t)
	for call, want := range map[string][]string{
		"metrics":         {"cpu", "domCount", "ipCount", "load", "mem", "notifyTask", "responsibleDomCount", "responsibleIPCount"},
		"distroStatus":    {"status"},
		"getVersion":      {"change log", "server version"},
		"getAllChangeLog": {"0.9.0"},
		"pushState":       {"ratio", "reset", "succeed", "total"},
	} {
		got := s.json(t, call, "")
		if keys := sortedKeys(got); !slices.Equal(keys, want) {
			t.Errorf("%s: keys %v, want %v", call, keys, want)
		}
	}
	if got := s.json(t, "distroStatus", "action=clean"); len(got) != 0 {
		t.Errorf("distroStatus clean: %v", got)
	}
}

func sortedKeys(m map[string]any) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
