package v1

import (
	"net/netip"
	"strconv"
	"strings"

	"github.com/rollcall-registry/rollcall/internal/httpapi"
	"github.com/rollcall-registry/rollcall/internal/httpapi/values"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// catalogServices answers GET /catalog/services: a page of services with counts,
// or with everything that is in them.
func (a *API) catalogServices(x *httpapi.Exchange) {
	q, err := catalogQueryOf(x.Params())
	if err != nil {
		a.fail(x, err)
		return
	}
	views, total, err := a.catalogPage(&q)
	if err != nil {
		a.fail(x, err)
		return
	}
	if q.detailed {
		x.Scratch = appendDetails(x.Scratch[:0], views)
	} else {
		x.Scratch = appendCounts(x.Scratch[:0], views, total)
	}
	x.JSON(200, x.Scratch)
}

// catalogQuery is a decoded GET /catalog/services.
type catalogQuery struct {
	namespace      string
	detailed       bool
	service, group *values.Search
	instance       *address // nil: whatever is in them
	nonEmpty       bool
	nothing        bool // an expression is broken
	page           page
}

// catalogQueryOf reads the parameters. With details the first page has the number
// 0, without them 1; a size of 0 counts as 1, and filters by what is in a service
// are for the list without details.
func catalogQueryOf(p *httpapi.Params) (catalogQuery, error) {
	q := catalogQuery{namespace: namespace(p)}
	var err error
	if q.detailed, err = p.BoundBool("withInstances", false); err != nil {
		return q, err
	}
	number, size, err := boundPage(p)
	if err != nil {
		return q, err
	}
	nonEmpty, err := p.BoundBool("hasIpCount", false)
	if err != nil {
		return q, err
	}
	if !q.detailed {
		number--
		q.nonEmpty = nonEmpty
		q.instance = parseAddress(strings.TrimSpace(p.BoundOptional("instance", "")))
	}
	q.page = page{offset: max(number*size, 0), limit: max(size, 1)}
	return q, q.searchBy(p)
}

// searchBy reads the expressions for names. As in 1.4.8 a broken one finds
// nothing.
func (q *catalogQuery) searchBy(p *httpapi.Params) (err error) {
	read := func(param string) (*values.Search, error) { return values.NewSearch(param, p.BoundOptional(param, "")) }
	if q.service, err = read("serviceNameParam"); err == nil {
		q.group, err = read("groupNameParam")
	}
	if isRefusal(err, registry.InvalidArgument) {
		q.nothing = true
		return nil
	}
	return err
}

// everything reports whether no service is left out.
func (q *catalogQuery) everything() bool {
	return !q.nothing && !q.nonEmpty && q.instance == nil && q.service.All() && q.group.All()
}

// catalogPage returns the services on the page that is asked for, and how many
// match. As in 1.4.8 a page that has room for all of them shows all of them,
// whatever its number. Without a filter only the page costs.
func (a *API) catalogPage(q *catalogQuery) (views []*registry.View, total int, err error) {
	if q.everything() {
		keys, total := a.core.Store().Services(q.namespace, "", q.page.offset, q.page.limit)
		if q.page.limit >= total {
			keys, _ = a.core.Store().Services(q.namespace, "", 0, -1)
		}
		return a.views(keys, keeps), total, nil
	}
	if q.nothing {
		return nil, 0, nil
	}
	keys, err := a.searched(q)
	if err != nil {
		return nil, 0, err
	}
	views = a.views(keys, q.keeps)
	total = len(views)
	if q.page.limit < total {
		from, to := q.page.of(total)
		views = views[from:to]
	}
	return views, total, nil
}

// searched returns the services whose names are found.
func (a *API) searched(q *catalogQuery) ([]registry.ServiceKey, error) {
	keys, _ := a.core.Store().Services(q.namespace, "", 0, -1)
	found := keys[:0]
	for _, key := range keys {
		ok, err := q.service.Matches(key.Name)
		if ok && err == nil {
			ok, err = q.group.Matches(key.Group)
		}
		if err != nil {
			return nil, err
		}
		if ok {
			found = append(found, key)
		}
	}
	return found, nil
}

// views returns the present views of those services that keep is true for.
func (a *API) views(keys []registry.ServiceKey, keep func(*registry.View) bool) []*registry.View {
	views := make([]*registry.View, 0, len(keys))
	for _, key := range keys {
		if view := a.core.Store().View(key); view != nil && keep(view) {
			views = append(views, view)
		}
	}
	return views
}

func keeps(*registry.View) bool { return true }

// keeps reports whether what is in a service lets it pass.
func (q *catalogQuery) keeps(view *registry.View) bool {
	if q.nonEmpty && len(view.Instances) == 0 {
		return false
	}
	if q.instance == nil {
		return true
	}
	for _, i := range view.Instances {
		if q.instance.is(i) {
			return true
		}
	}
	return false
}

// address is an IP address or a host name, with or without a port.
type address struct {
	ip      string // canonical
	port    int32
	anyPort bool
}

// parseAddress returns the address that text is, nil when it is empty.
func parseAddress(text string) *address {
	if text == "" {
		return nil
	}
	if ap, err := netip.ParseAddrPort(text); err == nil {
		return &address{ip: ap.Addr().Unmap().String(), port: int32(ap.Port())}
	}
	host, digits, found := strings.Cut(text, ":")
	if port, err := strconv.ParseInt(digits, 10, 32); found && err == nil {
		return &address{ip: host, port: int32(port)}
	}
	return &address{ip: registry.CanonicalIP(text), anyPort: true}
}

func (a *address) is(i *registry.Instance) bool {
	return (a.anyPort || a.port == i.Port) && a.ip == registry.CanonicalIP(i.IP)
}

// appendCounts appends services with their counts. A page past the end has a
// total of 0 (live 1.4.8).
func appendCounts(b []byte, views []*registry.View, total int) []byte {
	if len(views) == 0 {
		total = 0
	}
	b = append(b, `{"serviceList":[`...)
	for n, view := range views {
		if n > 0 {
			b = append(b, ',')
		}
		b = appendCount(b, view)
	}
	b = append(b, `],"count":`...)
	b = strconv.AppendInt(b, int64(total), 10)
	return append(b, '}')
}

// appendCount appends one service. Clusters without instances do not count, and
// whether the protect threshold is reached is a text, as in 1.4.8.
func appendCount(b []byte, view *registry.View) []byte {
	healthy := 0
	for _, i := range view.Instances {
		if i.Healthy {
			healthy++
		}
	}
	sel := registry.Select(view, registry.Query{Policy: registry.PolicyV1, WithDisabled: true})
	b = append(b, `{"name":`...)
	b = registry.AppendJSONString(b, plainName(view.Key))
	b = append(b, `,"groupName":`...)
	b = registry.AppendJSONString(b, view.Key.Group)
	b = append(b, `,"clusterCount":`...)
	b = strconv.AppendInt(b, int64(len(usedClusters(view))), 10)
	b = append(b, `,"ipCount":`...)
	b = strconv.AppendInt(b, int64(len(view.Instances)), 10)
	b = append(b, `,"healthyInstanceCount":`...)
	b = strconv.AppendInt(b, int64(healthy), 10)
	b = append(b, `,"triggerFlag":"`...)
	b = strconv.AppendBool(b, sel.Protected)
	return append(b, `"}`...)
}

// appendDetails appends services with their instances.
func appendDetails(b []byte, views []*registry.View) []byte {
	b = append(b, '[')
	for n, view := range views {
		if n > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"serviceName":`...)
		b = registry.AppendJSONString(b, plainName(view.Key))
		b = append(b, `,"groupName":`...)
		b = registry.AppendJSONString(b, view.Key.Group)
		b = append(b, `,"clusterMap":{`...)
		for n, c := range view.Clusters {
			if n > 0 {
				b = append(b, ',')
			}
			b = registry.AppendJSONString(b, c.Name)
			b = append(b, `:{"hosts":[`...)
			b = appendDetailedHosts(b, view, c.Name)
			b = append(b, "]}"...)
		}
		b = append(b, `},"metadata":`...)
		b = view.Info.Metadata.AppendJSON(b)
		b = append(b, '}')
	}
	return append(b, ']')
}

func appendDetailedHosts(b []byte, view *registry.View, cluster string) []byte {
	first := true
	for _, i := range view.Instances {
		if i.Cluster != cluster {
			continue
		}
		if !first {
			b = append(b, ',')
		}
		first = false
		b = append(b, `{"valid":`...)
		b = strconv.AppendBool(b, i.Healthy)
		b = append(b, `,"metadata":`...)
		b = i.Metadata.AppendJSON(b)
		b = append(b, `,"port":`...)
		b = strconv.AppendInt(b, int64(i.Port), 10)
		b = append(b, `,"ip":`...)
		b = registry.AppendJSONString(b, i.IP)
		b = append(b, `,"weight":`...)
		b = appendDouble(b, i.Weight)
		b = append(b, `,"enabled":`...)
		b = strconv.AppendBool(b, i.Enabled)
		b = append(b, '}')
	}
	return b
}
