package v3

import (
	"cmp"

	"github.com/rollcall-registry/rollcall/internal/hosts"
	"github.com/rollcall-registry/rollcall/internal/httpapi"
	"github.com/rollcall-registry/rollcall/internal/httpapi/modern"
	"github.com/rollcall-registry/rollcall/internal/httpapi/result"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// registerOrBeat answers POST /client/ns/instance: a registration, or with
// heartBeat the beat of an instance that is there.
func (a *API) registerOrBeat(x *httpapi.Exchange) {
	r, err := modern.InstanceForm(x, true)
	f := result.NewParams(x)
	isBeat := f.Bool("heartBeat", result.JavaPlainBool, false)
	if err := cmp.Or(err, f.Err()); err != nil {
		a.Fail(x, err)
		return
	}
	if !isBeat {
		a.Register(x)
		return
	}
	instance := a.Core.Locate(r.Service, r.Instance.Key())
	answer, err := a.Core.Beat(x.Context(), a.Cause(x, "beat"), r.Service, instance, nil)
	if answer.Unnamed {
		a.Core.Introduce(r.Service, instance, r.Agent)
	}
	switch {
	case err != nil:
		a.Fail(x, err)
	case !answer.Known:
		a.FailCode(x, result.InstanceNotFound)
	default:
		a.Done(x, nil)
	}
}

// patch answers PUT /admin/ns/instance/partial. Weight and enabled that are not sent
// have their defaults, as in any form of an instance; metadata is laid over the
// client's when there is any.
func (a *API) patch(x *httpapi.Exchange) {
	r, err := modern.InstanceForm(x, true)
	if err != nil {
		a.Fail(x, err)
		return
	}
	i := &r.Instance
	over := registry.Override{Weight: &i.Weight, Enabled: &i.Enabled}
	if i.Metadata != "" {
		over.Extra = &i.Metadata
	}
	err = registry.CheckWeight(i.Weight)
	if err == nil {
		err = a.Patch(x, r.Service, i.Key(), over)
	}
	a.Done(x, err)
}

// instance answers GET /admin/ns/instance. Health is what the instance has, whatever
// a list would show under the protect threshold.
func (a *API) instance(x *httpapi.Exchange) {
	r, err := modern.InstanceForm(x, true)
	if err != nil {
		a.Fail(x, err)
		return
	}
	view, i, err := a.Find(r.Service, r.Instance.Key())
	if err != nil {
		a.Fail(x, err)
		return
	}
	a.Data(x, hosts.Append(result.Begin(x.Scratch[:0]), i, i.Healthy, view.Grouped))
}

// listForm is a decoded list of instances.
type listForm struct {
	key         registry.ServiceKey
	clusters    string
	healthyOnly bool
}

func readList(x *httpapi.Exchange) (listForm, error) {
	f := result.NewForm(x, "instanceListForm")
	l := listForm{
		healthyOnly: f.Bool("healthyOnly", result.JavaBoolean, false),
		clusters:    f.Text("clusterName", registry.DefaultCluster),
		key:         modern.ParseService(f),
	}
	return l, f.Err()
}

// list answers GET /client/ns/instance/list with an array and nothing else: enabled
// instances, under the protect threshold. healthyOnly has no effect (live 3.0.3).
func (a *API) list(x *httpapi.Exchange) {
	l, err := readList(x)
	if err != nil {
		a.Fail(x, err)
		return
	}
	view, err := a.Core.View(l.key)
	if err != nil {
		a.Fail(x, err)
		return
	}
	list := hosts.Select(a.Encoder, view, hosts.Filter{Clusters: l.clusters})
	a.Data(x, append(result.Begin(x.Scratch[:0]), list.Array...))
}

// adminList answers GET /admin/ns/instance/list: all instances of one cluster.
func (a *API) adminList(x *httpapi.Exchange) {
	l, err := readList(x)
	if err != nil {
		a.Fail(x, err)
		return
	}
	view, list, err := a.inCluster(l)
	if err != nil {
		a.Fail(x, err)
		return
	}
	a.Data(x, hosts.AppendAll(result.Begin(x.Scratch[:0]), list, view.Grouped))
}

// consoleList answers GET /console/ns/instance/list: a page of what adminList shows.
// What is no page is the first one.
func (a *API) consoleList(x *httpapi.Exchange) {
	l, err := readList(x)
	if err != nil {
		a.Fail(x, err)
		return
	}
	f := result.NewForm(x, "pageForm")
	p := page{f.Int("pageNo", result.JavaPlainInt, 1), f.Int("pageSize", result.JavaPlainInt, defaultPageSize)}
	if err := f.Err(); err != nil {
		a.Fail(x, err)
		return
	}
	l.healthyOnly = false // has no effect here
	view, list, err := a.inCluster(l)
	if err != nil {
		a.Fail(x, err)
		return
	}
	from, to := modern.PageOf(p.number, p.size, len(list))
	b := p.begin(result.Begin(x.Scratch[:0]), len(list))
	a.Data(x, append(hosts.AppendAll(b, list[from:to], view.Grouped), '}'))
}

// inCluster returns the instances of the one cluster that is asked for. One without
// instances is not there.
func (a *API) inCluster(l listForm) (*registry.View, []*registry.Instance, error) {
	view := a.Core.Store().View(l.key)
	if view == nil {
		return nil, nil, missingService(l.key)
	}
	var list []*registry.Instance
	found := false
	for _, i := range view.Instances {
		if i.Cluster != l.clusters {
			continue
		}
		found = true
		if !l.healthyOnly || i.Healthy {
			list = append(list, i)
		}
	}
	if !found {
		return nil, nil, registry.Refuse(registry.ClusterNotFound, "clusterName", l.clusters, "cluster %s is not found!", l.clusters)
	}
	return view, list, nil
}

// missingService is the refusal of calls that look into a service.
func missingService(key registry.ServiceKey) error {
	return &result.Fault{Status: 404, Code: result.ServerError, Data: "service " + key.Grouped() + " is not found!"}
}
