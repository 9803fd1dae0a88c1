package v2

import (
	"slices"

	"github.com/rollcall-registry/rollcall/internal/httpapi"
	"github.com/rollcall-registry/rollcall/internal/httpapi/modern"
	"github.com/rollcall-registry/rollcall/internal/httpapi/result"
)

// Version is the release of Nacos that the calls of this package answer as.
const Version = "2.5.1"

// API serves the calls. Create it with [New].
type API struct{ *modern.API }

// New returns an API over p.
func New(p modern.Parts) *API { return &API{modern.New(p, "http-v2", dialect{})} }

// Groups returns the manners of the paths of this generation.
func (a *API) Groups() []httpapi.Group {
	return []httpapi.Group{{Prefix: "/v2", Multipart: true, NoRoute: httpapi.NotFound, WrongMethod: wrongMethod}}
}

// wrongMethod answers a known path that has no such method.
func wrongMethod(x *httpapi.Exchange) {
	failRest(x, 500, "caused: Request method &#39;"+x.Method()+"&#39; not supported;")
}

// Resources of calls that are about no single service, as permissions of 2.5.1
// spell them. Calls that 2.5.1 leaves open are open here too.
const (
	resourceSwitches   httpapi.Resource = "naming/switches"
	resourceNamespaces httpapi.Resource = "console/namespaces"
	resourceAdmin      httpapi.Resource = "nacos/admin"
	resourceLoader     httpapi.Resource = "/v2/core/loader"
)

// Routes returns the routes of the API, without the context path.
func (a *API) Routes() []httpapi.Route {
	return slices.Concat(a.instanceRoutes(), a.serviceRoutes(), a.operatorRoutes(), a.clientRoutes(),
		a.consoleRoutes(), a.coreRoutes())
}

func (a *API) instanceRoutes() []httpapi.Route {
	const base = "/v2/ns/instance"
	batch := func(h httpapi.Handler) httpapi.Handler { return a.Checked(result.CheckBatch, h) }
	return []httpapi.Route{
		httpapi.Change("POST", base, httpapi.Naming, a.Named(a.Register)),
		httpapi.Change("DELETE", base, httpapi.Naming, a.Named(a.DeregisterStrict)),
		httpapi.Change("PUT", base, httpapi.Naming, a.Named(a.Update)),
		httpapi.Change("PATCH", base, httpapi.Naming, a.Named(a.patch)),
		httpapi.Change("PUT", base+"/metadata/batch", httpapi.Naming, batch(a.LayMetadata)),
		httpapi.Change("DELETE", base+"/metadata/batch", httpapi.Naming, batch(a.LiftMetadata)),
		httpapi.Change("PUT", base+"/beat", httpapi.Naming, a.Checked(result.CheckBeat, a.beat)),
		httpapi.Get(base, httpapi.Naming, a.Named(a.instance)),
		httpapi.Get(base+"/list", httpapi.Naming, a.Checked(result.CheckList, a.list)),
		anyMethod(httpapi.Get(base+"/statuses/{key}", httpapi.Open, a.statuses)), // unprotected as in 2.5.1
		anyMethod(httpapi.Get("/v2/ns/catalog/instances", httpapi.Naming, a.Named(a.catalog))),
	}
}

// anyMethod is a route that 2.5.1 serves whatever the method.
func anyMethod(r httpapi.Route) httpapi.Route {
	r.Methods = []string{"GET", "POST", "PUT", "DELETE", "PATCH"}
	return r
}

func (a *API) serviceRoutes() []httpapi.Route {
	const base, health = "/v2/ns/service", "/v2/ns/health"
	return []httpapi.Route{
		httpapi.Change("POST", base, httpapi.Naming, a.Named(a.CreateService)),
		httpapi.Change("PUT", base, httpapi.Naming, a.Named(a.UpdateService)),
		httpapi.Change("DELETE", base, httpapi.Naming, a.Named(a.deleteService)),
		httpapi.Get(base, httpapi.Naming, a.Named(a.service)),
		httpapi.Get(base+"/list", httpapi.Naming, a.Named(a.serviceList)),
		httpapi.Change("PUT", health, httpapi.Naming, a.Named(a.SetHealth)),
		httpapi.Change("PUT", health+"/instance", httpapi.Naming, a.Named(a.SetHealth)),
	}
}

func (a *API) operatorRoutes() []httpapi.Route {
	var routes []httpapi.Route
	for _, base := range []string{"/v2/ns/operator", "/v2/ns/ops"} {
		routes = append(routes,
			httpapi.Get(base+"/switches", httpapi.Open, a.switches),
			httpapi.Change("PUT", base+"/switches", resourceSwitches, a.SetSwitch),
			httpapi.Get(base+"/metrics", httpapi.Open, a.metrics),
		)
	}
	return routes
}

func (a *API) clientRoutes() []httpapi.Route {
	const base = "/v2/ns/client"
	return []httpapi.Route{
		httpapi.Get(base+"/list", resourceAdmin, a.Clients),
		httpapi.Get(base, resourceAdmin, a.Shown(appendClient)),
		httpapi.Get(base+"/publish/list", resourceAdmin, a.Published(appendPublished)),
		httpapi.Get(base+"/subscribe/list", resourceAdmin, a.Subscribed(appendSubscribed)),
		httpapi.Get(base+"/service/publisher/list", resourceAdmin, a.Named(a.Publishers(clientsOf, publishesAt, appendPublisher))),
		httpapi.Get(base+"/service/subscriber/list", resourceAdmin, a.Named(a.Subscribers(clientsOf, appendSubscriber))),
	}
}

// style is how 2.5.1 shows namespaces.
var style = modern.NamespaceStyle{PublicID: "", CustomType: 2}

func (a *API) consoleRoutes() []httpapi.Route {
	const base, health = "/v2/console/namespace", "/v2/console/health"
	checked := func(h httpapi.Handler) httpapi.Handler { return a.Checked(result.CheckNamespace, h) }
	return []httpapi.Route{
		httpapi.Get(base+"/list", httpapi.Open, a.NamespaceList(style)),
		httpapi.Get(base, resourceNamespaces, checked(a.Namespace(style))),
		httpapi.Change("POST", base, resourceNamespaces, checked(a.CreateNamespace(taken))),
		httpapi.Change("PUT", base, resourceNamespaces, checked(a.UpdateNamespace)),
		httpapi.Change("DELETE", base, resourceNamespaces, checked(a.DeleteNamespace)),
		httpapi.Get(health+"/liveness", httpapi.Open, a.Live),
		httpapi.Get(health+"/readiness", httpapi.Open, a.ReadyWith(200)),
	}
}

// taken is the refusal of the ID of a namespace that is there.
func taken(id string) error {
	return &result.Fault{Status: 400, Code: result.IllegalNamespace, Data: "the namespaceId is existed, namespaceId: " + id}
}

func (a *API) coreRoutes() []httpapi.Route {
	const cluster, loader, ops = "/v2/core/cluster", "/v2/core/loader", "/v2/core/ops"
	return []httpapi.Route{
		httpapi.Get(cluster+"/node/self", resourceAdmin, a.Self(Version)),
		httpapi.Get(cluster+"/node/self/health", resourceAdmin, a.selfHealth),
		httpapi.Get(cluster+"/node/list", resourceAdmin, a.MemberList(Version)),
		httpapi.Change("PUT", cluster+"/node/list", resourceAdmin, a.NoSuchOperation),
		httpapi.Change("PUT", cluster+"/lookup", resourceAdmin, a.NoSuchOperation),
		httpapi.Change("DELETE", cluster+"/nodes", resourceAdmin, a.NoSuchOperation),

		httpapi.Get(loader+"/current", resourceLoader, a.connections),
		httpapi.Get(loader+"/cluster", resourceLoader, a.loads),
		writingGet(loader+"/reloadCurrent", resourceLoader, a.shed),
		writingGet(loader+"/reloadClient", resourceLoader, a.resetClient),
		writingGet(loader+"/smartReloadCluster", resourceLoader, a.balance),

		httpapi.Get(ops+"/ids", httpapi.Open, a.ids),
		httpapi.Change("PUT", ops+"/log", resourceAdmin, a.setLogLevel),
		httpapi.Change("POST", ops+"/raft", resourceAdmin, a.NoSuchOperation),
	}
}

// writingGet returns the route of a GET that does something.
func writingGet(path string, resource httpapi.Resource, h httpapi.Handler) httpapi.Route {
	return httpapi.Change("GET", path, resource, h)
}
