package ops

import (
	"fmt"
	"strings"

	"github.com/rollcall-registry/rollcall/api/opsv1"
	"github.com/rollcall-registry/rollcall/internal/httpapi"
	"github.com/rollcall-registry/rollcall/internal/naming"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// partsListed is how many of its instances, and of its subscriptions, a client has
// in a list of clients.
const partsListed = 10

// clients answers GET /rollcall/v1/clients: sdk, version (2.5 is every 2.5.x),
// protocol (grpc, http or udp), service, group, namespace (all when absent; with a
// service, the public one), offset, limit.
func (a *API) clients(x *httpapi.Exchange) {
	p := x.Params()
	f, err := clientFilter(p)
	var offset, limit int
	if err == nil {
		offset, limit, err = window(p)
	}
	if err != nil {
		refuse(x, 400, err.Error())
		return
	}
	page, total, err := a.cfg.Roster.List(x.Context(), f, offset, limit, partsListed)
	if err != nil {
		a.fail(x, "list the clients", err)
		return
	}
	now := a.cfg.Naming.Now().Wall
	out := opsv1.Clients{Clients: make([]opsv1.Client, len(page)), Total: total}
	for i := range page {
		out.Clients[i] = wireClient(&page[i], now)
	}
	a.answer(x, out)
}

func clientFilter(p *httpapi.Params) (naming.ClientFilter, error) {
	key := service(p)
	f := naming.ClientFilter{
		Protocol: registry.Protocol(p.Optional("protocol", "")), SDK: p.Optional("sdk", ""),
		Version:   strings.TrimPrefix(p.Optional("version", ""), "v"),
		Namespace: key.Namespace, Group: key.Group, Service: key.Name,
	}
	if key.Name == "" && p.Optional("namespace", "") == "" {
		f.Namespace = ""
	}
	switch f.Protocol {
	case "", registry.ProtocolGRPC, naming.ProtocolHTTP, registry.ProtocolUDP:
		return f, nil
	default:
		return f, fmt.Errorf("protocol: %q is none of grpc, http and udp", f.Protocol)
	}
}

// client answers GET /rollcall/v1/clients/{id}: one client with a page of its
// instances and one of its subscriptions; offset, limit.
func (a *API) client(x *httpapi.Exchange) {
	offset, limit, err := window(x.Params())
	if err != nil {
		refuse(x, 400, err.Error())
		return
	}
	id := x.PathValue("id")
	c, ok, err := a.cfg.Roster.Client(x.Context(), id, offset, limit)
	switch {
	case err != nil:
		a.fail(x, "look at the clients", err)
	case !ok:
		refuse(x, 404, "there is no client "+id)
	default:
		a.answer(x, wireClient(&c, a.cfg.Naming.Now().Wall))
	}
}

// agents are what connections call themselves, asked for once each.
type agents struct {
	roster *naming.Roster
	known  map[string]string
}

func (a *API) agents() agents { return agents{a.cfg.Roster, map[string]string{}} }

// name adds the names of the connections that keep an instance alive.
func (n agents) name(i *opsv1.InstanceState) {
	for k := range i.Owners {
		o := &i.Owners[k]
		if o.Client == "" {
			continue
		}
		agent, ok := n.known[o.Client]
		if !ok {
			agent = n.roster.Agent(registry.ClientID(o.Client))
			n.known[o.Client] = agent
		}
		o.Agent = agent
	}
}

// noApp is the application of connections that name none; see grpcapi.
const noApp = "-"

func wireClient(c *naming.Client, now int64) opsv1.Client {
	out := opsv1.Client{
		ID: c.ID, Protocol: string(c.Protocol), Address: c.Address,
		SDK: c.SDK.Name, Version: c.SDK.Version, Agent: c.Agent, Recalled: c.Recalled,
		Since: c.Since, LastSeen: c.Seen, Namespaces: c.Namespaces,
		Registered: c.Registered, Subscribed: c.Subscribed,
		Instances:     make([]opsv1.ClientInstance, len(c.Publications)),
		Subscriptions: make([]opsv1.ClientSubscription, len(c.Subscriptions)),
		Pushes:        wirePushState(&c.Pushes),
	}
	if out.Namespaces == nil {
		out.Namespaces = []string{}
	}
	if c.Seen != 0 {
		out.SinceSeen = new(max(now-c.Seen, 0))
	}
	if conn := c.Connection; conn != nil {
		out.IP, out.Module, out.Namespace, out.Labels = conn.IP, conn.Module, conn.Tenant, conn.Labels
		if conn.App != noApp {
			out.App = conn.App
		}
	}
	for i, p := range c.Publications {
		out.Instances[i] = opsv1.ClientInstance{
			Service: wireService(p.Service), IP: p.Instance.IP, Port: p.Instance.Port, Cluster: p.Instance.Cluster,
		}
	}
	for i := range c.Subscriptions {
		out.Subscriptions[i] = wireClientSubscription(&c.Subscriptions[i])
	}
	return out
}

func wirePushState(p *naming.ClientPushes) opsv1.ClientPushes {
	return opsv1.ClientPushes{
		AcknowledgedAt: p.Acknowledged, Lag: millis(p.Lag), Unacknowledged: p.Waiting, WaitingFor: millis(p.For),
		Failed: p.Failed, Refused: p.Refused,
	}
}

func wireClientSubscription(s *naming.Subscription) opsv1.ClientSubscription {
	return opsv1.ClientSubscription{
		Service: wireService(s.Service), Protocol: string(s.Protocol), Clusters: s.Clusters, Since: s.Since.Wall,
		Refused: s.Refused, Acknowledged: s.Receipt.Revision, At: s.Receipt.At, Lag: millis(s.Receipt.Took),
		Waiting: s.Waiting, WaitingFor: millis(s.For),
		Failed: s.Receipt.Failed, Problem: s.Receipt.Problem,
	}
}
