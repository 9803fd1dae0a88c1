package v2

import (
	"strconv"

	"github.com/rollcall-registry/rollcall/internal/httpapi"
	"github.com/rollcall-registry/rollcall/internal/httpapi/modern"
	"github.com/rollcall-registry/rollcall/internal/httpapi/result"
	"github.com/rollcall-registry/rollcall/internal/naming"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// appendClient ends what GET /client shows. The port is a text.
func appendClient(b []byte, c *modern.Client) []byte {
	b = modern.AppendText(b, "clientIp", c.IP)
	return modern.AppendText(b, "clientPort", strconv.Itoa(int(c.Port)))
}

// appendPublished appends what a client registered, for GET /client/publish/list.
func appendPublished(b []byte, p naming.Publication) []byte {
	b = appendService(b, p.Service)
	b = appendAddress(append(b, `,"registeredInstance":{`...), p.Instance)
	return append(b, "}}"...)
}

// appendSubscribed appends what a client subscribed to, for GET
// /client/subscribe/list.
func appendSubscribed(b []byte, s *registry.Subscriber) []byte {
	b = appendService(b, s.Service)
	b = modern.AppendText(append(b, `,"subscriberInfo":{`...), "app", s.App)
	b = modern.AppendText(b, "agent", s.Agent)
	b = modern.AppendText(b, "addr", modern.SubscriberText(s))
	return append(b, "}}"...)
}

// appendService begins an object with a service.
func appendService(b []byte, key registry.ServiceKey) []byte {
	b = modern.AppendText(append(b, '{'), "namespace", key.Namespace)
	b = modern.AppendText(b, "group", key.Group)
	return modern.AppendText(b, "serviceName", key.Name)
}

// appendAddress appends the address of an instance to an object that was begun.
func appendAddress(b []byte, i registry.InstanceKey) []byte {
	b = modern.AppendText(b, "ip", i.IP)
	b = strconv.AppendInt(append(b, `,"port":`...), int64(i.Port), 10)
	return modern.AppendText(b, "cluster", i.Cluster)
}

// clientsOf reads a call for the clients of a service.
func clientsOf(x *httpapi.Exchange) (registry.ServiceKey, modern.Address, error) {
	f := result.NewParams(x)
	f.Bool("ephemeral", result.JavaBoolean, true) // makes no difference (live 2.5.1)
	key, address := modern.ParseService(f), modern.ParseAddress(f)
	return key, address, f.Err()
}

// publishesAt chooses among the publishers of GET /client/service/publisher/list.
// Unless both halves of an address are asked for, nobody has it (recorded:
// v2-publisher-list).
func publishesAt(a *modern.Address, i registry.InstanceKey) bool {
	return a.IP != nil && a.Port != nil && a.Is(i.IP, i.Port)
}

func appendPublisher(b []byte, p naming.Publication) []byte {
	b = appendAddress(append(b, '{'), p.Instance)
	return append(modern.AppendText(b, "clientId", p.Client), '}')
}

// appendSubscriber appends a client for GET /client/service/subscriber/list.
func appendSubscriber(b []byte, s *registry.Subscriber) []byte {
	ip, port := modern.SubscriberAddress(s)
	b = modern.AppendText(append(b, '{'), "clientId", naming.SubscriberClient(s))
	b = modern.AppendText(b, "ip", ip)
	b = strconv.AppendInt(append(b, `,"port":`...), int64(port), 10)
	return append(b, '}')
}
