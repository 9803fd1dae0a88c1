package v1

import (
	"math"
	"strings"

	"github.com/rollcall-registry/rollcall/internal/httpapi"
	"github.com/rollcall-registry/rollcall/internal/naming"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// target returns the service and the address that an instance call must name.
// The cluster is left out: calls differ in the parameters that may name it.
func target(p *httpapi.Params) (registry.ServiceKey, registry.InstanceKey, error) {
	key, err := serviceKey(p)
	if err != nil {
		return key, registry.InstanceKey{}, err
	}
	ip, err := p.Required("ip")
	if err != nil {
		return key, registry.InstanceKey{}, err
	}
	port, err := p.RequiredInt("port")
	return key, registry.InstanceKey{IP: ip, Port: int32(port)}, err
}

// registration decodes the instance of a POST or PUT. Fields that are not sent
// have the defaults of 1.x.
func (a *API) registration(p *httpapi.Params) (naming.Registration, error) {
	key, address, err := target(p)
	if err != nil {
		return naming.Registration{}, err
	}
	i := registry.Instance{
		IP: address.IP, Port: address.Port, Cluster: cluster(p),
		Healthy: p.BoolLenient("healthy", true), Enabled: enabled(p), Ephemeral: a.ephemeral(p),
	}
	if i.Weight, err = weight(p); err != nil {
		return naming.Registration{}, err
	}
	if i.App, err = app(p); err != nil {
		return naming.Registration{}, err
	}
	if i.Metadata, err = registry.ParseMetadata(p.Optional("metadata", "")); err != nil {
		return naming.Registration{}, err
	}
	return naming.Registration{Service: key, Instance: i}, nil
}

// enabled reads both spellings: Java 1.4 registers with enable and updates with
// enabled, which wins.
func enabled(p *httpapi.Params) bool {
	return p.BoolLenient("enabled", p.BoolLenient("enable", true))
}

// ephemeral returns the kind that a call means. Calls that do not say take the
// server's default.
func (a *API) ephemeral(p *httpapi.Params) bool {
	return p.BoolLenient("ephemeral", a.core.Store().Switches().DefaultInstanceEphemeral)
}

// weight returns the weight, 1 when there is none. Its range is for the core to
// judge, but for NaN, which 1.4.8 stores and then cannot write as JSON.
func weight(p *httpapi.Params) (float64, error) {
	w, err := p.Float("weight", 1)
	if err != nil {
		return 0, err
	}
	if math.IsNaN(w) {
		return 0, registry.Refuse(registry.InvalidArgument, "weight", "NaN", "Param 'weight' is illegal, it must be a number.")
	}
	return w, nil
}

// defaultApp is the application of an instance whose client names none. Source:
// Nacos InstanceController.
const defaultApp = "DEFAULT"

// maxApp bounds an application's name, in bytes: 1.4.8 takes any length.
const maxApp = 512

func app(p *httpapi.Params) (string, error) {
	name := p.Optional("app", defaultApp)
	if len(name) > maxApp {
		return "", registry.Refuse(registry.InvalidArgument, "app", "",
			"Param 'app' is illegal, it has %d bytes and may have %d.", len(name), maxApp)
	}
	return name, nil
}

// statusesKey reads namespace##group@@service, or group@@service in the default
// namespace.
func statusesKey(p *httpapi.Params) (registry.ServiceKey, error) {
	text, err := p.Bound("key")
	if err != nil {
		return registry.ServiceKey{}, err
	}
	const separator = "##"
	ns, rest, found := strings.Cut(text, separator)
	if !found {
		ns, rest = registry.DefaultNamespace, text
	}
	rest, _, _ = strings.Cut(rest, separator) // recorded: statuses-bad
	group, name, grouped := registry.ParseGrouped(rest)
	if !grouped {
		name = ""
	}
	return checkedKey(registry.NamespaceID(ns), group, name)
}
