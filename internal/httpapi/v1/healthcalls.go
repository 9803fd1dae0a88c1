package v1

import (
	"strconv"

	"github.com/rollcall-registry/rollcall/internal/httpapi"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

func (a *API) healthRoutes() []httpapi.Route {
	const base = "/v1/ns/health"
	return []httpapi.Route{
		httpapi.Change("PUT", base, httpapi.Naming, a.setHealth),
		httpapi.Change("PUT", base+"/instance", httpapi.Naming, a.setHealth),
		httpapi.Get(base+"/server", httpapi.Open, a.hello),
		// The list of probes, which 1.4.8 has at a path that it does not serve for want
		// of a slash (recorded: health-server).
		httpapi.Get("/v1/ns/healthcheckers", httpapi.Open, httpapi.NotFound),
	}
}

// setHealth answers PUT /health: somebody outside watches over the instances of a
// cluster that nobody probes here. One that is not there is no error.
func (a *API) setHealth(x *httpapi.Exchange) {
	p := x.Params()
	key, instance, err := target(p)
	if err != nil {
		a.fail(x, err)
		return
	}
	flag := p.Optional("healthy", p.Optional("valid", ""))
	if flag == "" {
		a.fail(x, &httpapi.ParamError{Fault: httpapi.ParamMissing, Name: "healthy"})
		return
	}
	instance.Cluster = p.Optional("clusterName", registry.DefaultCluster)
	if err := a.core.SetHealth(x.Context(), cause(x, "set health"), key, instance, httpapi.LenientBool(flag)); err != nil {
		a.fail(x, err)
		return
	}
	x.OK()
}

// hello answers GET /health/server, the sign of life of old.
func (a *API) hello(x *httpapi.Exchange) {
	text := "Hello! I am Nacos-Naming and healthy! total services: raft " +
		strconv.FormatInt(a.core.Store().Counts().Services, 10) +
		", local port:" + strconv.Itoa(a.members.Self().Port)
	b := append(x.Scratch[:0], `{"msg":`...)
	b = registry.AppendJSONString(b, text)
	x.Scratch = append(b, '}')
	x.JSON(200, x.Scratch)
}
