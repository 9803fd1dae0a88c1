package naming

import (
	"context"

	"github.com/rollcall-registry/rollcall/internal/registry"
)

// Registration is a client's wish to be listed. Instance.Ephemeral decides
// between the durable store and the client's own beats or connection.
type Registration struct {
	Service  registry.ServiceKey
	Instance registry.Instance
	// Client is the gRPC connection that registers; empty over HTTP.
	Client registry.ClientID
	// Agent is what an HTTP client calls itself; it may be memory of the request.
	Agent string
	// Kind is what the asking API declares the service to be; v1 declares nothing.
	Kind registry.Kind
	// CheckService judges the service's name when the service is not there yet;
	// APIs differ in the characters they accept. Nil means 1.x's rule.
	CheckService func(registry.ServiceKey) error
	// TakeHealth lets the registration change the health of an instance that its
	// owner registered before.
	TakeHealth bool
	// modern: the rules of 2.x and later count; see [Registration.Modern].
	modern bool
}

// Modern returns r by the rules that 2.x and later have for registrations, over
// HTTP and gRPC: the service gets the kind of its first instance, its name has
// other characters, life times must fit each other, a small weight stays as it is,
// health counts every time, and an address has one registration in a service, so
// that over HTTP one in another cluster goes.
func (r Registration) Modern() Registration {
	r.Kind = registry.KindPersistent
	if r.Instance.Ephemeral {
		r.Kind = registry.KindEphemeral
	}
	r.CheckService, r.TakeHealth, r.modern = registry.CheckServiceV2, true, true
	return r
}

func (r *Registration) owner() registry.Owner {
	switch {
	case !r.Instance.Ephemeral:
		return registry.Owner{Kind: registry.OwnerDurable}
	case r.Client != "":
		return registry.Owner{Kind: registry.OwnerConnection, Client: r.Client}
	default:
		return registry.Owner{Kind: registry.OwnerHTTP}
	}
}

// Register lists an instance, or replaces what its owner registered before. The
// service and the cluster are made when they are not there.
func (c *Core) Register(ctx context.Context, cause registry.Cause, r Registration) error {
	if err := c.checkRegistration(&r); err != nil {
		return err
	}
	if err := c.register(ctx, cause, r); err != nil || !r.modern || r.owner().Kind == registry.OwnerConnection {
		return err
	}
	return c.leaveOthers(ctx, cause, &r)
}

// checkRegistration checks the fields of the instance itself.
func (c *Core) checkRegistration(r *Registration) error {
	if !r.modern {
		r.Instance.Weight = registry.ClampWeight(r.Instance.Weight)
		return c.checkInstance(&r.Instance)
	}
	if err := c.checkInstance(&r.Instance); err != nil {
		return err
	}
	if err := registry.CheckBeatTimes(r.Instance.Metadata); err != nil {
		return err
	}
	return registry.CheckCluster(r.Instance.Cluster)
}

// leaveOthers drops what the same owner registered of the same address in other
// clusters of the service.
func (c *Core) leaveOthers(ctx context.Context, cause registry.Cause, r *Registration) error {
	return c.deregisterEach(ctx, cause, r.Service, r.Instance.Key(), r.owner().Kind, func(cluster string) bool {
		return cluster != r.Instance.Cluster
	})
}

// register makes the registration without checking the instance's own fields. An
// instance that is there needs no admission and is renewed in one look-up.
func (c *Core) register(ctx context.Context, cause registry.Cause, r Registration) error {
	cmd := registry.Register{
		Meta: c.meta(cause), Service: r.Service, Owner: r.owner(), Instance: r.Instance,
		Kind: r.Kind, TakeHealth: r.TakeHealth, Agent: r.Agent,
	}
	if r.Instance.Ephemeral {
		if known, err := c.store.Renew(&cmd); known {
			return err
		}
	}
	if err := c.admit(&r); err != nil {
		return err
	}
	if r.Instance.Ephemeral {
		return c.store.Register(&cmd)
	}
	durable := cmd // only what goes through the log is allocated
	return c.propose(ctx, &durable)
}

func (c *Core) checkInstance(i *registry.Instance) error {
	if err := registry.CheckIP(i.IP); err != nil {
		return err
	}
	if err := registry.CheckWeight(i.Weight); err != nil {
		return err
	}
	return c.limits().CheckMetadata(i.Metadata)
}

// admit checks names and limits, which count only for what is not there yet.
func (c *Core) admit(r *Registration) error {
	there := c.store.Presence(r.Service, r.Instance.Key())
	if !there.Service {
		check := r.CheckService
		if check == nil {
			check = registry.CheckServiceV1
		}
		if err := check(r.Service); err != nil {
			return err
		}
		if err := c.admitService(r.Service.Namespace); err != nil {
			return err
		}
	}
	if !there.Cluster {
		if err := registry.CheckCluster(r.Instance.Cluster); err != nil {
			return err
		}
	}
	if there.Instance {
		return nil
	}
	return c.admitInstance()
}

func (c *Core) admitService(namespace string) error {
	if c.cfg.ServiceLimit <= 0 {
		return nil
	}
	if _, n := c.store.Services(namespace, "", 0, 0); n >= c.cfg.ServiceLimit {
		return registry.Refuse(registry.LimitExceeded, "namespaceId", namespace,
			"namespace %s has %d services, the limit of limits.services", namespace, n)
	}
	return nil
}

func (c *Core) admitInstance() error {
	if c.store.Switches().DisableAddIP {
		return registry.Refuse(registry.RegistrationDisabled, "", "",
			"Adding IP for dom is forbidden now: the switch disableAddIP is on.")
	}
	if c.cfg.InstanceLimit <= 0 {
		return nil
	}
	n := c.store.Counts()
	if total := int(n.Ephemeral + n.Persistent); total >= c.cfg.InstanceLimit {
		return registry.Refuse(registry.LimitExceeded, "", "",
			"the server has %d instances, the limit of limits.instances", total)
	}
	return nil
}

// Deregister takes the registration of an HTTP client, or of the durable store,
// away. What is not there is no error. An override of the instance goes too.
func (c *Core) Deregister(ctx context.Context, cause registry.Cause, key registry.ServiceKey, instance registry.InstanceKey, ephemeral bool) error {
	kind := registry.OwnerHTTP
	if !ephemeral {
		kind = registry.OwnerDurable
	}
	if !ephemeral && !c.store.HasOwner(key, instance, kind) {
		return nil // not worth an entry of the durable log
	}
	cmd := &registry.Deregister{
		Meta: c.meta(cause), Service: key, Owner: registry.Owner{Kind: kind}, Instance: instance,
	}
	var err error
	if ephemeral {
		_, err = c.store.Apply(cmd)
	} else {
		err = c.propose(ctx, cmd)
	}
	if err != nil {
		return err
	}
	return c.forget(ctx, cause, key, instance)
}

// DeregisterAddress is [Core.Deregister] as 2.x and later have it: an instance is
// meant by its address, in whatever cluster it is.
func (c *Core) DeregisterAddress(ctx context.Context, cause registry.Cause, key registry.ServiceKey, ip string, port int32, ephemeral bool) error {
	kind := registry.OwnerHTTP
	if !ephemeral {
		kind = registry.OwnerDurable
	}
	return c.deregisterEach(ctx, cause, key, registry.InstanceKey{IP: ip, Port: port}, kind, func(string) bool { return true })
}

// deregisterEach takes the registrations of a kind of owner away that have an
// address and are in a cluster for which in is true.
func (c *Core) deregisterEach(ctx context.Context, cause registry.Cause, key registry.ServiceKey, address registry.InstanceKey, kind registry.OwnerKind, in func(cluster string) bool) error {
	for _, i := range c.store.InstancesAt(key, address.IP, address.Port) {
		if !in(i.Cluster) || !c.store.HasOwner(key, i.Key(), kind) {
			continue
		}
		if err := c.Deregister(ctx, cause, key, i.Key(), kind != registry.OwnerDurable); err != nil {
			return err
		}
	}
	return nil
}

// forget drops the override of an instance that was deregistered by name.
func (c *Core) forget(ctx context.Context, cause registry.Cause, key registry.ServiceKey, instance registry.InstanceKey) error {
	if _, ok := c.store.Override(key, instance); !ok {
		return nil
	}
	return c.propose(ctx, &registry.DropOverride{Meta: c.meta(cause), Service: key, Target: instance})
}
