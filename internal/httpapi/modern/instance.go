package modern

import (
	"errors"
	"math"

	"github.com/rollcall-registry/rollcall/internal/httpapi"
	"github.com/rollcall-registry/rollcall/internal/httpapi/result"
	"github.com/rollcall-registry/rollcall/internal/naming"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// InstanceForm reads an instance. Fields that are not sent have the defaults of
// 2.x; ephemeral is the default for the kind.
func InstanceForm(x *httpapi.Exchange, ephemeral bool) (naming.Registration, error) {
	f := result.NewForm(x, "instanceForm")
	i := registry.Instance{
		Cluster:   f.Text("clusterName", registry.DefaultCluster),
		Healthy:   f.Bool("healthy", result.JavaBoolean, true),
		Weight:    f.Float("weight", result.JavaDouble, 1),
		Enabled:   f.Bool("enabled", result.JavaBoolean, true),
		Ephemeral: f.Bool("ephemeral", result.JavaBoolean, ephemeral),
		HideID:    true,
	}
	if math.IsNaN(i.Weight) { // recorded: v2-register-weight-nan; no list could show it
		i.Weight = 1
	}
	key := ParseService(f)
	i.IP = f.Need("ip")
	i.Port = int32(f.NeedInt("port"))
	if err := f.Err(); err != nil {
		return naming.Registration{}, err
	}
	var err error
	i.Metadata, err = registry.ParseMetadata(f.Text("metadata", ""))
	return naming.Registration{Service: key, Instance: i, Agent: x.UserAgent()}.Modern(), err
}

// instanceForm reads an instance of the kind that the server takes by default.
func (a *API) instanceForm(x *httpapi.Exchange) (naming.Registration, error) {
	return InstanceForm(x, a.Core.Store().Switches().DefaultInstanceEphemeral)
}

// Register lists an instance, or replaces what was registered of it before.
func (a *API) Register(x *httpapi.Exchange) {
	r, err := a.instanceForm(x)
	if err == nil {
		err = a.Core.Register(x.Context(), a.Cause(x, "register"), r)
	}
	a.Done(x, err)
}

// Deregister takes an instance away, in whatever cluster it is. What is not there
// is no error.
func (a *API) Deregister(x *httpapi.Exchange) { a.deregister(x, func(float64) error { return nil }) }

// DeregisterStrict is Deregister as 2.x has it, which looks at the weight too.
func (a *API) DeregisterStrict(x *httpapi.Exchange) { a.deregister(x, registry.CheckWeight) }

func (a *API) deregister(x *httpapi.Exchange, check func(weight float64) error) {
	r, err := a.instanceForm(x)
	if err == nil {
		err = check(r.Instance.Weight)
	}
	if err == nil {
		i := &r.Instance
		err = a.Core.DeregisterAddress(x.Context(), a.Cause(x, "deregister"), r.Service, i.IP, i.Port, i.Ephemeral)
	}
	a.Done(x, err)
}

// Update changes what is shown of an instance.
func (a *API) Update(x *httpapi.Exchange) {
	r, err := a.instanceForm(x)
	a.update(x, r, err)
}

// UpdatePersistent is Update as the console has it, where an instance is persistent
// by default.
func (a *API) UpdatePersistent(x *httpapi.Exchange) {
	r, err := InstanceForm(x, false)
	a.update(x, r, err)
}

func (a *API) update(x *httpapi.Exchange, r naming.Registration, err error) {
	if err == nil {
		err = a.Core.Overlay(x.Context(), a.Cause(x, "update"), r)
	}
	if IsRefusal(err, registry.ServiceNotFound) {
		err = &result.Fault{Status: 400, Code: result.InstanceError, Data: "service not found, namespace: " +
			r.Service.Namespace + ", service: " + JavaService(r.Service, r.Instance.Ephemeral)}
	}
	a.Done(x, err)
}

// IsRefusal reports whether err is the core's refusal with that code.
func IsRefusal(err error, code registry.Code) bool {
	refusal, ok := errors.AsType[*registry.Error](err)
	return ok && refusal.Code == code
}

// Find returns an instance and the view that it is in, or the refusal with which
// 2.x and later answer when it is not there.
func (a *API) Find(key registry.ServiceKey, instance registry.InstanceKey) (*registry.View, *registry.Instance, error) {
	view := a.Core.Store().View(key)
	if view == nil || len(view.Instances) == 0 {
		return nil, nil, &result.Fault{
			Status: 404, Code: result.ResourceNotFound,
			Data: "no ips found for cluster " + instance.Cluster + " in service " + key.Grouped(),
		}
	}
	if i := view.Find(instance); i != nil {
		return view, i, nil
	}
	return nil, nil, &result.Fault{Status: 404, Code: result.ResourceNotFound, Data: "no matched ip found!"}
}

// Patch lays what is not nil over an instance that is there.
func (a *API) Patch(x *httpapi.Exchange, key registry.ServiceKey, instance registry.InstanceKey, over registry.Override) error {
	if _, _, err := a.Find(key, instance); err != nil {
		return err
	}
	return a.Core.Patch(x.Context(), a.Cause(x, "patch"), naming.Patch{Service: key, Instance: instance, Override: over})
}
