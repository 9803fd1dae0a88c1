package legacy

import (
	"cmp"
	"slices"
	"strings"

	"github.com/rollcall-registry/rollcall/internal/httpapi"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// domOf returns the service that the named parameter must hold. Its strings, as
// those of all decoders of this package, are memory of the request.
func domOf(p *httpapi.Params, param string) (registry.ServiceKey, error) {
	name, err := p.Required(param)
	if err != nil {
		return registry.ServiceKey{}, err
	}
	return domNamed(registry.NamespaceID(p.Optional("namespaceId", "")), name), nil
}

// domNamed returns the service of a name. 0.9 has no groups: its services are
// those of the default group, and others are known by their grouped name.
func domNamed(namespace, name string) registry.ServiceKey {
	if group, rest, ok := registry.ParseGrouped(name); ok && group != "" && rest != "" {
		return registry.ServiceKey{Namespace: namespace, Group: group, Name: rest}
	}
	return registry.ServiceKey{Namespace: namespace, Group: registry.DefaultGroup, Name: name}
}

// shown returns the name by which this API shows and finds a service.
func shown(key registry.ServiceKey) string {
	if key.Group == registry.DefaultGroup {
		return key.Name
	}
	return key.Grouped()
}

// checkName reports whether 0.9 would create the service: its names have no @,
// and so no group.
func checkName(key registry.ServiceKey) error {
	err := registry.CheckServiceV1(key)
	if name := shown(key); name == "" || strings.Contains(name, "@") || isRefusal(err, registry.InvalidServiceName) {
		return registry.Refuse(registry.InvalidServiceName, "serviceName", name,
			"dom name can only have these characters: 0-9a-zA-Z.:_-; current: %s", name)
	}
	return err
}

// existing returns the view of a service, or what absent makes of its name.
func (a *API) existing(key registry.ServiceKey, absent func(name string) error) (*registry.View, error) {
	if view := a.core.Store().View(key); view != nil {
		return view, nil
	}
	return nil, absent(shown(key))
}

// existingDom returns the view of the service in the parameter dom. Absence is an
// illegal argument, as in most of the calls.
func (a *API) existingDom(p *httpapi.Params, absent string) (*registry.View, error) {
	key, err := domOf(p, "dom")
	if err != nil {
		return nil, err
	}
	return a.existing(key, func(string) error { return illegal("%s", absent) })
}

// at returns the instances of a view at an address and port, in whatever cluster:
// to 0.9 they are one. They share memory with the view.
func at(view *registry.View, ip string, port int32) []*registry.Instance {
	if view == nil {
		return nil
	}
	ip, port = registry.CanonicalIP(ip), max(port, 0)
	compare := func(i *registry.Instance, _ struct{}) int {
		return cmp.Or(strings.Compare(registry.CanonicalIP(i.IP), ip), cmp.Compare(max(i.Port, 0), port))
	}
	start, found := slices.BinarySearchFunc(view.Instances, struct{}{}, compare)
	if !found {
		return nil
	}
	end := start
	for end < len(view.Instances) && compare(view.Instances[end], struct{}{}) == 0 {
		end++
	}
	return view.Instances[start:end]
}
