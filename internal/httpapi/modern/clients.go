package modern

import (
	"strconv"

	"github.com/rollcall-registry/rollcall/internal/httpapi"
	"github.com/rollcall-registry/rollcall/internal/httpapi/result"
	"github.com/rollcall-registry/rollcall/internal/naming"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// Client is a client as a call shows it.
type Client struct {
	ID        string
	Ephemeral bool
	Updated   int64 // milliseconds since the epoch
	// Connection is that of a client that speaks gRPC; nil for an address, which is
	// IP and Port.
	Connection *naming.Connection
	IP         string
	Port       int32
}

// Clients answers the IDs of all clients: connections, then addresses.
func (a *API) Clients(x *httpapi.Exchange) {
	var ids []string
	for _, c := range a.Connections.Connections() {
		ids = append(ids, string(c.ID))
	}
	ids = append(ids, a.Core.AddressClients()...)
	a.Data(x, AppendStrings(result.Begin(x.Scratch[:0]), ids))
}

// Client returns the client that a request names, or a refusal.
func (a *API) Client(x *httpapi.Exchange) (Client, error) {
	f := result.NewParams(x)
	id := f.Need("clientId")
	if err := f.Err(); err != nil {
		return Client{}, err
	}
	if c, ok := a.Connections.Connection(registry.ClientID(id)); ok {
		return Client{ID: id, Ephemeral: true, Updated: c.LastActive, Connection: &c, IP: c.IP, Port: int32(c.Peer.Port())}, nil
	}
	c, ok := a.Core.AddressClient(id)
	if !ok {
		return Client{}, &result.Fault{Status: 404, Code: result.ResourceNotFound, Data: "clientId [ " + id + " ] not exist"}
	}
	return Client{ID: id, Ephemeral: c.Ephemeral, Updated: c.Updated, IP: c.IP, Port: c.Port}, nil
}

// Shown returns the handler that shows one client; rest writes what the generations
// show in ways of their own.
func (a *API) Shown(rest func([]byte, *Client) []byte) httpapi.Handler {
	return func(x *httpapi.Exchange) {
		c, err := a.Client(x)
		if err != nil {
			a.Fail(x, err)
			return
		}
		b := AppendText(append(result.Begin(x.Scratch[:0]), '{'), "clientId", c.ID)
		b = strconv.AppendBool(append(b, `,"ephemeral":`...), c.Ephemeral)
		b = strconv.AppendInt(append(b, `,"lastUpdatedTime":`...), c.Updated, 10)
		if conn := c.Connection; conn != nil {
			b = append(b, `,"clientType":"connection","connectType":"GRPC"`...)
			b = AppendText(b, "appName", conn.App)
			b = AppendText(b, "version", conn.Version)
		} else {
			b = append(b, `,"clientType":"ipPort"`...)
		}
		a.Data(x, append(rest(b, &c), '}'))
	}
}

// Published returns the handler that lists what the client of a call registered; each
// writes one of them.
func (a *API) Published(each func([]byte, naming.Publication) []byte) httpapi.Handler {
	return func(x *httpapi.Exchange) {
		c, err := a.Client(x)
		if err != nil {
			a.Fail(x, err)
			return
		}
		a.Data(x, AppendArray(result.Begin(x.Scratch[:0]), a.Core.Publications(c.ID), each))
	}
}

// Subscribed returns the handler that lists what the client of a call subscribed to.
func (a *API) Subscribed(each func([]byte, *registry.Subscriber) []byte) httpapi.Handler {
	return func(x *httpapi.Exchange) {
		c, err := a.Client(x)
		if err != nil {
			a.Fail(x, err)
			return
		}
		a.Data(x, AppendArray(result.Begin(x.Scratch[:0]), a.Core.Subscriptions(c.ID), each))
	}
}

// ParseClients reads a call for the clients of a service.
type ParseClients func(*httpapi.Exchange) (registry.ServiceKey, Address, error)

// Publishers returns the handler that lists who is registered in a service, at the
// addresses that match.
func (a *API) Publishers(parse ParseClients, match func(*Address, registry.InstanceKey) bool, each func([]byte, naming.Publication) []byte) httpapi.Handler {
	return func(x *httpapi.Exchange) {
		key, address, err := parse(x)
		if err != nil {
			a.Fail(x, err)
			return
		}
		var list []naming.Publication
		for _, p := range a.Core.Publishers(key) {
			if match(&address, p.Instance) {
				list = append(list, p)
			}
		}
		a.Data(x, AppendArray(result.Begin(x.Scratch[:0]), list, each))
	}
}

// Subscribers returns the handler that lists who subscribed to a service.
func (a *API) Subscribers(parse ParseClients, each func([]byte, *registry.Subscriber) []byte) httpapi.Handler {
	return func(x *httpapi.Exchange) {
		key, address, err := parse(x)
		if err != nil {
			a.Fail(x, err)
			return
		}
		var list []*registry.Subscriber
		for _, s := range a.Core.Store().Subscribers(key) {
			if address.Is(SubscriberAddress(s)) {
				list = append(list, s)
			}
		}
		a.Data(x, AppendArray(result.Begin(x.Scratch[:0]), list, each))
	}
}

// Address narrows a list of clients to those of an address; nil parts mean any.
type Address struct {
	IP   *string
	Port *int32
}

// ParseAddress reads the address of such a call.
func ParseAddress(f *result.Form) (a Address) {
	if ip := f.Text("ip", ""); ip != "" {
		a.IP = &ip
	}
	if f.Text("port", "") != "" {
		a.Port = new(int32(f.Int("port", result.JavaInteger, 0)))
	}
	return a
}

// Is reports whether an address is the one that is asked for.
func (a *Address) Is(ip string, port int32) bool {
	return (a.IP == nil || registry.CanonicalIP(*a.IP) == registry.CanonicalIP(ip)) && (a.Port == nil || *a.Port == port)
}

// SubscriberAddress returns the address of a subscriber as lists show it: a
// connection has no port to send packets to.
func SubscriberAddress(s *registry.Subscriber) (ip string, port int32) {
	if s.Client != "" {
		return s.Addr.Addr().String(), 0
	}
	return s.Addr.Addr().String(), int32(s.Addr.Port())
}

// SubscriberText is the address of a subscriber as the lists of its client show it:
// ip:port, or for a connection the address alone.
func SubscriberText(s *registry.Subscriber) string {
	if s.Client != "" {
		return s.Addr.Addr().String()
	}
	return s.Addr.String()
}
