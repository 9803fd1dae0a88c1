package rollcall

import (
	"cmp"
	"strings"
)

// Update is a change of a service. Added, Removed and Changed are relative to the
// Update that the same reader got before, whatever came and was overtaken in
// between; in the first one all instances are Added. The slices and what they
// point to must not be changed.
type Update struct {
	Snapshot *Snapshot
	Added    []*Instance
	Removed  []*Instance
	Changed  []*Instance // as they are now
}

// newUpdate returns the way from one snapshot, which may be nil, to the next. Both
// are sorted.
func newUpdate(from, to *Snapshot) Update {
	u := Update{Snapshot: to}
	var before []*Instance
	if from != nil {
		before = from.instances
	}
	after := to.instances
	for len(before) > 0 && len(after) > 0 {
		a, b := before[0], after[0]
		order := 0
		if a != b { // most are what they were
			order = compare(a, b)
		}
		switch {
		case order < 0:
			u.Removed = append(u.Removed, a)
			before = before[1:]
		case order > 0:
			u.Added = append(u.Added, b)
			after = after[1:]
		default:
			if a != b && !a.Equal(b) {
				u.Changed = append(u.Changed, b)
			}
			before, after = before[1:], after[1:]
		}
	}
	u.Removed = append(u.Removed, before...)
	u.Added = append(u.Added, after...)
	return u
}

// compare orders instances by address, port and cluster.
func compare(a, b *Instance) int {
	return compareKeys(a.IP, b.IP, int32(a.Port), int32(b.Port), a.Cluster, b.Cluster)
}

func compareKeys(aIP, bIP string, aPort, bPort int32, aCluster, bCluster string) int {
	if c := strings.Compare(aIP, bIP); c != 0 {
		return c
	}
	if c := cmp.Compare(aPort, bPort); c != 0 {
		return c
	}
	return strings.Compare(aCluster, bCluster)
}
