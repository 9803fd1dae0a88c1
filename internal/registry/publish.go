package registry

import "slices"

// Publish is a local command: it makes Instances all that a connection registers
// of a service. What the connection registered of it before and is not among them
// goes; with none at all the connection leaves the service. Clients of 2.x and 3.x
// have one such slot in each service. The instances that went are in the result.
//
// [Register] with a connection as its owner adds to what is there instead.
//
// Service and Instances may be made of request memory: the store copies what it
// keeps.
type Publish struct {
	Meta
	Service   ServiceKey
	Client    ClientID
	Instances []Instance
	// Kind is what the asking API declares the service to be; see [Register].
	Kind Kind
}

// publishBatch is how many instances of a slot are changed while one lock is held:
// about a millisecond.
const publishBatch = 512

// apply makes the change in one critical section, so that nobody sees the old
// instance beside the new one. A large slot is changed in batches, so that it holds
// nobody up: first what is new comes, then what is old goes. Two commands of one
// connection take turns, or each could take away what the other adds.
func (c *Publish) apply(s *Store) (Result, error) {
	client := s.clients.get(c.Client)
	if client == nil {
		return Result{}, clientClosed(c.Client)
	}
	client.publishing.Lock()
	defer client.publishing.Unlock()
	sh := s.shard(c.Service)
	rest := c.Instances
	for ; len(rest) > publishBatch; rest = rest[publishBatch:] {
		if err := c.enrol(s, sh, rest[:publishBatch]); err != nil {
			return Result{}, err
		}
	}
	var res Result
	left, err := c.exchange(s, sh, client, rest, &res)
	for batch := range slices.Chunk(left, publishBatch) {
		s.eachRecord(batch, func(sh *shard, r *record) { c.release(s, sh, r, &res) })
	}
	return res, err
}

func (c *Publish) enrol(s *Store, sh *shard, batch []Instance) error {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return c.enrolLocked(s, sh, batch)
}

func (c *Publish) enrolLocked(s *Store, sh *shard, batch []Instance) error {
	if len(batch) == 0 {
		return nil
	}
	r := Register{Meta: c.Meta, Service: c.Service, Owner: c.owner(), Kind: c.Kind, TakeHealth: true}
	if err := r.refusal(sh.services[c.Service]); err != nil {
		return err
	}
	for _, r.Instance = range batch {
		if err := r.enrol(s, sh); err != nil {
			return err
		}
	}
	return nil
}

func (c *Publish) owner() Owner { return Owner{Kind: OwnerConnection, Client: c.Client} }

// exchange makes the last of the registrations and takes away the first of what is
// no longer listed, and returns the others of those.
func (c *Publish) exchange(s *Store, sh *shard, client *client, batch []Instance, res *Result) (left []*record, err error) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if err := c.enrolLocked(s, sh, batch); err != nil {
		return nil, err
	}
	held := client.heldOf(sh.services[c.Service])
	if len(held) == 1 && len(c.Instances) == 1 {
		return nil, nil // nearly always: the one that has just been registered
	}
	held = c.unlisted(held)
	n := min(len(held), publishBatch)
	for _, r := range held[:n] {
		c.release(s, sh, r, res)
	}
	return held[n:], nil
}

// release takes the connection's part from an instance. The caller holds the
// shard's lock.
func (c *Publish) release(s *Store, sh *shard, r *record, res *Result) {
	if owner := c.owner(); r.holding(owner) != nil {
		res.Released = append(res.Released, r.inst)
		s.release(sh, r, c.Meta, owner)
	}
}

// unlisted returns those of the records that are not among the instances.
func (c *Publish) unlisted(held []*record) []*record {
	if len(held) == 0 || len(c.Instances) == 0 {
		return held
	}
	if len(c.Instances) == 1 {
		only := c.Instances[0].Key().identity()
		return slices.DeleteFunc(held, func(r *record) bool { return r.key() == only })
	}
	listed := make(map[InstanceKey]bool, len(c.Instances))
	for i := range c.Instances {
		listed[c.Instances[i].Key().identity()] = true
	}
	return slices.DeleteFunc(held, func(r *record) bool { return listed[r.key()] })
}

// heldOf returns what the connection keeps alive of a service, which may be nil,
// in no order. The caller holds the shard's lock. It looks at what the connection holds or at
// what the service has, whichever is less.
func (c *client) heldOf(svc *service) []*record {
	if svc == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var list []*record
	if len(svc.records) < len(c.records) {
		for _, r := range svc.records {
			if _, held := c.records[r]; held {
				list = append(list, r)
			}
		}
		return list
	}
	for r := range c.records {
		if r.svc == svc {
			list = append(list, r)
		}
	}
	return list
}
