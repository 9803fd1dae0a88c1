package v2

import (
	"strconv"

	"github.com/rollcall-registry/rollcall/internal/httpapi"
	"github.com/rollcall-registry/rollcall/internal/httpapi/modern"
	"github.com/rollcall-registry/rollcall/internal/httpapi/result"
	"github.com/rollcall-registry/rollcall/internal/naming"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// client answers GET /client. The port is a text.
func (a *API) client(x *httpapi.Exchange) {
	c, err := a.Client(x)
	if err != nil {
		a.Fail(x, err)
		return
	}
	b := modern.AppendText(append(result.Begin(x.Scratch[:0]), '{'), "clientId", c.ID)
	b = strconv.AppendBool(append(b, `,"ephemeral":`...), c.Ephemeral)
	b = strconv.AppendInt(append(b, `,"lastUpdatedTime":`...), c.Updated, 10)
	if conn := c.Connection; conn != nil {
		b = append(b, `,"clientType":"connection","connectType":"GRPC"`...)
		b = modern.AppendText(b, "appName", conn.App)
		b = modern.AppendText(b, "version", conn.Version)
	} else {
		b = append(b, `,"clientType":"ipPort"`...)
	}
	b = modern.AppendText(b, "clientIp", c.IP)
	b = modern.AppendText(b, "clientPort", strconv.Itoa(int(c.Port)))
	a.Data(x, append(b, '}'))
}

// published answers GET /client/publish/list.
func (a *API) published(x *httpapi.Exchange) {
	c, err := a.Client(x)
	if err != nil {
		a.Fail(x, err)
		return
	}
	list := a.Core.Publications(c.ID)
	a.Data(x, modern.AppendArray(result.Begin(x.Scratch[:0]), list, func(b []byte, p naming.Publication) []byte {
		b = appendService(b, p.Service)
		b = appendAddress(append(b, `,"registeredInstance":{`...), p.Instance)
		return append(b, "}}"...)
	}))
}

// subscribed answers GET /client/subscribe/list.
func (a *API) subscribed(x *httpapi.Exchange) {
	c, err := a.Client(x)
	if err != nil {
		a.Fail(x, err)
		return
	}
	list := a.Core.Subscriptions(c.ID)
	a.Data(x, modern.AppendArray(result.Begin(x.Scratch[:0]), list, func(b []byte, s *registry.Subscriber) []byte {
		b = appendService(b, s.Service)
		b = modern.AppendText(append(b, `,"subscriberInfo":{`...), "app", s.App)
		b = modern.AppendText(b, "agent", s.Agent)
		b = modern.AppendText(b, "addr", modern.SubscriberText(s))
		return append(b, "}}"...)
	}))
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

// serviceOf reads the service and the address of a call for its clients.
func serviceOf(f *result.Form) (registry.ServiceKey, modern.Address, error) {
	f.Bool("ephemeral", result.JavaBoolean, true) // makes no difference (live 2.5.1)
	key, address := modern.ParseService(f), modern.ParseAddress(f)
	return key, address, f.Err()
}

// publishers answers GET /client/service/publisher/list. Unless both halves of an
// address are asked for, nobody has it (recorded: v2-publisher-list).
func (a *API) publishers(x *httpapi.Exchange) {
	key, address, err := serviceOf(result.NewParams(x))
	if err != nil {
		a.Fail(x, err)
		return
	}
	var list []naming.Publication
	if address.IP != nil && address.Port != nil {
		for _, p := range a.Core.Publishers(key) {
			if address.Is(p.Instance.IP, p.Instance.Port) {
				list = append(list, p)
			}
		}
	}
	a.Data(x, modern.AppendArray(result.Begin(x.Scratch[:0]), list, func(b []byte, p naming.Publication) []byte {
		b = appendAddress(append(b, '{'), p.Instance)
		return append(modern.AppendText(b, "clientId", p.Client), '}')
	}))
}

// subscribers answers GET /client/service/subscriber/list.
func (a *API) subscribers(x *httpapi.Exchange) {
	key, address, err := serviceOf(result.NewParams(x))
	if err != nil {
		a.Fail(x, err)
		return
	}
	var list []*registry.Subscriber
	for _, s := range a.Core.Store().Subscribers(key) {
		if address.Is(modern.SubscriberAddress(s)) {
			list = append(list, s)
		}
	}
	a.Data(x, modern.AppendArray(result.Begin(x.Scratch[:0]), list, func(b []byte, s *registry.Subscriber) []byte {
		ip, port := modern.SubscriberAddress(s)
		b = modern.AppendText(append(b, '{'), "clientId", naming.SubscriberClient(s))
		b = modern.AppendText(b, "ip", ip)
		b = strconv.AppendInt(append(b, `,"port":`...), int64(port), 10)
		return append(b, '}')
	}))
}
