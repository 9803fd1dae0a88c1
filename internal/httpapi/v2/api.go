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

// get returns the route of a call that reads.
func get(path string, resource httpapi.Resource, h httpapi.Handler) httpapi.Route {
	return httpapi.Route{Methods: []string{"GET"}, Path: path, Resource: resource, Action: httpapi.Read, Handler: h}
}

// change returns the route of a call that changes something.
func change(method, path string, resource httpapi.Resource, h httpapi.Handler) httpapi.Route {
	return httpapi.Route{Methods: []string{method}, Path: path, Resource: resource, Action: httpapi.Write, Handler: h}
}

func (a *API) instanceRoutes() []httpapi.Route {
	const base = "/v2/ns/instance"
	naming := func(h httpapi.Handler) httpapi.Handler { return a.Checked(result.CheckNaming, h) }
	batch := func(h httpapi.Handler) httpapi.Handler { return a.Checked(result.CheckBatch, h) }
	return []httpapi.Route{
		change("POST", base, httpapi.Naming, naming(a.Register)),
		change("DELETE", base, httpapi.Naming, naming(a.DeregisterStrict)),
		change("PUT", base, httpapi.Naming, naming(a.Update)),
		change("PATCH", base, httpapi.Naming, naming(a.patch)),
		change("PUT", base+"/metadata/batch", httpapi.Naming, batch(a.LayMetadata)),
		change("DELETE", base+"/metadata/batch", httpapi.Naming, batch(a.LiftMetadata)),
		change("PUT", base+"/beat", httpapi.Naming, a.Checked(result.CheckBeat, a.beat)),
		get(base, httpapi.Naming, naming(a.instance)),
		get(base+"/list", httpapi.Naming, a.Checked(result.CheckList, a.list)),
		anyMethod(get(base+"/statuses/{key}", httpapi.Open, a.statuses)), // unprotected as in 2.5.1
		anyMethod(get("/v2/ns/catalog/instances", httpapi.Naming, naming(a.catalog))),
	}
}

// anyMethod is a route that 2.5.1 serves whatever the method.
func anyMethod(r httpapi.Route) httpapi.Route {
	r.Methods = []string{"GET", "POST", "PUT", "DELETE", "PATCH"}
	return r
}

func (a *API) serviceRoutes() []httpapi.Route {
	const base, health = "/v2/ns/service", "/v2/ns/health"
	naming := func(h httpapi.Handler) httpapi.Handler { return a.Checked(result.CheckNaming, h) }
	return []httpapi.Route{
		change("POST", base, httpapi.Naming, naming(a.CreateService)),
		change("PUT", base, httpapi.Naming, naming(a.UpdateService)),
		change("DELETE", base, httpapi.Naming, naming(a.deleteService)),
		get(base, httpapi.Naming, naming(a.service)),
		get(base+"/list", httpapi.Naming, naming(a.serviceList)),
		change("PUT", health, httpapi.Naming, naming(a.SetHealth)),
		change("PUT", health+"/instance", httpapi.Naming, naming(a.SetHealth)),
	}
}

func (a *API) operatorRoutes() []httpapi.Route {
	var routes []httpapi.Route
	for _, base := range []string{"/v2/ns/operator", "/v2/ns/ops"} {
		routes = append(routes,
			get(base+"/switches", httpapi.Open, a.switches),
			change("PUT", base+"/switches", resourceSwitches, a.SetSwitch),
			get(base+"/metrics", httpapi.Open, a.metrics),
		)
	}
	return routes
}

func (a *API) clientRoutes() []httpapi.Route {
	const base = "/v2/ns/client"
	naming := func(h httpapi.Handler) httpapi.Handler { return a.Checked(result.CheckNaming, h) }
	return []httpapi.Route{
		get(base+"/list", resourceAdmin, a.Clients),
		get(base, resourceAdmin, a.client),
		get(base+"/publish/list", resourceAdmin, a.published),
		get(base+"/subscribe/list", resourceAdmin, a.subscribed),
		get(base+"/service/publisher/list", resourceAdmin, naming(a.publishers)),
		get(base+"/service/subscriber/list", resourceAdmin, naming(a.subscribers)),
	}
}

// style is how 2.5.1 shows namespaces.
var style = modern.NamespaceStyle{PublicID: "", CustomType: 2}

func (a *API) consoleRoutes() []httpapi.Route {
	const base, health = "/v2/console/namespace", "/v2/console/health"
	checked := func(h httpapi.Handler) httpapi.Handler { return a.Checked(result.CheckNamespace, h) }
	return []httpapi.Route{
		get(base+"/list", httpapi.Open, a.NamespaceList(style)),
		get(base, resourceNamespaces, checked(a.Namespace(style))),
		change("POST", base, resourceNamespaces, checked(a.CreateNamespace(taken))),
		change("PUT", base, resourceNamespaces, checked(a.UpdateNamespace)),
		change("DELETE", base, resourceNamespaces, checked(a.DeleteNamespace)),
		get(health+"/liveness", httpapi.Open, a.Live),
		get(health+"/readiness", httpapi.Open, a.ReadyWith(200)),
	}
}

// taken is the refusal of the ID of a namespace that is there.
func taken(id string) error {
	return &result.Fault{Status: 400, Code: result.IllegalNamespace, Data: "the namespaceId is existed, namespaceId: " + id}
}

func (a *API) coreRoutes() []httpapi.Route {
	const cluster, loader, ops = "/v2/core/cluster", "/v2/core/loader", "/v2/core/ops"
	return []httpapi.Route{
		get(cluster+"/node/self", resourceAdmin, a.Self(Version)),
		get(cluster+"/node/self/health", resourceAdmin, a.selfHealth),
		get(cluster+"/node/list", resourceAdmin, a.MemberList(Version)),
		change("PUT", cluster+"/node/list", resourceAdmin, a.NoSuchOperation),
		change("PUT", cluster+"/lookup", resourceAdmin, a.NoSuchOperation),
		change("DELETE", cluster+"/nodes", resourceAdmin, a.NoSuchOperation),

		get(loader+"/current", resourceLoader, a.connections),
		get(loader+"/cluster", resourceLoader, a.loads),
		writingGet(loader+"/reloadCurrent", resourceLoader, a.shed),
		writingGet(loader+"/reloadClient", resourceLoader, a.resetClient),
		writingGet(loader+"/smartReloadCluster", resourceLoader, a.balance),

		get(ops+"/ids", httpapi.Open, a.ids),
		change("PUT", ops+"/log", resourceAdmin, a.setLogLevel),
		change("POST", ops+"/raft", resourceAdmin, a.NoSuchOperation),
	}
}

// writingGet returns the route of a GET that does something.
func writingGet(path string, resource httpapi.Resource, h httpapi.Handler) httpapi.Route {
	return change("GET", path, resource, h)
}
