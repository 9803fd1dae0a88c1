package v1

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/rollcall-registry/rollcall/internal/httpapi/httpapitest"
)

// FuzzCalls sends a request to each call of this generation: never a panic or a
// fault of the server's own, and every answer is complete and its JSON valid. What
// a request leaves behind can be read by every call that lists.
func FuzzCalls(f *testing.F) {
	for i, params := range []string{
		"serviceName=a", "serviceName=g@@a&protectThreshold=0.5&metadata=k=v", "serviceName=&pageNo=1&pageSize=2147483647",
		"serviceName=a&selector=" + escape(`{"type":"label","expression":"CONSUMER.label.x=PROVIDER.label.x"}`),
		"pageNo=1&pageSize=10&selector=" + escape(`{"type":"label","expression":"SERVICE.metadata.k='v'"}`),
		"pageNo=-2147483648&pageSize=2147483647&hasIpCount=true&instance=::1&withInstances=no",
		"serviceName=a&clusterName=DEFAULT&pageNo=0&pageSize=1", "expr=%28%3F%3Ai%29a&namespaceId=public",
		"serviceName=a&clusterName=c&checkPort=80&useInstancePort4Check=yes&healthChecker=" + escape(`{"type":"HTTP","path":"/\u0000"}`),
		"serviceName=a&ip=1.1.1.1&port=1&healthy=no&clusterName=NONE", "entry=limitedUrlMap&value=/nacos/v1:404,/v1:500",
		"entry=overriddenServerStatus&value=DOWN", "entry=batch&value=%7B%7D", "entry=pushVersion&value=go:1.0.0&debug=1",
		"customNamespaceId=%ff&namespaceName=%e4&namespaceDesc=%00", "customNamespaceId=&namespaceName=x", "show=all&namespaceId=",
		"username=%22&password=", "keyword=%00", "serverStatus=a%23b%23c%23d", "logName=root&logLevel=debug", "detail=1&reset=1",
	} {
		for call := i; call < 80; call += 7 {
			f.Add(uint8(call), params, "")
		}
		f.Add(uint8(i), "", params)
	}
	f.Fuzz(func(t *testing.T, call uint8, query, form string) {
		s := newTestAPI(t, httpapitest.Stopped{})
		routes := s.api.Routes()
		route := routes[int(call)%len(routes)]
		s.replay(t, "POST", "/instance?serviceName=a&ip=1.1.1.1&port=1", "")
		s.replay(t, "PUT", "/cluster?serviceName=a&clusterName=NONE&checkPort=80&useInstancePort4Check=true&healthChecker=%7B%7D", "")
		target := "/nacos" + route.Path + "?" + printable(query)
		answer := s.replay(t, route.Methods[0], target, form)
		switch answer.status {
		case 200, 400, 403, 404, 500:
		default:
			t.Errorf("%s %s: status %d", route.Methods[0], target, answer.status)
		}
		if strings.Contains(answer.body, "internal error") || !utf8.ValidString(answer.body) {
			t.Errorf("%s %s %q: %q", route.Methods[0], target, form, answer.body)
		}
		// The gate may be shut now, and is not what this is about.
		s.setSwitch(t, "overriddenServerStatus", "null")
		s.setSwitch(t, "limitedUrlMap", "/zzz:404")
		for _, list := range []string{
			"/service?serviceName=a", "/service/list?pageNo=1&pageSize=9&groupName=*", "/service/names",
			"/catalog/service?serviceName=a", "/catalog/services?pageNo=0&pageSize=9&withInstances=true",
			"/catalog/services?pageNo=1&pageSize=9", "/catalog/instances?serviceName=a&clusterName=DEFAULT&pageNo=1&pageSize=9",
			"/operator/switches", "/nacos/v1/console/namespaces",
		} {
			got := s.replay(t, "GET", list, "")
			gone := got.status == 500 && strings.HasSuffix(got.body, " is not found!;") // the request deleted it
			if !gone && (got.status != 200 || !json.Valid([]byte(got.body)) || !utf8.ValidString(got.body)) {
				t.Errorf("after %s %s %q, %s: %d %q", route.Methods[0], target, form, list, got.status, got.body)
			}
		}
	})
}
