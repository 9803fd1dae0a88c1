package naming

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/rollcall-registry/rollcall/internal/registry"
)

// ProtocolHTTP is that of a client that keeps instances alive with beats.
const ProtocolHTTP registry.Protocol = "http"

// Connected knows the clients that are connected; grpcapi.API is the one of a
// server.
type Connected interface {
	// Connections returns the registered clients, in a stable order.
	Connections() []Connection
	// Connection returns one of them; ok is false when there is none of that ID.
	Connection(id registry.ClientID) (c Connection, ok bool)
}

// Waiting says whether a subscriber has been sent, or is to be sent, a state of its
// service that it has not acknowledged, and since when the oldest change in it has
// been waiting: the zero instant when it tells of none. It must not block.
type Waiting func(sub *registry.Subscriber) (since registry.Instant, waiting bool)

// Roster lists the clients of a server however they came: over a gRPC connection,
// over HTTP with beats, or for UDP packets. Who registered a persistent instance is
// none of them: nobody is at its other end. It is safe for concurrent use.
type Roster struct {
	core      *Core
	connected Connected
	waiting   Waiting
	turn      chan struct{} // holds a token while clients are gathered
}

// NewRoster returns the roster of a server.
func NewRoster(core *Core, connected Connected, waiting Waiting) *Roster {
	return &Roster{core: core, connected: connected, waiting: waiting, turn: make(chan struct{}, 1)}
}

// Client is a client of the server.
type Client struct {
	// ID is that of [Core.AddressClients] and [Connected].
	ID string
	// Protocol is how it registers: UDP for those that only subscribe. An address
	// that registered over HTTP and is sent packets is one client, of HTTP.
	Protocol registry.Protocol
	// Connection is what is known of a connected client; nil for others.
	Connection *Connection
	// Recalled: the connection is remembered from before a restart, and its client
	// has not come back.
	Recalled bool
	// Address is where it is connected from, what it registered, or where packets go
	// to: host:port; empty when it is recalled.
	Address string
	Agent   string // as the client names itself, empty when that is not known
	SDK     SDK
	// Since is when it connected or subscribed, Seen when it last showed, both in
	// milliseconds since the epoch; 0 when that is not known.
	Since, Seen int64
	// Namespaces are those of what it registered and subscribed to, sorted.
	Namespaces []string
	// Registered and Subscribed are how many instances and subscriptions it has;
	// Publications and Subscriptions are a part of them, sorted by service.
	Registered, Subscribed int
	Publications           []Publication
	Subscriptions          []Subscription
	Pushes                 ClientPushes
}

// Subscription is a subscription with how far its pushes have come.
type Subscription struct {
	*registry.Subscriber
	Receipt registry.Receipt
	// Waiting: a push to it is not acknowledged; For is for how long the oldest
	// change in it has been waiting, 0 when it tells of none.
	Waiting bool
	For     time.Duration
}

// ClientPushes sums up the pushes to a client.
type ClientPushes struct {
	// Acknowledged is when it last acknowledged a push that told of a change, in
	// milliseconds since the epoch, and Lag how long that was after the change; 0
	// when there was none.
	Acknowledged int64
	Lag          time.Duration
	// Waiting is how many of its subscriptions have a push that is not
	// acknowledged, For for how long the oldest of their changes has been waiting.
	Waiting int
	For     time.Duration
	// Failed is how many subscriptions could not be told the newest state that was
	// tried.
	Failed int
	// Refused says why some of its subscriptions are never pushed to; empty when all
	// are.
	Refused string
}

// ClientFilter chooses clients. Empty fields choose all.
type ClientFilter struct {
	Protocol registry.Protocol
	// SDK is the name of one, or [OtherSDK] for those that are not known. Version is
	// one, or its beginning up to a dot: 2.5 chooses 2.5.1 and not 2.51.0.
	SDK, Version string
	// Namespace, Group and Service are of what the client registered or subscribed
	// to. A namespace also chooses those who connected for it.
	Namespace, Group, Service string
}

// OtherSDK is the name by which unknown SDKs are chosen and counted.
const OtherSDK = "other"

func (f *ClientFilter) covers(k registry.ServiceKey) bool {
	return (f.Namespace == "" || f.Namespace == k.Namespace) && (f.Group == "" || f.Group == k.Group) &&
		(f.Service == "" || f.Service == k.Name)
}

// coversIdle reports whether a connection that says no more than its namespace is
// chosen.
func (f *ClientFilter) coversIdle(tenant string) bool {
	if f.Group != "" || f.Service != "" {
		return false
	}
	return f.Namespace == "" || tenant != "" && f.Namespace == registry.NamespaceID(tenant)
}

func (f *ClientFilter) coversAgent(agent string) bool {
	if f.SDK == "" && f.Version == "" {
		return true
	}
	sdk := ParseSDK(agent)
	rest, begins := strings.CutPrefix(sdk.Version, f.Version)
	return (f.SDK == "" || strings.EqualFold(f.SDK, cmp.Or(sdk.Name, OtherSDK))) &&
		(f.Version == "" || begins && (rest == "" || rest[0] == '.' || rest[0] == '-'))
}

// List returns a page of the clients that are chosen, each with at most parts of its
// publications and as many of its subscriptions, and how many there are on all
// pages. It looks at every instance and subscriber, twice, and for one caller at a
// time; others wait until their context ends.
func (r *Roster) List(ctx context.Context, f ClientFilter, offset, limit, parts int) (page []Client, total int, err error) {
	if err := r.begin(ctx); err != nil {
		return nil, 0, err
	}
	defer r.end()
	g := gathering{roster: r, filter: f, only: func(clientKey) bool { return true }}
	found := g.gather()
	total = len(found)
	found = found[min(offset, total):min(offset+limit, total)]
	return r.details(found, 0, parts), total, nil
}

// Client returns the client of an ID, with a page of its publications and one of its
// subscriptions; ok is false when there is none. It takes as long as a list.
func (r *Roster) Client(ctx context.Context, id string, offset, limit int) (c Client, ok bool, err error) {
	key, ok := parseClientKey(id)
	if !ok {
		return Client{}, false, nil
	}
	if err := r.begin(ctx); err != nil {
		return Client{}, false, err
	}
	defer r.end()
	g := gathering{roster: r, only: func(k clientKey) bool { return k == key }}
	found := g.gather()
	if len(found) == 0 {
		return Client{}, false, nil
	}
	return r.details(found, offset, limit)[0], true, nil
}

// Agent returns what a connected client calls itself, empty when it has gone.
func (r *Roster) Agent(id registry.ClientID) string {
	c, _ := r.connected.Connection(id)
	return c.Version
}

func (r *Roster) begin(ctx context.Context) error {
	select {
	case r.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (r *Roster) end() { <-r.turn }

// details returns clients with a page of what each registered and subscribed to.
func (r *Roster) details(found []*sighting, offset, limit int) []Client {
	now := r.core.Now()
	clients := make([]Client, len(found))
	index := make(map[clientKey]*Client, len(found))
	for n, s := range found {
		clients[n] = s.client(now)
		index[s.key] = &clients[n]
	}
	r.collect(index)
	for n := range clients {
		c := &clients[n]
		c.sum(now, r.waiting)
		c.Publications = window(c.Publications, offset, limit)
		c.Subscriptions = window(c.Subscriptions, offset, limit)
	}
	return clients
}

func window[T any](list []T, offset, limit int) []T {
	return slices.Clip(list[min(offset, len(list)):min(offset+limit, len(list))])
}

// collect adds what the clients of an index registered and subscribed to.
func (r *Roster) collect(index map[clientKey]*Client) {
	r.core.store.EachHolding(func(h registry.Holding) {
		if key, ok := holderKey(&h); ok {
			if c := index[key]; c != nil {
				c.Publications = append(c.Publications, Publication{c.ID, h.Service, h.Instance.Key()})
			}
		}
	})
	for _, sub := range r.core.store.FindSubscribers(everywhere) { // sorted by service
		if c := index[subscriberKey(sub)]; c != nil {
			c.Subscriptions = append(c.Subscriptions, Subscription{Subscriber: sub, Receipt: sub.Receipt()})
		}
	}
}

// sum sorts and counts what was collected.
func (c *Client) sum(now registry.Instant, waiting Waiting) {
	slices.SortFunc(c.Publications, Publication.compare)
	c.Registered, c.Subscribed = len(c.Publications), len(c.Subscriptions)
	for _, p := range c.Publications {
		c.Namespaces = append(c.Namespaces, p.Service.Namespace)
	}
	for i := range c.Subscriptions {
		s := &c.Subscriptions[i]
		c.Namespaces = append(c.Namespaces, s.Service.Namespace)
		s.stand(now, waiting)
		c.Pushes.add(s)
		if c.Connection == nil && (c.Since == 0 || s.Since.Wall < c.Since) {
			c.Since = s.Since.Wall
		}
	}
	slices.Sort(c.Namespaces)
	c.Namespaces = slices.Clip(slices.Compact(c.Namespaces))
}

func (s *Subscription) stand(now registry.Instant, waiting Waiting) {
	since, ok := waiting(s.Subscriber)
	s.Waiting = ok
	if ok && since.Wall != 0 {
		s.For = now.Lease - since.Lease
	}
}

func (p *ClientPushes) add(s *Subscription) {
	if s.Receipt.Took > 0 && s.Receipt.At > p.Acknowledged {
		p.Acknowledged, p.Lag = s.Receipt.At, s.Receipt.Took
	}
	if s.Waiting {
		p.Waiting++
		p.For = max(p.For, s.For)
	}
	if s.Receipt.Failed > s.Receipt.Revision {
		p.Failed++
	}
	p.Refused = cmp.Or(p.Refused, s.Refused)
}
