package naming

import (
	"context"
	"strconv"

	"github.com/rollcall-registry/rollcall/internal/registry"
)

// Replacement is 1.x's PUT of an instance: every field of the registration
// replaces what is shown of the instance, as an operator's override.
type Replacement struct {
	Registration
	// Strict refuses an instance that is not there; otherwise it is registered.
	Strict bool
	// AnyKind: the call did not say whether it means an ephemeral instance, so
	// the one that is there is meant.
	AnyKind bool
}

// Replace lays the registration over the instance that is there, or registers
// it. An instance that is kept by a gRPC client is changed, not doubled.
func (c *Core) Replace(ctx context.Context, cause registry.Cause, r Replacement) error {
	i := &r.Instance
	i.Weight = registry.ClampWeight(i.Weight)
	if err := c.checkInstance(i); err != nil {
		return err
	}
	view := c.store.View(r.Service)
	if r.Strict {
		if err := replaceable(view, &r); err != nil {
			return err
		}
	}
	if view == nil || !c.present(&r) {
		return c.register(ctx, cause, r.Registration)
	}
	return c.override(ctx, cause, r.Service, registry.TargetOverride{
		Target: i.Key(),
		Override: registry.Override{
			Weight: &i.Weight, Enabled: &i.Enabled, App: &i.App, Metadata: &i.Metadata,
		},
	})
}

// present reports whether the instance is there with an owner of the wanted
// kind. With AnyKind the registration takes the kind of the one that is there.
func (c *Core) present(r *Replacement) bool {
	key := r.Instance.Key()
	durable := c.store.HasOwner(r.Service, key, registry.OwnerDurable)
	ephemeral := c.store.HasOwner(r.Service, key, registry.OwnerHTTP) ||
		c.store.HasOwner(r.Service, key, registry.OwnerConnection)
	if r.AnyKind && (durable || ephemeral) {
		r.Instance.Ephemeral = ephemeral
	}
	if r.Instance.Ephemeral {
		return ephemeral
	}
	return durable
}

// replaceable is the strict check: the service exists, and some instance of it
// has that address and kind, in whatever cluster.
func replaceable(view *registry.View, r *Replacement) error {
	if view == nil {
		return registry.Refuse(registry.ServiceNotFound, "serviceName", r.Service.Grouped(),
			"service not found, namespace: %s, service: %s", r.Service.Namespace, r.Service.Grouped())
	}
	ip := registry.CanonicalIP(r.Instance.IP)
	for _, i := range view.Instances {
		if registry.CanonicalIP(i.IP) == ip && i.Port == r.Instance.Port &&
			(r.AnyKind || i.Ephemeral == r.Instance.Ephemeral) {
			return nil
		}
	}
	text := describe(&r.Instance)
	return registry.Refuse(registry.InstanceNotFound, "ip", text, "instance not exist: %s", text)
}

// describe prints an instance as 1.x does in its errors:
// ip:port:unknown:cluster_weight_healthy_marked_cluster.
func describe(i *registry.Instance) string {
	weight := strconv.FormatFloat(i.Weight, 'f', -1, 64)
	if i.Weight == float64(int64(i.Weight)) {
		weight += ".0"
	}
	return i.IP + ":" + strconv.Itoa(int(i.Port)) + ":unknown:" + i.Cluster + "_" + weight + "_" +
		strconv.FormatBool(i.Healthy) + "_" + strconv.FormatBool(i.Marked) + "_" + i.Cluster
}

// Overlay is the PUT of an instance of 2.x and later: weight and enabled of the
// registration replace what is shown of the instance, and its metadata is laid
// over the client's; all as an operator's override, which takes the place of an
// earlier one. The service must be there, the instance need not.
func (c *Core) Overlay(ctx context.Context, cause registry.Cause, r Registration) error {
	if err := c.checkRegistration(&r); err != nil {
		return err
	}
	if c.store.View(r.Service) == nil {
		return registry.Refuse(registry.ServiceNotFound, "serviceName", r.Service.Grouped(),
			"service not found, namespace: %s, service: %s", r.Service.Namespace, r.Service.Grouped())
	}
	i := &r.Instance
	return c.setOverrides(ctx, cause, r.Service, registry.TargetOverride{
		Target:   i.Key(),
		Override: registry.Override{Weight: &i.Weight, Enabled: &i.Enabled, Extra: &i.Metadata},
	})
}

// Patch changes single fields of an instance that is there. Nil fields stay.
type Patch struct {
	Service  registry.ServiceKey
	Instance registry.InstanceKey
	Override registry.Override
	// Healthy is set at once and is no override: the next beat or probe decides.
	Healthy *bool
}

// Patch lays p over an instance, or refuses with InstanceNotFound.
func (c *Core) Patch(ctx context.Context, cause registry.Cause, p Patch) error {
	i := c.instance(p.Service, p.Instance)
	if i == nil {
		return registry.Refuse(registry.InstanceNotFound, "ip", p.Instance.IP, "instance not found")
	}
	if w := p.Override.Weight; w != nil {
		if err := registry.CheckWeight(*w); err != nil {
			return err
		}
		p.Override.Weight = new(registry.ClampWeight(*w))
	}
	if m := p.Override.Metadata; m != nil {
		if err := c.limits().CheckMetadata(*m); err != nil {
			return err
		}
	}
	if m := p.Override.Extra; m != nil {
		if err := c.limits().CheckMetadata(i.Metadata.With(*m)); err != nil {
			return err
		}
	}
	if p.Override != (registry.Override{}) {
		err := c.override(ctx, cause, p.Service, registry.TargetOverride{Target: p.Instance, Override: p.Override})
		if err != nil {
			return err
		}
	}
	if p.Healthy == nil {
		return nil
	}
	_, err := c.store.Apply(&registry.SetHealth{
		Meta: c.meta(cause), Service: p.Service, Instance: p.Instance, Healthy: *p.Healthy, All: true,
	})
	return err
}

// override lays entries over the overrides that are stored already.
func (c *Core) override(ctx context.Context, cause registry.Cause, key registry.ServiceKey, entries ...registry.TargetOverride) error {
	for n, e := range entries {
		if earlier, ok := c.store.Override(key, e.Target); ok {
			entries[n].Override = e.Override.Over(earlier)
		}
	}
	return c.setOverrides(ctx, cause, key, entries...)
}

// setOverrides puts entries in the place of the overrides that are stored.
func (c *Core) setOverrides(ctx context.Context, cause registry.Cause, key registry.ServiceKey, entries ...registry.TargetOverride) error {
	return c.propose(ctx, &registry.SetOverride{Meta: c.meta(cause), Service: key, Entries: entries})
}

// MetadataOp is how [Core.UpdateMetadata] treats the entries it is given.
type MetadataOp uint8

// The ways to change metadata. 1.x replaces what is shown: entries are laid over
// it, or their keys dropped. 2.x and later keep the operator's entries apart from
// the client's: they are laid over those, or taken off again, and what the client
// registered shows once more.
const (
	MergeMetadata MetadataOp = iota
	RemoveMetadata
	LayMetadata
	LiftMetadata
)

// UpdateMetadata changes the metadata of those instances of a service for which
// match is true, and returns them as they were before.
func (c *Core) UpdateMetadata(ctx context.Context, cause registry.Cause, key registry.ServiceKey, op MetadataOp, m registry.Metadata, match func(*registry.Instance) bool) ([]*registry.Instance, error) {
	view := c.store.View(key)
	if view == nil {
		return nil, registry.Refuse(registry.ServiceNotFound, "serviceName", key.Grouped(), "service not found: %s", key.Grouped())
	}
	var touched []*registry.Instance
	var entries []registry.TargetOverride
	for _, i := range view.Instances {
		if !match(i) {
			continue
		}
		next, err := c.withMetadata(key, i, op, m)
		if err != nil {
			return nil, err
		}
		touched = append(touched, i)
		if next != (registry.Override{}) {
			entries = append(entries, registry.TargetOverride{Target: i.Key(), Override: next})
		}
	}
	if len(entries) == 0 {
		return touched, nil
	}
	return touched, c.override(ctx, cause, key, entries...)
}

// withMetadata returns what op lays over the override of an instance; nothing
// when it changes nothing.
func (c *Core) withMetadata(key registry.ServiceKey, i *registry.Instance, op MetadataOp, m registry.Metadata) (registry.Override, error) {
	switch op {
	case MergeMetadata, LayMetadata:
		next := i.Metadata.With(m)
		if err := c.limits().CheckMetadata(next); err != nil {
			return registry.Override{}, err
		}
		if op == MergeMetadata {
			return registry.Override{Metadata: &next}, nil
		}
		return registry.Override{Extra: new(c.laid(key, i).With(m))}, nil
	case RemoveMetadata:
		return registry.Override{Metadata: new(i.Metadata.Without(m))}, nil
	case LiftMetadata:
		earlier, _ := c.store.Override(key, i.Key())
		lifted := registry.Override{}
		if earlier.Metadata != nil { // of 1.x: all of it is the operator's
			lifted.Metadata = new(earlier.Metadata.Without(m))
		}
		if earlier.Extra != nil {
			lifted.Extra = new(earlier.Extra.Without(m))
		}
		return lifted, nil
	}
	panic("naming: unknown operation on metadata")
}

// laid returns the entries that are laid over what a client registered.
func (c *Core) laid(key registry.ServiceKey, i *registry.Instance) registry.Metadata {
	if earlier, _ := c.store.Override(key, i.Key()); earlier.Extra != nil {
		return *earlier.Extra
	}
	return ""
}

// instance returns an instance of the present view, nil when it is not there.
func (c *Core) instance(key registry.ServiceKey, instance registry.InstanceKey) *registry.Instance {
	view := c.store.View(key)
	if view == nil {
		return nil
	}
	return view.Find(instance)
}
