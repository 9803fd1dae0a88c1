package legacy

import (
	"context"
	"math"
	"strconv"

	"github.com/rollcall-registry/rollcall/internal/httpapi"
	"github.com/rollcall-registry/rollcall/internal/naming"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// regService lists an instance. Its service and its cluster come into being with
// it; settings of a service that the call carries count for a new one.
func (a *API) regService(x *httpapi.Exchange) {
	p := x.Params()
	key, i, err := registration(p)
	if err != nil {
		a.fail(x, err)
		return
	}
	by := cause(x, "regService")
	if a.core.Store().View(key) == nil && declaresDom(p) {
		err = a.createDom(x.Context(), by, key, p)
	}
	if err == nil {
		err = a.list(x.Context(), by, key, i)
	}
	switch {
	case isRefusal(err, registry.InvalidServiceName): // 0.9 has tried to make it, in vain
		a.fail(x, illegal("dom not found: %s", shown(key)))
	case isRefusal(err, registry.InvalidWeight):
		a.fail(x, illegal("malfomed ip config: %s", describe(&i)))
	case err != nil:
		a.fail(x, err)
	default:
		x.OK()
	}
}

// registration decodes the instance of regService.
func registration(p *httpapi.Params) (key registry.ServiceKey, i registry.Instance, err error) {
	if key, err = domOf(p, "serviceName"); err != nil {
		return key, i, err
	}
	if i.IP, i.Port, err = addressOf(p); err != nil {
		return key, i, err
	}
	i.Cluster = clusterOf(p)
	i.Enabled, i.Healthy = p.BoolLenient("enable", true), p.BoolLenient("healthy", true)
	if i.Weight, err = p.Float("weight", 1); err != nil {
		return key, i, err
	}
	if i.App, err = appOf(p, "DEFAULT"); err != nil {
		return key, i, err
	}
	i.Metadata, err = registry.ParseMetadata(p.Optional("metadata", ""))
	return key, i, err
}

// addressOf returns the address that a call must name.
func addressOf(p *httpapi.Params) (ip string, port int32, err error) {
	if ip, err = p.Required("ip"); err != nil {
		return "", 0, err
	}
	n, err := p.RequiredInt("port")
	return ip, int32(n), err
}

// clusterOf returns the cluster of an instance: cluster, or when that is blank
// clusterName, or when both are the default one.
func clusterOf(p *httpapi.Params) string {
	return p.Optional("cluster", p.Optional("clusterName", registry.DefaultCluster))
}

// maxApp bounds the name of an application, in bytes.
const maxApp = 512

func appOf(p *httpapi.Params, def string) (string, error) {
	name := p.Optional("app", def)
	if len(name) > maxApp {
		return "", illegal("Param 'app' is illegal, it has %d bytes and may have %d.", len(name), maxApp)
	}
	return name, nil
}

// list registers an instance as its service has them kept alive. To 0.9 an
// address and port is one instance, so that one in another cluster has moved.
func (a *API) list(ctx context.Context, by registry.Cause, key registry.ServiceKey, i registry.Instance) error {
	view := a.core.Store().View(key)
	mode := modeOf(view)
	i.Ephemeral = mode.beats
	if mode == unwatched && view.Cluster(i.Cluster) == nil {
		if err := a.core.SetCluster(ctx, by, key, i.Cluster, unwatch); err != nil {
			return err
		}
	}
	if err := a.core.Register(ctx, by, naming.Registration{Service: key, Instance: i, CheckService: checkName}); err != nil {
		return err
	}
	for _, other := range at(view, i.IP, i.Port) {
		if other.Cluster == i.Cluster {
			continue
		}
		if err := a.unlist(ctx, by, key, other); err != nil {
			return err
		}
	}
	return nil
}

// unlist takes the registration of an instance away, whether it is kept alive by
// beats or by the durable store.
func (a *API) unlist(ctx context.Context, by registry.Cause, key registry.ServiceKey, i *registry.Instance) error {
	for _, ephemeral := range []bool{true, false} {
		if err := a.core.Deregister(ctx, by, key, i.Key(), ephemeral); err != nil {
			return err
		}
	}
	return nil
}

// deRegService takes an instance away, whatever its cluster. What is not there is
// no error.
func (a *API) deRegService(x *httpapi.Exchange) {
	p := x.Params()
	ip, port, err := addressOf(p)
	if err != nil {
		a.fail(x, err)
		return
	}
	key, err := domOf(p, "serviceName")
	if err != nil {
		a.fail(x, err)
		return
	}
	for _, i := range at(a.core.Store().View(key), ip, port) {
		if err := a.unlist(x.Context(), cause(x, "deRegService"), key, i); err != nil {
			a.fail(x, err)
			return
		}
	}
	x.OK()
}

// describe prints an instance as 0.9 does in its errors:
// ip:port:unknown_weight_healthy_marked_cluster, without a port that is not above
// 0.
func describe(i *registry.Instance) string {
	address := i.IP
	if i.Port > 0 {
		address += ":" + portText(i.Port)
	}
	weight := "NaN"
	if !math.IsNaN(i.Weight) {
		weight = string(appendNumber(nil, i.Weight, 64))
	}
	return address + ":unknown_" + weight + "_" + strconv.FormatBool(i.Healthy) + "_" +
		strconv.FormatBool(i.Marked) + "_" + i.Cluster
}
