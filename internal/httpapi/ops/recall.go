package ops

import (
	"context"
	"slices"
	"strings"

	"github.com/rollcall-registry/rollcall/api/opsv1"
	"github.com/rollcall-registry/rollcall/internal/ledger"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

const (
	// explainHistory is how many entries of the history an explanation carries.
	explainHistory = 20
	// maxPages bounds how much of the history is read for one explanation. A page
	// may take 32 MiB of it, and by default all of it has 256.
	maxPages = 16
	// maxElsewhere bounds how many services an explanation refers to, and
	// elsewhereRecords how many registrations of an address are looked at for that.
	maxElsewhere     = 10
	elsewhereRecords = 100
)

// past is what the history says about a question.
type past struct {
	records   []ledger.Record // newest first
	partial   bool            // more is kept than was looked at
	change    *ledger.Record  // see [opsv1.Explanation.Change]; may be nil
	elsewhere []opsv1.Service
}

// recall looks up how what is present came to be.
func (a *API) recall(ctx context.Context, q *question, now *opsv1.Explanation) (past, error) {
	var p past
	var err error
	f := ledger.Filter{
		Namespace: q.key.Namespace, Group: q.key.Group, Service: q.key.Name,
		IP: q.one.IP, Port: q.one.Port, Cluster: q.one.Cluster,
	}
	if p.records, p.partial, err = a.newest(ctx, f, explainHistory); err != nil {
		return p, err
	}
	if now.Exists && len(now.Candidates) > 0 || now.Exists && !q.aboutOne() {
		p.change = find(p.records, func(e *registry.Event) bool { return e.Revision != 0 })
		return p, nil
	}
	if p.change, err = a.departure(ctx, q, f, p.records); err != nil {
		return p, err
	}
	p.elsewhere, err = a.elsewhere(ctx, q)
	return p, err
}

// departure returns the record of how an instance, or a whole service, came to be
// not there: of its removal, or of its coming if nothing tells of its going. It
// is nil when there is none. f chooses the records of it, of which some are known.
func (a *API) departure(ctx context.Context, q *question, f ledger.Filter, known []ledger.Record) (*ledger.Record, error) {
	f.Kinds = []registry.EventKind{registry.InstanceRemoved, registry.InstanceRegistered}
	if !q.aboutOne() {
		f.Kinds = []registry.EventKind{registry.ServiceRemoved, registry.ServiceCreated}
	}
	if r := find(known, func(e *registry.Event) bool { return slices.Contains(f.Kinds, e.Kind) }); r != nil {
		return r, nil
	}
	found, _, err := a.newest(ctx, f, 1)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return &found[0], nil
}

// find returns the first record with such an event, nil when there is none.
func find(records []ledger.Record, match func(*registry.Event) bool) *ledger.Record {
	for i := range records {
		if match(&records[i].Event) {
			return &records[i]
		}
	}
	return nil
}

// newest returns the newest n records that f chooses. partial tells that fewer
// were found and not all that is kept was looked at.
func (a *API) newest(ctx context.Context, f ledger.Filter, n int) (records []ledger.Record, partial bool, err error) {
	for range maxPages {
		f.Limit = n - len(records)
		page, err := a.cfg.History.Query(ctx, f)
		if err != nil {
			return nil, false, err
		}
		records = append(records, page.Records...)
		if !page.Truncated || len(records) >= n {
			return records, false, nil
		}
		f.Before = page.Cursor
	}
	return records, true, nil
}

// elsewhere returns the services that have the address that was asked about, or
// those of the same name when no address was.
func (a *API) elsewhere(ctx context.Context, q *question) ([]opsv1.Service, error) {
	keys := a.namesakes(q.key)
	if q.aboutOne() {
		registered, _, err := a.newest(ctx, ledger.Filter{
			IP: q.one.IP, Port: q.one.Port, Kinds: []registry.EventKind{registry.InstanceRegistered},
		}, elsewhereRecords)
		if err != nil {
			return nil, err
		}
		for i := range registered {
			keys = append(keys, registered[i].Event.Service)
		}
	}
	seen := map[registry.ServiceKey]bool{q.key: true}
	var found []opsv1.Service
	for _, key := range keys {
		if !seen[key] && len(found) < maxElsewhere && (!q.aboutOne() || a.has(key, q)) {
			found = append(found, wireService(key))
		}
		seen[key] = true
	}
	return found, nil
}

// has reports whether a service has an instance that the question means, in
// whatever cluster.
func (a *API) has(key registry.ServiceKey, q *question) bool {
	anywhere := question{one: registry.InstanceKey{IP: q.one.IP, Port: q.one.Port}}
	view := a.cfg.Naming.Store().View(key)
	return view != nil && slices.ContainsFunc(view.Instances, anywhere.means)
}

// namesakes returns the services of the same name, whatever their group, namespace
// and case. It looks at the first ten thousand of each namespace.
func (a *API) namesakes(key registry.ServiceKey) []registry.ServiceKey {
	var found []registry.ServiceKey
	reader := a.cfg.Naming.Store()
	for _, namespace := range reader.ServiceNamespaces() {
		keys, _ := reader.Services(namespace, "", 0, maxPage)
		for _, k := range keys {
			if strings.EqualFold(k.Name, key.Name) && k != key {
				found = append(found, k)
			}
		}
	}
	return found
}
