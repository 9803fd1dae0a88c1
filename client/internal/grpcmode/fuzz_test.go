package grpcmode

import (
	"context"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/rollcall-registry/rollcall/api/grpcv2"
	"github.com/rollcall-registry/rollcall/client/internal/servers"
	"github.com/rollcall-registry/rollcall/client/internal/wire"
	"github.com/rollcall-registry/rollcall/internal/grpcapi/grpctest"
)

// silent is a stream that takes what it is given.
type silent struct {
	grpc.ClientStream
	sent int
}

func (s *silent) SendMsg(any) error { s.sent++; return nil }

// offline is a session without a network, that has subscriptions and patterns.
func offline(e wire.Events) *session {
	t := New(newConfig(to(first)))
	t.events = e
	server := servers.Server{Host: "10.1.0.1", GRPCPort: 9848}
	s := newSession(t, server)
	s.subscribe(service("orders"), true)
	s.patterns["public>>*>>*"] = []wire.Pattern{{Namespace: "public", Group: "*", Name: "*"}}
	s.main = &conn{
		cfg: &t.cfg, server: server, address: first, stream: &silent{}, begun: time.Now(), ended: make(chan struct{}),
		setup:   make(chan []string, 1),
		handler: handler{request: s.request, dropped: e.Dropped},
	}
	t.current.Store(s)
	return s
}

// counter counts what it is told.
type counter struct{ lists, changes, dropped int }

func (*counter) Connected(wire.Session)                {}
func (*counter) Disconnected(error)                    {}
func (c *counter) Pushed(wire.List)                    { c.lists++ }
func (c *counter) ServicesChanged(wire.ServicesChange) { c.changes++ }
func (c *counter) Dropped(string)                      { c.dropped++ }

// FuzzStream tries the messages of a stream: each is acknowledged, dropped or an answer to
// the setup, and none does harm.
func FuzzStream(f *testing.F) {
	for kind, body := range map[string]string{
		grpcv2.NotifySubscriber: notify(1, "null", "DEFAULT_GROUP", "orders", `{"ip":"a","port":1}`),
		grpcv2.ClientDetection:  string(grpcv2.AppendClientDetection(nil, 2)),
		grpcv2.ConnectReset:     string(grpcv2.AppendConnectReset(nil, 3, "a", "1")),
		grpcv2.SetupAck:         string(grpcv2.AppendSetupAck(nil, "fuzzyWatch")),
		grpcv2.FuzzyWatchSync: string(grpcv2.AppendFuzzySync(nil, 4, &grpcv2.FuzzySync{
			Kind: grpcv2.SyncInit, Pattern: "public>>*>>*", Changes: []grpcv2.FuzzyChange{{Service: "public@@g@@s", Change: grpcv2.AddService}},
		})),
		grpcv2.FuzzyWatchChange: string(grpcv2.AppendFuzzyNotify(nil, 5, grpcv2.FuzzyChange{Service: "public@@g@@s", Change: grpcv2.DeleteService})),
		"other":                 `{}`,
	} {
		f.Add(grpcv2.AppendPayload(nil, &grpcv2.Head{Type: kind}, []byte(body)))
	}
	f.Fuzz(func(t *testing.T, message []byte) {
		var told counter
		s := offline(&told)
		s.main.take(message)
		sent := s.main.stream.(*silent).sent
		switch {
		case sent+len(s.main.setup) > 1, told.lists > 1:
			t.Fatalf("%d acknowledgements, told %+v", sent, told)
		case sent+len(s.main.setup) == 0 && told.dropped == 0:
			t.Fatal("a message vanished")
		}
	})
}

// BenchmarkTake measures what happens to a push of 10,000 instances before the engine
// gets it.
func BenchmarkTake(b *testing.B) {
	var told counter
	s := offline(&told)
	host := `{"instanceId":"10.1.0.1#8080#DEFAULT#DEFAULT_GROUP@@orders","ip":"10.1.0.1","port":8080,"weight":1.0,"healthy":true,"enabled":true,` +
		`"ephemeral":true,"clusterName":"DEFAULT","serviceName":"DEFAULT_GROUP@@orders","metadata":{"version":"1.2.3","zone":"a"}},`
	var hosts []byte
	for range 10_000 {
		hosts = append(hosts, host...)
	}
	message := grpcv2.AppendPayload(nil, &grpcv2.Head{Type: grpcv2.NotifySubscriber},
		[]byte(notify(1, "null", "DEFAULT_GROUP", "orders", string(hosts[:len(hosts)-1]))))
	b.SetBytes(int64(len(message)))
	b.ReportAllocs()
	for b.Loop() {
		s.main.take(message)
	}
	if told.lists == 0 {
		b.Fatal("nothing arrived")
	}
}

// BenchmarkQuery measures a call, the server's part included.
func BenchmarkQuery(b *testing.B) {
	server := serve(b, grpctest.Script{})
	r := start(b, to(server.Addr()))
	r.connected(b, 1)
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.Query(ctx, service("orders")); err != nil {
			b.Fatal(err)
		}
	}
}
