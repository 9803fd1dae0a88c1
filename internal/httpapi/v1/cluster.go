package v1

import (
	"strconv"

	"github.com/rollcall-registry/rollcall/internal/httpapi"
	"github.com/rollcall-registry/rollcall/internal/httpapi/values"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

func (a *API) clusterRoutes() []httpapi.Route {
	return []httpapi.Route{httpapi.Change("PUT", "/v1/ns/cluster", httpapi.Naming, a.setCluster)}
}

// setCluster answers PUT /cluster: how the instances of a cluster are probed. The
// cluster need not be there, the service must.
func (a *API) setCluster(x *httpapi.Exchange) {
	p := x.Params()
	name, key, err := clusterName(p)
	if err != nil {
		a.fail(x, err)
		return
	}
	next, err := clusterSettings(p)
	if err == nil {
		err = a.core.SetCluster(x.Context(), cause(x, "set cluster"), key, name, func(c *registry.Cluster) {
			c.Checker, c.Metadata = next.Checker, next.Metadata
			c.CheckPort, c.DefaultPort = next.CheckPort, next.CheckPort // recorded: cluster-update
			c.UseInstancePort = next.UseInstancePort
		})
	}
	if err != nil {
		a.fail(x, err)
		return
	}
	x.OK()
}

func clusterName(p *httpapi.Params) (string, registry.ServiceKey, error) {
	name, err := p.Required("clusterName")
	if err != nil {
		return "", registry.ServiceKey{}, err
	}
	key, err := namedService(p)
	return name, key, err
}

func clusterSettings(p *httpapi.Params) (c registry.Cluster, err error) {
	port, err := p.Required("checkPort")
	if err != nil {
		return c, err
	}
	own, err := p.Required("useInstancePort4Check")
	if err != nil {
		return c, err
	}
	checker, err := p.Required("healthChecker")
	if err != nil {
		return c, err
	}
	// 1.4.8 reads text that is no number as 0, and cannot read that back.
	n, _ := strconv.ParseInt(port, 10, 32)
	c.CheckPort, c.UseInstancePort = int32(n), httpapi.LenientBool(own)
	if c.Checker, err = values.ParseChecker(checker); err != nil {
		return c, err
	}
	c.Metadata, err = registry.ParseMetadata(p.Optional("metadata", ""))
	return c, err
}
