package naming

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/rollcall-registry/rollcall/internal/registry"
)

// A client, as 2.x and later list clients, is a gRPC connection, or an address
// (ip:port) that registered over HTTP, is in the durable store or gets UDP packets.
// The ID of an address ends in the kind of what it registered.
const (
	ephemeralAddress  = "#true"
	persistentAddress = "#false"
)

// AddressClient is a client that is an address.
type AddressClient struct {
	ID        string
	IP        string
	Port      int32
	Ephemeral bool
	// Updated is when it last showed, in milliseconds since the epoch: its latest
	// beat, registration or look-up. Of persistent instances nobody hears, so it is 0.
	Updated int64
}

// addressID returns the ID of an address of one kind.
func addressID(ip string, port int32, ephemeral bool) string {
	id := ip + ":" + strconv.Itoa(int(port))
	if ephemeral {
		return id + ephemeralAddress
	}
	return id + persistentAddress
}

// ParseAddressClient reads the ID of a client that is an address. ok is false for
// connections.
func ParseAddressClient(id string) (a AddressClient, ok bool) {
	address, isEphemeral := strings.CutSuffix(id, ephemeralAddress)
	if !isEphemeral {
		if address, ok = strings.CutSuffix(id, persistentAddress); !ok {
			return AddressClient{}, false
		}
	}
	colon := strings.LastIndexByte(address, ':')
	if colon < 0 {
		return AddressClient{}, false
	}
	port, err := strconv.ParseInt(address[colon+1:], 10, 32)
	if err != nil {
		return AddressClient{}, false
	}
	return AddressClient{ID: id, IP: address[:colon], Port: int32(port), Ephemeral: isEphemeral}, true
}

// owns reports whether a holding is the client's.
func (a *AddressClient) owns(h *registry.Holding) bool {
	kind := registry.OwnerHTTP
	if !a.Ephemeral {
		kind = registry.OwnerDurable
	}
	return h.Owner.Kind == kind && h.Instance.Port == a.Port && registry.CanonicalIP(h.Instance.IP) == registry.CanonicalIP(a.IP)
}

// subscribed reports whether a subscription is the client's.
func (a *AddressClient) subscribed(s *registry.Subscriber) bool {
	return a.Ephemeral && s.Protocol == registry.ProtocolUDP &&
		int32(s.Addr.Port()) == a.Port && s.Addr.Addr().String() == registry.CanonicalIP(a.IP)
}

// AddressClients returns the IDs of all clients that are addresses, sorted. It
// looks at every instance and subscriber.
func (c *Core) AddressClients() []string {
	ids := map[string]bool{}
	c.store.EachHolding(func(h registry.Holding) {
		if h.Owner.Kind != registry.OwnerConnection {
			ids[addressID(h.Instance.IP, h.Instance.Port, h.Owner.Kind == registry.OwnerHTTP)] = true
		}
	})
	for _, s := range c.store.FindSubscribers(everywhere) {
		if s.Protocol == registry.ProtocolUDP {
			ids[SubscriberClient(s)] = true
		}
	}
	return slices.Sorted(maps.Keys(ids))
}

func everywhere(registry.ServiceKey) bool { return true }

// AddressClient returns the client of an ID; ok is false when there is none, or it
// is a connection. It looks at every instance and subscriber.
func (c *Core) AddressClient(id string) (a AddressClient, ok bool) {
	if a, ok = ParseAddressClient(id); !ok {
		return a, false
	}
	found := false
	now := c.clock.Now()
	seen := func(lease int64) {
		found = true
		a.Updated = max(a.Updated, lease)
	}
	c.store.EachHolding(func(h registry.Holding) {
		if a.owns(&h) {
			seen(wall(now, h))
		}
	})
	for _, s := range c.subscriptions(a.subscribed) {
		seen(now.Wall - (now.Lease - s.LastSeen()).Milliseconds())
	}
	return a, found
}

// wall returns when the owner of a holding last showed, 0 when nobody knows.
func wall(now registry.Instant, h registry.Holding) int64 {
	if h.Owner.Kind != registry.OwnerHTTP {
		return 0
	}
	return now.Wall - (now.Lease - h.LastBeat).Milliseconds()
}

// Publication is an instance that a client registered.
type Publication struct {
	Client   string // its ID
	Service  registry.ServiceKey
	Instance registry.InstanceKey
}

func (p Publication) compare(o Publication) int {
	return cmp.Or(
		strings.Compare(p.Service.Namespace, o.Service.Namespace), strings.Compare(p.Service.Group, o.Service.Group),
		strings.Compare(p.Service.Name, o.Service.Name), strings.Compare(p.Client, o.Client),
		strings.Compare(p.Instance.IP, o.Instance.IP), cmp.Compare(p.Instance.Port, o.Instance.Port),
		strings.Compare(p.Instance.Cluster, o.Instance.Cluster))
}

// Publications returns what a client registered, sorted by service.
func (c *Core) Publications(id string) []Publication {
	var list []Publication
	if a, ok := ParseAddressClient(id); ok {
		c.store.EachHolding(func(h registry.Holding) {
			if a.owns(&h) {
				list = append(list, Publication{id, h.Service, h.Instance.Key()})
			}
		})
	} else {
		for service, instances := range c.store.ClientHoldings(registry.ClientID(id)) {
			for _, i := range instances {
				list = append(list, Publication{id, service, i})
			}
		}
	}
	slices.SortFunc(list, Publication.compare)
	return list
}

// Publishers returns who registered the instances of a service.
func (c *Core) Publishers(key registry.ServiceKey) []Publication {
	var list []Publication
	for _, s := range c.store.Standings(key, c.clock.Now()) {
		for _, owner := range s.Owners {
			client := string(owner.Client)
			if owner.Kind != registry.OwnerConnection {
				client = addressID(s.Instance.IP, s.Instance.Port, owner.Kind == registry.OwnerHTTP)
			}
			list = append(list, Publication{client, key, s.Instance.Key()})
		}
	}
	return list
}

// SubscriberClient returns the ID of the client that subscribed.
func SubscriberClient(s *registry.Subscriber) string {
	if s.Client != "" {
		return string(s.Client)
	}
	return s.Addr.String() + ephemeralAddress
}

// Subscriptions returns one subscription of a client for each service, whatever
// clusters it asked for. It looks at every subscriber.
func (c *Core) Subscriptions(id string) []*registry.Subscriber {
	if a, ok := ParseAddressClient(id); ok {
		return c.subscriptions(a.subscribed)
	}
	return c.subscriptions(func(s *registry.Subscriber) bool { return string(s.Client) == id })
}

func (c *Core) subscriptions(of func(*registry.Subscriber) bool) []*registry.Subscriber {
	var list []*registry.Subscriber
	for _, s := range c.store.FindSubscribers(everywhere) {
		if of(s) {
			list = append(list, s)
		}
	}
	return slices.CompactFunc(list, func(a, b *registry.Subscriber) bool { return a.Service == b.Service })
}

// ClientCounts are how many clients there are of each kind that is an address.
type ClientCounts struct{ Ephemeral, Persistent int }

// CountAddressClients counts the clients that are addresses. It looks at every
// instance and subscriber.
func (c *Core) CountAddressClients() (n ClientCounts) {
	for _, id := range c.AddressClients() {
		if strings.HasSuffix(id, ephemeralAddress) {
			n.Ephemeral++
		} else {
			n.Persistent++
		}
	}
	return n
}
