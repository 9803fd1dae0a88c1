package modern

import (
	"context"
	"log/slog"

	"github.com/rollcall-registry/rollcall/internal/httpapi"
	"github.com/rollcall-registry/rollcall/internal/httpapi/lookup"
	"github.com/rollcall-registry/rollcall/internal/httpapi/result"
	"github.com/rollcall-registry/rollcall/internal/naming"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// Parts are what the APIs are made of. All but Levels are required.
type Parts struct {
	Core *naming.Core
	// Encoder keeps encoded instance lists.
	Encoder *naming.Encoder
	// Admit decides who is pushed to over UDP.
	Admit lookup.Judge
	// Load returns the share of the processors and of the memory that is used, 0 to
	// 1, and the load average of one minute. It must not block for longer than
	// reading a file of the kernel takes.
	Load    func() (cpu, average, memory float64)
	Members Members
	// Connections are those of clients that speak gRPC.
	Connections Connections
	// Ready returns why the server may not be sent traffic, nil when it may.
	Ready func() error
	// Levels changes what is logged. Nil: it cannot be changed, and calls that
	// want to are answered as if it were.
	Levels LogLevels
	Log    *slog.Logger
}

// Members are the servers that hold this registry together.
type Members interface {
	// Self returns this server.
	Self() naming.Member
	// Members returns all of them, this one too, sorted by address.
	Members() []naming.Member
}

// Connections are the gRPC connections of this server.
type Connections interface {
	// Connections returns all of them, sorted by ID.
	Connections() []naming.Connection
	// Connection returns one; ok is false when there is none of that ID.
	Connection(id registry.ClientID) (c naming.Connection, ok bool)
	// Reset asks a client to go to the server at redirect, or to any other when
	// that is empty, and waits until it says that it will, for a bounded time. It
	// reports whether there is such a connection.
	Reset(ctx context.Context, id registry.ClientID, redirect string) bool
	// Shed asks as many clients to go as are above target, in the background.
	Shed(target int, redirect string)
}

// LogLevels changes what is logged while the server runs.
type LogLevels interface {
	// SetLevel sets the least level that the named logger writes. A name that does
	// not exist changes nothing. It must not block or keep name.
	SetLevel(logger string, level slog.Level)
}

// API are the calls of one generation.
type API struct {
	Parts
	result.Answers
	name string // as causes show it
}

// New returns the calls over p of the generation that causes call name.
func New(p Parts, name string, d result.Dialect) *API {
	return &API{Parts: p, Answers: result.NewAnswers(d, p.Log.With("component", name)), name: name}
}

// Cause says that a request through this API made a change.
func (a *API) Cause(x *httpapi.Exchange, op string) registry.Cause {
	return registry.Cause{Kind: registry.CauseRequest, API: a.name, Op: op, From: x.Client()}
}

// Named returns a handler that makes the check of most calls first.
func (a *API) Named(h httpapi.Handler) httpapi.Handler { return a.Checked(result.CheckNaming, h) }

// Checked returns a handler that looks at the names in a request first.
func (a *API) Checked(check result.Check, h httpapi.Handler) httpapi.Handler {
	return func(x *httpapi.Exchange) {
		if err := check(x.Params()); err != nil {
			a.Fail(x, err)
			return
		}
		h(x)
	}
}

// ParseService returns the service that a form must name. Of a name with a group
// in front only what stands there is taken, for the name (live 2.5.1).
func ParseService(f *result.Form) registry.ServiceKey {
	return serviceKey(f, f.Need("serviceName"))
}

func serviceKey(f *result.Form, name string) registry.ServiceKey {
	if before, _, grouped := registry.ParseGrouped(name); grouped {
		name = before
	}
	return registry.ServiceKey{
		Namespace: registry.NamespaceID(f.Text("namespaceId", "")),
		Group:     f.Text("groupName", registry.DefaultGroup),
		Name:      name,
	}
}

// ParseGroupedService returns the service that a call names with its group in
// front, or refuses what is named otherwise.
func ParseGroupedService(f *result.Form) registry.ServiceKey {
	group, name, grouped := registry.ParseGrouped(f.Need("serviceName"))
	switch {
	case !grouped || name == "":
		f.Refuse(result.Invalid("Param 'serviceName' is illegal, it should be format as 'groupName@@serviceName'"))
	case group == "":
		f.Refuse(result.Invalid("Param 'serviceName' is illegal, groupName can't be empty"))
	}
	return registry.ServiceKey{Namespace: registry.NamespaceID(f.Text("namespaceId", "")), Group: group, Name: name}
}

// JavaService prints a service as the original does in some of its refusals.
func JavaService(key registry.ServiceKey, ephemeral bool) string {
	kind := "false"
	if ephemeral {
		kind = "true"
	}
	return "Service{namespace='" + key.Namespace + "', group='" + key.Group + "', name='" + key.Name +
		"', ephemeral=" + kind + ", revision=0}"
}
