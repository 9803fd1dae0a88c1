package naming

import (
	"context"
	"time"

	"github.com/rollcall-registry/rollcall/internal/registry"
)

// BeatAnswer is what a beat is answered with.
type BeatAnswer struct {
	// Known: the instance is there now. Otherwise the client must register.
	Known bool
	// Interval is when the next beat is wanted.
	Interval time.Duration
	// Light: beats may come without their body.
	Light bool
	// Unnamed: it is not known what the client calls itself; see [Core.Introduce].
	Unnamed bool
}

// Beat renews an instance's lease. full builds the instance that the beat itself
// describes and is called only when the instance is not there; nil is a light
// beat, which registers nothing.
func (c *Core) Beat(ctx context.Context, cause registry.Cause, key registry.ServiceKey, instance registry.InstanceKey, full func() (Registration, error)) (BeatAnswer, error) {
	switches := c.store.Switches()
	answer := BeatAnswer{
		Interval: time.Duration(switches.ClientBeatInterval) * time.Millisecond,
		Light:    switches.LightBeatEnabled,
	}
	state := c.store.Beat(&registry.Beat{Meta: c.meta(cause), Service: key, Instance: instance})
	if !state.Known {
		if full == nil {
			return answer, nil
		}
		if err := c.reregister(ctx, cause, full); err != nil {
			return BeatAnswer{}, err
		}
		if i := c.instance(key, instance); i != nil {
			state.Interval = i.BeatTimes().Interval
		}
	}
	answer.Known, answer.Unnamed = true, state.Unnamed
	if state.Interval > 0 {
		answer.Interval = state.Interval
	}
	return answer, nil
}

// Introduce notes what the HTTP client that keeps an instance alive calls itself,
// if that is not known. Asking for the name only then costs other beats nothing.
func (c *Core) Introduce(key registry.ServiceKey, instance registry.InstanceKey, agent string) {
	c.store.Introduce(key, instance, agent)
}

// reregister registers what a beat describes. As in the original a weight out of
// range is brought into it.
func (c *Core) reregister(ctx context.Context, cause registry.Cause, full func() (Registration, error)) error {
	r, err := full()
	if err != nil {
		return err
	}
	r.Instance.Weight = registry.FitWeight(r.Instance.Weight)
	return c.Register(ctx, cause, r)
}
