package rollcall

import (
	"context"
	"iter"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/rollcall-registry/rollcall/client/internal/wire"
)

// feed gives readers what is to be seen now: a state S, which is immutable, and with each
// later one an update U, which is the difference from what the same reader got before. It
// is what [Watch] and [ServiceWatch] have in common.
type feed[S, U any] struct {
	client *Client
	diff   func(from, to *S) U // from is nil for the first one
	state  atomic.Pointer[S]   // never nil
	ended  chan struct{}       // closed by end

	mu      sync.Mutex // the lowest of all
	closed  bool
	updates *mailbox[S, U]   // of channel, also in readers; nil before its first call
	readers []*mailbox[S, U] // whose channels are open
}

func newFeed[S, U any](c *Client, first *S, diff func(from, to *S) U) *feed[S, U] {
	f := &feed[S, U]{client: c, diff: diff, ended: make(chan struct{})}
	f.state.Store(first)
	return f
}

// show makes a state the present one and tells all readers. It reports whether the feed
// has not ended before.
func (f *feed[S, U]) show(s *S) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return false
	}
	f.state.Store(s)
	for _, m := range f.readers {
		m.send(s)
	}
	return true
}

// channel returns the channel of updates, always the same one.
func (f *feed[S, U]) channel() <-chan U {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.updates == nil {
		f.updates = f.open()
	}
	return f.updates.ch
}

// open returns a new mailbox with the present state in it. The caller holds mu.
func (f *feed[S, U]) open() *mailbox[S, U] {
	m := &mailbox[S, U]{ch: make(chan U, 1), diff: f.diff}
	m.send(f.state.Load())
	if f.closed {
		close(m.ch)
	} else {
		f.readers = append(f.readers, m)
	}
	return m
}

// reader returns a channel of updates of its own, and what to call when it is not read
// any more.
func (f *feed[S, U]) reader() (updates <-chan U, release func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	m := f.open()
	return m.ch, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.readers = slices.DeleteFunc(f.readers, func(o *mailbox[S, U]) bool { return o == m })
	}
}

// all yields the updates until ctx ends or the feed does, and then once the error, which
// fail makes of its cause.
func (f *feed[S, U]) all(ctx context.Context, fail func(cause error) error) iter.Seq2[U, error] {
	return func(yield func(U, error) bool) {
		var none U
		updates, release := f.reader()
		defer release()
		for {
			select {
			case u, ok := <-updates:
				if !ok {
					yield(none, fail(ErrClosed))
					return
				}
				if !yield(u, nil) {
					return
				}
			case <-ctx.Done():
				yield(none, fail(context.Cause(ctx)))
				return
			}
		}
	}
}

// each calls a function of the user with the updates, on a goroutine that ends with the
// feed or after stop, when the function has returned.
func (f *feed[S, U]) each(call func(U)) (stop func()) {
	if call == nil {
		panic("rollcall: OnUpdate was given no function")
	}
	updates, release := f.reader()
	stopped := make(chan struct{})
	go func() {
		defer release()
		for {
			select {
			case u, ok := <-updates:
				if !ok || isClosed(stopped) { // both may have been there
					return
				}
				_ = f.client.guard("OnUpdate", func() error { call(u); return nil }) // logged there
			case <-stopped:
				return
			}
		}
	}()
	return sync.OnceFunc(func() { close(stopped) })
}

// end closes the channels and reports whether they were open.
func (f *feed[S, U]) end() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return false
	}
	f.closed = true
	close(f.ended)
	for _, m := range f.readers {
		close(m.ch)
	}
	f.readers = nil
	return true
}

// first waits until what is fed is known. known, which is called with Client.mu held, tells
// whether it is and why the last attempt to get it failed; changed wakes when that may
// have changed.
func (f *feed[S, U]) first(ctx context.Context, changed *broadcast, known func() (bool, error)) error {
	c := f.client
	for {
		next := changed.next()
		c.mu.Lock()
		ok, failure := known()
		closed := c.isClosed()
		c.mu.Unlock()
		switch {
		case ok:
			return nil
		case closed:
			return ErrClosed
		case failure != nil && wire.Refused(failure):
			return failure
		case failure == nil && c.link.Load() == nil:
			failure = *c.lastError.Load()
		}
		select {
		case <-next:
		case <-f.ended:
			return ErrClosed
		case <-ctx.Done():
			return because(ctx, failure)
		}
	}
}

// mailbox holds the newest update for one reader. Its fields are guarded by feed.mu.
type mailbox[S, U any] struct {
	ch   chan U // capacity 1: what nobody took is replaced
	diff func(from, to *S) U
	base *S // what the reader had before the update in ch
	last *S // of the update that was sent last
}

func (m *mailbox[S, U]) send(s *S) {
	select {
	case <-m.ch: // overtaken
	default:
		m.base = m.last
	}
	m.last = s
	m.ch <- m.diff(m.base, s)
}
