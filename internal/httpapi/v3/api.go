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

// clientRoutes are the calls of clients.
func (a *API) clientRoutes() []httpapi.Route {
	const base = "/v3/client/ns/instance"
	return []httpapi.Route{
		httpapi.Change("POST", base, httpapi.Naming, a.Named(a.registerOrBeat)),
		httpapi.Change("DELETE", base, httpapi.Naming, a.Named(a.Deregister)),
		httpapi.Get(base+"/list", httpapi.Naming, a.Checked(result.CheckList, a.list)),
	}
}

func (a *API) instanceRoutes() []httpapi.Route {
	const base = "/v3/admin/ns/instance"
	batch := func(h httpapi.Handler) httpapi.Handler { return a.Checked(result.CheckBatch, h) }
	return []httpapi.Route{
		httpapi.Change("POST", base, httpapi.Naming, a.Named(a.Register)),
		httpapi.Change("DELETE", base, httpapi.Naming, a.Named(a.Deregister)),
		httpapi.Change("PUT", base, httpapi.Naming, a.Named(a.Update)),
		httpapi.Change("PUT", base+"/partial", httpapi.Naming, a.Named(a.patch)),
		httpapi.Change("PUT", base+"/metadata/batch", httpapi.Naming, batch(a.LayMetadata)),
		httpapi.Change("DELETE", base+"/metadata/batch", httpapi.Naming, batch(a.LiftMetadata)),
		httpapi.Get(base, httpapi.Naming, a.Named(a.instance)),
		httpapi.Get(base+"/list", httpapi.Naming, a.Checked(result.CheckList, a.adminList)),
	}
}

func (a *API) serviceRoutes() []httpapi.Route {
	const base, health = "/v3/admin/ns/service", "/v3/admin/ns/health"
	return []httpapi.Route{
		httpapi.Change("POST", base, httpapi.Naming, a.Named(a.CreateService)),
		httpapi.Change("PUT", base, httpapi.Naming, a.Named(a.UpdateService)),
		httpapi.Change("DELETE", base, httpapi.Naming, a.Named(a.deleteService)),
		httpapi.Get(base, httpapi.Naming, a.Named(a.service)),
		httpapi.Get(base+"/list", httpapi.Naming, a.Named(a.serviceList)),
		httpapi.Get(base+"/subscribers", httpapi.Naming, a.Named(a.serviceSubscribers)),
		httpapi.Get(base+"/selector/types", httpapi.Naming, a.selectorTypes),
		httpapi.Change("PUT", "/v3/admin/ns/cluster", httpapi.Naming, a.Named(a.setCluster)),
		httpapi.Change("PUT", health+"/instance", httpapi.Naming, a.Named(a.SetHealth)),
		httpapi.Get(health+"/checkers", httpapi.Open, a.checkers),
	}
}

func (a *API) operatorRoutes() []httpapi.Route {
	const base = "/v3/admin/ns/ops"
	return []httpapi.Route{
		httpapi.Get(base+"/switches", resourceOps, a.switches),
		httpapi.Change("PUT", base+"/switches", resourceOps, a.SetSwitch),
		httpapi.Get(base+"/metrics", resourceOps, a.metrics),
		httpapi.Change("PUT", base+"/log", resourceOps, a.setLogLevel),
	}
}

func (a *API) clientViewRoutes() []httpapi.Route {
	const base = "/v3/admin/ns/client"
	return []httpapi.Route{
		httpapi.Get(base+"/list", resourceClients, a.Clients),
		httpapi.Get(base, resourceClients, a.Shown(appendClient)),
		httpapi.Get(base+"/publish/list", resourceClients, a.Published(appendPublished)),
		httpapi.Get(base+"/subscribe/list", resourceClients, a.Subscribed(appendSubscribed)),
		httpapi.Get(base+"/service/publisher/list", resourceClients, a.Named(a.Publishers(clientsOf, publishesAt, appendPublisher))),
		httpapi.Get(base+"/service/subscriber/list", resourceClients, a.Named(a.Subscribers(clientsOf, appendSubscriber))),
		httpapi.Get(base+"/distro", resourceClients, a.responsible),
	}
}

// style is how 3.0.3 shows namespaces.
var style = modern.NamespaceStyle{PublicID: "public", CustomType: 1}

func (a *API) coreRoutes() []httpapi.Route {
	const base = "/v3/admin/core"
	const namespace, cluster, loader, ops, state = base + "/namespace", base + "/cluster", base + "/loader", base + "/ops", base + "/state"
	return []httpapi.Route{
		httpapi.Get(namespace, resourceCore, a.Namespace(style)),
		httpapi.Get(namespace+"/list", resourceCore, a.NamespaceList(style)),
		httpapi.Get(namespace+"/check", resourceCore, a.countNamespace),
		httpapi.Change("POST", namespace, resourceCore, a.CreateNamespace(modern.RefuseTaken)),
		httpapi.Change("PUT", namespace, resourceCore, a.UpdateNamespace),
		httpapi.Change("DELETE", namespace, resourceCore, a.DeleteNamespace),

		httpapi.Get(cluster+"/node/self", resourceCore, a.Self(Version)),
		httpapi.Get(cluster+"/node/list", resourceCore, a.MemberList(Version)),
		httpapi.Change("PUT", cluster+"/node/list", resourceCore, a.NoSuchOperation),
		httpapi.Change("PUT", cluster+"/lookup", resourceCore, a.lookup),

		httpapi.Get(loader+"/current", resourceCore, a.connections),
		httpapi.Get(loader+"/cluster", resourceCore, a.loads),
		httpapi.Change("POST", loader+"/reloadCurrent", resourceCore, a.shed),
		httpapi.Change("POST", loader+"/reloadClient", resourceCore, a.resetClient),
		httpapi.Change("POST", loader+"/smartReloadCluster", resourceCore, a.balance),

		httpapi.Get(ops+"/ids", resourceCore, a.ids),
		httpapi.Change("PUT", ops+"/log", resourceCore, a.setCoreLogLevel),
		httpapi.Change("POST", ops+"/raft", resourceCore, a.NoSuchOperation),

		httpapi.Get(state, httpapi.Open, a.state),
		httpapi.Get(state+"/liveness", httpapi.Open, a.Live),
		httpapi.Get(state+"/readiness", httpapi.Open, a.ReadyWith(200)),
	}
}

// consoleRoutes are the calls of the console, for which the original has a port of
// its own.
func (a *API) consoleRoutes() []httpapi.Route {
	const base = "/v3/console"
	const service, instance, namespace = base + "/ns/service", base + "/ns/instance", base + "/core/namespace"
	named := func(h httpapi.Handler) httpapi.Handler { return a.Checked(result.CheckNamespace, h) }
	listed := httpapi.Get(instance+"/list", httpapi.Naming, a.Named(a.consoleList))
	listed.Methods = []string{"GET", "POST", "PUT", "DELETE", "PATCH"} // as 3.0.3 has it
	return []httpapi.Route{
		httpapi.Change("POST", service, httpapi.Naming, a.Named(a.CreateService)),
		httpapi.Change("PUT", service, httpapi.Naming, a.Named(a.UpdateServiceConsole)),
		httpapi.Change("DELETE", service, httpapi.Naming, a.Named(a.deleteService)),
		httpapi.Get(service, httpapi.Naming, a.Named(a.consoleService)),
		httpapi.Get(service+"/list", httpapi.Naming, a.Named(a.serviceList)),
		httpapi.Get(service+"/subscribers", httpapi.Naming, a.Named(a.serviceSubscribers)),
		httpapi.Get(service+"/selector/types", httpapi.Naming, a.selectorTypes),
		httpapi.Change("PUT", service+"/cluster", httpapi.Naming, a.Named(a.setCluster)),

		listed,
		httpapi.Change("PUT", instance, httpapi.Naming, a.Named(a.UpdatePersistent)),

		httpapi.Get(namespace, resourceNamespaces, named(a.Namespace(style))),
		httpapi.Get(namespace+"/list", resourceNamespaces, a.NamespaceList(style)),
		httpapi.Get(namespace+"/exist", resourceNamespaces, named(a.namespaceExists)),
		httpapi.Change("POST", namespace, resourceNamespaces, named(a.CreateNamespaceConsole)),
		httpapi.Change("PUT", namespace, resourceNamespaces, named(a.UpdateNamespace)),
		httpapi.Change("DELETE", namespace, resourceNamespaces, named(a.DeleteNamespace)),

		httpapi.Get(base+"/core/cluster/nodes", resourceCore, a.nodes),
		httpapi.Get(base+"/health/liveness", httpapi.Open, a.Live),
		httpapi.Get(base+"/health/readiness", httpapi.Open, a.ReadyWith(500)),
		httpapi.Get(base+"/server/state", httpapi.Open, a.bareState),
	}
}
