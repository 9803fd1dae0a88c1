package registry

import (
	"cmp"
	"maps"
	"slices"
	"sync"
)

// clients indexes what each open connection keeps alive, so that closing one
// costs what it holds and no scan.
type clients struct {
	mu   sync.RWMutex
	byID map[ClientID]*client
}

// client is one open connection. Its lock is taken with a shard's lock held.
type client struct {
	id        ClientID
	mu        sync.Mutex
	closed    bool
	instances map[instanceRef]struct{}
	subs      map[ServiceKey]int // how many subscriptions to each service
}

type instanceRef struct {
	service  ServiceKey
	instance InstanceKey
}

func (a instanceRef) compare(b instanceRef) int {
	return cmp.Or(a.service.compare(b.service), a.instance.compare(b.instance))
}

func (cs *clients) get(id ClientID) *client {
	cs.mu.RLock()
	defer cs.mu.RUnlock()
	return cs.byID[id]
}

// OpenClient makes a connection known, and keeps the memory of its ID. Opening
// an open one does nothing.
func (s *Store) OpenClient(id ClientID) {
	s.clients.mu.Lock()
	defer s.clients.mu.Unlock()
	if s.clients.byID == nil {
		s.clients.byID = map[ClientID]*client{}
	}
	if s.clients.byID[id] == nil {
		s.clients.byID[id] = &client{id: id}
	}
}

func clientClosed(id ClientID) *Error {
	return Refuse(ClientClosed, "", string(id), "connection %s is closed", id)
}

// hold notes that a connection keeps an instance alive and returns it; nil when
// it is not open. The caller holds the shard's lock, so that a late request
// cannot bring an instance of a closed connection back.
func (cs *clients) hold(id ClientID, service ServiceKey, instance InstanceKey) *client {
	c := cs.get(id)
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil
	}
	if c.instances == nil {
		c.instances = map[instanceRef]struct{}{}
	}
	ref := instanceRef{service, instance}
	if _, ok := c.instances[ref]; !ok {
		ref.service, _ = service.clone(service.Namespace)
		ref.instance = instance.clone()
		c.instances[ref] = struct{}{}
	}
	return c
}

// release takes back a hold.
func (c *client) release(service ServiceKey, instance InstanceKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.instances, instanceRef{service, instance})
}

// closeBatch is how many instances of a closed connection are removed while one
// lock is held, so that others' look-ups see no pause.
const closeBatch = 64

// CloseClient is a local command: a connection ended, and what it alone kept
// alive goes. Closing an unknown one does nothing.
type CloseClient struct {
	Meta
	Client ClientID
}

func (c *CloseClient) apply(s *Store) (Result, error) {
	s.clients.mu.Lock()
	cl := s.clients.byID[c.Client]
	delete(s.clients.byID, c.Client)
	s.clients.mu.Unlock()
	if cl == nil {
		return Result{}, nil
	}
	cl.mu.Lock()
	cl.closed = true
	refs := slices.SortedFunc(maps.Keys(cl.instances), instanceRef.compare)
	subs := slices.SortedFunc(maps.Keys(cl.subs), ServiceKey.compare)
	cl.mu.Unlock()
	for batch := range slices.Chunk(refs, closeBatch) {
		s.releaseAll(batch, c.Meta, Owner{Kind: OwnerConnection, Client: c.Client})
	}
	for _, key := range subs {
		s.unsubscribeClient(key, c.Client, c.Meta)
	}
	return Result{}, nil
}

// releaseAll takes one owner off the given instances, locking each shard once a
// run of instances in it.
func (s *Store) releaseAll(refs []instanceRef, m Meta, owner Owner) {
	var held *shard
	for _, ref := range refs {
		sh := s.shard(ref.service)
		if sh != held {
			if held != nil {
				held.mu.Unlock()
			}
			sh.mu.Lock()
			held = sh
		}
		if r := sh.services[ref.service].find(ref.instance); r != nil && r.holding(owner) != nil {
			s.release(sh, r, m, owner)
		}
	}
	if held != nil {
		held.mu.Unlock()
	}
}

// ClientHoldings returns what an open connection registered, in no order.
func (s *Store) ClientHoldings(id ClientID) map[ServiceKey][]InstanceKey {
	c := s.clients.get(id)
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	out := map[ServiceKey][]InstanceKey{}
	for ref := range c.instances {
		out[ref.service] = append(out[ref.service], ref.instance)
	}
	return out
}

// watch counts a new subscription of the connection to a service; false when it
// is not open. The caller holds the shard's lock.
func (cs *clients) watch(id ClientID, service ServiceKey) bool {
	c := cs.get(id)
	if c == nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	if c.subs == nil {
		c.subs = map[ServiceKey]int{}
	}
	c.subs[service]++
	return true
}

// unwatch takes back one watch.
func (cs *clients) unwatch(id ClientID, service ServiceKey) {
	c := cs.get(id)
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.subs[service]--; c.subs[service] <= 0 {
		delete(c.subs, service)
	}
}
