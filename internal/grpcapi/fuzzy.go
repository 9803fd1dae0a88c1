package grpcapi

import (
	"strings"
	"sync"

	"github.com/rollcall-registry/rollcall/api/grpcv2"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// fuzzy is one fuzzy watch of a client: it tells of services that come and go, as
// opposed to what is in them. A service is there while it has an instance. What is to
// be told is for its state to decide; the watch sends it.
type fuzzy struct {
	client  *client
	pattern pattern

	mu    sync.Mutex // comes before the client's
	state fuzzyState
}

func newFuzzy(c *client, text string) *fuzzy {
	return &fuzzy{client: c, pattern: parsePattern(strings.Clone(text))}
}

// begin decides what the client is to be told; see [fuzzyState.begin].
func (f *fuzzy) begin(matching, known []string, initializing bool) (tooMany bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.state.begin(matching, known, initializing)
}

// start lets the client be told, once its request has been answered.
func (f *fuzzy) start() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.state.live = true
	f.send()
}

// stop ends the watch.
func (f *fuzzy) stop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.state.live = false
}

// change notes that a service is there, or not any more.
func (f *fuzzy) change(key string, present bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.state.note(key, present)
	f.send()
}

// retry tells what could not be told.
func (f *fuzzy) retry() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.state.retry() {
		f.send()
	}
}

// settled goes on after a message.
func (f *fuzzy) settled(m fuzzyMessage, how outcome) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.state.settled(m, how)
	f.send()
}

// send sends what is to be told now. The caller holds f.mu.
func (f *fuzzy) send() {
	for {
		m, ok := f.state.next()
		if !ok {
			return
		}
		if !f.client.ask(f.order(m)) {
			f.state.unsent(m)
		}
	}
}

// order is the request that tells the client a message.
func (f *fuzzy) order(m fuzzyMessage) *order {
	o := &order{timeout: ackTimeout, settled: func(how outcome) { f.settled(m, how) }}
	if !m.isSync {
		o.kind = grpcv2.FuzzyWatchChange
		o.write = func(b []byte, id uint64) []byte { return grpcv2.AppendFuzzyNotify(b, id, m.change) }
		return o
	}
	m.sync.Pattern = f.pattern.text
	o.kind = grpcv2.FuzzyWatchSync
	o.write = func(b []byte, id uint64) []byte { return grpcv2.AppendFuzzySync(b, id, &m.sync) }
	return o
}

// fuzzyWatch answers NamingFuzzyWatchRequest (3.x).
func (x *call) fuzzyWatch() error {
	q, err := grpcv2.DecodeFuzzyWatch(x.Body)
	if err != nil {
		return decoded(err)
	}
	watches := &x.client.api.fuzzies
	switch q.WatchType {
	case grpcv2.Watch:
		return x.startFuzzy(watches, &q)
	case grpcv2.CancelWatch:
		watches.drop(q.Pattern, x.client)
		x.succeed()
		return nil
	default:
		return registry.Refuse(registry.InvalidArgument, "watchType", "", "Unsupported watch type %.64s", q.WatchType)
	}
}

func (x *call) startFuzzy(watches *fuzzies, q *grpcv2.FuzzyWatchRequest) error {
	if len(q.Pattern) > maxPattern {
		return registry.Refuse(registry.InvalidArgument, "groupKeyPattern", "",
			"Param 'groupKeyPattern' is illegal, the param length should not exceed %d.", maxPattern)
	}
	f := newFuzzy(x.client, q.Pattern)
	if !watches.add(f) {
		x.refuse(grpcv2.CodePatternLimit, "fuzzy watch pattern over limit")
		return nil
	}
	if x.client.left() { // and has dropped its watches before this one was added
		watches.drop(q.Pattern, x.client)
		return x.client.closed()
	}
	x.answer.Written = f.start
	if f.begin(x.client.api.matching(&f.pattern), q.Received, q.Initializing) {
		x.refuse(grpcv2.CodeMatchLimit, "fuzzy watch pattern match service count over limit")
		return nil
	}
	x.succeed()
	return nil
}

// matching returns the services that are there and match, at most one more than a
// watch tells of.
func (a *API) matching(p *pattern) (keys []string) {
	if p.broken {
		return nil
	}
	store := a.core.Store()
	services, _ := store.Services(p.namespace, p.exactGroup(), 0, -1)
	for _, key := range services {
		if p.matches(key) && a.inhabited(key) {
			if keys = append(keys, fuzzyKey(key)); len(keys) > maxMatches {
				return keys
			}
		}
	}
	return keys
}

// inhabited reports whether a service has an instance.
func (a *API) inhabited(key registry.ServiceKey) bool {
	view := a.core.Store().View(key)
	return view != nil && len(view.Instances) > 0
}
