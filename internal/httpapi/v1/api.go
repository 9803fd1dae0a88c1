package v1

import (
	"log/slog"
	"slices"

	"github.com/rollcall-registry/rollcall/internal/httpapi"
	"github.com/rollcall-registry/rollcall/internal/httpapi/lookup"
	"github.com/rollcall-registry/rollcall/internal/naming"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// Parts are what an [API] is made of. All but Levels are required.
type Parts struct {
	Core *naming.Core
	// Encoder keeps encoded instance lists for list answers and UDP packets.
	Encoder *naming.Encoder
	// Admit decides who is pushed to over UDP, and Pushes counts the packets.
	Admit  lookup.Judge
	Pushes PushCounter
	// Probes knows how long probes take, Machine how busy the machine is.
	Probes  ProbeTimer
	Machine Machine
	Members Members
	// Ready returns why the server may not be sent traffic, nil when it may.
	Ready func() error
	// Levels changes what is logged. Nil: it cannot be changed, and calls that
	// want to are answered as if it were.
	Levels LogLevels
	Log    *slog.Logger
}

// PushCounter counts UDP packets.
type PushCounter interface {
	// PushState returns the counts since the start, and at most maxUnacked of the
	// packets that wait for an acknowledgement.
	PushState(maxUnacked int) PushState
	// ResetPushState forgets the packets that wait.
	ResetPushState()
}

// PushState is what became of the packets that were sent.
type PushState struct {
	Total, Succeed int64
	Unacked        []string // texts of packets
}

// ProbeTimer knows how long the probes of clusters take.
type ProbeTimer interface {
	// ProbeTime returns the times of one cluster, which need not be there.
	ProbeTime(key registry.ServiceKey, cluster string) ProbeTime
}

// ProbeTime is how long probes took, in milliseconds. Before the first one they
// are what 1.x starts with, see package health.
type ProbeTime struct{ Best, Worst, Normalized int64 }

// Machine knows how busy the machine is.
type Machine interface {
	// Load must not block for longer than reading a file of the kernel takes.
	Load() MachineLoad
}

// MachineLoad is how busy a machine is: the share of its processors and of its
// memory that is used, 0 to 1, and its load average of one minute.
type MachineLoad struct{ CPU, Average, Memory float64 }

// API serves the 1.x calls. Create it with [New].
type API struct {
	core    *naming.Core
	encoder *naming.Encoder
	admit   lookup.Judge
	pushes  PushCounter
	probes  ProbeTimer
	machine Machine
	members Members
	ready   func() error
	levels  LogLevels
	log     *slog.Logger
}

// New returns an API over p.
func New(p Parts) *API {
	return &API{
		core: p.Core, encoder: p.Encoder, admit: p.Admit, pushes: p.Pushes, probes: p.Probes, machine: p.Machine,
		members: p.Members, ready: p.Ready, levels: p.Levels, log: p.Log.With("component", "http-v1"),
	}
}

// Routes returns the routes of the API, without the context path.
func (a *API) Routes() []httpapi.Route {
	var routes []httpapi.Route
	// 1.4.8 serves the instance calls below /v1/ns/api too (recorded:
	// legacy-twins).
	for _, base := range []string{"/v1/ns/instance", "/v1/ns/api"} {
		routes = append(routes, a.instanceRoutes(base)...)
	}
	return slices.Concat(routes,
		a.serviceRoutes(), a.catalogRoutes(), a.clusterRoutes(), a.healthRoutes(), a.operatorRoutes(),
		a.peerRoutes(), a.consoleRoutes(), a.authRoutes(), a.coreRoutes())
}

func (a *API) instanceRoutes(base string) []httpapi.Route {
	read := func(path string, h httpapi.Handler) httpapi.Route {
		return httpapi.Get(base+path, httpapi.Naming, h)
	}
	write := func(method, path string, h httpapi.Handler) httpapi.Route {
		return httpapi.Change(method, base+path, httpapi.Naming, h)
	}
	statuses := read("/statuses", a.instanceStatuses)
	statuses.Resource = httpapi.Open // as in 1.4.8, which protects it not
	return []httpapi.Route{
		write("POST", "", a.register),
		write("DELETE", "", a.deregister),
		write("PUT", "", a.replace),
		write("PATCH", "", a.patch),
		write("PUT", "/beat", a.beat),
		write("PUT", "/metadata/batch", a.mergeMetadata),
		write("DELETE", "/metadata/batch", a.removeMetadata),
		read("", a.instance),
		read("/list", a.list),
		statuses,
	}
}

// cause says that a request through this API made a change.
func cause(x *httpapi.Exchange, op string) registry.Cause {
	return registry.Cause{Kind: registry.CauseRequest, API: "http-v1", Op: op, From: x.Client()}
}
