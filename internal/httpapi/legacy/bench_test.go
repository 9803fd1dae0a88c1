package legacy

import (
	"fmt"
	"testing"

	"github.com/rollcall-registry/rollcall/internal/httpapi/httpapitest"
)

// BenchmarkRequest measures whole requests on one connection without a socket.
func BenchmarkRequest(b *testing.B) {
	s := newTestAPI(b, httpapitest.Stopped{})
	for port := range 10 {
		s.replay(b, "GET", fmt.Sprintf("regService?serviceName=a&ip=10.0.0.7&port=%d&metadata=k=v", port+1), "")
	}
	beat := escape(`{"ip":"10.0.0.7","port":1,"dom":"a","cluster":"DEFAULT","weight":1.0,"metadata":{"k":"v"},"scheduled":true}`)
	for _, bb := range []struct{ name, target string }{
		{"nothing", "/nothing"},
		{"clientBeat", "/nacos/v1/ns/api/clientBeat?dom=a&beat=" + beat},
		{"srvIPXT", "/nacos/v1/ns/api/srvIPXT?dom=a"},
		{"regService", "/nacos/v1/ns/api/regService?serviceName=a&ip=10.0.0.7&port=1&metadata=k=v"},
	} {
		b.Run(bb.name, func(b *testing.B) {
			b.ReportAllocs()
			request := "GET " + bb.target + " HTTP/1.1\r\nHost: a\r\nClient-Version: Nacos-Java-Client:v0.9.0\r\n\r\n"
			httpapitest.Replay(s.http, []byte(request), b.N)
		})
	}
}
