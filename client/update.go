package rollcall

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
