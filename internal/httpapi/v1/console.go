package v1

import (
	"github.com/rollcall-registry/rollcall/internal/httpapi"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

func (a *API) consoleRoutes() []httpapi.Route {
	const base = "/v1/console"
	return []httpapi.Route{
		httpapi.Get(base+"/namespaces", httpapi.Open, a.namespaceViews),
		httpapi.Change("POST", base+"/namespaces", resourceNamespaces, a.createNamespace),
		httpapi.Change("PUT", base+"/namespaces", resourceNamespaces, a.updateNamespace),
		httpapi.Change("DELETE", base+"/namespaces", resourceNamespaces, a.deleteNamespace),
		httpapi.Get(base+"/server/state", httpapi.Open, a.serverState),
		httpapi.Get(base+"/health/liveness", httpapi.Open, a.liveness),
		httpapi.Get(base+"/health/readiness", httpapi.Open, a.readiness),
	}
}

// serverState answers GET /console/server/state. A function mode of null means
// that everything is served, which consoles ask for; calls that are not naming
// have answers of their own.
func (a *API) serverState(x *httpapi.Exchange) {
	mode := "standalone"
	if len(a.members.Members()) > 1 {
		mode = "cluster"
	}
	b := append(x.Scratch[:0], `{"version":"`+Version+`","standalone_mode":`...)
	b = registry.AppendJSONString(b, mode)
	x.Scratch = append(b, `,"function_mode":null}`...)
	x.JSON(200, x.Scratch)
}

// liveness answers GET /console/health/liveness: the process serves.
func (a *API) liveness(x *httpapi.Exchange) { x.Text(200, "OK") }

// readiness answers GET /console/health/readiness: the server may be sent
// traffic.
func (a *API) readiness(x *httpapi.Exchange) {
	if err := a.ready(); err != nil {
		x.Text(500, "Naming is not in readiness")
		return
	}
	x.Text(200, "OK")
}
