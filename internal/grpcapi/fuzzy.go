package grpcapi

import (
	"strings"
	"sync"

	"github.com/rollcall-registry/rollcall/api/grpcv2"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// fuzzy is one fuzzy watch of a client: it tells of services that come and go, as
// opposed to what is in them. A service is there while it has an instance.
//
// First the client is told of the services that it does not know, a batch at a
// time, then of each change. What is to be told is kept as the difference between
// what the client knows and what is there, so it cannot grow beyond that.
type fuzzy struct {
	client  *client
	pattern pattern

	mu sync.Mutex
	// live: the client's request has been answered, and it has not taken it back.
	live bool
	// batches are to be told before all changes, the first of them next; kind says
	// why.
	batches [][]grpcv2.FuzzyChange
	kind    string
	next    int
	finish  bool // and then that this was all
	syncing bool // one of these is being told
	// told are the services that the client knows. present is what is there now, of
	// those that changed; flying are the changes that are being told.
	told, present, flying map[string]bool
	// stalled: something could not be told, and is tried again at the next tick.
	stalled bool
}

const (
	// fuzzyBatch and maxMatches are Nacos' limits: services in a batch, and services
	// of one pattern.
	fuzzyBatch = 10
	maxMatches = 500
	// maxFlying bounds the changes that are told to a client at a time.
	maxFlying = 16
)

// begin decides what the client is to be told, once the services that match are
// known. known are those that the client says it knows. It reports whether more
// match than are told.
func (f *fuzzy) begin(matching []string, known []string, initializing bool) (tooMany bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	there := make(map[string]bool, len(matching))
	for _, key := range matching {
		there[key] = true
	}
	for _, key := range known {
		key = strings.Clone(key) // from the request's memory
		f.told[key] = true
		if _, changed := f.present[key]; !there[key] && !changed {
			f.present[key] = false
		}
	}
	var missing []grpcv2.FuzzyChange
	for _, key := range matching {
		if f.told[key] {
			continue
		}
		if len(f.told)+len(missing) >= maxMatches {
			tooMany = true
			break
		}
		missing = append(missing, grpcv2.FuzzyChange{Service: key, Change: grpcv2.AddService})
	}
	f.kind, f.finish = grpcv2.SyncDiff, initializing
	if initializing {
		f.kind = grpcv2.SyncInit
	}
	for len(missing) > 0 {
		n := min(len(missing), fuzzyBatch)
		f.batches = append(f.batches, missing[:n])
		missing = missing[n:]
	}
	return tooMany
}

// start lets the client be told, once its request has been answered.
func (f *fuzzy) start() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.live = true
	f.step()
}

// stop ends the watch.
func (f *fuzzy) stop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.live = false
}

// change notes that a service is there, or not any more.
func (f *fuzzy) change(key string, present bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.present[key] = present
	f.step()
}

// retry tells what could not be told.
func (f *fuzzy) retry() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stalled {
		f.stalled = false
		f.step()
	}
}

// step tells what is next. The caller holds f.mu, as for the methods below.
func (f *fuzzy) step() {
	switch {
	case !f.live || f.syncing || f.stalled:
	case f.next < len(f.batches):
		f.sync(grpcv2.FuzzySync{
			Kind: f.kind, Pattern: f.pattern.text, Changes: f.batches[f.next], Batch: f.next + 1, Batches: len(f.batches),
		})
	case f.finish:
		f.sync(grpcv2.FuzzySync{Kind: grpcv2.SyncFinish, Pattern: f.pattern.text, Batch: 1, Batches: 1})
	default:
		f.tellChanges()
	}
}

func (f *fuzzy) sync(s grpcv2.FuzzySync) {
	f.syncing = true
	f.ask(&order{
		kind:    grpcv2.FuzzyWatchSync,
		write:   func(b []byte, id uint64) []byte { return grpcv2.AppendFuzzySync(b, id, &s) },
		settled: func(how outcome) { f.synced(how) },
	})
}

// ask sends a request, or has it tried again at the next tick.
func (f *fuzzy) ask(o *order) {
	o.timeout = ackTimeout
	if !f.client.ask(o) {
		f.stalled, f.syncing = true, false
	}
}

// synced goes on after a batch or the end of them.
func (f *fuzzy) synced(how outcome) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.syncing = false
	switch {
	case how == refused: // not at once, or the two would talk of nothing else
		f.stalled = true
		return
	case how != done:
	case f.next < len(f.batches):
		for _, c := range f.batches[f.next] {
			f.told[c.Service] = true
		}
		f.next++
	default:
		f.batches, f.next, f.finish = nil, 0, false
	}
	f.step()
}

// tellChanges tells of services of which the client does not know that they came
// or went.
func (f *fuzzy) tellChanges() {
	for key, present := range f.present {
		if f.stalled || len(f.flying) >= maxFlying {
			return
		}
		if f.flying[key] {
			continue
		}
		if present == f.told[key] || present && len(f.told) >= maxMatches {
			delete(f.present, key)
			continue
		}
		f.tell(key, present)
	}
}

func (f *fuzzy) tell(key string, present bool) {
	c := grpcv2.FuzzyChange{Service: key, Change: grpcv2.DeleteService}
	if present {
		c.Change = grpcv2.AddService
	}
	f.flying[key] = true
	f.ask(&order{
		kind:    grpcv2.FuzzyWatchChange,
		write:   func(b []byte, id uint64) []byte { return grpcv2.AppendFuzzyNotify(b, id, c) },
		settled: func(how outcome) { f.changed(key, present, how) },
	})
	if f.stalled {
		delete(f.flying, key)
	}
}

// changed goes on after a change has been told.
func (f *fuzzy) changed(key string, present bool, how outcome) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.flying, key)
	switch {
	case how == refused:
		f.stalled = true
	case how == done && present:
		f.told[key] = true
	case how == done:
		delete(f.told, key)
	}
	f.step()
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

func newFuzzy(c *client, text string) *fuzzy {
	return &fuzzy{
		client: c, pattern: parsePattern(strings.Clone(text)),
		told: map[string]bool{}, present: map[string]bool{}, flying: map[string]bool{},
	}
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
