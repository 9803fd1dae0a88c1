package v1

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rollcall-registry/rollcall/internal/httpapi/httpapitest"
	"github.com/rollcall-registry/rollcall/internal/httpapi/values"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// BenchmarkRequest serves one request after the other on one connection that is
// no socket: the whole HTTP server works, the kernel does not. "nothing" is the
// same with a handler that only answers ok, so the rest is what a call costs.
func BenchmarkRequest(b *testing.B) {
	for _, bench := range []struct{ name, method, target string }{
		{"nothing", "GET", "/nothing?" + benchRegistration + "&ip=10.0.0.1"},
		{"beat light", "PUT", benchLightBeat},
		{"beat full", "PUT", benchFullBeat()},
		{"list 1", "GET", listTarget(1, "")},
		{"list 10", "GET", listTarget(10, "")},
		{"list 10 in cluster", "GET", listTarget(10, "DEFAULT")},
		{"list 10 subscribed", "GET", listTarget(10, "") + "&udpPort=50000"},
		{"list 1000", "GET", listTarget(1000, "")},
		{"register again", "POST", "/nacos/v1/ns/instance?" + benchRegistration + "&ip=10.0.0.1"},
	} {
		b.Run(bench.name, func(b *testing.B) {
			s := newTestAPI(b, httpapitest.Running(time.Now()))
			for _, n := range []int{1, 10, 1000} {
				fillService(b, s, n)
			}
			request := []byte(bench.method + " " + bench.target + benchHeaders)
			b.ReportAllocs()
			b.ResetTimer()
			checkAnswer(b, httpapitest.Replay(s.http, request, b.N))
		})
	}
}

// BenchmarkRegisterNew registers another service with each request. The requests
// are pipelined.
func BenchmarkRegisterNew(b *testing.B) {
	s := newTestAPI(b, httpapitest.Running(time.Now()))
	var requests []byte
	for i := range b.N {
		target := strings.ReplaceAll(benchRegistration, "svc-10", fmt.Sprintf("svc-%08d", i))
		requests = append(requests, "POST /nacos/v1/ns/instance?ip=10.0.0.1&"+target+benchHeaders...)
	}
	b.ReportAllocs()
	b.ResetTimer()
	checkAnswer(b, httpapitest.Replay(s.http, requests, 1))
	b.StopTimer()
	if n := s.store.Counts().Services; n != int64(b.N) {
		b.Fatalf("got %d services, want %d", n, b.N)
	}
}

func checkAnswer(b testing.TB, answer []byte) {
	b.Helper()
	if !bytes.HasPrefix(answer, []byte("HTTP/1.1 200 ")) {
		b.Fatalf("got %.200q", answer)
	}
}

const benchHeaders = " HTTP/1.1\r\nHost: 127.0.0.1:8848\r\nUser-Agent: Nacos-Java-Client:v1.4.1\r\n" +
	"Accept-Encoding: identity\r\nConnection: Keep-Alive\r\n\r\n"

const benchLightBeat = "/nacos/v1/ns/instance/beat?namespaceId=public&serviceName=DEFAULT_GROUP%40%40svc-10&clusterName=DEFAULT&ip=10.0.0.1&port=8080"

func benchFullBeat() string {
	return "/nacos/v1/ns/instance/beat?namespaceId=public&serviceName=DEFAULT_GROUP%40%40svc-10&beat=" + escape(benchBeat)
}

const benchBeat = `{"cluster":"DEFAULT","ip":"10.0.0.1","metadata":{"version":"1.0","zone":"a","side":"provider"},` +
	`"period":5000,"port":8080,"scheduled":false,"serviceName":"DEFAULT_GROUP@@svc-10","stopped":false,"weight":1.0}`

const benchRegistration = "serviceName=DEFAULT_GROUP%40%40svc-10&groupName=DEFAULT_GROUP&namespaceId=public&clusterName=DEFAULT" +
	"&app=unknown&port=8080&enable=true&healthy=true&ephemeral=true&weight=1.0" +
	"&metadata=%7B%22version%22%3A%221.0%22%2C%22zone%22%3A%22a%22%2C%22side%22%3A%22provider%22%7D"

// BenchmarkEncode builds the hosts of a view anew, as after each change.
func BenchmarkEncode(b *testing.B) {
	for _, n := range []int{10, 1000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			s := newTestAPI(b, httpapitest.Running(time.Now()))
			fillService(b, s, n)
			view := s.store.View(key(fmt.Sprint("svc-", n)))
			b.ReportAllocs()
			for b.Loop() {
				f := form{grouped: true}
				f.encode(nil, view)
			}
		})
	}
}

func listTarget(n int, clusters string) string {
	return fmt.Sprintf("/nacos/v1/ns/instance/list?namespaceId=public&serviceName=DEFAULT_GROUP%%40%%40svc-%d"+
		"&clusters=%s&clientIP=127.0.0.1&healthyOnly=false", n, clusters)
}

// fillService registers n instances in the service svc-n.
func fillService(b testing.TB, s *testServer, n int) {
	for i := range n {
		_, err := s.store.Apply(&registry.Register{
			Meta: registry.Meta{At: s.core.Now()}, Service: key(fmt.Sprint("svc-", n)),
			Owner: registry.Owner{Kind: registry.OwnerHTTP},
			Instance: registry.Instance{
				IP: fmt.Sprintf("10.0.%d.%d", i/250, i%250+1), Port: 8080, Cluster: "DEFAULT", App: "unknown",
				Weight: 1, Healthy: true, Enabled: true, Ephemeral: true,
				Metadata: `{"side":"provider","version":"1.0","zone":"a"}`,
			},
		})
		if err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkParseBeat(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := values.ParseBeat(benchBeat); err != nil {
			b.Fatal(err)
		}
	}
}
