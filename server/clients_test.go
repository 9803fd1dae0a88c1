package server_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rollcall-registry/rollcall/api/grpcv2"
	"github.com/rollcall-registry/rollcall/internal/grpcapi/grpctest"
	"github.com/rollcall-registry/rollcall/server"
	"github.com/rollcall-registry/rollcall/servertest"
)

// TestClientMetrics: who is connected, by SDK; what became of pushes and how long
// they took, by protocol; and who was refused.
func TestClientMetrics(t *testing.T) {
	t.Parallel()
	s := servertest.New(t, func(c *server.Config) { c.GRPCConn.MaxConnsPerIP = 2 })
	client, stream := connect(t, s, "Nacos-Java-Client:v2.5.1")
	connect(t, s, "someone/1")
	const orders = `{"namespace":"public","serviceName":"orders","groupName":"DEFAULT_GROUP"`
	client.Call(t, "SubscribeServiceRequest", orders+`,"subscribe":true}`)
	acknowledge(t, stream) // the greeting, which tells of no change
	awaitMetrics(t, s, `rollcall_pushes_total{outcome="acked",protocol="grpc"} 1`)
	client.Call(t, "InstanceRequest", orders+`,"type":"registerInstance","instance":{"ip":"10.0.0.5","port":80,"ephemeral":true}}`)
	acknowledge(t, stream)
	if _, err := grpctest.Dial(t, s.Addr()).Try(grpctest.Message{Head: grpcv2.Head{Type: grpcv2.ServerCheck}, Body: "{}"}); err == nil {
		t.Error("a third connection is served")
	}
	awaitMetrics(
		t, s,
		`rollcall_connections{protocol="grpc"} 2`,
		`rollcall_connections_refused_total{protocol="grpc",reason="address_limit"} 1`,
		`rollcall_connections_refused_total{protocol="grpc",reason="limit"} 0`,
		`rollcall_connections_refused_total{protocol="http",reason="limit"} 0`,
		`rollcall_connections_refused_total{protocol="unknown",reason="pending"} 0`,
		`rollcall_grpc_clients{sdk="java",version="2.5"} 1`,
		`rollcall_grpc_clients{sdk="other",version="other"} 1`,
		`rollcall_pushes_sent_total{protocol="grpc"} 2`,
		`rollcall_pushes_total{outcome="acked",protocol="grpc"} 2`,
		`rollcall_push_send_seconds_count{protocol="grpc"} 1`,
		`rollcall_push_ack_seconds_count{protocol="grpc"} 1`,
	)
}

// New limits are for connections to come; those that are there stay.
func TestConnectionLimitsAreReloaded(t *testing.T) {
	t.Parallel()
	var cfg server.Config
	s := servertest.New(t, func(c *server.Config) {
		c.GRPCConn.MaxConnsPerIP = 1
		cfg = *c
	})
	first, _ := connect(t, s, "someone/1")
	check := grpctest.Message{Head: grpcv2.Head{Type: grpcv2.ServerCheck}, Body: "{}"}
	refused := func(limit string) {
		t.Helper()
		if _, err := grpctest.Dial(t, s.Addr()).Try(check); err == nil || !strings.Contains(err.Error(), limit) {
			t.Errorf("%v, want a refusal for %q", err, limit)
		}
	}
	refused("from this address: at most 1")
	cfg.GRPCConn.MaxConnsPerIP = 2
	s.Reload(cfg)
	second, _ := connect(t, s, "someone/2")
	cfg.GRPCConn.MaxConns, cfg.GRPCConn.MaxConnsPerIP = 1, 0
	s.Reload(cfg)
	refused("the server serves at most 1")
	for _, c := range []*grpctest.Client{first, second} {
		if _, err := c.Try(check); err != nil {
			t.Errorf("a connection that is there: %v", err)
		}
	}
	cfg.HTTP.MaxConnsPerIP = 1
	s.Reload(cfg)
	held, err := net.Dial("tcp", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	if got := askRaw(t, held); !strings.HasPrefix(got, "HTTP/1.1 200 ") {
		t.Errorf("the first of its address: %q", got)
	}
	next, err := net.Dial("tcp", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer next.Close()
	if got := askRaw(t, next); !strings.HasPrefix(got, "HTTP/1.1 429 ") {
		t.Errorf("one more of its address: %q", got)
	}
}

// At the limit of subscriptions, a client of gRPC is told which setting it is, and
// one of HTTP gets its list and goes on polling.
func TestSubscriptionLimit(t *testing.T) {
	t.Parallel()
	s := servertest.New(t, func(c *server.Config) { c.Limits.SubscriptionLimit = 1 })
	client, _ := connect(t, s, "someone/1")
	subscribe := func(service string) string {
		return string(client.Call(t, "SubscribeServiceRequest",
			`{"namespace":"public","groupName":"DEFAULT_GROUP","subscribe":true,"serviceName":"`+service+`"}`).Body)
	}
	if got := subscribe("orders"); !strings.Contains(got, `"resultCode":200`) {
		t.Errorf("the first: %s", got)
	}
	if got := subscribe("stock"); !strings.Contains(got, `"errorCode":500`) || !strings.Contains(got, "limits.subscriptions") {
		t.Errorf("one more: %s", got)
	}
	request, err := http.NewRequestWithContext(t.Context(), "GET", s.URL()+"/nacos/v1/ns/instance/list?serviceName=orders&udpPort=50000", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("User-Agent", "Nacos-Java-Client:v1.4.8")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != 200 || !strings.Contains(string(body), `"cacheMillis":3000`) {
		t.Errorf("over HTTP: %d %s (%v)", answer.StatusCode, body, err)
	}
}

// askRaw asks for the liveness on a connection and returns the beginning of the answer.
func askRaw(t *testing.T, nc net.Conn) string {
	t.Helper()
	if _, err := nc.Write([]byte("GET /livez HTTP/1.1\r\nHost: h\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	_ = nc.SetReadDeadline(time.Now().Add(grpctest.Patience))
	answer := make([]byte, 1<<10)
	n, err := nc.Read(answer)
	if err != nil {
		t.Fatal(err)
	}
	return string(answer[:n])
}

// awaitMetrics waits until the metrics have lines.
func awaitMetrics(t *testing.T, s *servertest.Server, lines ...string) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(grpctest.Patience); ; <-tick.C {
		text := call(t, "GET", s.URL()+"/metrics")
		missing := slices.DeleteFunc(slices.Clone(lines), func(line string) bool { return strings.Contains(text, "\n"+line+"\n") })
		switch {
		case len(missing) == 0:
			return
		case time.Now().After(deadline):
			t.Fatalf("the metrics never have\n%s", strings.Join(missing, "\n"))
		}
	}
}

// connect connects a gRPC client that names itself.
func connect(t *testing.T, s *servertest.Server, agent string) (*grpctest.Client, *grpctest.Stream) {
	t.Helper()
	c := grpctest.Dial(t, s.Addr())
	stream := c.Open(t)
	stream.Say(t, grpcv2.ConnectionSetup, fmt.Sprintf(`{"clientVersion":%q,"labels":{"module":"naming"},"abilityTable":{}}`, agent))
	stream.Expect(t, grpcv2.SetupAck)
	return c, stream
}

// acknowledge answers one push.
func acknowledge(t *testing.T, s *grpctest.Stream) {
	t.Helper()
	push := s.Expect(t, grpcv2.NotifySubscriber)
	s.Say(t, "NotifySubscriberResponse", fmt.Sprintf(`{"resultCode":200,"requestId":%q}`, push.Members(t)["requestId"]))
}
