package foreign

import (
	"strings"

	"github.com/rollcall-registry/rollcall/internal/httpapi"
	"github.com/rollcall-registry/rollcall/internal/naming"
)

// Parts are what an [API] is made of. All are required.
type Parts struct {
	Core *naming.Core
	// Servers returns host:port of every member, sorted.
	Servers func() []string
}

// API serves the calls of this package. Create it with [New].
type API struct{ parts Parts }

// New returns an API over p.
func New(p Parts) *API { return &API{parts: p} }

// resourceDiscovery is what a permission for service discovery is about. It is no
// service: the paths name one in a way that permissions do not see.
const resourceDiscovery httpapi.Resource = "naming/prometheus"

// Routes returns the routes of the API, without the context path.
func (a *API) Routes() []httpapi.Route {
	routes := []httpapi.Route{
		httpapi.Get("/prometheus", resourceDiscovery, a.allTargets),
		httpapi.Get("/prometheus/namespaceId/{namespace}", resourceDiscovery, a.namespaceTargets),
		httpapi.Get("/prometheus/namespaceId/{namespace}/service/{service}", resourceDiscovery, a.serviceTargets),

		httpapi.Get("/serverlist", httpapi.Open, a.serverList),
		httpapi.Get("/actuator", httpapi.Open, a.actuator),
		httpapi.Get("/actuator/health", httpapi.Open, a.health),
		httpapi.Get("/", httpapi.Open, a.home),
		httpapi.Get("/index.html", httpapi.Open, a.home),
	}
	return append(routes, a.configRoutes()...)
}

// serverList answers GET /serverlist, by which clients learn of the servers: one
// address a line.
func (a *API) serverList(x *httpapi.Exchange) {
	x.Text(200, strings.Join(a.parts.Servers(), "\n")+"\n")
}
