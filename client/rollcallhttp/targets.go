package rollcallhttp

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	rollcall "github.com/rollcall-registry/rollcall/client"
)

// maxTargets is how many services are watched at once. When one more is asked for, the
// one that was not asked for longest is given up, for the sake of proxies whose callers
// choose the names.
const maxTargets = 1024

// targets are the services that are watched.
type targets struct {
	client  *rollcall.Client
	options []rollcall.WatchOption

	mu     sync.RWMutex
	open   map[rollcall.Service]*target
	closed bool
}

// target is one of them.
type target struct {
	watch  *rollcall.Watch
	picker rollcall.Picker
	used   atomic.Int64 // when it was last asked for, in seconds since the epoch
}

// get returns the target of a service. The first time it waits until the service is
// known.
func (t *targets) get(ctx context.Context, s rollcall.Service, b rollcall.Balancer) (*target, error) {
	t.mu.RLock()
	to, closed := t.open[s], t.closed
	t.mu.RUnlock()
	if closed {
		return nil, rollcall.ErrClosed
	}
	if to == nil {
		w, err := t.client.Watch(ctx, s, t.options...)
		if err != nil {
			return nil, err
		}
		if to, err = t.add(s, w, b); err != nil {
			return nil, err
		}
	}
	if now := time.Now().Unix(); to.used.Load() != now { // requests do not all write to it
		to.used.Store(now)
	}
	return to, nil
}

// add keeps a watch, unless another request was faster.
func (t *targets) add(s rollcall.Service, w *rollcall.Watch, b rollcall.Balancer) (*target, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	to := t.open[s]
	if t.closed || to != nil {
		err := w.Close()
		if t.closed {
			err = rollcall.ErrClosed
		}
		return to, err
	}
	if len(t.open) == maxTargets {
		t.forget()
	}
	to = &target{watch: w, picker: w.Picker(b)}
	t.open[s] = to
	return to, nil
}

// forget ends the watch that was not used longest. The caller holds mu. Requests that
// have it already go on with what it knew last.
func (t *targets) forget() {
	var oldest rollcall.Service
	least := int64(-1)
	for s, to := range t.open {
		if used := to.used.Load(); least < 0 || used < least {
			oldest, least = s, used
		}
	}
	_ = t.open[oldest].watch.Close() // which cannot fail
	delete(t.open, oldest)
}

func (t *targets) close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	for s, to := range t.open {
		_ = to.watch.Close() // which cannot fail
		delete(t.open, s)
	}
	return nil
}
