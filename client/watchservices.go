package rollcall

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rollcall-registry/rollcall/client/internal/schedule"
	"github.com/rollcall-registry/rollcall/client/internal/wire"
)

// Pattern selects services by name; * in Group and Name stands for any text. An empty
// Namespace or Group stands for the default of the client, an empty Name for *.
type Pattern struct{ Namespace, Group, Name string }

// ServicesOption changes a watch of the names of services.
type ServicesOption interface{ applyServices(*servicesConfig) }

type servicesConfig struct{ async bool }

func (AsyncOption) applyServices(c *servicesConfig) { c.async = true }

// pattern is a pattern that is watched, by one watch or several.
type pattern struct {
	client  *Client
	pattern wire.Pattern
	job     *schedule.Job
	changed broadcast

	// guarded by Client.mu
	session  string // on which it was asked for
	tried    string // the session on which it was last tried
	failures int
	failure  error

	mu      sync.Mutex // below Client.mu
	watches []*ServiceWatch
	list    []Service     // as far as it is known; sorted, never changed in place
	shown   *servicesList // what the watches have last been given; never nil
}

// servicesList is what a ServiceWatch shows. It is immutable.
type servicesList struct {
	services []Service // sorted
	known    bool
	err      error // why it is not kept up to date; nil if it is
}

// ServiceWatch is the live list of the services that match a pattern.
type ServiceWatch struct {
	feed    *feed[servicesList, ServicesUpdate]
	pattern *pattern
}

// ServicesUpdate is a change of that list. Added and Removed are relative to the update
// that the same reader got before, whatever came and was overtaken in between; in the
// first one all services are Added. The slices must not be changed.
type ServicesUpdate struct {
	Services, Added, Removed []Service
	// Known is false as long as no server has told the list, which is empty for that
	// reason.
	Known bool
	// Err is why Services does not follow the server, which has refused to tell it: it is
	// asked again each 30 s. nil while it does, or while a server is looked for.
	Err error
}

// newServicesUpdate returns the way from one list, which may be nil, to the next.
func newServicesUpdate(from, to *servicesList) ServicesUpdate {
	u := ServicesUpdate{Services: to.services, Known: to.known, Err: to.err}
	var before []Service
	if from != nil {
		before = from.services
	}
	u.Added = without(to.services, before)
	u.Removed = without(before, to.services)
	return u
}

// without returns the services of a list that another one does not have. Both are
// sorted.
func without(list, other []Service) (rest []Service) {
	for _, s := range list {
		if _, has := slices.BinarySearchFunc(other, s, compareServices); !has {
			rest = append(rest, s)
		}
	}
	return rest
}

// WatchServices watches which services match a pattern. It returns when they are known;
// if ctx ends before that, there is no watch; see [WithAsync]. ctx does not bound the
// life of the watch. Where servers cannot push this, the client asks again as often as
// [WithResync] says, and Group must be a plain name: a server that is spoken to by HTTP
// lists one group at a time. If a watch that has begun comes to such a server, its updates
// have an Err.
func (c *Client) WatchServices(ctx context.Context, p Pattern, options ...ServicesOption) (*ServiceWatch, error) {
	var cfg servicesConfig
	faults := applyEach(options, func(o ServicesOption) { o.applyServices(&cfg) })
	p = c.completePattern(p)
	if err := errors.Join(faults, checkNames("Pattern", p.Namespace, p.Group, p.Name)); err != nil {
		return nil, p.opError(err)
	}
	w, err := c.addServiceWatch(wire.Pattern(p))
	if err == nil && !cfg.async {
		err = w.waitKnown(ctx)
	}
	if err != nil {
		return nil, p.opError(err)
	}
	return w, nil
}

// completePattern fills in the defaults.
func (c *Client) completePattern(p Pattern) Pattern {
	return Pattern{cmp.Or(p.Namespace, c.cfg.namespace), cmp.Or(p.Group, c.cfg.group), cmp.Or(p.Name, "*")}
}

func (p Pattern) opError(err error) error { return opError("watch services", Service(p), err) }

func (c *Client) addServiceWatch(key wire.Pattern) (*ServiceWatch, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.isClosed() {
		return nil, ErrClosed
	}
	p := c.patterns[key]
	if p == nil {
		p = &pattern{client: c, pattern: key, shown: new(servicesList)}
		p.job = c.queue.Job(schedule.Normal, p.run)
		c.patterns[key] = p
	}
	p.mu.Lock()
	w := &ServiceWatch{newFeed(c, p.shown, newServicesUpdate), p}
	p.watches = append(p.watches, w)
	p.mu.Unlock()
	p.job.Wake()
	return w, nil
}

// waitKnown waits until the list is known, and closes the watch if that fails.
func (w *ServiceWatch) waitKnown(ctx context.Context) error {
	err := w.feed.first(ctx, &w.pattern.changed, func() (bool, error) { return w.feed.state.Load().known, w.pattern.failure })
	if err != nil {
		_ = w.Close()
	}
	return err
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
		c.changes.send()
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
	defer c.changes.send()
	p.tried, p.failure = l.session.ID, err
	p.tell(err)
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
	c.logger.Warn("watch services", "namespace", p.pattern.Namespace, "group", p.pattern.Group, "service", p.pattern.Name, "err", err)
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
		return &wire.Error{Kind: wire.Unsupported, Err: invalid("Pattern.Group %s: the server lists one group at a time; give its name", shortened(p.pattern.Group))}
	}
	var list []Service
	for s, err := range p.client.names(ctx, p.pattern.Namespace, p.pattern.Group, defaultPage) {
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
	known := complete || p.shown.known
	if known == p.shown.known && slices.Equal(list, p.list) {
		return
	}
	p.list = list
	if !known {
		return
	}
	p.shown = &servicesList{list, true, p.shown.err}
	for _, w := range p.watches {
		w.feed.show(p.shown)
	}
}

// tell says that the list is not kept up to date, if it will not be for a while, or that it
// is again.
func (p *pattern) tell(err error) {
	if err != nil && !wire.Final(err) {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil && p.shown.err == nil {
		return
	}
	shown := &servicesList{services: p.shown.services, known: p.shown.known}
	if err != nil {
		shown.err = Pattern(p.pattern).opError(err)
		if before := p.shown.err; before != nil && before.Error() == shown.err.Error() {
			return
		}
	}
	p.shown = shown
	for _, w := range p.watches {
		w.feed.show(shown)
	}
}

func compareServices(a, b Service) int {
	return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Group, b.Group), strings.Compare(a.Name, b.Name))
}

// Pattern returns the pattern, with the defaults of the client filled in.
func (w *ServiceWatch) Pattern() Pattern { return Pattern(w.pattern.pattern) }

// Services returns the present list, sorted, which must not be changed. It takes no
// lock. After Close it is the last one.
func (w *ServiceWatch) Services() []Service { return w.feed.state.Load().services }

// Updates returns the channel of changes, as [Watch.Updates] does: the first one is the
// list as it is, the channel holds one, and it is closed with the watch.
func (w *ServiceWatch) Updates() <-chan ServicesUpdate { return w.feed.channel() }

// All yields the present list and each change, as [Watch.All] does.
func (w *ServiceWatch) All(ctx context.Context) iter.Seq2[ServicesUpdate, error] {
	return w.feed.all(ctx, w.Pattern().opError)
}

// OnUpdate calls f with the present list and with each change, as [Watch.OnUpdate] does.
func (w *ServiceWatch) OnUpdate(f func(ServicesUpdate)) (stop func()) { return w.feed.each(f) }

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

// end closes the channels of the watch and reports whether they were open.
func (w *ServiceWatch) end() bool { return w.feed.end() }
