package legacy

import (
	"log/slog"

	"github.com/rollcall-registry/rollcall/internal/httpapi"
	"github.com/rollcall-registry/rollcall/internal/httpapi/lookup"
	"github.com/rollcall-registry/rollcall/internal/naming"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// Parts are what an [API] is made of. All are required.
type Parts struct {
	Core *naming.Core
	// Encoder keeps encoded instance lists.
	Encoder *naming.Encoder
	// Admit decides who is pushed to over UDP.
	Admit lookup.Judge
	// ProbeTime returns how long the probes of a cluster take, in milliseconds;
	// before the first one what 0.9 starts with, see package health.
	ProbeTime func(key registry.ServiceKey, cluster string) (best, worst, normalized int64)
	// Load returns how busy the machine is: the share of its processors and of its
	// memory that is used, 0 to 1, and its load average of one minute.
	Load    func() (cpu, average, memory float64)
	Members Members
	Shared  Shared
	Log     *slog.Logger
}

// Members knows the servers that hold this registry together.
type Members interface {
	// Self returns this server.
	Self() naming.Member
	// Members returns all of them, this one too, sorted by address.
	Members() []naming.Member
}

// Shared are handlers of the v1 API. List and Beat answer srvIPXT and clientBeat
// for clients of 1.0.0 and later, Hello and PushState answer hello and pushState
// for all, as 0.9 and 1.4.8 do not differ there.
type Shared struct {
	List, Beat, Hello, PushState httpapi.Handler
}

// API serves the 0.9 calls. Create it with [New].
type API struct {
	core      *naming.Core
	encoder   *naming.Encoder
	admit     lookup.Judge
	probeTime func(key registry.ServiceKey, cluster string) (best, worst, normalized int64)
	load      func() (cpu, average, memory float64)
	members   Members
	shared    Shared
	untouched registry.Switches // as they are before anybody sets one
	log       *slog.Logger
}

// New returns an API over p.
func New(p Parts) *API {
	return &API{
		core: p.Core, encoder: p.Encoder, admit: p.Admit, probeTime: p.ProbeTime, load: p.Load,
		members: p.Members, shared: p.Shared, untouched: *registry.DefaultSwitches(),
		log: p.Log.With("component", "http-legacy"),
	}
}

// resourceMembers is what the calls touch that would change the list of members.
const resourceMembers httpapi.Resource = "naming/members"

// resourceSwitches is what updateSwitch touches, spelt as in permissions of 1.4.8.
const resourceSwitches httpapi.Resource = "naming/switches"

// Routes returns the routes of the API, without the context path. Those that
// 1.4.8 also serves at /v1/ns/api (the twins of /v1/ns/instance) are in package
// v1.
func (a *API) Routes() []httpapi.Route {
	read, write := httpapi.Read, httpapi.Write
	return []httpapi.Route{
		call("regService", httpapi.Naming, write, a.regService),
		call("deRegService", httpapi.Naming, write, a.deRegService),
		call("clientBeat", httpapi.Naming, write, a.byAge(a.clientBeat, a.shared.Beat)),
		// Open, as in 1.4.8 with authentication on (recorded: auth-none-open).
		call("srvIPXT", httpapi.Open, read, a.byAge(a.srvIPXT, a.shared.List)),
		call("allDomNames", httpapi.Open, read, a.allDomNames),

		call("regDom", httpapi.Naming, write, a.regDom),
		call("updateDom", httpapi.Naming, write, a.updateDom),
		call("remvDom", httpapi.Naming, write, a.remvDom),
		call("addCluster4Dom", httpapi.Naming, write, a.addCluster4Dom),
		call("addIP4Dom", httpapi.Naming, write, a.addIP4Dom),
		call("remvIP4Dom", httpapi.Naming, write, a.remvIP4Dom),

		call("dom", httpapi.Naming, read, a.dom),
		call("domCount", httpapi.Open, read, a.domCount),
		call("rt4Dom", httpapi.Naming, read, a.rt4Dom),
		call("ip4Dom", httpapi.Naming, read, a.ip4Dom),
		call("ip4Dom2", httpapi.Naming, read, a.ip4Dom2),
		call("searchDom", httpapi.Naming, read, a.searchDom),
		call("getDomsByIP", httpapi.Naming, read, a.getDomsByIP),
		call("reCalculateCheckSum4Dom", httpapi.Naming, read, a.reCalculateCheckSum4Dom),

		call("hello", httpapi.Open, read, a.shared.Hello),
		call("pushState", httpapi.Open, read, a.shared.PushState),
		call("metrics", httpapi.Open, read, a.metrics),
		call("switches", httpapi.Open, read, a.switches),
		call("updateSwitch", resourceSwitches, write, a.updateSwitch),
		call("distroStatus", httpapi.Open, read, a.distroStatus),
		call("getHealthyServerList", httpapi.Open, read, a.getHealthyServerList),
		call("responsible", httpapi.Naming, read, a.responsible),
		call("getResponsibleServer4Dom", httpapi.Naming, read, a.getResponsibleServer4Dom),
		call("updateClusterConf", resourceMembers, write, a.updateClusterConf),
		call("getVersion", httpapi.Open, read, a.getVersion),
		call("getAllChangeLog", httpapi.Open, read, a.getAllChangeLog),
		call("containerNotify", httpapi.Naming, write, a.containerNotify),

		call("onAddIP4Dom", httpapi.Open, write, a.peerOnly),
		call("onRemvIP4Dom", httpapi.Open, write, a.peerOnly),
		call("serverStatus", httpapi.Open, write, a.peerOnly),
		call("domStatus", httpapi.Open, write, a.peerOnly),
	}
}

// call returns the route of a call. 0.9 takes any method for it.
func call(name string, resource httpapi.Resource, action httpapi.Action, h httpapi.Handler) httpapi.Route {
	return httpapi.Route{
		Methods: []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"}, Path: "/v1/ns/api/" + name,
		Resource: resource, Action: action, Handler: h,
	}
}

// byAge returns the handler of a call that 1.4.8 still has with an answer of its
// own. Clients that name no version, or an older one, get that of 0.9.
func (a *API) byAge(old, later httpapi.Handler) httpapi.Handler {
	return func(x *httpapi.Exchange) {
		agent := x.Agent()
		if agent.Kind == httpapi.UnknownAgent || agent.Version.Less(httpapi.Version{Major: 1}) {
			old(x)
			return
		}
		later(x)
	}
}

// cause says that a request through this API made a change.
func cause(x *httpapi.Exchange, op string) registry.Cause {
	return registry.Cause{Kind: registry.CauseRequest, API: "http-0.9", Op: op, From: x.Client()}
}
