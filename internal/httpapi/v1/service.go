package v1

import (
	"strings"

	"github.com/rollcall-registry/rollcall/internal/httpapi"
	"github.com/rollcall-registry/rollcall/internal/httpapi/values"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

func (a *API) serviceRoutes() []httpapi.Route {
	const base = "/v1/ns/service"
	return []httpapi.Route{
		httpapi.Change("POST", base, httpapi.Naming, a.createService),
		httpapi.Change("PUT", base, httpapi.Naming, a.updateService),
		httpapi.Change("DELETE", base, httpapi.Naming, a.deleteService),
		httpapi.Get(base, httpapi.Naming, a.service),
		httpapi.Get(base+"/list", httpapi.Naming, a.serviceList),
		httpapi.Get(base+"/names", httpapi.Naming, a.serviceNames),
		httpapi.Get(base+"/subscribers", httpapi.Naming, a.subscribers),
		httpapi.Get(base+"/selector/types", httpapi.Naming, a.selectorTypes),
		httpapi.Change("PUT", base+"/checksum", httpapi.Open, a.checksum),
		httpapi.Change("POST", base+"/status", httpapi.Open, a.peerOnly),
	}
}

// boundService returns the service that a call must name whose parameters the
// original binds by annotation. There absence is a fault of its framework, and a
// blank name is a service that does not exist: the zero key.
func boundService(p *httpapi.Params) (registry.ServiceKey, error) {
	group, name, found := groupedName(p)
	if !found {
		_, err := p.Bound("serviceName")
		return registry.ServiceKey{}, err
	}
	return registry.ServiceKey{Namespace: namespace(p), Group: group, Name: name}, nil
}

// shown returns the grouped name of a service for a message.
func shown(key registry.ServiceKey) string {
	if key.Name == "" && key.Group == "" {
		return ""
	}
	return key.Grouped()
}

// createService answers POST /service. A service that registrations have made
// exists too.
func (a *API) createService(x *httpapi.Exchange) {
	p := x.Params()
	key, err := newService(p)
	if err != nil {
		a.fail(x, err)
		return
	}
	var info registry.ServiceInfo
	if info.ProtectThreshold, err = boundThreshold(p); err == nil {
		err = serviceSettings(p, &info)
	}
	if err == nil {
		err = a.core.CreateService(x.Context(), cause(x, "create service"), key, info, nil)
	}
	if err != nil {
		a.failAs(x, registry.InvalidSelector, 500, err)
		return
	}
	x.OK()
}

// newService returns the name of a service to make. Unlike in 1.4.8 it must have
// both halves: a service without one breaks lists there.
func newService(p *httpapi.Params) (registry.ServiceKey, error) {
	key, err := boundService(p)
	if err != nil {
		return key, err
	}
	if shown(key) == "" {
		return key, registry.Refuse(registry.InvalidServiceName, "serviceName", "",
			"dom name can only have these characters: 0-9a-zA-Z-._:, current: ")
	}
	return checkedKey(key.Namespace, key.Group, key.Name)
}

// updateService answers PUT /service: threshold, metadata and selector are
// replaced, and what is not sent is emptied.
func (a *API) updateService(x *httpapi.Exchange) {
	p := x.Params()
	key, err := namedService(p)
	if err != nil {
		a.fail(x, err)
		return
	}
	var next registry.ServiceInfo
	if next.ProtectThreshold, err = requiredThreshold(p); err == nil {
		err = serviceSettings(p, &next)
	}
	if err == nil {
		err = a.core.UpdateService(x.Context(), cause(x, "update service"), key, func(info *registry.ServiceInfo) {
			info.ProtectThreshold, info.Metadata, info.Selector = next.ProtectThreshold, next.Metadata, next.Selector
		})
	}
	if err != nil {
		a.failAs(x, registry.InvalidSelector, 500, err)
		return
	}
	x.OK()
}

// namedService returns the service that a call must name, without a check of its
// form: one that is malformed is not there.
func namedService(p *httpapi.Params) (registry.ServiceKey, error) {
	group, name, found := groupedName(p)
	if !found {
		if _, err := p.Required("serviceName"); err != nil {
			return registry.ServiceKey{}, err
		}
	}
	return registry.ServiceKey{Namespace: namespace(p), Group: group, Name: name}, nil
}

// deleteService answers DELETE /service. Unlike 0.9 and 2.x, 1.4.8 deletes a
// service with all that is in it.
func (a *API) deleteService(x *httpapi.Exchange) {
	key, err := boundService(x.Params())
	if err == nil && shown(key) == "" {
		err = registry.Refuse(registry.ServiceNotFound, "serviceName", "", "specified service not exist, serviceName : ")
	}
	if err == nil {
		err = a.core.DeleteService(x.Context(), cause(x, "delete service"), key, false)
	}
	if err != nil {
		a.failAs(x, registry.ServiceNotFound, 400, err)
		return
	}
	x.OK()
}

// service answers GET /service.
func (a *API) service(x *httpapi.Exchange) {
	key, err := boundService(x.Params())
	if err != nil {
		a.fail(x, err)
		return
	}
	view, err := a.existing(key)
	if err != nil {
		a.fail(x, err)
		return
	}
	b := append(x.Scratch[:0], `{"name":`...)
	b = registry.AppendJSONString(b, plainName(key))
	b = append(b, `,"namespaceId":`...)
	b = registry.AppendJSONString(b, key.Namespace)
	b = append(b, `,"protectThreshold":`...)
	b = appendFloat(b, view.Info.ProtectThreshold)
	b = append(b, `,"metadata":`...)
	b = view.Info.Metadata.AppendJSON(b)
	b = append(b, `,"selector":`...)
	b = appendSelector(b, view.Info.Selector)
	b = append(b, `,"groupName":`...)
	b = registry.AppendJSONString(b, key.Group)
	b = append(b, `,"clusters":[`...)
	for n, c := range view.Clusters {
		if n > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"name":`...)
		b = registry.AppendJSONString(b, c.Name)
		b = append(b, `,"healthChecker":`...)
		b = values.AppendChecker(b, c.Checker)
		b = append(b, `,"metadata":`...)
		b = c.Metadata.AppendJSON(b)
		b = append(b, '}')
	}
	x.Scratch = append(b, "]}"...)
	x.JSON(200, x.Scratch)
}

// existing returns the view of a service, or the refusal with which 1.4.8's
// views of a service answer when it is not there.
func (a *API) existing(key registry.ServiceKey) (*registry.View, error) {
	view := a.core.Store().View(key)
	if view == nil {
		return nil, registry.Refuse(registry.ServiceNotFound, "serviceName", shown(key), "service %s is not found!", shown(key))
	}
	return view, nil
}

// checksum answers PUT /service/checksum with what a list shows as checksum,
// which here is never out of date.
func (a *API) checksum(x *httpapi.Exchange) {
	key, err := namedService(x.Params())
	if err != nil {
		a.fail(x, err)
		return
	}
	view := a.core.Store().View(key)
	if view == nil {
		a.fail(x, registry.Refuse(registry.ServiceNotFound, "serviceName", shown(key), "serviceName not found: %s", shown(key)))
		return
	}
	b := append(x.Scratch[:0], `{"checksum":"`...)
	b = appendChecksum(b, view)
	x.Scratch = append(b, `"}`...)
	x.JSON(200, x.Scratch)
}

// selectorTypes answers GET /service/selector/types, which is of 2.x: clients
// that ask for it get the selectors that work.
func (a *API) selectorTypes(x *httpapi.Exchange) {
	b := appendResult(x.Scratch[:0], resultOK, "")
	b = append(b, '[')
	for n, kind := range []string{registry.SelectorNone, registry.SelectorLabel} {
		if n > 0 {
			b = append(b, ',')
		}
		b = registry.AppendJSONString(b, kind)
	}
	x.Scratch = append(b, "]}"...)
	x.JSON(200, x.Scratch)
}

// serviceSettings decodes the metadata and the selector of a POST or PUT. What is
// not sent is empty.
func serviceSettings(p *httpapi.Params, info *registry.ServiceInfo) (err error) {
	if info.Metadata, err = registry.ParseMetadata(p.Optional("metadata", "")); err != nil {
		return err
	}
	text := p.Optional("selector", "")
	if strings.TrimSpace(text) == "" {
		info.Selector, err = registry.NewSelector(registry.SelectorNone, "")
		return err
	}
	s, err := values.ParseEscapedSelector(text)
	if err != nil {
		return err
	}
	info.Selector, err = registry.NewSelector(s.Kind, s.Expression)
	return err
}
