package grpcmode

import (
	"context"
	"maps"
	"slices"

	"github.com/rollcall-registry/rollcall/api/grpcv2"
	"github.com/rollcall-registry/rollcall/client/internal/wire"
)

// publication is what a session may have published of a service. It belongs to the one
// call of Publish for the service.
type publication struct {
	// held are the instances that the server may hold, and where: also those of calls
	// whose outcome is not known.
	held map[wire.Key]held
}

// held is an instance that was published.
type held struct {
	instance wire.Instance
	// place is the connection: 0 is the main one, n the n-th extra one.
	place int
	sure  bool // the server said so
}

// publication returns the publication of a service.
func (s *session) publication(service wire.Service) *publication {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.published[service]
	if p == nil {
		p = &publication{held: make(map[wire.Key]held)}
		s.published[service] = p
	}
	return p
}

// holds reports whether exactly these instances have been published.
func (s *session) holds(service wire.Service, instances []wire.Instance) bool {
	s.mu.Lock()
	p := s.published[service]
	s.mu.Unlock()
	if p == nil {
		return len(instances) == 0
	}
	return len(p.held) == len(instances) && !slices.ContainsFunc(instances, func(i wire.Instance) bool {
		h, ok := p.held[i.Key()]
		return !ok || !h.instance.Alike(&i)
	})
}

// Publish makes the server hold exactly these instances.
func (t *Transport) Publish(ctx context.Context, service wire.Service, instances []wire.Instance) error {
	s, err := t.session()
	if err != nil {
		return err
	}
	err = s.publish(ctx, service, instances)
	if old := t.leaving.Load(); old != nil && err == nil && !old.holds(service, instances) {
		t.release() // what it holds is outdated
	}
	return err
}

func (s *session) publish(ctx context.Context, service wire.Service, instances []wire.Instance) error {
	p := s.publication(service)
	switch {
	case len(instances) == 0:
		return s.withdraw(ctx, service, p)
	case s.unbatched.Load():
		return s.spread(ctx, service, p, instances)
	}
	before := maps.Clone(p.held)
	for _, i := range instances {
		p.held[i.Key()] = held{instance: i}
	}
	publish := func() error {
		if len(instances) == 1 {
			return s.main.change(ctx, service, grpcv2.InstanceType, grpcv2.Register, &instances[0])
		}
		return s.batch(ctx, service, instances)
	}
	err := publish()
	switch {
	case err == nil:
		err = s.shrink(ctx, service, without(before, instances), publish)
	case wire.Refused(err):
		p.held = before
	}
	switch {
	case err == nil:
		clear(p.held)
		for _, i := range instances {
			p.held[i.Key()] = held{instance: i, sure: true}
		}
	case len(instances) > 1 && wire.KindOf(err) == wire.Unsupported:
		s.transport.cfg.Logger.Info("the server knows no batches; each instance gets a connection", "server", s.info.Server)
		s.unbatched.Store(true)
		p.held = before
		return s.spread(ctx, service, p, instances)
	}
	return err
}

// without returns what was held of instances that are not in a set.
func without(before map[wire.Key]held, instances []wire.Instance) (left []held) {
	in := make(map[wire.Key]bool, len(instances))
	for n := range instances {
		in[instances[n].Key()] = true
	}
	for key, h := range before {
		if !in[key] {
			left = append(left, h)
		}
	}
	return left
}

// withdraw takes back all that was published of a service. A place is emptied whichever
// of its instances is named, unless the server is one of those that emptied is for.
func (s *session) withdraw(ctx context.Context, service wire.Service, p *publication) error {
	for _, h := range p.held {
		if err := s.empty(ctx, service, h); err != nil {
			return err
		}
		if err := s.emptied(ctx, service, p.beside(h)); err != nil {
			return err
		}
		p.drop(h.place)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.published, service)
	return nil
}

// beside returns what else may be in the place of an instance.
func (p *publication) beside(h held) (others []held) {
	for key, o := range p.held {
		if o.place == h.place && key != h.instance.Key() {
			others = append(others, o)
		}
	}
	return others
}

// empty deregisters what is in a place. That the server does not know it is as good.
func (s *session) empty(ctx context.Context, service wire.Service, h held) error {
	c, err := s.place(ctx, h.place)
	if err != nil {
		return err
	}
	err = c.change(ctx, service, grpcv2.InstanceType, grpcv2.Deregister, &h.instance)
	if err != nil && wire.KindOf(err) == wire.NotFound {
		return nil
	}
	return err
}

// change registers or deregisters one instance.
func (c *conn) change(ctx context.Context, service wire.Service, request, kind string, i *wire.Instance) error {
	name, instance := grpcv2.ServiceName(service), published(i)
	_, err := c.call(ctx, request, resource(service), grpcv2.AppendInstanceRequest(nil, &name, kind, &instance))
	return err
}

func (s *session) batch(ctx context.Context, service wire.Service, instances []wire.Instance) error {
	name := grpcv2.ServiceName(service)
	batch := make([]grpcv2.Published, len(instances))
	for n := range instances {
		batch[n] = published(&instances[n])
	}
	_, err := s.main.call(ctx, grpcv2.BatchInstance, resource(service), grpcv2.AppendBatchRequest(nil, &name, batch))
	return err
}

func published(i *wire.Instance) grpcv2.Published {
	return grpcv2.Published{
		ID: i.ID, IP: i.IP, Port: i.Port, Cluster: i.Cluster, Metadata: i.Metadata, Weight: i.Weight,
		Healthy: i.Healthy, Enabled: i.Enabled, Ephemeral: i.Ephemeral,
	}
}

// resource is what a signature is about.
func resource(s wire.Service) string { return s.Group + "@@" + s.Name }

// RegisterPersistent registers an instance that no session carries.
func (t *Transport) RegisterPersistent(ctx context.Context, service wire.Service, i wire.Instance) error {
	return t.persistent(ctx, service, grpcv2.Register, &i)
}

// DeregisterPersistent removes such an instance.
func (t *Transport) DeregisterPersistent(ctx context.Context, service wire.Service, i wire.Instance) error {
	return t.persistent(ctx, service, grpcv2.Deregister, &i)
}

func (t *Transport) persistent(ctx context.Context, service wire.Service, kind string, i *wire.Instance) error {
	s, err := t.session()
	if err != nil {
		return err
	}
	if !s.info.Persistent {
		return &wire.Error{Kind: wire.Unsupported, Server: s.info.Server, Err: errNoPersistent}
	}
	return s.main.change(ctx, service, grpcv2.PersistentInstance, kind, i)
}
