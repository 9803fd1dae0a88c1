package recovery

import (
	"github.com/rollcall-registry/rollcall/internal/ledger"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// replayer repeats the history of ephemeral instances on a store.
type replayer struct {
	store   *registry.Store
	meta    registry.Meta
	clients map[registry.ClientID]bool
}

// open makes a remembered connection known, so that it can own instances.
func (r *replayer) open(id registry.ClientID) {
	if !r.clients[id] {
		r.clients[id] = true
		r.store.RecallClient(id)
	}
}

// apply repeats one record. What the durable log has brought back is not repeated,
// but for its health, which is soft state.
func (r *replayer) apply(rec *ledger.Record) error {
	e := &rec.Event
	if e.Instance == nil {
		return nil
	}
	if e.Owner.Kind == registry.OwnerDurable {
		r.applyHealth(e)
		return nil
	}
	var cmd registry.Command
	switch e.Kind {
	case registry.InstanceRegistered, registry.InstanceUpdated, registry.OwnerAdded:
		if e.Owner.Client != "" {
			r.open(e.Owner.Client)
		}
		cmd = &registry.Register{
			Meta: r.meta, Service: e.Service, Owner: e.Owner, Instance: registered(e), TakeHealth: true,
		}
	case registry.InstanceRemoved, registry.OwnerRemoved:
		cmd = &registry.Deregister{Meta: r.meta, Service: e.Service, Owner: e.Owner, Instance: e.Instance.Key()}
	case registry.InstanceHealthy, registry.InstanceUnhealthy:
		cmd = &registry.SetHealth{
			Meta: r.meta, Service: e.Service, Instance: e.Instance.Key(),
			Healthy: e.Kind == registry.InstanceHealthy, Kind: e.Owner.Kind,
		}
	default:
		return nil
	}
	// A refusal says that the service or connection is gone again: later records
	// tell how.
	_, _ = r.store.Apply(cmd)
	return nil
}

// applyHealth repeats what a record says of the health of a persistent instance.
func (r *replayer) applyHealth(e *registry.Event) {
	switch e.Kind {
	case registry.InstanceRegistered, registry.InstanceHealthy, registry.InstanceUnhealthy:
		// Refused only when the service is gone again.
		_, _ = r.store.Apply(&registry.SetHealth{
			Meta: r.meta, Service: e.Service, Instance: e.Instance.Key(),
			Healthy: e.Instance.Healthy, Kind: registry.OwnerDurable,
		})
	default:
	}
}

// registered returns what the owner registered, before any override, with the
// health of then.
func registered(e *registry.Event) registry.Instance {
	if e.Base == nil {
		return *e.Instance
	}
	i := *e.Base
	i.Healthy = e.Instance.Healthy
	return i
}
