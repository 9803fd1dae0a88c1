package balance

import rollcall "github.com/rollcall-registry/rollcall/client"

// Eligible returns the instances of a snapshot that the balancers of this package would
// pick from, for those who choose among them on their own. If there are none, the error
// says why. The slice is the caller's.
func Eligible(s *rollcall.Snapshot, list ...Option) ([]*rollcall.Instance, error) {
	c := candidatesOf(s, optionsOf(list))
	return c.instances, c.err
}
