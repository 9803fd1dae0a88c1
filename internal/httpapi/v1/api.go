package v1

import (
	"log/slog"
	"net/netip"
	"sync"

	"github.com/rollcall-registry/rollcall/internal/httpapi"
	"github.com/rollcall-registry/rollcall/internal/naming"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// Parts are what an [API] is made of. All are required.
type Parts struct {
	Core *naming.Core
	// Encoder keeps encoded instance lists for list answers and UDP packets.
	Encoder *naming.Encoder
	// Push decides who is pushed to over UDP.
	Push Admission
	Log  *slog.Logger
}

// Admission decides who is pushed to over UDP. The rule is that of package
// udppush, the same for all front-ends; the types here have its fields.
type Admission interface {
	// Judge decides on one look-up. It must not block or keep r.
	Judge(r PacketRequest) PacketVerdict
}

// PacketRequest is what a look-up says of UDP packets.
type PacketRequest struct {
	// ClientIP is the address that the client names, "" when it names none, and
	// Port the one on which it listens.
	ClientIP string
	Port     int
	// Peer is the address that the call comes from.
	Peer netip.Addr
	// Eligible: the client's agent understands packets.
	Eligible bool
	Switches *registry.Switches
}

// PacketVerdict is the answer to a [PacketRequest].
type PacketVerdict struct {
	// Subscribe: the client becomes a subscriber.
	Subscribe bool
	// Target is where its packets go.
	Target netip.AddrPort
	// Refused says why nothing will be sent there, "" when packets will be. Such
	// a subscriber is listed and polls.
	Refused string
}

// API serves the 1.x calls. Create it with [New].
type API struct {
	core    *naming.Core
	encoder *naming.Encoder
	push    Admission
	log     *slog.Logger
	large   sync.Pool // of *largeMemory
}

// New returns an API over p.
func New(p Parts) *API {
	a := &API{core: p.Core, encoder: p.Encoder, push: p.Push, log: p.Log.With("component", "http-v1")}
	a.large.New = newLargeMemory(&a.large)
	return a
}

// Routes returns the routes of the API, without the context path.
func (a *API) Routes() []httpapi.Route {
	var routes []httpapi.Route
	// 1.4.8 serves the instance calls below /v1/ns/api too (recorded:
	// legacy-twins).
	for _, base := range []string{"/v1/ns/instance", "/v1/ns/api"} {
		routes = append(routes, a.instanceRoutes(base)...)
	}
	return routes
}

func (a *API) instanceRoutes(base string) []httpapi.Route {
	read := func(path string, h httpapi.Handler) httpapi.Route {
		return httpapi.Route{
			Methods: []string{"GET"}, Path: base + path,
			Resource: httpapi.Naming, Action: httpapi.Read, Handler: h,
		}
	}
	write := func(method, path string, h httpapi.Handler) httpapi.Route {
		return httpapi.Route{
			Methods: []string{method}, Path: base + path,
			Resource: httpapi.Naming, Action: httpapi.Write, Handler: h,
		}
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
