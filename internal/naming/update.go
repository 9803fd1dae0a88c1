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
	if c.instance(p.Service, p.Instance) == nil {
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
	_, err := c.propose(ctx, &registry.SetOverride{Meta: c.meta(cause), Service: key, Entries: entries})
	return err
}

// MetadataOp is how [Core.UpdateMetadata] treats the entries it is given.
type MetadataOp uint8

// The ways to change metadata: lay entries over it, or drop their keys.
const (
	MergeMetadata MetadataOp = iota
	RemoveMetadata
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
		next := i.Metadata.With(m)
		if op == RemoveMetadata {
			next = i.Metadata.Without(m)
		}
		if err := c.limits().CheckMetadata(next); err != nil {
			return nil, err
		}
		touched = append(touched, i)
		entries = append(entries, registry.TargetOverride{Target: i.Key(), Override: registry.Override{Metadata: &next}})
	}
	if len(entries) == 0 {
		return nil, nil
	}
	return touched, c.override(ctx, cause, key, entries...)
}

// instance returns an instance of the present view, nil when it is not there.
func (c *Core) instance(key registry.ServiceKey, instance registry.InstanceKey) *registry.Instance {
	view := c.store.View(key)
	if view == nil {
		return nil
	}
	return view.Find(instance)
}
