package ops

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rollcall-registry/rollcall/api/opsv1"
	"github.com/rollcall-registry/rollcall/internal/httpapi"
	"github.com/rollcall-registry/rollcall/internal/ledger"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// history answers GET /rollcall/v1/history: namespace, group, service, cluster,
// ip, port, client, kind (a comma list), since and until (RFC 3339, milliseconds
// since the epoch, or an age such as 15m), order (newest or oldest), limit,
// cursor. Without a service and a namespace it is that of all namespaces.
//
// A page may be short, or empty, although more follows: next tells.
func (a *API) history(x *httpapi.Exchange) {
	p := x.Params()
	f, err := commonFilter(p, x.Received())
	if err == nil {
		err = changeFilter(p, &f)
	}
	if err != nil {
		refuse(x, 400, err.Error())
		return
	}
	page, err := a.cfg.History.Query(x.Context(), f)
	if err != nil {
		a.fail(x, "read the history", err)
		return
	}
	a.answer(x, opsv1.History{Events: wireEvents(page.Records), Next: next(&page), Damaged: page.Damaged})
}

// pushes answers GET /rollcall/v1/pushes: namespace, group, service, subscriber
// (address:port), kind, since, until, order, limit, cursor, as history does.
func (a *API) pushes(x *httpapi.Exchange) {
	if a.cfg.Pushes == nil {
		refuse(x, 404, "no history of pushes is kept; the setting history.pushes is off")
		return
	}
	p := x.Params()
	f, err := commonFilter(p, x.Received())
	if err == nil {
		f.Subscriber, err = endpoint(p, "subscriber")
	}
	if err == nil {
		f.Kinds, err = kinds(p, pushKinds())
	}
	if err != nil {
		refuse(x, 400, err.Error())
		return
	}
	if len(f.Kinds) == 0 {
		f.Kinds = pushKinds() // not when that history itself started and stopped
	}
	page, err := a.cfg.Pushes.Query(x.Context(), f)
	if err != nil {
		a.fail(x, "read the history of pushes", err)
		return
	}
	a.answer(x, opsv1.Pushes{Pushes: wirePushes(page.Records), Next: next(&page), Damaged: page.Damaged})
}

// next returns the cursor of the page that follows, 0 when there is none.
func next(page *ledger.Page) uint64 {
	if !page.Truncated {
		return 0
	}
	return page.Cursor
}

// commonFilter reads what both histories are filtered by.
func commonFilter(p *httpapi.Params, now time.Time) (ledger.Filter, error) {
	key := service(p)
	f := ledger.Filter{Namespace: p.Optional("namespace", ""), Group: key.Group, Service: key.Name}
	if f.Service != "" {
		f.Namespace = key.Namespace
	}
	var err error
	if f.Since, err = instant(p, "since", now); err != nil {
		return f, err
	}
	if f.Until, err = instant(p, "until", now); err != nil {
		return f, err
	}
	limit, err := number(p, "limit", ledger.MaxLimit)
	if err != nil {
		return f, err
	}
	f.Limit = int(limit)
	return f, order(p, &f)
}

// changeFilter reads what the history of changes is filtered by besides.
func changeFilter(p *httpapi.Params, f *ledger.Filter) (err error) {
	f.Cluster, f.IP = p.Optional("cluster", ""), p.Optional("ip", "")
	f.ClientID = registry.ClientID(p.Optional("client", ""))
	if f.Port, err = port(p); err != nil {
		return err
	}
	f.Kinds, err = kinds(p, changeKinds())
	return err
}

// order reads order and cursor.
func order(p *httpapi.Params, f *ledger.Filter) error {
	cursor, err := number(p, "cursor", 1<<62)
	if err != nil {
		return err
	}
	switch order := p.Optional("order", "newest"); order {
	case "newest":
		f.Before = uint64(cursor)
	case "oldest":
		f.OldestFirst, f.After = true, uint64(cursor)
	default:
		return fmt.Errorf("order: %q is neither newest nor oldest", order)
	}
	return nil
}

// kinds reads kind: names of events, which may have hyphens in place of blanks.
func kinds(p *httpapi.Params, known []registry.EventKind) ([]registry.EventKind, error) {
	var chosen []registry.EventKind
	for _, name := range list(p, "kind") {
		kind := registry.EventKind(strings.ReplaceAll(name, "-", " "))
		if !slices.Contains(known, kind) {
			return nil, fmt.Errorf("kind: %q is none of %s", name, names(known))
		}
		chosen = append(chosen, kind)
	}
	return chosen, nil
}

func names(kinds []registry.EventKind) string {
	var out []string
	for _, k := range kinds {
		out = append(out, string(k))
	}
	return strings.Join(out, ", ")
}

// changeKinds are the kinds of the history of changes.
func changeKinds() []registry.EventKind {
	return []registry.EventKind{
		registry.InstanceRegistered, registry.InstanceUpdated, registry.InstanceRemoved,
		registry.InstanceHealthy, registry.InstanceUnhealthy, registry.OwnerAdded, registry.OwnerRemoved,
		registry.OverrideSet, registry.OverrideDropped,
		registry.ServiceCreated, registry.ServiceUpdated, registry.ServiceRemoved, registry.ClusterUpdated,
		registry.ExpiryHeld, registry.ExpiryReleased, registry.Subscribed, registry.Unsubscribed,
		registry.NamespaceCreated, registry.NamespaceUpdated, registry.NamespaceRemoved, registry.SwitchSet,
		ledger.Started, ledger.Stopped, ledger.Lost,
	}
}

// pushKinds are the kinds of the history of pushes.
func pushKinds() []registry.EventKind {
	return []registry.EventKind{registry.PushAcknowledged, registry.PushFailed, ledger.Lost}
}
