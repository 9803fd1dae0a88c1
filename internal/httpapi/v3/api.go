package v3

import (
	"slices"

	"github.com/rollcall-registry/rollcall/internal/httpapi"
	"github.com/rollcall-registry/rollcall/internal/httpapi/modern"
	"github.com/rollcall-registry/rollcall/internal/httpapi/result"
)

// Version is the release of Nacos that the calls of this package answer as.
const Version = "3.0.3"

// API serves the calls. Create it with [New].
type API struct{ *modern.API }

// New returns an API over p.
func New(p modern.Parts) *API { return &API{modern.New(p, "http-v3", dialect{})} }

// Groups returns the manners of the paths of this generation. The console has them
// too: it shares the port.
func (a *API) Groups() []httpapi.Group {
	return []httpapi.Group{{Prefix: "/v3", Multipart: true, NoRoute: noRoute, WrongMethod: wrongMethod}}
}

func noRoute(x *httpapi.Exchange) {
	x.ErrorPage(404, "No endpoint "+x.Method()+" "+x.Path()+".")
}

func wrongMethod(x *httpapi.Exchange) {
	x.ErrorPage(405, "Method '"+x.Method()+"' is not supported.")
}

// Resources of calls that are about no single service, as permissions of 3.0.3
// spell them. Calls that 3.0.3 leaves open are open here too.
const (
	resourceOps        httpapi.Resource = "/v3/admin/ns/ops"
	resourceClients    httpapi.Resource = "/v3/admin/ns/client"
	resourceCore       httpapi.Resource = "/v3/admin/core"
	resourceNamespaces httpapi.Resource = "console/namespaces"
	resourceUsers      httpapi.Resource = "console/users"
	resourceRoles      httpapi.Resource = "console/roles"
	resourcePermission httpapi.Resource = "console/permissions"
)

// Routes returns the routes of the API, without the context path.
func (a *API) Routes() []httpapi.Route {
	return slices.Concat(a.clientRoutes(), a.instanceRoutes(), a.serviceRoutes(), a.operatorRoutes(),
		a.clientViewRoutes(), a.coreRoutes(), a.consoleRoutes(), a.authRoutes())
}

// get returns the route of a call that reads.
func get(path string, resource httpapi.Resource, h httpapi.Handler) httpapi.Route {
	return httpapi.Route{Methods: []string{"GET"}, Path: path, Resource: resource, Action: httpapi.Read, Handler: h}
}

// change returns the route of a call that changes something.
func change(method, path string, resource httpapi.Resource, h httpapi.Handler) httpapi.Route {
	return httpapi.Route{Methods: []string{method}, Path: path, Resource: resource, Action: httpapi.Write, Handler: h}
}

// checked returns a handler that makes the check of most calls first.
func (a *API) checked(h httpapi.Handler) httpapi.Handler { return a.Checked(result.CheckNaming, h) }

// clientRoutes are the calls of clients.
func (a *API) clientRoutes() []httpapi.Route {
	const base = "/v3/client/ns/instance"
	return []httpapi.Route{
		change("POST", base, httpapi.Naming, a.checked(a.registerOrBeat)),
		change("DELETE", base, httpapi.Naming, a.checked(a.Deregister)),
		get(base+"/list", httpapi.Naming, a.Checked(result.CheckList, a.list)),
	}
}

func (a *API) instanceRoutes() []httpapi.Route {
	const base = "/v3/admin/ns/instance"
	batch := func(h httpapi.Handler) httpapi.Handler { return a.Checked(result.CheckBatch, h) }
	return []httpapi.Route{
		change("POST", base, httpapi.Naming, a.checked(a.Register)),
		change("DELETE", base, httpapi.Naming, a.checked(a.Deregister)),
		change("PUT", base, httpapi.Naming, a.checked(a.Update)),
		change("PUT", base+"/partial", httpapi.Naming, a.checked(a.patch)),
		change("PUT", base+"/metadata/batch", httpapi.Naming, batch(a.LayMetadata)),
		change("DELETE", base+"/metadata/batch", httpapi.Naming, batch(a.LiftMetadata)),
		get(base, httpapi.Naming, a.checked(a.instance)),
		get(base+"/list", httpapi.Naming, a.Checked(result.CheckList, a.adminList)),
	}
}

func (a *API) serviceRoutes() []httpapi.Route {
	const base, health = "/v3/admin/ns/service", "/v3/admin/ns/health"
	return []httpapi.Route{
		change("POST", base, httpapi.Naming, a.checked(a.CreateService)),
		change("PUT", base, httpapi.Naming, a.checked(a.UpdateService)),
		change("DELETE", base, httpapi.Naming, a.checked(a.deleteService)),
		get(base, httpapi.Naming, a.checked(a.service)),
		get(base+"/list", httpapi.Naming, a.checked(a.serviceList)),
		get(base+"/subscribers", httpapi.Naming, a.checked(a.serviceSubscribers)),
		get(base+"/selector/types", httpapi.Naming, a.selectorTypes),
		change("PUT", "/v3/admin/ns/cluster", httpapi.Naming, a.checked(a.setCluster)),
		change("PUT", health+"/instance", httpapi.Naming, a.checked(a.SetHealth)),
		get(health+"/checkers", httpapi.Open, a.checkers),
	}
}

func (a *API) operatorRoutes() []httpapi.Route {
	const base = "/v3/admin/ns/ops"
	return []httpapi.Route{
		get(base+"/switches", resourceOps, a.switches),
		change("PUT", base+"/switches", resourceOps, a.SetSwitch),
		get(base+"/metrics", resourceOps, a.metrics),
		change("PUT", base+"/log", resourceOps, a.setLogLevel),
	}
}

func (a *API) clientViewRoutes() []httpapi.Route {
	const base = "/v3/admin/ns/client"
	return []httpapi.Route{
		get(base+"/list", resourceClients, a.Clients),
		get(base, resourceClients, a.client),
		get(base+"/publish/list", resourceClients, a.published),
		get(base+"/subscribe/list", resourceClients, a.subscribed),
		get(base+"/service/publisher/list", resourceClients, a.checked(a.publishers)),
		get(base+"/service/subscriber/list", resourceClients, a.checked(a.subscribers)),
		get(base+"/distro", resourceClients, a.responsible),
	}
}

// style is how 3.0.3 shows namespaces.
var style = modern.NamespaceStyle{PublicID: "public", CustomType: 1}

func (a *API) coreRoutes() []httpapi.Route {
	const base = "/v3/admin/core"
	const namespace, cluster, loader, ops, state = base + "/namespace", base + "/cluster", base + "/loader", base + "/ops", base + "/state"
	return []httpapi.Route{
		get(namespace, resourceCore, a.Namespace(style)),
		get(namespace+"/list", resourceCore, a.NamespaceList(style)),
		get(namespace+"/check", resourceCore, a.countNamespace),
		change("POST", namespace, resourceCore, a.CreateNamespace(modern.RefuseTaken)),
		change("PUT", namespace, resourceCore, a.UpdateNamespace),
		change("DELETE", namespace, resourceCore, a.DeleteNamespace),

		get(cluster+"/node/self", resourceCore, a.Self(Version)),
		get(cluster+"/node/list", resourceCore, a.MemberList(Version)),
		change("PUT", cluster+"/node/list", resourceCore, a.NoSuchOperation),
		change("PUT", cluster+"/lookup", resourceCore, a.lookup),

		get(loader+"/current", resourceCore, a.connections),
		get(loader+"/cluster", resourceCore, a.loads),
		change("POST", loader+"/reloadCurrent", resourceCore, a.shed),
		change("POST", loader+"/reloadClient", resourceCore, a.resetClient),
		change("POST", loader+"/smartReloadCluster", resourceCore, a.balance),

		get(ops+"/ids", resourceCore, a.ids),
		change("PUT", ops+"/log", resourceCore, a.setCoreLogLevel),
		change("POST", ops+"/raft", resourceCore, a.NoSuchOperation),

		get(state, httpapi.Open, a.state),
		get(state+"/liveness", httpapi.Open, a.Live),
		get(state+"/readiness", httpapi.Open, a.ReadyWith(200)),
	}
}

// consoleRoutes are the calls of the console, for which the original has a port of
// its own.
func (a *API) consoleRoutes() []httpapi.Route {
	const base = "/v3/console"
	const service, instance, namespace = base + "/ns/service", base + "/ns/instance", base + "/core/namespace"
	named := func(h httpapi.Handler) httpapi.Handler { return a.Checked(result.CheckNamespace, h) }
	listed := get(instance+"/list", httpapi.Naming, a.checked(a.consoleList))
	listed.Methods = []string{"GET", "POST", "PUT", "DELETE", "PATCH"} // as 3.0.3 has it
	return []httpapi.Route{
		change("POST", service, httpapi.Naming, a.checked(a.CreateService)),
		change("PUT", service, httpapi.Naming, a.checked(a.UpdateServiceConsole)),
		change("DELETE", service, httpapi.Naming, a.checked(a.deleteService)),
		get(service, httpapi.Naming, a.checked(a.consoleService)),
		get(service+"/list", httpapi.Naming, a.checked(a.serviceList)),
		get(service+"/subscribers", httpapi.Naming, a.checked(a.serviceSubscribers)),
		get(service+"/selector/types", httpapi.Naming, a.selectorTypes),
		change("PUT", service+"/cluster", httpapi.Naming, a.checked(a.setCluster)),

		listed,
		change("PUT", instance, httpapi.Naming, a.checked(a.UpdatePersistent)),

		get(namespace, resourceNamespaces, named(a.Namespace(style))),
		get(namespace+"/list", resourceNamespaces, a.NamespaceList(style)),
		get(namespace+"/exist", resourceNamespaces, named(a.namespaceExists)),
		change("POST", namespace, resourceNamespaces, named(a.CreateNamespaceConsole)),
		change("PUT", namespace, resourceNamespaces, named(a.UpdateNamespace)),
		change("DELETE", namespace, resourceNamespaces, named(a.DeleteNamespace)),

		get(base+"/core/cluster/nodes", resourceCore, a.nodes),
		get(base+"/health/liveness", httpapi.Open, a.Live),
		get(base+"/health/readiness", httpapi.Open, a.ReadyWith(500)),
		get(base+"/server/state", httpapi.Open, a.bareState),
	}
}
