package rollcall

import (
	"context"
	"iter"
)

// WatchOption changes a watch.
type WatchOption interface{ applyWatch(*watchConfig) }

// QueryOption changes a look-up.
type QueryOption interface{ applyQuery(*filter) }

// FilterOption narrows what a watch or a look-up shows. Several add up.
type FilterOption func(*filter)

type watchConfig struct {
	async  bool
	filter filter
}

func (AsyncOption) applyWatch(c *watchConfig) { c.async = true }

func (f FilterOption) applyWatch(c *watchConfig) { f(&c.filter) }
func (f FilterOption) applyQuery(c *filter)      { f(c) }

// Health is which instances are shown by their health.
type Health uint8

// The choices.
const (
	AnyHealth Health = iota
	OnlyHealthy
	OnlyUnhealthy
)

// filter says which instances are shown.
type filter struct {
	clusters []string
	health   Health
	tests    []func(*Instance) bool
}

// WithClusters shows the instances of these clusters only.
func WithClusters(names ...string) FilterOption {
	return func(f *filter) { f.clusters = append(f.clusters, names...) }
}

// WithHealth shows instances by their health; by default all are shown.
func WithHealth(h Health) FilterOption { return func(f *filter) { f.health = h } }

// WithMetadata shows instances whose metadata has this entry.
func WithMetadata(key, value string) FilterOption {
	return WithFilter(func(in *Instance) bool { return in.Metadata[key] == value })
}

// WithFilter shows the instances for which keep returns true. It must be quick and
// depend on the instance alone.
func WithFilter(keep func(*Instance) bool) FilterOption {
	return func(f *filter) { f.tests = append(f.tests, keep) }
}

// Watch is the live view of a service.
type Watch struct{}

// Watch watches a service. It returns when the state is known, from a server or, if
// none can be asked, from disk; an unknown service is an empty one. If ctx ends before
// that, there is no watch; see [WithAsync]. ctx does not bound the life of the watch.
func (c *Client) Watch(ctx context.Context, s Service, options ...WatchOption) (*Watch, error) {
	return nil, ErrUnsupported
}

// Service returns the service, with the defaults of the client filled in.
func (w *Watch) Service() Service { return Service{} }

// Snapshot returns the present state, never nil. It takes no lock. After Close it is
// the last one.
func (w *Watch) Snapshot() *Snapshot { return nil }

// Updates returns the channel of changes, always the same one. The first Update is
// the present state, even when it is not known yet and empty for that reason; its
// snapshot's source tells. The channel holds one Update: if nobody took it, the next
// takes its place. It is closed with the watch. Readers of one channel share it; All
// and OnUpdate have one of their own.
func (w *Watch) Updates() <-chan Update { return nil }

// All yields the present state and each change, the latest if the loop is slow, until
// ctx ends or the watch is closed, and then once the error: that of ctx, or ErrClosed.
func (w *Watch) All(ctx context.Context) iter.Seq2[Update, error] {
	return func(yield func(Update, error) bool) {}
}

// OnUpdate calls f with the present state and with each change, on a goroutine of its
// own, one call at a time, the latest if f is slow. stop ends it and does not wait
// for f. If f panics, that is logged and the next change is given to it all the same.
func (w *Watch) OnUpdate(f func(Update)) (stop func()) { return func() {} }

// Picker returns a picker that picks from the present snapshot. It is built anew by
// the first pick after a change; picks that come meanwhile use the one before.
func (w *Watch) Picker(b Balancer) Picker { return nil }

// Close ends the watch. The last one of a service unsubscribes. Closing again does
// nothing.
func (w *Watch) Close() error { return nil }

// Lookup asks a server for the state of a service now. Look-ups of one service at the
// same time share one request. If ctx has no deadline, the look-up ends after 5 s.
// While the failover switch is on, its data is returned; while no server can be asked,
// that of the disk cache, if there is one.
func (c *Client) Lookup(ctx context.Context, s Service, options ...QueryOption) (*Snapshot, error) {
	return nil, ErrUnsupported
}
