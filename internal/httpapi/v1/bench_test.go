package v1

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rollcall-registry/rollcall/internal/httpapi"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// BenchmarkRequest serves one request after the other on one connection that is
// no socket: the whole HTTP server works, the kernel does not. "nothing" is the
// same with a handler that only answers ok, so the rest is what a call costs.
func BenchmarkRequest(b *testing.B) {
	const beatJSON = `{"cluster":"DEFAULT","ip":"10.0.0.1","metadata":{"version":"1.0","zone":"a","side":"provider"},` +
		`"period":5000,"port":8080,"scheduled":false,"serviceName":"DEFAULT_GROUP@@svc-10","stopped":false,"weight":1.0}`
	const registration = "serviceName=DEFAULT_GROUP%40%40svc-10&groupName=DEFAULT_GROUP&namespaceId=public&clusterName=DEFAULT" +
		"&app=unknown&port=8080&enable=true&healthy=true&ephemeral=true&weight=1.0" +
		"&metadata=%7B%22version%22%3A%221.0%22%2C%22zone%22%3A%22a%22%2C%22side%22%3A%22provider%22%7D"
	for _, bench := range []struct{ name, method, target string }{
		{"nothing", "GET", "/nothing?" + registration + "&ip=10.0.0.1"},
		{"beat light", "PUT", "/nacos/v1/ns/instance/beat?namespaceId=public&serviceName=DEFAULT_GROUP%40%40svc-10&clusterName=DEFAULT&ip=10.0.0.1&port=8080"},
		{"beat full", "PUT", "/nacos/v1/ns/instance/beat?namespaceId=public&serviceName=DEFAULT_GROUP%40%40svc-10&beat=" + escape(beatJSON)},
		{"list 1", "GET", listTarget(1, "")},
		{"list 10", "GET", listTarget(10, "")},
		{"list 10 in cluster", "GET", listTarget(10, "DEFAULT")},
		{"list 10 subscribed", "GET", listTarget(10, "") + "&udpPort=50000"},
		{"list 1000", "GET", listTarget(1000, "")},
		{"register again", "POST", "/nacos/v1/ns/instance?" + registration + "&ip=10.0.0.1"},
		{"register new", "POST", "/nacos/v1/ns/instance?" + strings.ReplaceAll(registration, "svc-10", "svc-"+counter) + "&ip=10.0.0.1"},
	} {
		b.Run(bench.name, func(b *testing.B) {
			s := newTestAPI(b, sinceStart(time.Now()))
			for _, n := range []int{1, 10, 1000} {
				fillService(b, s, n)
			}
			request := bench.method + " " + bench.target + " HTTP/1.1\r\nHost: 127.0.0.1:8848\r\n" +
				"User-Agent: Nacos-Java-Client:v1.4.1\r\nAccept-Encoding: identity\r\nConnection: Keep-Alive\r\n\r\n"
			server := newBenchServer(b, s)
			conn := &loopConn{request: []byte(request), left: b.N}
			conn.counter = bytes.Index(conn.request, []byte(counter))
			b.ReportAllocs()
			b.ResetTimer()
			server.ServeConn(b.Context(), conn, nil)
			b.StopTimer()
			if conn.left != 0 || conn.failed != "" {
				b.Fatalf("%d requests were not served; %s", conn.left, conn.failed)
			}
		})
	}
}

// BenchmarkEncode builds the hosts of a view anew, as after each change.
func BenchmarkEncode(b *testing.B) {
	for _, n := range []int{10, 1000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			s := newTestAPI(b, sinceStart(time.Now()))
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
func fillService(b *testing.B, s *testServer, n int) {
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

func newBenchServer(b *testing.B, s *testServer) *httpapi.Server {
	nothing := httpapi.Route{
		Methods: []string{"GET"}, Path: "/nothing", Resource: httpapi.Open, Action: httpapi.Read,
		Handler: func(x *httpapi.Exchange) { x.OK() },
	}
	router, err := httpapi.NewRouter("/nacos", httpapi.Hooks{}, []httpapi.Group{
		{NoRoute: httpapi.NotFound, WrongMethod: httpapi.MethodNotSupported},
	}, s.api.Routes(), []httpapi.Route{nothing})
	if err != nil {
		b.Fatal(err)
	}
	server, err := httpapi.New(httpapi.DefaultConfig(), router, slog.New(slog.DiscardHandler))
	if err != nil {
		b.Fatal(err)
	}
	return server
}

// counter stands for digits that differ in each request.
const counter = "00000000"

// loopConn is the server's end of a connection on which one request comes over
// and over.
type loopConn struct {
	request []byte
	left    int
	counter int // index of the digits to change; negative without
	failed  string
}

func (c *loopConn) Read(p []byte) (int, error) {
	if c.left == 0 {
		return 0, io.EOF
	}
	c.left--
	if c.counter >= 0 {
		n := c.left
		for i := len(counter) - 1; i >= 0; i-- {
			c.request[c.counter+i] = byte('0' + n%10)
			n /= 10
		}
	}
	return copy(p, c.request), nil
}

func (c *loopConn) Write(p []byte) (int, error) {
	if bytes.HasPrefix(p, []byte("HTTP/1.1 ")) && !bytes.HasPrefix(p, []byte("HTTP/1.1 200 ")) {
		c.failed = string(p)
	}
	return len(p), nil
}

func (c *loopConn) Close() error                     { return nil }
func (c *loopConn) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (c *loopConn) SetDeadline(time.Time) error      { return nil }
func (c *loopConn) SetReadDeadline(time.Time) error  { return nil }
func (c *loopConn) SetWriteDeadline(time.Time) error { return nil }

func (c *loopConn) RemoteAddr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.MustParseAddrPort("127.0.0.1:40000"))
}
