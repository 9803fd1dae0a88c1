package balance

import (
	"math"

	rollcall "github.com/rollcall-registry/rollcall/client"
)

// maxWeight is the greatest weight that counts, as on servers.
const maxWeight = 10000

// Option changes a balancer of this package.
type Option func(*options)

type options struct {
	unhealthy bool
	bound     float64 // of load; 0 for none
}

func optionsOf(list []Option) (o options) {
	for _, option := range list {
		option(&o)
	}
	return o
}

// AllowUnhealthy picks unhealthy instances when none is healthy: a guess is better
// than an error where the check of health is less reliable than what it checks.
func AllowUnhealthy() Option { return func(o *options) { o.unhealthy = true } }

// candidates are the instances that may be picked.
type candidates struct {
	instances []*rollcall.Instance
	weights   []float64 // one for each, above 0
	err       error     // why there are none; nil if there are
}

// candidatesOf chooses those of a snapshot.
func candidatesOf(s *rollcall.Snapshot, o options) candidates {
	var c candidates
	for in := range s.All() {
		if usable(in) && (in.Healthy || s.Protected()) {
			c.add(in)
		}
	}
	if len(c.instances) > 0 {
		return c
	}
	cause := rollcall.ErrNoInstances
	for in := range s.All() {
		switch {
		case !usable(in):
		case o.unhealthy:
			c.add(in)
		default:
			cause = rollcall.ErrNoHealthyInstances
		}
	}
	if len(c.instances) == 0 {
		c.err = &rollcall.OpError{Op: "pick", Service: s.Service(), Err: cause}
	}
	return c
}

// usable reports whether an instance may be picked if it is healthy.
func usable(in *rollcall.Instance) bool { return in.Enabled && in.Weight > 0 }

func (c *candidates) add(in *rollcall.Instance) {
	c.instances = append(c.instances, in)
	c.weights = append(c.weights, min(in.Weight, maxWeight))
}

// total is the sum of the weights.
func (c *candidates) total() (sum float64) {
	for _, w := range c.weights {
		sum += w
	}
	return sum
}

// equal reports whether all weights are the same, but for rounding.
func (c *candidates) equal() bool {
	for _, w := range c.weights {
		if math.Abs(w-c.weights[0]) > 1e-9*w {
			return false
		}
	}
	return true
}
