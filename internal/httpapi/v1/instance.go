package v1

import (
	"strconv"

	"github.com/rollcall-registry/rollcall/internal/httpapi"
	"github.com/rollcall-registry/rollcall/internal/naming"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// register answers POST /instance: the instance is listed, or what was
// registered of it before is replaced.
func (a *API) register(x *httpapi.Exchange) {
	r, err := a.registration(x.Params())
	r.Agent = x.UserAgent()
	if err == nil {
		err = a.core.Register(x.Context(), cause(x, "register"), r)
	}
	if err != nil {
		a.fail(x, err)
		return
	}
	x.OK()
}

// deregister answers DELETE /instance. What is not there is no error.
func (a *API) deregister(x *httpapi.Exchange) {
	p := x.Params()
	key, instance, err := target(p)
	if err == nil {
		instance.Cluster = cluster(p)
		err = a.core.Deregister(x.Context(), cause(x, "deregister"), key, instance, a.ephemeral(p))
	}
	if err != nil {
		a.fail(x, err)
		return
	}
	x.OK()
}

// replace answers PUT /instance. Java clients of 1.0 and later, and those that
// pose as such, mean an instance that is there; all others also register by it.
func (a *API) replace(x *httpapi.Exchange) {
	p := x.Params()
	r, err := a.registration(p)
	r.Agent = x.UserAgent()
	if err == nil {
		err = a.core.Replace(x.Context(), cause(x, "update"), naming.Replacement{
			Registration: r,
			Strict:       x.Agent().GroupedNames(),
			AnyKind:      p.Optional("ephemeral", "") == "",
		})
	}
	if err != nil {
		a.fail(x, err)
		return
	}
	x.OK()
}

// patch answers PATCH /instance: what is sent and not blank is changed.
func (a *API) patch(x *httpapi.Exchange) {
	change, err := patchOf(x.Params())
	if err == nil {
		err = a.core.Patch(x.Context(), cause(x, "patch"), change)
	}
	if err != nil {
		a.failAs(x, registry.InstanceNotFound, 400, err)
		return
	}
	x.OK()
}

func patchOf(p *httpapi.Params) (naming.Patch, error) {
	key, instance, err := target(p)
	if err != nil {
		return naming.Patch{}, err
	}
	instance.Cluster = cluster(p)
	change := naming.Patch{Service: key, Instance: instance}
	if p.Optional("weight", "") != "" {
		w, err := weight(p)
		if err != nil {
			return naming.Patch{}, err
		}
		change.Override.Weight = &w
	}
	if text := p.Optional("metadata", ""); text != "" {
		m, err := registry.ParseMetadata(text)
		if err != nil {
			return naming.Patch{}, err
		}
		change.Override.Metadata = &m
	}
	if p.Optional("app", "") != "" {
		name, err := app(p)
		if err != nil {
			return naming.Patch{}, err
		}
		change.Override.App = &name
	}
	if p.Optional("enabled", "") != "" {
		change.Override.Enabled = new(p.BoolLenient("enabled", true))
	}
	if p.Optional("healthy", "") != "" {
		change.Healthy = new(p.BoolLenient("healthy", true))
	}
	return change, nil
}

// instance answers GET /instance. Health is what the instance has, whatever a
// list would show under the protect threshold.
func (a *API) instance(x *httpapi.Exchange) {
	p := x.Params()
	key, id, err := target(p)
	if err != nil {
		a.fail(x, err)
		return
	}
	id.Cluster = p.Optional("clusterName", registry.DefaultCluster) // "cluster" is no alias here (recorded: detail-cluster)
	view, i, err := a.core.Find(key, id)
	if err != nil {
		a.fail(x, err)
		return
	}
	b := append(x.Scratch[:0], `{"service":`...)
	b = registry.AppendJSONString(b, view.Grouped)
	b = append(b, `,"ip":`...)
	b = registry.AppendJSONString(b, i.IP)
	b = append(b, `,"port":`...)
	b = strconv.AppendInt(b, int64(i.Port), 10)
	b = append(b, `,"clusterName":`...)
	b = registry.AppendJSONString(b, i.Cluster)
	b = append(b, `,"weight":`...)
	b = appendDouble(b, i.Weight)
	b = append(b, `,"healthy":`...)
	b = strconv.AppendBool(b, i.Healthy)
	b = append(b, `,"instanceId":`...)
	b = appendInstanceID(b, i, view.Grouped)
	b = append(b, `,"metadata":`...)
	b = i.Metadata.AppendJSON(b)
	b = append(b, '}')
	x.Scratch = b
	x.JSON(200, b)
}

// instanceStatuses answers GET /instance/statuses: addresses and health of a
// service's instances, for the console of old.
func (a *API) instanceStatuses(x *httpapi.Exchange) {
	key, err := statusesKey(x.Params())
	if err != nil {
		a.fail(x, err)
		return
	}
	view := a.core.Store().View(key)
	if view == nil {
		a.fail(x, registry.Refuse(registry.ServiceNotFound, "key", key.Name, "service: %s not found.", key.Grouped()))
		return
	}
	b := append(x.Scratch[:0], `{"ips":[`...)
	for n, i := range view.Instances {
		if n > 0 {
			b = append(b, ',')
		}
		b = append(b, '"')
		start := len(b)
		b = append(b, i.IP...)
		b = append(b, ':')
		b = strconv.AppendInt(b, int64(i.Port), 10)
		b = append(b, '_')
		b = strconv.AppendBool(b, i.Healthy)
		b = endString(b, start)
	}
	b = append(b, "]}"...)
	x.Scratch = b
	x.JSON(200, b)
}
