package rollcall

import (
	"context"
	"errors"
	"iter"
	"slices"

	"github.com/rollcall-registry/rollcall/client/internal/wire"
)

// WatchOption changes a watch.
type WatchOption interface{ applyWatch(*watchConfig) }

type watchConfig struct {
	async  bool
	filter filter
}

func (AsyncOption) applyWatch(c *watchConfig) { c.async = true }

func (f FilterOption) applyWatch(c *watchConfig) { f(&c.filter) }

// Watch is the live view of a service.
type Watch struct {
	feed   *feed[Snapshot, Update]
	entry  *entry
	filter filter
	// offered, of capacity 1, holds what is to be filtered by functions of the user,
	// which run on a goroutine of the watch; nil if there are none.
	offered chan *Snapshot
}

// Watch watches a service. It returns when the state is known, from a server or, if
// none can be asked, from disk; an unknown service is an empty one. If ctx ends before
// that, there is no watch; see [WithAsync]. ctx does not bound the life of the watch.
func (c *Client) Watch(ctx context.Context, s Service, options ...WatchOption) (*Watch, error) {
	var cfg watchConfig
	faults := applyEach(options, func(o WatchOption) { o.applyWatch(&cfg) })
	s, named := c.complete(s)
	if err := errors.Join(append(cfg.filter.faults, faults, named)...); err != nil {
		return nil, opError("watch", s, err)
	}
	w, err := c.addWatch(s.wire(), cfg.filter)
	if err == nil && !cfg.async {
		err = w.waitKnown(ctx)
	}
	if err != nil {
		return nil, opError("watch", s, err)
	}
	return w, nil
}

// addWatch adds a watch to the entry of a service.
func (c *Client) addWatch(s wire.Service, f filter) (*Watch, error) {
	w := &Watch{feed: newFeed(c, NewSnapshot(SnapshotInfo{Service: Service(s)}), newUpdate), filter: f}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.isClosed() {
		return nil, ErrClosed
	}
	before := len(c.entries)
	e := c.entry(s)
	c.counts.services.Add(int64(len(c.entries) - before))
	c.counts.watches.Add(1)
	c.changes.send()
	w.entry = e
	e.mu.Lock()
	e.watches = append(e.watches, w)
	if len(f.tests) > 0 {
		w.offered = make(chan *Snapshot, 1)
		go w.sift()
	}
	w.offer(e.shown)
	e.mu.Unlock()
	e.job.Wake()
	return w, nil
}

// waitKnown waits until the state is known, and closes the watch if that fails.
func (w *Watch) waitKnown(ctx context.Context) error {
	err := w.feed.first(ctx, &w.entry.changed, func() (bool, error) {
		return w.Snapshot().Source() != FromNowhere, w.entry.failure
	})
	if err != nil {
		_ = w.Close()
	}
	return err
}

// offer gives the watch a snapshot of the whole service. The caller holds entry.mu.
func (w *Watch) offer(s *Snapshot) {
	if w.offered == nil {
		w.show(s)
		return
	}
	select {
	case <-w.offered: // overtaken
	default:
	}
	w.offered <- s
}

// sift filters what is offered with functions of the user.
func (w *Watch) sift() {
	for {
		select {
		case s := <-w.offered:
			w.show(s)
		case <-w.feed.ended:
			return
		}
	}
}

// show makes a snapshot the present one, after filtering, if that makes a difference.
// Calls follow each other.
func (w *Watch) show(s *Snapshot) {
	s = w.filter.apply(w.feed.client, s)
	if !w.Snapshot().like(s.info, s.instances) && w.feed.show(s) {
		w.entry.changed.send()
	}
}

// Service returns the service, with the defaults of the client filled in.
func (w *Watch) Service() Service { return Service(w.entry.service) }

// Snapshot returns the present state, never nil. It takes no lock. After Close it is
// the last one.
func (w *Watch) Snapshot() *Snapshot { return w.feed.state.Load() }

// Updates returns the channel of changes, always the same one. The first Update is
// the present state, even when it is not known yet and empty for that reason; its
// snapshot's source tells. The channel holds one Update: if nobody took it, the next
// takes its place. It is closed with the watch. Readers of one channel share it; All
// and OnUpdate have one of their own.
func (w *Watch) Updates() <-chan Update { return w.feed.channel() }

// All yields the present state and each change, the latest if the loop is slow, until
// ctx ends or the watch is closed, and then once the error: that of ctx, or ErrClosed.
func (w *Watch) All(ctx context.Context) iter.Seq2[Update, error] {
	return w.feed.all(ctx, func(cause error) error { return opError("watch", w.Service(), cause) })
}

// OnUpdate calls f with the present state and with each change, on a goroutine of its
// own, one call at a time, the latest if f is slow. stop ends it and does not wait
// for f. If f panics, that is logged and the next change is given to it all the same.
func (w *Watch) OnUpdate(f func(Update)) (stop func()) { return w.feed.each(f) }

// Close ends the watch. The last one of a service unsubscribes. Closing again does
// nothing.
func (w *Watch) Close() error {
	if w.end() {
		e := w.entry
		e.mu.Lock()
		e.watches = slices.DeleteFunc(e.watches, func(o *Watch) bool { return o == w })
		last := len(e.watches) == 0
		e.mu.Unlock()
		if last {
			e.job.Wake()
		}
	}
	return nil
}

// end closes the channels of the watch and reports whether they were open.
func (w *Watch) end() bool {
	if !w.feed.end() {
		return false
	}
	c := w.feed.client
	c.counts.watches.Add(-1)
	c.changes.send()
	w.entry.changed.send()
	return true
}

// Picker returns a picker that picks from the present snapshot. It is built anew by
// the first pick after a change; picks that come meanwhile use the one before.
func (w *Watch) Picker(b Balancer) Picker {
	if b == nil {
		panic("rollcall: Watch.Picker was given no balancer")
	}
	s := w.Snapshot()
	p := &livePicker{watch: w, balancer: b}
	p.built.Store(&builtPicker{s, b.Build(s, nil)})
	return p
}
