package registry

import (
	"maps"
	"slices"
	"sync"
)

// clients indexes what each open connection keeps alive, so that closing one
// costs what it holds and no scan.
type clients struct {
	mu   sync.RWMutex
	byID map[ClientID]*client
	most int // see remove
}

// client is one open connection. Its lock is taken with a shard's lock held; that
// of a recalled one also with a live one's, and never the other way round.
type client struct {
	id ClientID
	// recalled: it is remembered from before a restart and nobody is at its other
	// end.
	recalled bool
	// publishing is held while a [Publish] runs. It is taken before all others.
	publishing sync.Mutex

	mu      sync.Mutex
	closed  bool
	records map[*record]struct{} // what it keeps alive
	subs    map[ServiceKey]int   // how many subscriptions to each service
}

func (cs *clients) get(id ClientID) *client {
	cs.mu.RLock()
	defer cs.mu.RUnlock()
	return cs.byID[id]
}

// OpenClient makes a connection known, and keeps the memory of its ID. Opening
// an open one does nothing.
func (s *Store) OpenClient(id ClientID) { s.clients.open(&client{id: id}) }

// RecallClient is OpenClient for a connection that is remembered from before a
// restart. What it registered stays until it is closed, or until another
// connection registers the same instance: that is its client, who has come back.
func (s *Store) RecallClient(id ClientID) { s.clients.open(&client{id: id, recalled: true}) }

func (cs *clients) open(c *client) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if cs.byID == nil {
		cs.byID = map[ClientID]*client{}
	}
	if cs.byID[c.id] == nil {
		cs.byID[c.id] = c
	}
}

// Recalled reports whether a connection is one of those that are remembered from
// before a restart, and has not been closed.
func (s *Store) Recalled(id ClientID) bool {
	c := s.clients.get(id)
	return c != nil && c.recalled
}

// replaceRecalled takes an instance from connections that are remembered only. The
// caller holds the shard's lock.
func (s *Store) replaceRecalled(sh *shard, r *record, m Meta) {
	var recalled []Owner
	for _, h := range r.below() {
		if h.client != nil && h.client.recalled {
			recalled = append(recalled, h.owner())
		}
	}
	for _, owner := range recalled {
		s.release(sh, r, m, owner)
	}
}

func clientClosed(id ClientID) *Error {
	return Refuse(ClientClosed, "", string(id), "connection %s is closed", id)
}

// enter returns an open connection with its lock held; nil when it is not open.
// The caller holds the shard's lock until its change is made and noted, so that
// a late request cannot bring an instance of a closed connection back.
func (cs *clients) enter(id ClientID) *client {
	c := cs.get(id)
	if c == nil {
		return nil
	}
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil
	}
	return c
}

// hold notes that the connection keeps r alive. The caller holds its lock.
func (c *client) hold(r *record) {
	if c.records == nil {
		c.records = map[*record]struct{}{}
	}
	c.records[r] = struct{}{}
}

// release takes back a hold.
func (c *client) release(r *record) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.records, r)
}

// held returns what the connection keeps alive, in the order of the services.
func (c *client) held() []*record {
	records := slices.Collect(maps.Keys(c.records))
	slices.SortFunc(records, func(a, b *record) int { return a.svc.key.compare(b.svc.key) })
	return records
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
	s.clients.byID = remove(s.clients.byID, c.Client, &s.clients.most)
	s.clients.mu.Unlock()
	if cl == nil {
		return Result{}, nil
	}
	cl.mu.Lock()
	cl.closed = true
	records := cl.held()
	subs := slices.SortedFunc(maps.Keys(cl.subs), ServiceKey.compare)
	cl.mu.Unlock()
	owner := Owner{Kind: OwnerConnection, Client: c.Client}
	for batch := range slices.Chunk(records, closeBatch) {
		s.eachRecord(batch, func(sh *shard, r *record) {
			if r.holding(owner) != nil {
				s.release(sh, r, c.Meta, owner)
			}
		})
	}
	for _, key := range subs {
		s.unsubscribeClient(key, c.Client, c.Meta)
	}
	return Result{}, nil
}

// eachRecord gives those records to f that are still in their service, with
// their shard's lock held. It locks once for a run of records of one shard.
func (s *Store) eachRecord(records []*record, f func(*shard, *record)) {
	var held *shard
	for _, r := range records {
		if sh := s.shard(r.svc.key); sh != held {
			if held != nil {
				held.mu.Unlock()
			}
			sh.mu.Lock()
			held = sh
		}
		if held.services[r.svc.key] == r.svc && r.svc.find(r.key()) == r {
			f(held, r)
		}
	}
	if held != nil {
		held.mu.Unlock()
	}
}

// ClientHoldings returns what an open connection registered, by service and
// sorted.
func (s *Store) ClientHoldings(id ClientID) map[ServiceKey][]InstanceKey {
	c := s.clients.get(id)
	if c == nil {
		return nil
	}
	c.mu.Lock()
	records := c.held()
	c.mu.Unlock()
	out := map[ServiceKey][]InstanceKey{}
	s.eachRecord(records, func(_ *shard, r *record) {
		out[r.svc.key] = append(out[r.svc.key], r.key())
	})
	for _, list := range out {
		slices.SortFunc(list, InstanceKey.compare)
	}
	return out
}

// watch counts a new subscription of the connection to a service; false when it
// is not open. The caller holds the shard's lock.
func (cs *clients) watch(id ClientID, service ServiceKey) bool {
	c := cs.enter(id)
	if c == nil {
		return false
	}
	defer c.mu.Unlock()
	if c.subs == nil {
		c.subs = map[ServiceKey]int{}
	}
	c.subs[service]++
	return true
}

// unwatch takes back one watch.
func (cs *clients) unwatch(id ClientID, service ServiceKey) {
	c := cs.enter(id)
	if c == nil {
		return
	}
	defer c.mu.Unlock()
	if c.subs[service]--; c.subs[service] <= 0 {
		delete(c.subs, service)
	}
}
