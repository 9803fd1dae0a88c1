package v3

import (
	"strconv"

	"github.com/rollcall-registry/rollcall/internal/httpapi"
	"github.com/rollcall-registry/rollcall/internal/httpapi/modern"
	"github.com/rollcall-registry/rollcall/internal/httpapi/result"
	"github.com/rollcall-registry/rollcall/internal/naming"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// appendClient ends what GET /client shows. Of a client that is an address nothing is
// shown but its ID, which holds it (live 3.0.3).
func appendClient(b []byte, c *modern.Client) []byte {
	if c.Connection == nil {
		return append(b, `,"connectType":null,"appName":null,"version":null,"clientIp":null,"clientPort":0`...)
	}
	b = modern.AppendText(b, "clientIp", c.IP)
	return strconv.AppendInt(append(b, `,"clientPort":`...), int64(c.Port), 10)
}

// appendPublished appends what a client registered, for GET /client/publish/list.
func appendPublished(b []byte, p naming.Publication) []byte {
	b = appendService(b, p.Service)
	b = appendAddress(append(b, `,"publisherInfo":{"clientId":null`...), p.Instance)
	return append(b, `},"subscriberInfo":null}`...)
}

// appendSubscribed appends what a client subscribed to, for GET
// /client/subscribe/list.
func appendSubscribed(b []byte, s *registry.Subscriber) []byte {
	b = append(appendService(b, s.Service), `,"publisherInfo":null,"subscriberInfo":{"clientId":null`...)
	return append(appendDescription(b, s), "}}"...)
}

// appendService begins an object with a service.
func appendService(b []byte, key registry.ServiceKey) []byte {
	b = modern.AppendText(append(b, '{'), "namespaceId", key.Namespace)
	b = modern.AppendText(b, "groupName", key.Group)
	return modern.AppendText(b, "serviceName", key.Name)
}

// appendAddress appends the address of an instance to an object that was begun.
func appendAddress(b []byte, i registry.InstanceKey) []byte {
	b = modern.AppendText(b, "ip", i.IP)
	b = strconv.AppendInt(append(b, `,"port":`...), int64(i.Port), 10)
	return modern.AppendText(b, "clusterName", i.Cluster)
}

// appendDescription appends a subscriber to an object that was begun.
func appendDescription(b []byte, s *registry.Subscriber) []byte {
	b = modern.AppendText(b, "appName", s.App)
	b = modern.AppendText(b, "agent", s.Agent)
	return modern.AppendText(b, "address", modern.SubscriberText(s))
}

// clientsOf reads a call for the clients of a service.
func clientsOf(x *httpapi.Exchange) (registry.ServiceKey, modern.Address, error) {
	f := result.NewForm(x, "clientServiceForm")
	key, address := modern.ParseService(f), modern.ParseAddress(f)
	return key, address, f.Err()
}

// publishesAt chooses among the publishers of GET /client/service/publisher/list.
func publishesAt(a *modern.Address, i registry.InstanceKey) bool { return a.Is(i.IP, i.Port) }

func appendPublisher(b []byte, p naming.Publication) []byte {
	b = modern.AppendText(append(b, '{'), "clientId", p.Client)
	return append(appendAddress(b, p.Instance), '}')
}

// appendSubscriber appends a client for GET /client/service/subscriber/list.
func appendSubscriber(b []byte, s *registry.Subscriber) []byte {
	b = modern.AppendText(append(b, '{'), "clientId", naming.SubscriberClient(s))
	return append(appendDescription(b, s), '}')
}

// responsible answers GET /client/distro: who answers for a client's beats. Here
// every member does.
func (a *API) responsible(x *httpapi.Exchange) {
	f := result.NewParams(x)
	f.Need("ip")
	f.Need("port")
	if err := f.Err(); err != nil {
		a.Fail(x, err)
		return
	}
	b := modern.AppendText(append(result.Begin(x.Scratch[:0]), '{'), "responsibleServer", a.Members.Self().Address())
	a.Data(x, append(b, '}'))
}
