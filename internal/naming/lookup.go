package naming

import (
	"context"
	"slices"
	"time"

	"github.com/rollcall-registry/rollcall/internal/registry"
)

// View returns the present view of a service, nil when there is no such service.
// A disabled service is refused with ServiceDisabled.
func (c *Core) View(key registry.ServiceKey) (*registry.View, error) {
	view := c.store.View(key)
	if view != nil && view.Info.Disabled {
		return view, registry.Refuse(registry.ServiceDisabled, "serviceName", view.Grouped, "service is disabled now.")
	}
	return view, nil
}

// Lookup answers who is in a service. view is nil when there is no such service;
// a disabled service is refused with ServiceDisabled.
func (c *Core) Lookup(key registry.ServiceKey, q registry.Query) (view *registry.View, sel registry.Selection, err error) {
	view, err = c.View(key)
	if view == nil || err != nil {
		return view, sel, err
	}
	return view, registry.Select(view, q), nil
}

// Find returns one instance and the view that it is in, or refuses with
// ServiceNotFound or InstanceNotFound.
func (c *Core) Find(key registry.ServiceKey, instance registry.InstanceKey) (*registry.View, *registry.Instance, error) {
	view := c.store.View(key)
	if view == nil {
		return nil, nil, registry.Refuse(registry.ServiceNotFound, "serviceName", key.Grouped(),
			"no service %s found!", key.Grouped())
	}
	if i := view.Find(instance); i != nil {
		return view, i, nil
	}
	inCluster := func(i *registry.Instance) bool { return i.Cluster == instance.Cluster }
	if !slices.ContainsFunc(view.Instances, inCluster) {
		return view, nil, registry.Refuse(registry.InstanceNotFound, "clusterName", instance.Cluster,
			"no ips found for cluster %s in service %s", instance.Cluster, view.Grouped)
	}
	return view, nil, registry.Refuse(registry.InstanceNotFound, "ip", instance.IP, "no matched ip found!")
}

// Locate returns the key of the instance that a call of 2.x or later means. There
// an address is in one cluster of a service, whatever the call says: when it is
// not in that one, one that is there with the same address is meant.
func (c *Core) Locate(key registry.ServiceKey, instance registry.InstanceKey) registry.InstanceKey {
	view := c.store.View(key)
	if view == nil || view.Find(instance) != nil {
		return instance
	}
	if at := view.At(instance.IP, instance.Port); len(at) > 0 {
		return at[0].Key()
	}
	return instance
}

// Subscribe adds a subscriber, or renews one that is there. A new one beyond the
// limit is refused with LimitExceeded.
func (c *Core) Subscribe(_ context.Context, cause registry.Cause, s *registry.Subscriber) error {
	if err := c.admitSubscription(s); err != nil {
		return err
	}
	_, err := c.store.Apply(&registry.Subscribe{Meta: c.meta(cause), Subscriber: s})
	return err
}

// admitSubscription is not exact: calls at the same time may all be let in.
func (c *Core) admitSubscription(s *registry.Subscriber) error {
	limit := int64(c.cfg.SubscriptionLimit)
	if limit <= 0 || c.store.Counts().Subscribers < limit || c.store.Subscriber(s.Service, s.SubscriberKey) != nil {
		return nil
	}
	c.warnOfLimit(limit)
	return registry.Refuse(registry.LimitExceeded, "", "",
		"the server has %d subscriptions, the limit of limits.subscriptions: end some, or have its operator raise it", limit)
}

// warnInterval is the time from one line of the log to the next that tells of refused
// subscriptions: clients that poll ask for theirs every few seconds.
const warnInterval = time.Minute

func (c *Core) warnOfLimit(limit int64) {
	now, last := int64(c.clock.Now().Lease), c.warned.Load()
	if (last == 0 || now-last >= int64(warnInterval)) && c.warned.CompareAndSwap(last, max(now, 1)) {
		c.slog.Warn("subscriptions are refused: the limit of limits.subscriptions is reached", "limit", limit)
	}
}

// Unsubscribe ends a subscription.
func (c *Core) Unsubscribe(_ context.Context, cause registry.Cause, key registry.ServiceKey, s registry.SubscriberKey) error {
	_, err := c.store.Apply(&registry.Unsubscribe{Meta: c.meta(cause), Service: key, Subscriber: s})
	return err
}

// Expire lets time pass: see [registry.Store.Expire]. Overrides whose instance
// has been gone for too long are dropped durably. Errors of the log are returned;
// the drops are tried again at the next call.
func (c *Core) Expire(ctx context.Context) error {
	for _, cmd := range c.store.Expire(c.clock.Now()) {
		if err := c.propose(ctx, &cmd); err != nil {
			return err
		}
	}
	return nil
}

// Probed sets the health that a server-side probe found.
func (c *Core) Probed(key registry.ServiceKey, instance registry.InstanceKey, healthy bool, detail string) error {
	_, err := c.store.Apply(&registry.SetHealth{
		Meta:    c.meta(registry.Cause{Kind: registry.CauseProbe, Detail: detail}),
		Service: key, Instance: instance, Healthy: healthy, Kind: registry.OwnerDurable,
	})
	return err
}
