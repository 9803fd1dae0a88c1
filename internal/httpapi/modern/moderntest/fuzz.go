package moderntest

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/rollcall-registry/rollcall/internal/hosts"
	"github.com/rollcall-registry/rollcall/internal/httpapi/httpapitest"
	"github.com/rollcall-registry/rollcall/internal/httpapi/modern"
	"github.com/rollcall-registry/rollcall/internal/naming"
)

// Fuzz sends whole requests to all calls of an API, where there is a service a with
// an instance 1.1.1.1:1: never a panic, every answer is complete and its JSON valid,
// and so is the list of whatever the request left behind.
func Fuzz(f *testing.F, make func(modern.Parts) API) {
	for n, params := range []string{
		"serviceName=a&ip=1.1.1.1&port=1&metadata=k=v&weight=0.5&enabled=no&healthy=1", "serviceName=a&ip=::1&port=-1&clusterName=c&ephemeral=false",
		`serviceName=g@@a&beat={"ip":"1.1.1.1","port":"1","cluster":"c"}`, "serviceName=a&clusterName=a,b&port=1&ip=127.0.0.1&healthyOnly=true",
		`serviceName=a&metadata=%7B%7D&instances=[{"ip":"1.1.1.1","port":"1"}]`, "serviceName=%ff%00&ip=%e4&port=+1&weight=NaN",
		"serviceName=a&pageNo=1&pageSize=2147483647&withInstances=true", "serviceNameParam=.*&groupNameParam=(&pageNo=-1&ignoreEmptyService=1",
		`serviceName=a&clusterName=c&checkPort=80&useInstancePort4Check=true&healthChecker={"type":"HTTP","path":"/"}`,
		`serviceName=b&protectThreshold=0.5&selector={"type":"none"}&ephemeral=true`, "namespaceId=team&namespaceName=Team&customNamespaceId=team",
		"entry=pushCacheMillis&value=1&debug=true", "clientId=1.1.1.1:1%23true", "username=u&password=p", "count=1&connectionId=x",
		"logName=x&logLevel=warn", "serviceName=a&ip=1.1.1.1&port=1&healthy=false&heartBeat=true", "onlyStatus=false&type=file&keyword=1",
	} {
		f.Add(uint8(n), params, "")
		f.Add(uint8(3*n), "serviceName=b", params)
	}
	var agents [256]string
	agents[1], agents[2] = "Nacos-Java-Client:v1.4.8", "Nacos-Go-Client:v1.0.1"
	f.Fuzz(func(t *testing.T, call uint8, query, form string) {
		s := New(t, make)
		first := httpapitest.WireRequest{Method: "POST", Target: s.path("instance") + "?serviceName=a&ip=1.1.1.1&port=1"}
		if got := s.ask(t, first); got.Status != 200 {
			t.Fatalf("%+v: %+v", first, got)
		}
		route := s.routes[int(call)%len(s.routes)]
		path := strings.Replace(route.Path, "{key}", httpapitest.EscapeTarget(strings.ReplaceAll(query, "/", "")), 1)
		r := httpapitest.WireRequest{
			Method: route.Methods[0], Target: path + "?" + httpapitest.EscapeTarget(query), Body: form,
			Headers: []string{"Content-Type", "application/x-www-form-urlencoded", "User-Agent", agents[call%4]},
		}
		got := s.ask(t, r)
		if !slices.Contains([]int{200, 400, 403, 404, 500, 501}, got.Status) || strings.Contains(got.Body, "internal error") {
			t.Errorf("%+v: %+v", r, got)
		}
		s.checkLists(t)
	})
}

// path returns the path of the first call whose path ends so.
func (s *Server) path(end string) string {
	for _, route := range s.routes {
		if strings.HasSuffix(route.Path, "/"+end) {
			return route.Path
		}
	}
	return "/none"
}

// ask sends a request without a socket.
func (s *Server) ask(t *testing.T, r httpapitest.WireRequest) httpapitest.WireAnswer {
	t.Helper()
	got := httpapitest.Ask(t, s.HTTP, r)
	if strings.HasPrefix(got.ContentType, "application/json") && !json.Valid([]byte(got.Body)) {
		t.Fatalf("%+v: answered %q", r, got.Body)
	}
	return got
}

// checkLists holds the list of each service to valid JSON.
func (s *Server) checkLists(t *testing.T) {
	t.Helper()
	encoder := naming.NewEncoder(0)
	for _, ns := range s.Store.ServiceNamespaces() {
		keys, _ := s.Store.Services(ns, "", 0, 10)
		for _, key := range keys {
			if array := hosts.Select(encoder, s.Store.View(key), hosts.Filter{}).Array; !json.Valid(array) {
				t.Errorf("%v is listed as %q", key, array)
			}
		}
	}
}
