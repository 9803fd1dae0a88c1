package cli

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rollcall-registry/rollcall/api/grpcv2"
	"github.com/rollcall-registry/rollcall/internal/grpcapi/grpctest"
	"github.com/rollcall-registry/rollcall/servertest"
)

// connection is a gRPC client that registered and subscribed.
type connection struct {
	t      *testing.T
	server *servertest.Server
	client *grpctest.Client
	stream *grpctest.Stream
}

// connect connects a client that calls itself agent, registers 10.0.0.5:8080 in the
// service orders and subscribes to it. It has acknowledged its greeting.
func connect(t *testing.T, server *servertest.Server, agent string) *connection {
	t.Helper()
	c := &connection{t: t, server: server, client: grpctest.Dial(t, server.Addr())}
	c.stream = c.client.Open(t)
	c.stream.Say(t, grpcv2.ConnectionSetup,
		fmt.Sprintf(`{"clientVersion":%q,"tenant":"public","labels":{"module":"naming","AppName":"shop"},"abilityTable":{}}`, agent))
	c.stream.Expect(t, grpcv2.SetupAck)
	const orders = `{"namespace":"public","serviceName":"orders","groupName":"DEFAULT_GROUP"`
	for _, call := range []struct{ kind, members string }{
		{"InstanceRequest", `,"type":"registerInstance","instance":{"ip":"10.0.0.5","port":8080,"ephemeral":true}}`},
		{"SubscribeServiceRequest", `,"subscribe":true}`},
	} {
		if answer := c.client.Call(t, call.kind, orders+call.members); answer.Members(t)["resultCode"] != float64(200) {
			t.Fatalf("%s: %s", call.kind, answer.Body)
		}
	}
	c.acknowledge()
	return c
}

// acknowledge acknowledges one push, and waits until the server has heard it.
func (c *connection) acknowledge() {
	c.t.Helper()
	push := c.stream.Expect(c.t, grpcv2.NotifySubscriber)
	c.stream.Say(c.t, "NotifySubscriberResponse", fmt.Sprintf(`{"resultCode":200,"requestId":%q}`, push.Members(c.t)["requestId"]))
	eventually(c.t, "the push is acknowledged", func() bool {
		_, body := fetchText(c.t, c.server.URL()+"/rollcall/v1/clients?protocol=grpc", nil)
		return strings.Contains(body, `"unacknowledged":0`)
	})
}
