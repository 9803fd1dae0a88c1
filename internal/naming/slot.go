package naming

import (
	"context"

	"github.com/rollcall-registry/rollcall/internal/registry"
)

// Slot is all that a gRPC connection registers of one service: clients of 2.x and
// 3.x have one slot in each, for one instance or several.
type Slot struct {
	Service   registry.ServiceKey
	Client    registry.ClientID
	Instances []registry.Instance
}

// Publish makes the instances of a slot what its connection registers of the
// service, in the place of what it registered before; none takes the connection
// out of the service. The instances are ephemeral, and weights out of range are
// brought into it. Names and life times are for the caller to check, since the
// calls differ in that. The instances that went are returned.
func (c *Core) Publish(_ context.Context, cause registry.Cause, s Slot) (released []*registry.Instance, err error) {
	for n := range s.Instances {
		if err := c.checkSlot(&s.Instances[n]); err != nil {
			return nil, err
		}
	}
	if err := c.admitSlot(&s); err != nil {
		return nil, err
	}
	res, err := c.store.Apply(&registry.Publish{
		Meta: c.meta(cause), Service: s.Service, Client: s.Client, Instances: s.Instances, Kind: registry.KindEphemeral,
	})
	return res.Released, err
}

func (c *Core) checkSlot(i *registry.Instance) error {
	i.Ephemeral = true
	i.Weight = registry.FitWeight(i.Weight)
	return c.checkInstance(i)
}

// admitSlot keeps the limits, which count only for what is not there yet.
func (c *Core) admitSlot(s *Slot) error {
	if len(s.Instances) == 0 {
		return nil
	}
	for n := range s.Instances {
		there := c.store.Presence(s.Service, s.Instances[n].Key())
		if n == 0 && !there.Service {
			if err := registry.CheckServiceV2(s.Service); err != nil {
				return err
			}
			if err := c.admitService(s.Service.Namespace); err != nil {
				return err
			}
		}
		if !there.Instance {
			return c.admitInstance()
		}
	}
	return nil
}

// Leave takes a connection out of a service: what it registered there is
// deregistered by name, and overrides of those instances go too.
func (c *Core) Leave(ctx context.Context, cause registry.Cause, key registry.ServiceKey, client registry.ClientID) error {
	released, err := c.Publish(ctx, cause, Slot{Service: key, Client: client})
	if err != nil {
		return err
	}
	for _, i := range released {
		if err := c.forget(ctx, cause, key, i.Key()); err != nil {
			return err
		}
	}
	return nil
}

// Open makes a connection known, so that it can register and subscribe.
func (c *Core) Open(client registry.ClientID) { c.store.OpenClient(client) }

// Close ends what a connection registered and subscribed to.
func (c *Core) Close(cause registry.Cause, client registry.ClientID) {
	// Closing refuses nothing.
	_, _ = c.store.Apply(&registry.CloseClient{Meta: c.meta(cause), Client: client})
}

// AbsentRevision returns what clients get as lastRefTime of a service that is not
// there: at least every revision that it had, and below every one that it will
// have.
func (c *Core) AbsentRevision() int64 { return c.store.AbsentRevision(c.clock.Now()) }
