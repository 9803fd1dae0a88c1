package balance

import (
	"sync/atomic"

	rollcall "github.com/rollcall-registry/rollcall/client"
)

// counter counts the requests of one instance that have not ended. It fills a cache
// line, so that those of different instances are not in each other's way.
type counter struct {
	n atomic.Int64
	_ [56]byte
}

// end counts a request as ended. It ends at 0, whatever is called too often.
func (c *counter) end() {
	if c.n.Add(-1) < 0 {
		c.n.Add(1)
	}
}

// candidate is an instance that may be picked, with what says how busy it is.
type candidate struct {
	requests *counter
	weight   float64 // above 0: how much the instance may have
	instance *rollcall.Instance
}

// load is what a candidate has to do for its weight. It divides, so that equal shares are
// equal in spite of rounding.
func (c *candidate) load() float64 { return float64(c.requests.n.Load()) / c.weight }

// address tells instances apart over their changes.
type address struct {
	ip      string
	port    uint16
	cluster string
}

func addressOf(in *rollcall.Instance) address { return address{in.IP, in.Port, in.Cluster} }

// inflight are the counters of a service, shared by the pickers that follow each other.
// The maps are not changed once a picker has them.
type inflight struct {
	present map[*rollcall.Instance]*counter
	all     map[address]*counter // those too whose instance is gone, until they are 0
}

// follow returns counters for the instances of a snapshot, those of before where there
// are any.
func (f inflight) follow(s *rollcall.Snapshot) inflight {
	next := inflight{
		present: make(map[*rollcall.Instance]*counter, s.Len()),
		all:     make(map[address]*counter, s.Len()),
	}
	for in := range s.All() {
		a := addressOf(in)
		c := f.all[a]
		if c == nil {
			c = new(counter)
		}
		next.all[a], next.present[in] = c, c
	}
	for a, c := range f.all {
		if next.all[a] == nil && c.n.Load() > 0 {
			next.all[a] = c
		}
	}
	return next
}

// done counts a request as ended, if it has been counted.
func (f inflight) done(in *rollcall.Instance) bool {
	c := f.present[in]
	if c == nil && in != nil {
		c = f.all[addressOf(in)] // picked before the instance changed
	}
	if c == nil {
		return false
	}
	c.end()
	return true
}

// of returns the candidates with their counters.
func (f inflight) of(c *candidates) []candidate {
	list := make([]candidate, len(c.instances))
	for i, in := range c.instances {
		list[i] = candidate{f.present[in], c.weights[i], in}
	}
	return list
}
