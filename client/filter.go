package rollcall

import (
	"cmp"
	"slices"
)

// QueryOption changes a look-up.
type QueryOption interface{ applyQuery(*filter) }

// FilterOption narrows what a watch or a look-up shows. Several add up.
type FilterOption func(*filter)

func (f FilterOption) applyQuery(c *filter) { f(c) }

// Health is which instances are shown by their health.
type Health uint8

// The choices. Health is as servers see it; whether an instance is enabled and has
// weight does not matter.
const (
	AnyHealth Health = iota // all instances
	OnlyHealthy
	OnlyUnhealthy
)

// filter says which instances are shown.
type filter struct {
	clusters []string
	health   Health
	metadata [][2]string
	tests    []func(*Instance) bool
	faults   []error
}

func (f *filter) fault(format string, args ...any) {
	f.faults = append(f.faults, invalid(format, args...))
}

// WithClusters shows the instances of these clusters only; an empty name stands for
// DEFAULT. Without it, those of all clusters are shown.
func WithClusters(names ...string) FilterOption {
	names = slices.Clone(names)
	return func(f *filter) {
		if len(names) == 0 {
			f.fault("WithClusters(): name a cluster, or leave it out for all")
		}
		for _, name := range names {
			name = cmp.Or(name, DefaultCluster)
			if !clusterName.MatchString(name) {
				f.fault("WithClusters(%s): give up to 64 letters, digits and dashes", shortened(name))
			}
			f.clusters = append(f.clusters, name)
		}
	}
}

// WithHealth shows instances by their health; by default all are shown.
func WithHealth(h Health) FilterOption {
	return func(f *filter) {
		if h > OnlyUnhealthy {
			f.fault("WithHealth(%d): give AnyHealth, OnlyHealthy or OnlyUnhealthy", h)
		}
		f.health = h
	}
}

// WithMetadata shows instances whose metadata has this entry. The key is not empty.
func WithMetadata(key, value string) FilterOption {
	return func(f *filter) {
		if key == "" {
			f.fault("WithMetadata(%q, %s): give a key", key, shortened(value))
		}
		f.metadata = append(f.metadata, [2]string{key, value})
	}
}

// WithFilter shows the instances for which keep returns true. It must depend on the
// instance alone. An instance at which it panics is not shown.
func WithFilter(keep func(*Instance) bool) FilterOption {
	return func(f *filter) {
		if keep == nil {
			f.fault("WithFilter(nil): give a function")
		}
		f.tests = append(f.tests, keep)
	}
}

// apply returns the snapshot of what passes; s itself if all does.
func (f *filter) apply(c *Client, s *Snapshot) *Snapshot {
	if len(f.clusters) == 0 && f.health == AnyHealth && len(f.metadata) == 0 && len(f.tests) == 0 {
		return s
	}
	var kept []*Instance
	for _, in := range s.instances {
		if f.passes(c, in) {
			kept = append(kept, in)
		}
	}
	return &Snapshot{s.info, kept}
}

func (f *filter) passes(c *Client, in *Instance) bool {
	switch {
	case len(f.clusters) > 0 && !slices.Contains(f.clusters, in.Cluster),
		f.health == OnlyHealthy && !in.Healthy,
		f.health == OnlyUnhealthy && in.Healthy:
		return false
	}
	for _, entry := range f.metadata {
		if value, ok := in.Metadata[entry[0]]; !ok || value != entry[1] {
			return false
		}
	}
	for _, test := range f.tests {
		keep := false
		if c.guard("filter", func() error { keep = test(in); return nil }) != nil || !keep {
			return false
		}
	}
	return true
}
