package v3

import (
	"strconv"

	"github.com/rollcall-registry/rollcall/internal/hosts"
	"github.com/rollcall-registry/rollcall/internal/httpapi"
	"github.com/rollcall-registry/rollcall/internal/httpapi/modern"
	"github.com/rollcall-registry/rollcall/internal/httpapi/result"
	"github.com/rollcall-registry/rollcall/internal/httpapi/values"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// serviceQuery is a decoded GET /ns/service/list.
type serviceQuery struct {
	namespace       string
	name, group     *values.Search
	nonEmpty, whole bool
	page            page
}

func readServiceQuery(x *httpapi.Exchange) (serviceQuery, error) {
	f := result.NewForm(x, "serviceListForm")
	q := serviceQuery{
		namespace: registry.NamespaceID(f.Text("namespaceId", "")),
		nonEmpty:  f.Bool("ignoreEmptyService", result.JavaPlainBool, false),
		whole:     f.Bool("withInstances", result.JavaPlainBool, false),
	}
	err := f.Err()
	if err == nil {
		q.page, err = readPage(x)
	}
	if err == nil {
		q.name, err = values.NewSearch("serviceNameParam", f.Text("serviceNameParam", ""))
	}
	if err == nil {
		q.group, err = values.NewSearch("groupNameParam", f.Text("groupNameParam", ""))
	}
	return q, err
}

// serviceList answers GET /ns/service/list: a page of services with counts, or with
// all that is in them.
func (a *API) serviceList(x *httpapi.Exchange) {
	q, err := readServiceQuery(x)
	if err != nil {
		a.Fail(x, err)
		return
	}
	views, total, err := a.services(&q)
	if err != nil {
		a.Fail(x, err)
		return
	}
	show := appendCounts
	if q.whole {
		show = appendWhole
	}
	b := q.page.begin(result.Begin(x.Scratch[:0]), total)
	a.Data(x, append(modern.AppendArray(b, views, show), '}'))
}

// services returns the services on the page that is asked for, and how many match.
// Without a filter only the page costs.
func (a *API) services(q *serviceQuery) (views []*registry.View, total int, err error) {
	store := a.Core.Store()
	if q.name.All() && q.group.All() && (q.whole || !q.nonEmpty) {
		_, total = store.Services(q.namespace, "", 0, 0)
		from, to := modern.PageOf(q.page.number, q.page.size, total)
		keys, _ := store.Services(q.namespace, "", from, to-from)
		return a.views(keys), total, nil
	}
	keys, err := a.found(q)
	if err != nil {
		return nil, 0, err
	}
	if q.nonEmpty && !q.whole {
		keys = a.nonEmpty(keys)
	}
	from, to := modern.PageOf(q.page.number, q.page.size, len(keys))
	return a.views(keys[from:to]), len(keys), nil
}

// found returns the services whose names are found.
func (a *API) found(q *serviceQuery) ([]registry.ServiceKey, error) {
	keys, _ := a.Core.Store().Services(q.namespace, "", 0, -1)
	kept := keys[:0]
	for _, key := range keys {
		ok, err := q.name.Matches(key.Name)
		if err == nil && ok {
			ok, err = q.group.Matches(key.Group)
		}
		if err != nil {
			return nil, err
		}
		if ok {
			kept = append(kept, key)
		}
	}
	return kept, nil
}

func (a *API) nonEmpty(keys []registry.ServiceKey) []registry.ServiceKey {
	kept := keys[:0]
	for _, key := range keys {
		if view := a.Core.Store().View(key); view != nil && len(view.Instances) > 0 {
			kept = append(kept, key)
		}
	}
	return kept
}

// views returns the views of services, without those that have gone meanwhile.
func (a *API) views(keys []registry.ServiceKey) []*registry.View {
	var views []*registry.View
	for _, key := range keys {
		if view := a.Core.Store().View(key); view != nil {
			views = append(views, view)
		}
	}
	return views
}

// appendCounts appends a service with its counts. Whether the protect threshold is
// reached is a text, and disabled instances count too.
func appendCounts(b []byte, view *registry.View) []byte {
	healthy := 0
	for _, i := range view.Instances {
		if i.Healthy {
			healthy++
		}
	}
	sel := registry.Select(view, registry.Query{Policy: registry.PolicyV1, WithDisabled: true})
	b = modern.AppendText(append(b, '{'), "name", view.Key.Name)
	b = modern.AppendText(b, "groupName", view.Key.Group)
	b = strconv.AppendInt(append(b, `,"clusterCount":`...), int64(len(modern.UsedClusters(view))), 10)
	b = strconv.AppendInt(append(b, `,"ipCount":`...), int64(len(view.Instances)), 10)
	b = strconv.AppendInt(append(b, `,"healthyInstanceCount":`...), int64(healthy), 10)
	return append(modern.AppendText(b, "triggerFlag", strconv.FormatBool(sel.Protected)), '}')
}

// appendWhole appends a service with its instances. What the original leaves out of
// this list is null, or has its default (recorded: v3-service-list-instances).
func appendWhole(b []byte, view *registry.View) []byte {
	b = modern.AppendText(append(b, `{"namespaceId":null`...), "serviceName", view.Key.Name)
	b = modern.AppendText(b, "groupName", view.Key.Group)
	b = append(b, `,"clusterMap":{`...)
	for n, c := range modern.UsedClusters(view) {
		if n > 0 {
			b = append(b, ',')
		}
		b = registry.AppendJSONString(b, c.Name)
		b = append(b, `:{"clusterName":null,"healthChecker":null,"healthyCheckPort":80,"useInstancePortForCheck":true,"metadata":null,"hosts":`...)
		b = append(hosts.AppendAll(b, c.Instances, view.Grouped), '}')
	}
	b = view.Info.Metadata.AppendJSON(append(b, `},"metadata":`...))
	return append(b, `,"protectThreshold":0.0,"selector":null,"ephemeral":null}`...)
}
