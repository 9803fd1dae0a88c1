package balance

import (
	rollcall "github.com/rollcall-registry/rollcall/client"
)

// zoneKey is the metadata that names the zone of an instance.
const zoneKey = "zone"

// PreferCluster picks among the instances of one cluster as long as they have enough
// weight; see [Prefer].
func PreferCluster(cluster string, least float64, base rollcall.Balancer) rollcall.Balancer {
	return Prefer(func(in *rollcall.Instance) bool { return in.Cluster == cluster }, least, base)
}

// PreferZone picks among the instances whose metadata has this zone as long as they
// have enough weight; see [Prefer].
func PreferZone(zone string, least float64, base rollcall.Balancer) rollcall.Balancer {
	return Prefer(func(in *rollcall.Instance) bool { return in.Metadata[zoneKey] == zone }, least, base)
}

// Prefer leaves picking to base, among the instances for which local returns true if
// these have at least the share least, 0 to 1, of the weight that can be picked, and
// else among all. With 0, one local instance that can be picked is enough; more keeps
// the last ones of a zone from being crushed. local must depend on the instance alone.
func Prefer(local func(*rollcall.Instance) bool, least float64, base rollcall.Balancer) rollcall.Balancer {
	return preference{local, least, base}
}

type preference struct {
	local func(*rollcall.Instance) bool
	least float64
	base  rollcall.Balancer
}

func (b preference) Build(s *rollcall.Snapshot, previous rollcall.Picker) rollcall.Picker {
	near := make([]*rollcall.Instance, 0, s.Len())
	for in := range s.All() {
		if b.local(in) {
			near = append(near, in)
		}
	}
	local := rollcall.NewSnapshot(s.Info(), near...)
	here, everywhere := candidatesOf(local, options{}), candidatesOf(s, options{})
	if len(here.instances) > 0 && here.total() >= b.least*everywhere.total() {
		s = local
	}
	return b.base.Build(s, previous) // the pickers of base are this balancer's own
}
