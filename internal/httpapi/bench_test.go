package httpapi_test

import (
	"bytes"
	"testing"

	"github.com/rollcall-registry/rollcall/internal/httpapi"
	"github.com/rollcall-registry/rollcall/internal/httpapi/httpapitest"
)

// The two requests that make up nearly all load, as nacos-client 1.4 sends them.
const (
	beatRequest = "PUT /nacos/v1/ns/instance/beat?app=unknown&serviceName=DEFAULT_GROUP%40%40orders&namespaceId=public" +
		"&port=8080&clusterName=DEFAULT&ip=10.0.0.7&beat=%7B%22cluster%22%3A%22DEFAULT%22%2C%22ip%22%3A%2210.0.0.7%22%2C%22metadata" +
		"%22%3A%7B%7D%2C%22period%22%3A5000%2C%22port%22%3A8080%2C%22scheduled%22%3Afalse%2C%22serviceName%22%3A%22DEFAULT_GROUP" +
		"%40%40orders%22%2C%22stopped%22%3Afalse%2C%22weight%22%3A1.0%7D HTTP/1.1\r\n" + javaHeaders + "Content-Length: 0\r\n\r\n"
	listRequest = "GET /nacos/v1/ns/instance/list?app=unknown&healthyOnly=false&namespaceId=public&clientIP=10.0.0.9&serviceName=" +
		"DEFAULT_GROUP%40%40orders&udpPort=53210&encoding=UTF-8 HTTP/1.1\r\n" + javaHeaders + "\r\n"
	javaHeaders = "Content-Type: application/x-www-form-urlencoded\r\nAccept-Charset: UTF-8\r\nAccept-Encoding: gzip,deflate,sdch\r\n" +
		"Content-Encoding: UTF-8\r\nClient-Version: 1.4.8\r\nUser-Agent: Nacos-Java-Client:v1.4.8\r\n" +
		"RequestId: 0f7cbbd9-3f5e-4e5e-9a3e-0c1d2b3a4f5e\r\nRequest-Module: Naming\r\nHost: 127.0.0.1:8848\r\n" +
		"Accept: text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2\r\nConnection: Keep-Alive\r\n"
)

func BenchmarkBeat(b *testing.B) {
	benchmark(b, beatRequest, httpapi.Route{
		Methods: []string{"PUT"}, Path: "/v1/ns/instance/beat", Resource: httpapi.Naming, Action: httpapi.Write,
		Handler: func(x *httpapi.Exchange) {
			p := x.Params()
			service, err := p.Required("serviceName")
			port, portErr := p.Int("port", 0)
			if err != nil || portErr != nil || port != 8080 || service != "DEFAULT_GROUP@@orders" ||
				p.Optional("namespaceId", "") != "public" || p.Optional("clusterName", "DEFAULT") != "DEFAULT" ||
				p.Optional("beat", "") == "" || !x.Agent().GroupedNames() {
				x.Empty(500)
				return
			}
			x.Scratch = append(x.Scratch[:0], `{"clientBeatInterval":5000,"code":10200,"lightBeatEnabled":true}`...)
			x.JSON(200, x.Scratch)
		},
	})
}

func BenchmarkList(b *testing.B) {
	body := bytes.Repeat([]byte("x"), 3000) // about ten instances
	benchmark(b, listRequest, httpapi.Route{
		Methods: []string{"GET"}, Path: "/v1/ns/instance/list", Resource: httpapi.Naming, Action: httpapi.Read,
		Handler: func(x *httpapi.Exchange) {
			p := x.Params()
			service, err := p.Required("serviceName")
			udpPort, portErr := p.Int("udpPort", 0)
			if err != nil || portErr != nil || udpPort != 53210 || service != "DEFAULT_GROUP@@orders" ||
				p.Optional("clusters", "") != "" || p.BoolStrict("healthyOnly", false) ||
				!x.Agent().PushEligible(httpapi.DefaultPushVersions()) {
				x.Empty(500)
				return
			}
			x.JSON(200, body)
		},
	})
}

// benchmark replays request to one route: everything from the bytes of the
// request to those of the answer, without the network.
func benchmark(b *testing.B, request string, route httpapi.Route) {
	server := httpapitest.Server(b, httpapi.DefaultConfig(), httpapi.Hooks{}, route)
	if answer := httpapitest.Replay(server, []byte(request), 1); !bytes.HasPrefix(answer, []byte("HTTP/1.1 200")) {
		b.Fatalf("answer %q", answer)
	}
	b.ReportAllocs()
	b.ResetTimer()
	httpapitest.Replay(server, []byte(request), b.N)
}
