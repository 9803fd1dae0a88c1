package v1

import (
	"github.com/rollcall-registry/rollcall/internal/httpapi"
	"github.com/rollcall-registry/rollcall/internal/httpapi/lookup"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

func lookupOf(p *httpapi.Params) (lookup.Query, error) {
	key, err := serviceKey(p)
	if err != nil {
		return lookup.Query{}, err
	}
	return lookup.Parse(p, key)
}

// list answers GET /instance/list: who is in a service. With a UDP port it also
// subscribes, whether or not the service is there yet.
func (a *API) list(x *httpapi.Exchange) {
	q, err := lookupOf(x.Params())
	if err != nil {
		a.fail(x, err)
		return
	}
	cacheMillis, err := a.cacheMillis(x, &q)
	if err != nil {
		a.fail(x, err)
		return
	}
	view, err := a.core.View(q.Key)
	if err != nil {
		a.fail(x, err)
		return
	}
	if view == nil {
		x.Scratch = appendMissing(x.Scratch[:0], q.Key, q.Clusters, cacheMillis)
		x.JSON(200, x.Scratch)
		return
	}
	a.answer(x, view, &q, cacheMillis)
}

func (a *API) answer(x *httpapi.Exchange, view *registry.View, q *lookup.Query, cacheMillis int64) {
	f := form{grouped: x.Agent().GroupedNames(), healthyOnly: q.HealthyOnly}
	f.inClusters(view, q.Clusters)
	l := listing{
		view: view, hosts: a.hostsOf(view, f), grouped: f.grouped,
		cacheMillis: cacheMillis, clusters: q.Clusters, env: q.Env,
	}
	switch {
	case q.IsCheck && l.hosts.array != nil: // recorded: list-ischeck
		x.JSON(200, []byte("{}"))
	case l.hosts.array != nil: // those who read the same hosts share them
		x.Scratch = append(x.Scratch[:0], beforeHosts...)
		x.Scratch = l.appendBehindHosts(x.Scratch)
		x.JSONParts(200, x.Scratch[:len(beforeHosts)], l.hosts.array, x.Scratch[len(beforeHosts):])
	default:
		x.Scratch = l.append(x.Scratch[:0])
		x.JSON(200, x.Scratch)
	}
}

// cacheMillis subscribes a client that wants packets and may have them, and
// returns the poll period that it is told: a long one when it will be pushed to.
func (a *API) cacheMillis(x *httpapi.Exchange, q *lookup.Query) (int64, error) {
	outcome, err := q.Subscribe(x, a.core, a.admit, "", cause(x, "subscribe"))
	if err != nil {
		return 0, err
	}
	switches := a.core.Store().Switches()
	if outcome == lookup.Pushed {
		return switches.DefaultPushCacheMillis, nil
	}
	return switches.DefaultCacheMillis, nil
}
