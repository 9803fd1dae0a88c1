package rollcall

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rollcall-registry/rollcall/client/internal/schedule"
	"github.com/rollcall-registry/rollcall/client/internal/wire"
)

// ServiceQuery says which services to list. Empty fields stand for the defaults of the
// client.
type ServiceQuery struct {
	Namespace, Group string
	// PageSize is how many are asked for at once, 1 to 100,000; 0 stands for 200.
	PageSize int
}

// The bounds of lists of services.
const (
	defaultPage = 200
	mostPage    = 100_000
	// maxPages bounds how many pages are asked for, in case a server never ends.
	maxPages = 10000
)

// Services yields the services of a group, asking for page after page. It ends with the
// first error.
func (c *Client) Services(ctx context.Context, q ServiceQuery) iter.Seq2[Service, error] {
	return func(yield func(Service, error) bool) {
		ns, group, size := cmp.Or(q.Namespace, c.cfg.namespace), cmp.Or(q.Group, c.cfg.group), cmp.Or(q.PageSize, defaultPage)
		if err := q.check(); err != nil {
			yield(Service{}, opError("services", Service{Namespace: ns, Group: group}, err))
			return
		}
		seen := 0
		for page := 1; page <= maxPages; page++ {
			names, total, err := c.page(ctx, ns, group, page, size)
			if err != nil {
				yield(Service{}, opError("services", Service{Namespace: ns, Group: group}, err))
				return
			}
			for _, name := range names {
				if !yield(Service{ns, group, name}, nil) {
					return
				}
			}
			if seen += len(names); len(names) == 0 || seen >= total {
				return
			}
		}
	}
}

// check returns all that is wrong with a query.
func (q ServiceQuery) check() error {
	var fault error
	if q.PageSize < 0 || q.PageSize > mostPage {
		fault = invalid("ServiceQuery.PageSize %d: give 1 to %d, or 0 for %d", q.PageSize, mostPage, defaultPage)
	}
	return errors.Join(fault, checkNames("ServiceQuery", q.Namespace, q.Group, ""))
}

// page asks for a page of names, once there is a connection.
func (c *Client) page(ctx context.Context, ns, group string, page, size int) ([]string, int, error) {
	l, err := c.linked(ctx)
	if err != nil {
		return nil, 0, because(ctx, *c.lastError.Load())
	}
	started := time.Now()
	names, total, err := l.transport.Services(ctx, ns, group, page, size)
	c.cfg.metrics.CallDone("services", time.Since(started), err)
	return names, total, err
}

// Pattern selects services by name; * in Group and Name stands for any text. An empty
// Namespace or Group stands for the default of the client, an empty Name for *.
type Pattern struct{ Namespace, Group, Name string }

// pattern is a pattern that is watched, by one watch or several.
type pattern struct {
	client  *Client
	pattern wire.Pattern
	job     *schedule.Job
	changed broadcast

	// guarded by Client.mu
	session  string // on which it was asked for
	failures int
	failure  error

	mu      sync.Mutex // below Client.mu
	watches []*ServiceWatch
	known   bool
	list    []Service // sorted; never changed in place
}

// ServiceWatch is the live list of the services that match a pattern.
type ServiceWatch struct {
	pattern *pattern
	present atomic.Pointer[[]Service]
	ended   chan struct{}

	mu      sync.Mutex
	closed  bool
	updates chan ServicesUpdate // capacity 1
	base    []Service           // what the reader had before what is in updates
	last    []Service
}

// ServicesUpdate is a change of that list. Added and Removed are relative to the update
// that the same reader got before. The slices must not be changed.
type ServicesUpdate struct {
	Services, Added, Removed []Service
}

// WatchServices watches which services match a pattern, and returns when they are known.
// Where servers cannot push this, the client asks again as often as [WithResync] says,
// and Group must be a plain name. ctx does not bound the life of the watch.
func (c *Client) WatchServices(ctx context.Context, p Pattern) (*ServiceWatch, error) {
	key := wire.Pattern{
		Namespace: cmp.Or(p.Namespace, c.cfg.namespace), Group: cmp.Or(p.Group, c.cfg.group), Name: cmp.Or(p.Name, "*"),
	}
	shown := Service{key.Namespace, key.Group, key.Name}
	if err := checkNames("Pattern", key.Namespace, key.Group, key.Name); err != nil {
		return nil, opError("watch services", shown, err)
	}
	w, err := c.addServiceWatch(key)
	if err == nil {
		err = w.first(ctx)
	}
	if err != nil {
		return nil, opError("watch services", shown, err)
	}
	return w, nil
}

func (c *Client) addServiceWatch(key wire.Pattern) (*ServiceWatch, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, ErrClosed
	}
	p := c.patterns[key]
	if p == nil {
		p = &pattern{client: c, pattern: key}
		p.job = c.queue.Job(schedule.Normal, p.run)
		c.patterns[key] = p
	}
	w := &ServiceWatch{pattern: p, ended: make(chan struct{}), updates: make(chan ServicesUpdate, 1)}
	p.mu.Lock()
	p.watches = append(p.watches, w)
	w.present.Store(&p.list)
	if p.known {
		w.show(p.list)
	}
	p.mu.Unlock()
	p.job.Wake()
	return w, nil
}

// first waits until the list is known, and closes the watch if that fails.
func (w *ServiceWatch) first(ctx context.Context) error {
	p, c := w.pattern, w.pattern.client
	for {
		changed := p.changed.next()
		c.mu.Lock()
		failure := p.failure
		c.mu.Unlock()
		p.mu.Lock()
		known := p.known
		p.mu.Unlock()
		switch {
		case known:
			return nil
		case failure != nil && wire.Final(failure):
			_ = w.Close()
			return failure
		}
		select {
		case <-changed:
		case <-w.ended:
			return ErrClosed
		case <-ctx.Done():
			_ = w.Close()
			if failure == nil && c.link.Load() == nil {
				failure = *c.lastError.Load()
			}
			return because(ctx, failure)
		}
	}
}

func (p *pattern) all() []*ServiceWatch {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.watches)
}

// run asks the server to push the list, or for the list itself.
func (p *pattern) run(ctx context.Context) time.Duration {
	c := p.client
	c.mu.Lock()
	l := c.link.Load()
	unwatched := len(p.all()) == 0
	asked := l != nil && p.session == l.session.ID
	var fuzzy wire.FuzzyTransport // nil if the server cannot push
	if l != nil && l.session.Fuzzy {
		fuzzy, _ = l.transport.(wire.FuzzyTransport)
	}
	pushed := asked && fuzzy != nil
	if unwatched && !pushed {
		delete(c.patterns, p.pattern)
		p.job.Stop()
	}
	c.mu.Unlock()
	if l == nil {
		return schedule.Idle
	}
	ctx, cancel := context.WithTimeout(ctx, operation)
	defer cancel()
	var err error
	switch {
	case unwatched && pushed:
		return p.unwatch(ctx, fuzzy)
	case unwatched, pushed:
		return schedule.Idle
	case fuzzy != nil:
		err = fuzzy.WatchServices(ctx, p.pattern, p.have())
	default:
		err = p.poll(ctx)
	}
	return p.end(l, fuzzy != nil, err)
}

// unwatch ends the pushes, after which the pattern is forgotten, or watched anew if
// somebody came meanwhile; see entry.unsubscribe.
func (p *pattern) unwatch(ctx context.Context, fuzzy wire.FuzzyTransport) time.Duration {
	_ = fuzzy.UnwatchServices(ctx, p.pattern) // the session forgets it some time
	p.client.mu.Lock()
	defer p.client.mu.Unlock()
	p.session = ""
	return 0
}

// end takes the result of an attempt.
func (p *pattern) end(l *link, pushed bool, err error) time.Duration {
	c := p.client
	c.mu.Lock()
	defer c.mu.Unlock()
	defer p.changed.send()
	p.failure = err
	switch {
	case err == nil:
		p.failures, p.session = 0, l.session.ID
		if pushed {
			return schedule.Idle
		}
		return pollPeriod(c.cfg.resync)
	case wire.Final(err):
		return refusedPause
	}
	p.failures++
	return c.cfg.backoff.Delay(p.failures)
}

// pollPeriod is how often to ask a server that cannot push: as often as for watched
// services, or as often as by default if these are left to pushes.
func pollPeriod(resync time.Duration) time.Duration {
	if resync <= 0 {
		return defaultResync
	}
	return max(resync, time.Second)
}

func (p *pattern) have() []wire.Service {
	p.mu.Lock()
	defer p.mu.Unlock()
	known := make([]wire.Service, len(p.list))
	for n, s := range p.list {
		known[n] = wire.Service(s)
	}
	return known
}

// poll asks for all services of the group.
func (p *pattern) poll(ctx context.Context) error {
	if strings.Contains(p.pattern.Group, "*") {
		return &wire.Error{Kind: wire.Unsupported, Err: invalid("the server can list one group at a time, and no %s", p.pattern.Group)}
	}
	var list []Service
	for s, err := range p.client.Services(ctx, ServiceQuery{Namespace: p.pattern.Namespace, Group: p.pattern.Group}) {
		if err != nil {
			return err
		}
		if p.pattern.Matches(s.wire()) {
			list = append(list, s)
		}
	}
	p.set(func([]Service) []Service { return list }, true)
	return nil
}

// servicesChanged takes what a server pushed.
func (c *Client) servicesChanged(change wire.ServicesChange) {
	c.mu.Lock()
	p := c.patterns[change.Pattern]
	c.mu.Unlock()
	if p == nil {
		return
	}
	p.set(func(list []Service) []Service {
		list = slices.Clone(list)
		for _, s := range change.Added {
			list = append(list, Service(s))
		}
		return slices.DeleteFunc(list, func(s Service) bool { return slices.Contains(change.Removed, s.wire()) })
	}, change.Complete)
	p.changed.send()
}

// set changes the list. Nothing is shown before it has been known as a whole.
func (p *pattern) set(change func([]Service) []Service, complete bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := change(p.list)
	slices.SortFunc(list, compareServices)
	list = slices.Compact(list)
	first := complete && !p.known
	p.known = p.known || complete
	if same := slices.Equal(list, p.list); same && !first {
		return
	}
	p.list = list
	if !p.known {
		return
	}
	for _, w := range p.watches {
		w.show(list)
	}
}

func compareServices(a, b Service) int {
	return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Group, b.Group), strings.Compare(a.Name, b.Name))
}

// show gives a list to the reader of the watch.
func (w *ServiceWatch) show(list []Service) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return
	}
	w.present.Store(&list)
	select {
	case <-w.updates: // overtaken
	default:
		w.base = w.last
	}
	w.last = list
	u := ServicesUpdate{Services: list}
	for _, s := range list {
		if _, had := slices.BinarySearchFunc(w.base, s, compareServices); !had {
			u.Added = append(u.Added, s)
		}
	}
	for _, s := range w.base {
		if _, has := slices.BinarySearchFunc(list, s, compareServices); !has {
			u.Removed = append(u.Removed, s)
		}
	}
	w.updates <- u
}

// Services returns the present list, sorted, which must not be changed. It takes no
// lock.
func (w *ServiceWatch) Services() []Service { return *w.present.Load() }

// Updates returns the channel of changes, the first of which is the list as it was
// found. It holds one: if nobody took it, the next takes its place. It is closed with
// the watch.
func (w *ServiceWatch) Updates() <-chan ServicesUpdate { return w.updates }

// Close ends the watch. Closing again does nothing.
func (w *ServiceWatch) Close() error {
	if w.end() {
		p := w.pattern
		p.mu.Lock()
		p.watches = slices.DeleteFunc(p.watches, func(o *ServiceWatch) bool { return o == w })
		p.mu.Unlock()
		p.job.Wake()
	}
	return nil
}

// end closes the channel of the watch and reports whether it was open.
func (w *ServiceWatch) end() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return false
	}
	w.closed = true
	close(w.ended)
	close(w.updates)
	return true
}
