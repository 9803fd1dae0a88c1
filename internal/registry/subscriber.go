package registry

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// Protocol is how a subscriber is told of changes.
type Protocol string

// The ways to reach a subscriber.
const (
	ProtocolUDP  Protocol = "udp"
	ProtocolGRPC Protocol = "grpc"
)

// SubscriberKey is the identity of a subscription within its service: one client
// may hold several with different clusters.
type SubscriberKey struct {
	Client   ClientID       // the connection; empty for UDP
	Addr     netip.AddrPort // where UDP packets go, or the connection's peer
	Agent    string         // the client as it names itself
	Clusters string         // as asked for, verbatim: clients key their cache by it
}

// Subscriber is a client that wants to be told of the changes of one service,
// which need not exist. It is immutable but for its time of last sight and its
// [Receipt].
type Subscriber struct {
	SubscriberKey
	Service  ServiceKey
	Protocol Protocol
	App      string
	// Form is the form of the lists that the subscriber reads, for a protocol that
	// has several; empty for the usual one.
	Form string
	// Refused says why nothing is ever sent to this subscriber; empty for those
	// who are pushed to.
	Refused string
	// Since is when the subscription began.
	Since Instant
	// lastSeen is lease-clock time in nanoseconds.
	lastSeen atomic.Int64
	receipt  atomic.Pointer[Receipt] // nil before the first push ended
}

// LastSeen returns the lease-clock time of the latest renewal.
func (s *Subscriber) LastSeen() time.Duration { return time.Duration(s.lastSeen.Load()) }

// Renew notes that the client of s was heard of.
func (s *Subscriber) Renew(at Instant) { s.lastSeen.Store(int64(at.Lease)) }

// subscriptions are the subscribers of one service.
type subscriptions map[SubscriberKey]*Subscriber

// Subscribe is a local command: it adds a subscriber, or renews one that is
// there.
type Subscribe struct {
	Meta
	Subscriber *Subscriber
}

func (c *Subscribe) apply(s *Store) (Result, error) {
	sub := c.Subscriber
	sh := s.shard(sub.Service)
	sh.mu.RLock()
	known := sh.subs[sub.Service][sub.SubscriberKey]
	if known != nil {
		known.Renew(c.At)
	}
	sh.mu.RUnlock()
	if known != nil && known.Refused == sub.Refused && known.Form == sub.Form {
		return Result{}, nil
	}
	return Result{}, s.subscribe(sh, c)
}

func (s *Store) subscribe(sh *shard, c *Subscribe) error {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	kept := &Subscriber{
		Service: c.Subscriber.Service, Protocol: c.Subscriber.Protocol,
		Form: c.Subscriber.Form, Refused: c.Subscriber.Refused, Since: c.At,
	}
	kept.Service, _ = c.Subscriber.Service.clone(sh.interner.intern(c.Subscriber.Service.Namespace))
	kept.SubscriberKey = c.Subscriber.SubscriberKey
	kept.Agent = sh.interner.intern(c.Subscriber.Agent)
	kept.Clusters = sh.interner.intern(c.Subscriber.Clusters)
	kept.App = sh.interner.intern(c.Subscriber.App)
	kept.Renew(c.At)
	subs := sh.subs[kept.Service]
	if subs[kept.SubscriberKey] == nil {
		if id := kept.Client; id != "" && !s.clients.watch(id, kept.Service) {
			return clientClosed(id)
		}
		s.counts.subscribers.Add(1)
	}
	if subs == nil {
		subs = subscriptions{}
		sh.subs[kept.Service] = subs
	}
	subs[kept.SubscriberKey] = kept
	s.emit(sh, Event{Kind: Subscribed, At: c.At, Cause: c.Cause, Service: kept.Service, Detail: kept.describe()})
	return nil
}

// Unsubscribe is a local command: it ends a subscription. Ending what is not
// there does nothing.
type Unsubscribe struct {
	Meta
	Service    ServiceKey
	Subscriber SubscriberKey
}

func (c *Unsubscribe) apply(s *Store) (Result, error) {
	sh := s.shard(c.Service)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sub := sh.subs[c.Service][c.Subscriber]; sub != nil {
		s.unsubscribe(sh, sub, c.Meta)
	}
	return Result{}, nil
}

func (s *Store) unsubscribe(sh *shard, sub *Subscriber, m Meta) {
	subs := sh.subs[sub.Service]
	delete(subs, sub.SubscriberKey)
	if len(subs) == 0 {
		sh.subs = remove(sh.subs, sub.Service, &sh.mostSubs)
	}
	s.counts.subscribers.Add(-1)
	if sub.Client != "" {
		s.clients.unwatch(sub.Client, sub.Service)
	}
	s.emit(sh, Event{Kind: Unsubscribed, At: m.At, Cause: m.Cause, Service: sub.Service, Detail: sub.describe()})
}

// unsubscribeClient ends every subscription of a connection to one service.
func (s *Store) unsubscribeClient(key ServiceKey, id ClientID, m Meta) {
	sh := s.shard(key)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	s.unsubscribeAll(sh, m, sh.subs[key].matching(func(sub *Subscriber) bool { return sub.Client == id }))
}

func (s *Store) unsubscribeAll(sh *shard, m Meta, list []*Subscriber) {
	sortSubscribers(list)
	for _, sub := range list {
		s.unsubscribe(sh, sub, m)
	}
}

func (subs subscriptions) matching(match func(*Subscriber) bool) []*Subscriber {
	var list []*Subscriber
	for _, sub := range subs {
		if match(sub) {
			list = append(list, sub)
		}
	}
	return list
}

// ExpireSubscribers ends the UDP subscriptions that were not renewed for ttl. It
// looks at every subscriber; call it every few seconds.
func (s *Store) ExpireSubscribers(at Instant, ttl time.Duration) {
	m := Meta{At: at, Cause: Cause{Kind: CauseExpiry, Detail: "not renewed for " + ttl.String()}}
	lapsed := func(sub *Subscriber) bool {
		return sub.Protocol == ProtocolUDP && at.Lease-sub.LastSeen() > ttl
	}
	for i := range s.shards {
		sh := &s.shards[i]
		sh.mu.Lock()
		for _, subs := range sh.subs {
			s.unsubscribeAll(sh, m, subs.matching(lapsed))
		}
		sh.mu.Unlock()
	}
}

// Subscribers returns the subscribers of a service, in a stable order.
func (s *Store) Subscribers(key ServiceKey) []*Subscriber {
	list := s.Audience(key)
	sortSubscribers(list)
	return list
}

// Audience returns the subscribers of a service in another order each time, so that
// of those who are told of its changes nobody is always the last. It does not sort,
// which takes 30 times as long.
func (s *Store) Audience(key ServiceKey) []*Subscriber {
	sh := s.shard(key)
	sh.mu.RLock()
	defer sh.mu.RUnlock()
	subs := sh.subs[key]
	return slices.AppendSeq(make([]*Subscriber, 0, len(subs)), maps.Values(subs))
}

// CountSubscribers returns how many subscribers a service has.
func (s *Store) CountSubscribers(key ServiceKey) int {
	sh := s.shard(key)
	sh.mu.RLock()
	defer sh.mu.RUnlock()
	return len(sh.subs[key])
}

// HasSubscribers reports whether anybody subscribed to a service.
func (s *Store) HasSubscribers(key ServiceKey) bool {
	sh := s.shard(key)
	sh.mu.RLock()
	defer sh.mu.RUnlock()
	return len(sh.subs[key]) > 0
}

// FindSubscribers returns the subscribers of all services that match, in a
// stable order. It looks at every subscribed service.
func (s *Store) FindSubscribers(match func(ServiceKey) bool) []*Subscriber {
	var list []*Subscriber
	for i := range s.shards {
		sh := &s.shards[i]
		sh.mu.RLock()
		for key, subs := range sh.subs {
			if match(key) {
				list = slices.AppendSeq(list, maps.Values(subs))
			}
		}
		sh.mu.RUnlock()
	}
	sortSubscribers(list)
	return list
}

// Subscriber returns a subscriber of a service, nil when there is none of that
// key.
func (s *Store) Subscriber(service ServiceKey, key SubscriberKey) *Subscriber {
	sh := s.shard(service)
	sh.mu.RLock()
	defer sh.mu.RUnlock()
	return sh.subs[service][key]
}

// sortSubscribers compares part by part, without cmp.Or: a push sorts the
// subscribers of its service, and they differ in the first part looked at.
func sortSubscribers(list []*Subscriber) {
	slices.SortFunc(list, func(a, b *Subscriber) int {
		if a.Service != b.Service {
			return a.Service.compare(b.Service)
		}
		if c := a.Addr.Compare(b.Addr); c != 0 {
			return c
		}
		return cmp.Or(
			strings.Compare(string(a.Client), string(b.Client)),
			strings.Compare(a.Agent, b.Agent), strings.Compare(a.Clusters, b.Clusters),
		)
	})
}

func (s *Subscriber) describe() string {
	text := string(s.Protocol) + " " + s.Addr.String()
	if s.Agent != "" {
		text += " " + s.Agent
	}
	if s.Clusters != "" {
		text += " clusters " + s.Clusters
	}
	if s.Refused != "" {
		text += " (not pushed to: " + s.Refused + ")"
	}
	return text
}
