package grpcapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/rollcall-registry/rollcall/api/grpcv2"
	"github.com/rollcall-registry/rollcall/internal/grpcapi/grpctest"
	"github.com/rollcall-registry/rollcall/servertest"
)

const setup = `{"clientVersion":"Nacos-Java-Client:v2.5.1","labels":{"source":"sdk","module":"naming"},"abilityTable":{}}`

// join connects and registers a client.
func join(t testing.TB, address string) (*grpctest.Client, *grpctest.Stream) {
	t.Helper()
	c := grpctest.Dial(t, address)
	s := c.Open(t)
	s.Say(t, grpcv2.ConnectionSetup, setup)
	s.Expect(t, grpcv2.SetupAck)
	return c, s
}

// ask makes a call about the service orders that must succeed.
func ask(t testing.TB, c *grpctest.Client, kind, members string) map[string]any {
	t.Helper()
	answer := c.Call(t, kind, `{"namespace":"public","serviceName":"orders","groupName":"DEFAULT_GROUP"`+members+`}`)
	m := answer.Members(t)
	if m["success"] != true {
		t.Fatalf("%s: %s", kind, answer.Body)
	}
	return m
}

func register(t testing.TB, c *grpctest.Client, op string, port int) {
	t.Helper()
	ask(t, c, grpcv2.InstanceType, fmt.Sprintf(`,"type":%q,"instance":{"ip":"10.0.0.1","port":%d}`, op, port))
}

// ports returns the ports of the instances of orders, asked for over HTTP.
func ports(t testing.TB, server *servertest.Server) string {
	t.Helper()
	answer, err := http.Get(server.URL() + "/nacos/v1/ns/instance/list?serviceName=orders")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var list struct {
		Hosts []struct{ Port int }
	}
	if err := json.NewDecoder(answer.Body).Decode(&list); err != nil {
		t.Fatal(err)
	}
	var words []string
	for _, h := range list.Hosts {
		words = append(words, fmt.Sprint(h.Port))
	}
	return strings.Join(words, " ")
}

func wait(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(grpctest.Patience); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %v", what, grpctest.Patience)
		}
	}
}

// An instance of a 1.x client over HTTP reaches a gRPC subscriber, and the other
// way round, on one port.
func TestGenerationsSeeEachOther(t *testing.T) {
	server := servertest.New(t)
	c, s := join(t, server.Addr())
	ask(t, c, grpcv2.SubscribeService, `,"subscribe":true,"clusters":""`)
	answer, err := http.Post(server.URL()+"/nacos/v1/ns/instance?serviceName=orders&ip=10.0.0.2&port=80", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	if string(body) != "ok" {
		t.Fatalf("got %q", body)
	}
	for { // the welcome may come before
		push := s.Expect(t, grpcv2.NotifySubscriber)
		s.Say(t, "NotifySubscriberResponse", fmt.Sprintf(`{"resultCode":200,"requestId":%q}`, push.Members(t)["requestId"]))
		if strings.Contains(string(push.Body), `"port":80,`) {
			break
		}
	}
	register(t, c, grpcv2.Register, 81)
	if got := ports(t, server); got != "81 80" && got != "80 81" {
		t.Errorf("listed over HTTP: %q", got)
	}
	c.Close()
	wait(t, "the instance of the closed connection goes", func() bool { return ports(t, server) == "80" })
}

// Over a restart the instances of gRPC clients stay, and a client that comes back
// can take its own away.
func TestRestart(t *testing.T) {
	dir := t.TempDir()
	server := servertest.New(t, servertest.WithDataDir(dir))
	kept, keptStream := join(t, server.Addr())
	register(t, kept, grpcv2.Register, 1)
	gone, _ := join(t, server.Addr())
	register(t, gone, grpcv2.Register, 2)
	gone.Close()
	wait(t, "the instance of the closed connection goes", func() bool { return ports(t, server) == "1" })
	server.Stop(t)
	if f := keptStream.Next(t); grpctest.StatusOf(f.Err) != "Unavailable" {
		t.Errorf("the stream ended with %+v", f)
	}

	server = servertest.New(t, servertest.WithDataDir(dir))
	if got := ports(t, server); got != "1" {
		t.Errorf("after the restart: %q", got)
	}
	back, _ := join(t, server.Addr())
	register(t, back, grpcv2.Register, 1)
	register(t, back, grpcv2.Deregister, 1)
	if got := ports(t, server); got != "" {
		t.Errorf("after the client took it away: %q", got)
	}
}

// Whoever registers at once after its setup, without waiting, is told that it is
// not known yet or is listed (nacos#11895).
func TestRegisterAtOnce(t *testing.T) {
	server := servertest.New(t)
	const clients = 100
	var all sync.WaitGroup
	registered := make(chan int, clients)
	for port := 1; port <= clients; port++ {
		all.Go(func() {
			c := grpctest.Dial(t, server.Addr())
			s := c.Open(t)
			s.Say(t, grpcv2.ConnectionSetup, setup)
			answer := c.Call(t, grpcv2.InstanceType, fmt.Sprintf(`{"namespace":"public","serviceName":"orders","groupName":"DEFAULT_GROUP","type":"registerInstance","instance":{"ip":"10.0.0.1","port":%d}}`, port))
			switch code := answer.Members(t)["errorCode"]; code {
			case 0.0:
				registered <- port
			case float64(grpcv2.CodeUnregistered):
			default:
				t.Errorf("got %s", answer.Body)
			}
		})
	}
	all.Wait()
	close(registered)
	listed := map[string]bool{}
	for port := range strings.FieldsSeq(ports(t, server)) {
		listed[port] = true
	}
	n := 0
	for port := range registered {
		if n++; !listed[fmt.Sprint(port)] {
			t.Errorf("%d was registered and is not listed", port)
		}
	}
	if n != len(listed) {
		t.Errorf("%d were registered, %d are listed", n, len(listed))
	}
}

// A message of 20 MB is refused, and costs nothing else.
func TestTooLarge(t *testing.T) {
	server := servertest.New(t)
	c, s := join(t, server.Addr())
	register(t, c, grpcv2.Register, 1)
	_, err := c.Try(grpctest.Message{Head: grpcv2.Head{Type: grpcv2.InstanceType}, Body: strings.Repeat("x", 20<<20)})
	if got := grpctest.StatusOf(err); got != "ResourceExhausted" {
		t.Errorf("got %s", got)
	}
	c.Call(t, grpcv2.HealthCheck, "{}")
	select {
	case f := <-s.Frames():
		t.Errorf("the stream got %+v", f)
	default:
	}
	if got := ports(t, server); got != "1" {
		t.Errorf("listed %q", got)
	}
}

func TestHealthService(t *testing.T) {
	server := servertest.New(t)
	conn, err := grpc.NewClient(server.Addr(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	ctx, cancel := context.WithTimeout(t.Context(), grpctest.Patience)
	defer cancel()
	client := healthpb.NewHealthClient(conn)
	for _, service := range []string{"", grpcv2.UnaryService} {
		got, err := client.Check(ctx, &healthpb.HealthCheckRequest{Service: service})
		if err != nil || got.GetStatus() != healthpb.HealthCheckResponse_SERVING {
			t.Errorf("%q: %v, %v", service, got, err)
		}
	}
	if _, err := client.Check(ctx, &healthpb.HealthCheckRequest{Service: "nothing"}); err == nil {
		t.Error("an unknown service is well")
	}
	watch, err := client.Watch(ctx, &healthpb.HealthCheckRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := watch.Recv(); err != nil || got.GetStatus() != healthpb.HealthCheckResponse_SERVING {
		t.Errorf("watch: %v, %v", got, err)
	}
	server.Stop(t)
	if got, err := watch.Recv(); err == nil && got.GetStatus() != healthpb.HealthCheckResponse_NOT_SERVING {
		t.Errorf("watch while stopping: %v", got)
	}
}
