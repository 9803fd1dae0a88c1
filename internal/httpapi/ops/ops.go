// Package ops is Rollcall's own operator API, /rollcall/v1: lists, the history,
// explanations, backups; and the health and metrics paths of the server. It is a
// thin adapter: what it shows comes from naming and the ledger, and every rule
// that it tells of is applied by [registry.Explain]. An [API] is safe for
// concurrent use.
package ops

import (
	"bytes"
	"context"
	"io"
	"log/slog"

	"github.com/rollcall-registry/rollcall/api/opsv1"
	"github.com/rollcall-registry/rollcall/internal/httpapi"
	"github.com/rollcall-registry/rollcall/internal/ledger"
	"github.com/rollcall-registry/rollcall/internal/naming"
)

// History answers queries of the history.
type History interface {
	// Query returns one page, which may be short or empty although more follows:
	// see [ledger.Page]. It waits while too many queries run, until ctx ends.
	Query(ctx context.Context, f ledger.Filter) (ledger.Page, error)
}

// Durable is the store of persistent data.
type Durable interface {
	// Backup writes a checked copy of the durable state.
	Backup(w io.Writer) (opsv1.BackupInfo, error)
	// Restore replaces the durable state by a backup, which it reads and checks
	// first. With an error, sound tells whether the backup was good, so that the
	// fault is the server's; nothing has changed when it was not.
	Restore(r io.Reader) (info opsv1.BackupInfo, sound bool, err error)
	// Export writes the durable state, one JSON object a line.
	Export(w io.Writer) error
}

// Config is what the API needs.
type Config struct {
	Naming *naming.Core
	// Roster knows the clients.
	Roster  *naming.Roster
	History History
	// Pushes is the history of pushes, nil when none is kept.
	Pushes  History
	Durable Durable
	// Ready returns why the server may not be sent traffic; nil when it may.
	Ready func() error
	// Metrics writes the Prometheus text form.
	Metrics func(w io.Writer) (contentType string, err error)
	Log     *slog.Logger
}

// API serves /rollcall/v1.
type API struct {
	cfg Config
	log *slog.Logger
	// restoring holds a token while a backup is taken in: two at a time would be
	// of no use, and each takes as much of the disk as the backup is large.
	restoring chan struct{}
}

// New returns the API.
func New(cfg Config) *API {
	return &API{cfg: cfg, log: cfg.Log.With("component", "ops"), restoring: make(chan struct{}, 1)}
}

// Resources of this API, for permissions.
const (
	resourceHistory httpapi.Resource = "rollcall/history"
	resourceBackup  httpapi.Resource = "rollcall/backup"
)

// maxBackup is the largest backup that is taken back, in bytes.
const maxBackup = 1 << 30

// base is below which the paths of the API are.
const base = "/rollcall/v1"

// Groups returns the manners of the API: unlike Nacos's, no web page of another
// origin may read it.
func (a *API) Groups() []httpapi.Group {
	return []httpapi.Group{{
		Prefix: base, Private: true, Multipart: true, NoRoute: httpapi.NotFound, WrongMethod: httpapi.MethodNotSupported,
	}}
}

// Routes lists the paths of the API. Those that write, and those that hand out all
// there is, are refused to pages of other sites: a browser sends some requests of
// any page, whether or not that may read the answer.
func (a *API) Routes() []httpapi.Route {
	routes := a.routes()
	for i := range routes {
		if r := &routes[i]; r.Action == httpapi.Write || r.Resource == resourceBackup {
			r.Handler = sameSite(r.Handler)
		}
	}
	return routes
}

// sameSite refuses requests of pages of other sites.
func sameSite(h httpapi.Handler) httpapi.Handler {
	return func(x *httpapi.Exchange) {
		if x.FromOtherSite() {
			refuse(x, 403, "a web page of another site may not ask for this")
			return
		}
		h(x)
	}
}

func (a *API) routes() []httpapi.Route {
	return []httpapi.Route{
		httpapi.Get(base+"/services", httpapi.Naming, a.services),
		httpapi.Get(base+"/instances", httpapi.Naming, a.instances),
		httpapi.Get(base+"/clients", httpapi.Naming, a.clients),
		httpapi.Get(base+"/clients/{id}", httpapi.Naming, a.client),
		httpapi.Get(base+"/history", resourceHistory, a.history),
		httpapi.Get(base+"/pushes", resourceHistory, a.pushes),
		httpapi.Get(base+"/explain", resourceHistory, a.explain),
		httpapi.Get(base+"/backup", resourceBackup, a.backup),
		httpapi.Get(base+"/export", resourceBackup, a.export),
		{
			Methods: []string{"POST"}, Path: base + "/restore", Resource: resourceBackup, Action: httpapi.Write,
			Handler: a.restore, MaxBodyBytes: maxBackup,
		},
		httpapi.Get("/livez", httpapi.Open, a.livez),
		httpapi.Get("/readyz", httpapi.Open, a.readyz),
		httpapi.Get("/metrics", httpapi.Open, a.metrics),
		httpapi.Get("/actuator/prometheus", httpapi.Open, a.metrics),
	}
}

// livez answers as long as the process serves; it asks nothing else.
func (a *API) livez(x *httpapi.Exchange) { x.Text(200, "ok") }

func (a *API) readyz(x *httpapi.Exchange) {
	if err := a.cfg.Ready(); err != nil {
		x.Text(503, err.Error())
		return
	}
	x.Text(200, "ok")
}

func (a *API) metrics(x *httpapi.Exchange) {
	var body bytes.Buffer
	contentType, err := a.cfg.Metrics(&body)
	if err != nil {
		a.fail(x, "write metrics", err)
		return
	}
	x.Answer(200, contentType, body.Bytes())
}
