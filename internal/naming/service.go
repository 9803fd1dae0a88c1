package naming

import (
	"context"

	"github.com/rollcall-registry/rollcall/internal/registry"
)

// CreateService makes a service by hand; it stays when it is empty. check judges
// the name; nil means 1.x's rule.
func (c *Core) CreateService(ctx context.Context, cause registry.Cause, key registry.ServiceKey, info registry.ServiceInfo, check func(registry.ServiceKey) error) error {
	if check == nil {
		check = registry.CheckServiceV1
	}
	if err := check(key); err != nil {
		return err
	}
	if err := c.limits().CheckMetadata(info.Metadata); err != nil {
		return err
	}
	if c.store.View(key) == nil {
		if err := c.admitService(key.Namespace); err != nil {
			return err
		}
	}
	return c.propose(ctx, &registry.CreateService{Meta: c.meta(cause), Service: key, Info: info})
}

// UpdateService changes the settings of a service that is there; change gets a
// copy of the present ones. It refuses with ServiceNotFound.
func (c *Core) UpdateService(ctx context.Context, cause registry.Cause, key registry.ServiceKey, change func(*registry.ServiceInfo)) error {
	view := c.store.View(key)
	if view == nil {
		return registry.Refuse(registry.ServiceNotFound, "serviceName", key.Grouped(), "service %s not found!", key.Grouped())
	}
	info := *view.Info
	change(&info)
	if err := c.limits().CheckMetadata(info.Metadata); err != nil {
		return err
	}
	return c.propose(ctx, &registry.UpdateService{Meta: c.meta(cause), Service: key, Info: info})
}

// DeleteService removes a service with all that is in it. ifEmpty refuses when it
// has instances.
func (c *Core) DeleteService(ctx context.Context, cause registry.Cause, key registry.ServiceKey, ifEmpty bool) error {
	return c.propose(ctx, &registry.DeleteService{Meta: c.meta(cause), Service: key, IfEmpty: ifEmpty})
}

// SetCluster sets the probe and metadata of a cluster, which is made when it is
// not there. The service must be; change gets a copy of the present settings.
func (c *Core) SetCluster(ctx context.Context, cause registry.Cause, key registry.ServiceKey, name string, change func(*registry.Cluster)) error {
	view := c.store.View(key)
	if view == nil {
		return registry.Refuse(registry.ServiceNotFound, "serviceName", key.Grouped(), "service not found:%s", key.Grouped())
	}
	cluster := *registry.NewCluster(name)
	if have := view.Cluster(name); have != nil {
		cluster = *have
	} else if err := registry.CheckCluster(name); err != nil {
		return err
	}
	change(&cluster)
	if err := registry.CheckProbe(&cluster); err != nil {
		return err
	}
	if err := c.limits().CheckMetadata(cluster.Metadata); err != nil {
		return err
	}
	return c.propose(ctx, &registry.SetCluster{Meta: c.meta(cause), Service: key, Cluster: cluster})
}

// SetHealth sets the health of an instance by hand, which only a cluster without
// a probe allows. An instance that is not there is no error.
func (c *Core) SetHealth(_ context.Context, cause registry.Cause, key registry.ServiceKey, instance registry.InstanceKey, healthy bool) error {
	view := c.store.View(key)
	if view == nil {
		return registry.Refuse(registry.ServiceNotFound, "serviceName", key.Grouped(), "service not found: %s", key.Grouped())
	}
	cluster := view.Cluster(instance.Cluster)
	if cluster == nil {
		return registry.Refuse(registry.ClusterNotFound, "clusterName", instance.Cluster, "cluster not found: %s", instance.Cluster)
	}
	if cluster.Checker.Type != registry.CheckNone {
		return registry.Refuse(registry.HealthChecked, "healthy", key.Grouped(), "health check is still working, service: %s", key.Grouped())
	}
	_, err := c.store.Apply(&registry.SetHealth{
		Meta: c.meta(cause), Service: key, Instance: instance, Healthy: healthy, All: true,
	})
	return err
}

// SetPersistentHealth sets the health of a persistent instance by hand as 2.x and
// later do: only in a cluster without a probe, and never in a service that one of
// them has made persistent, because they take the change for a registration of an
// ephemeral instance. An instance that is not there is no error.
func (c *Core) SetPersistentHealth(_ context.Context, cause registry.Cause, key registry.ServiceKey, instance registry.InstanceKey, healthy bool) error {
	view := c.store.View(key)
	var cluster *registry.Cluster
	if view != nil {
		cluster = view.Cluster(instance.Cluster)
	}
	if cluster == nil || cluster.Checker.Type != registry.CheckNone {
		return registry.Refuse(registry.HealthChecked, "healthy", key.Grouped(),
			"health check is still working, service: %s, cluster: %s", key.Grouped(), instance.Cluster)
	}
	instance = c.Locate(key, instance)
	if !c.store.HasOwner(key, instance, registry.OwnerDurable) {
		return nil
	}
	if view.Info.Kind == registry.KindPersistent {
		return registry.Refuse(registry.KindMismatch, "ephemeral", key.Grouped(),
			"Current service %s is persistent service, can't register ephemeral instance.", key.Grouped())
	}
	_, err := c.store.Apply(&registry.SetHealth{
		Meta: c.meta(cause), Service: key, Instance: instance, Healthy: healthy, Kind: registry.OwnerDurable,
	})
	return err
}

// CreateNamespace adds a namespace to the list.
func (c *Core) CreateNamespace(ctx context.Context, cause registry.Cause, n registry.Namespace) error {
	return c.propose(ctx, &registry.CreateNamespace{Meta: c.meta(cause), Namespace: n})
}

// UpdateNamespace renames a namespace of the list.
func (c *Core) UpdateNamespace(ctx context.Context, cause registry.Cause, n registry.Namespace) error {
	return c.propose(ctx, &registry.UpdateNamespace{Meta: c.meta(cause), Namespace: n})
}

// DeleteNamespace takes a namespace off the list. Its services are untouched.
func (c *Core) DeleteNamespace(ctx context.Context, cause registry.Cause, id string) error {
	return c.propose(ctx, &registry.DeleteNamespace{Meta: c.meta(cause), ID: id})
}

// SetSwitch sets a switch: for good, or in memory until the next start.
func (c *Core) SetSwitch(ctx context.Context, cause registry.Cause, entry, value string, inMemory bool) error {
	if err := c.store.CheckSwitch(entry, value); err != nil {
		return err
	}
	cmd := &registry.SetSwitch{Meta: c.meta(cause), Entry: entry, Value: value}
	var err error
	if inMemory {
		_, err = c.store.Apply(cmd)
	} else {
		err = c.propose(ctx, cmd)
	}
	return err
}
