package v1

import (
	"strconv"

	"github.com/rollcall-registry/rollcall/internal/httpapi"
	"github.com/rollcall-registry/rollcall/internal/httpapi/values"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

func (a *API) catalogRoutes() []httpapi.Route {
	const base = "/v1/ns/catalog"
	return []httpapi.Route{
		httpapi.Get(base+"/service", httpapi.Naming, a.catalogService),
		httpapi.Get(base+"/services", httpapi.Naming, a.catalogServices),
		httpapi.Get(base+"/instances", httpapi.Naming, a.catalogInstances),
		httpapi.Get(base+"/rt/service", httpapi.Open, a.probeTimes),
	}
}

// catalogService answers GET /catalog/service: the settings of a service and of
// its clusters, for the console.
func (a *API) catalogService(x *httpapi.Exchange) {
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
	b := append(x.Scratch[:0], `{"service":{"name":`...)
	b = registry.AppendJSONString(b, plainName(key))
	b = append(b, `,"protectThreshold":`...)
	b = appendFloat(b, view.Info.ProtectThreshold)
	b = append(b, `,"groupName":`...)
	b = registry.AppendJSONString(b, key.Group)
	b = append(b, `,"selector":`...)
	b = appendSelector(b, view.Info.Selector)
	b = append(b, `,"metadata":`...)
	b = view.Info.Metadata.AppendJSON(b)
	b = append(b, `},"clusters":[`...)
	used := usedClusters(view)
	for n, c := range view.Clusters {
		if n > 0 {
			b = append(b, ',')
		}
		b = appendCatalogCluster(b, view.Grouped, c, !used[c.Name])
	}
	x.Scratch = append(b, "]}"...)
	x.JSON(200, x.Scratch)
}

// usedClusters returns the clusters that have instances.
func usedClusters(view *registry.View) map[string]bool {
	used := make(map[string]bool, len(view.Clusters))
	for _, i := range view.Instances {
		used[i.Cluster] = true
	}
	return used
}

// catalogPort is what 1.4.8 shows as defaultPort and defaultCheckPort of every
// cluster: fields that nothing there sets. Source: Nacos api.naming.pojo.Cluster.
const catalogPort = "80"

func appendCatalogCluster(b []byte, grouped string, c *registry.Cluster, empty bool) []byte {
	b = append(b, `{"serviceName":`...)
	b = registry.AppendJSONString(b, grouped)
	b = append(b, `,"name":`...)
	b = registry.AppendJSONString(b, c.Name)
	b = append(b, `,"healthChecker":`...)
	b = values.AppendChecker(b, c.Checker)
	b = append(b, `,"defaultPort":`+catalogPort+`,"defaultCheckPort":`+catalogPort+`,"useIPPort4Check":`...)
	b = strconv.AppendBool(b, c.UseInstancePort)
	b = append(b, `,"metadata":`...)
	b = c.Metadata.AppendJSON(b)
	b = append(b, `,"sitegroup":`...)
	b = registry.AppendJSONString(b, c.SiteGroup)
	b = append(b, `,"defCkport":`...)
	b = strconv.AppendInt(b, int64(c.CheckPort), 10)
	b = append(b, `,"empty":`...)
	b = strconv.AppendBool(b, empty)
	b = append(b, `,"defIPPort":`...)
	b = strconv.AppendInt(b, int64(c.DefaultPort), 10)
	return append(b, '}')
}

// probeTimes answers GET /catalog/rt/service: how long probes of each cluster
// take, in milliseconds.
func (a *API) probeTimes(x *httpapi.Exchange) {
	key, err := namedService(x.Params())
	if err != nil {
		a.fail(x, err)
		return
	}
	view := a.core.Store().View(key)
	if view == nil {
		a.failAs(x, registry.ServiceNotFound, 400,
			registry.Refuse(registry.ServiceNotFound, "serviceName", shown(key), "request service doesn't exist"))
		return
	}
	b := append(x.Scratch[:0], `{"clusters":[`...)
	for n, c := range view.Clusters {
		if n > 0 {
			b = append(b, ',')
		}
		rt := a.probes.ProbeTime(key, c.Name)
		b = append(b, `{"name":`...)
		b = registry.AppendJSONString(b, c.Name)
		b = append(b, `,"checkRTBest":`...)
		b = strconv.AppendInt(b, rt.Best, 10)
		b = append(b, `,"checkRTWorst":`...)
		b = strconv.AppendInt(b, rt.Worst, 10)
		b = append(b, `,"checkRTNormalized":`...)
		b = strconv.AppendInt(b, rt.Normalized, 10)
		b = append(b, '}')
	}
	x.Scratch = append(b, "]}"...)
	x.JSON(200, x.Scratch)
}
