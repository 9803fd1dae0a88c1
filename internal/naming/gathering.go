package naming

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rollcall-registry/rollcall/internal/registry"
)

// clientKey tells clients apart while they are gathered: by connection, or by
// address in its canonical form.
type clientKey struct {
	connection registry.ClientID
	ip         string
	port       int32
}

// parseClientKey reads an ID; ok is false for those who registered persistent
// instances.
func parseClientKey(id string) (k clientKey, ok bool) {
	a, isAddress := ParseAddressClient(id)
	if !isAddress {
		return clientKey{connection: registry.ClientID(id)}, true
	}
	return clientKey{ip: registry.CanonicalIP(a.IP), port: a.Port}, a.Ephemeral
}

// holderKey returns whose a holding is; ok is false for the durable store's.
func holderKey(h *registry.Holding) (k clientKey, ok bool) {
	switch h.Owner.Kind {
	case registry.OwnerConnection:
		return clientKey{connection: h.Owner.Client}, true
	case registry.OwnerHTTP:
		return clientKey{ip: registry.CanonicalIP(h.Instance.IP), port: h.Instance.Port}, true
	default:
		return clientKey{}, false
	}
}

func subscriberKey(s *registry.Subscriber) clientKey {
	if s.Client != "" {
		return clientKey{connection: s.Client}
	}
	return clientKey{ip: s.Addr.Addr().String(), port: int32(s.Addr.Port())}
}

// compare sorts connections first, as 2.x lists clients.
func (k clientKey) compare(o clientKey) int {
	if connected := k.connection != ""; connected != (o.connection != "") {
		if connected {
			return -1
		}
		return 1
	}
	return cmp.Or(cmp.Compare(k.connection, o.connection), strings.Compare(k.ip, o.ip), cmp.Compare(k.port, o.port))
}

func (k clientKey) id() string {
	if k.connection != "" {
		return string(k.connection)
	}
	return addressID(k.ip, k.port, true)
}

// address returns host:port of an address, an IPv6 one in brackets.
func (k clientKey) address() string {
	host := k.ip
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return host + ":" + strconv.Itoa(int(k.port))
}

// sighting is what a first look at all instances and subscribers finds of a client.
type sighting struct {
	key        clientKey
	connection *Connection
	recalled   bool
	http, udp  bool
	// agent is that of the latest sign of life, which was at seen on the lease clock.
	agent string
	seen  time.Duration
	fits  bool // something that it has is in the services that are asked for
}

// show notes a sign of life of an address.
func (s *sighting) show(at time.Duration, agent string) {
	if at >= s.seen {
		s.seen, s.agent = at, cmp.Or(agent, s.agent)
	} else {
		s.agent = cmp.Or(s.agent, agent)
	}
}

func (s *sighting) client(now registry.Instant) Client {
	c := Client{ID: s.key.id(), Connection: s.connection, Recalled: s.recalled, Agent: s.agent, SDK: ParseSDK(s.agent)}
	switch {
	case s.connection != nil:
		c.Protocol, c.Address = registry.ProtocolGRPC, s.connection.Peer.String()
		c.Since, c.Seen = s.connection.Since, s.connection.LastActive
		return c
	case s.recalled:
		c.Protocol = registry.ProtocolGRPC
		return c
	case s.http:
		c.Protocol = ProtocolHTTP
	default:
		c.Protocol = registry.ProtocolUDP
	}
	c.Address = s.key.address()
	c.Seen = now.Wall - (now.Lease - s.seen).Milliseconds()
	return c
}

// gathering is one look at all clients.
type gathering struct {
	roster *Roster
	filter ClientFilter
	only   func(clientKey) bool
	found  map[clientKey]*sighting
}

// gather returns the clients that are chosen, sorted.
func (g *gathering) gather() []*sighting {
	g.found = map[clientKey]*sighting{}
	g.roster.core.store.EachHolding(g.holding)
	for _, sub := range g.roster.core.store.FindSubscribers(everywhere) {
		g.subscriber(sub)
	}
	for _, c := range g.roster.connected.Connections() {
		g.connection(&c)
	}
	var list []*sighting
	for _, s := range g.found {
		if g.settle(s) && g.chosen(s) {
			list = append(list, s)
		}
	}
	slices.SortFunc(list, func(a, b *sighting) int { return a.key.compare(b.key) })
	return list
}

// sighting returns that of a client, nil when it is not looked for.
func (g *gathering) sighting(k clientKey) *sighting {
	s := g.found[k]
	if s == nil && g.only(k) {
		s = &sighting{key: k}
		g.found[k] = s
	}
	return s
}

func (g *gathering) holding(h registry.Holding) {
	key, ok := holderKey(&h)
	if !ok {
		return
	}
	s := g.sighting(key)
	if s == nil {
		return
	}
	s.fits = s.fits || g.filter.covers(h.Service)
	if h.Owner.Kind == registry.OwnerHTTP {
		s.http = true
		s.show(h.LastBeat, h.Agent)
	}
}

func (g *gathering) subscriber(sub *registry.Subscriber) {
	s := g.sighting(subscriberKey(sub))
	if s == nil {
		return
	}
	s.fits = s.fits || g.filter.covers(sub.Service)
	if sub.Client == "" {
		s.udp = true
		s.show(sub.LastSeen(), sub.Agent)
	}
}

func (g *gathering) connection(c *Connection) {
	if s := g.sighting(clientKey{connection: c.ID}); s != nil {
		s.connect(c)
		s.fits = s.fits || g.filter.coversIdle(c.Tenant)
	}
}

func (s *sighting) connect(c *Connection) { s.connection, s.agent = c, c.Version }

// settle finds out what became of a connection that holds something and was not
// among the connected: it is remembered, or came or went a moment ago.
func (g *gathering) settle(s *sighting) (there bool) {
	id := s.key.connection
	if id == "" || s.connection != nil {
		return true
	}
	if c, ok := g.roster.connected.Connection(id); ok {
		s.connect(&c)
		return true
	}
	s.recalled = g.roster.core.store.Recalled(id)
	return s.recalled
}

func (g *gathering) chosen(s *sighting) bool {
	return s.fits && s.speaks(g.filter.Protocol) && g.filter.coversAgent(s.agent)
}

func (s *sighting) speaks(p registry.Protocol) bool {
	switch p {
	case "":
		return true
	case registry.ProtocolGRPC:
		return s.key.connection != ""
	case ProtocolHTTP:
		return s.http
	case registry.ProtocolUDP:
		return s.udp
	default:
		return false
	}
}
