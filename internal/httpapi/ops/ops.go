// Package ops is Rollcall's own operator API, /rollcall/v1: lists, the history,
// explanations, backups; and the health and metrics paths of the server. It is a
// thin adapter: what it shows comes from naming and the ledger.
package ops

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/rollcall-registry/rollcall/api/opsv1"
	"github.com/rollcall-registry/rollcall/internal/httpapi"
	"github.com/rollcall-registry/rollcall/internal/ledger"
	"github.com/rollcall-registry/rollcall/internal/naming"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// History answers queries of the history.
type History interface {
	Query(ctx context.Context, f ledger.Filter) (ledger.Page, error)
}

// Durable is the store of persistent data.
type Durable interface {
	// Backup writes a checked copy of the durable state.
	Backup(w io.Writer) (opsv1.BackupInfo, error)
	// Restore replaces the durable state by a backup, which it checks first.
	Restore(r io.Reader) (opsv1.BackupInfo, error)
	// Export writes the durable state, one JSON object a line.
	Export(w io.Writer) error
}

// Config is what the API needs.
type Config struct {
	Naming  *naming.Core
	History History
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
}

// New returns the API.
func New(cfg Config) *API { return &API{cfg: cfg, log: cfg.Log.With("component", "ops")} }

// Resources of this API, for permissions.
const (
	resourceHistory httpapi.Resource = "rollcall/history"
	resourceBackup  httpapi.Resource = "rollcall/backup"
)

// maxBackup is the largest backup that can be sent back over HTTP, in bytes.
const maxBackup = 1 << 30

// Routes lists the paths of the API.
func (a *API) Routes() []httpapi.Route {
	get, post := []string{"GET"}, []string{"POST"}
	return []httpapi.Route{
		{Methods: get, Path: "/rollcall/v1/services", Resource: httpapi.Naming, Action: httpapi.Read, Handler: a.services},
		{Methods: get, Path: "/rollcall/v1/history", Resource: resourceHistory, Action: httpapi.Read, Handler: a.history},
		{Methods: get, Path: "/rollcall/v1/explain", Resource: resourceHistory, Action: httpapi.Read, Handler: a.explain},
		{Methods: get, Path: "/rollcall/v1/backup", Resource: resourceBackup, Action: httpapi.Read, Handler: a.backup},
		{Methods: get, Path: "/rollcall/v1/export", Resource: resourceBackup, Action: httpapi.Read, Handler: a.export},
		{Methods: post, Path: "/rollcall/v1/restore", Resource: resourceBackup, Action: httpapi.Write, Handler: a.restore},
		{Methods: get, Path: "/livez", Resource: httpapi.Open, Action: httpapi.Read, Handler: a.livez},
		{Methods: get, Path: "/readyz", Resource: httpapi.Open, Action: httpapi.Read, Handler: a.readyz},
		{Methods: get, Path: "/metrics", Resource: httpapi.Open, Action: httpapi.Read, Handler: a.metrics},
		{Methods: get, Path: "/actuator/prometheus", Resource: httpapi.Open, Action: httpapi.Read, Handler: a.metrics},
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
	var buf writer
	contentType, err := a.cfg.Metrics(&buf)
	if err != nil {
		a.fail(x, "write metrics", err)
		return
	}
	x.Answer(200, contentType, buf)
}

func (a *API) backup(x *httpapi.Exchange) {
	var buf writer
	if _, err := a.cfg.Durable.Backup(&buf); err != nil {
		a.fail(x, "backup", err)
		return
	}
	x.Answer(200, "application/octet-stream", buf)
}

func (a *API) export(x *httpapi.Exchange) {
	var buf writer
	if err := a.cfg.Durable.Export(&buf); err != nil {
		a.fail(x, "export", err)
		return
	}
	x.Answer(200, "application/x-ndjson", buf)
}

func (a *API) restore(x *httpapi.Exchange) {
	body := x.Body()
	if len(body) == 0 {
		refuse(x, 400, "the body is empty; send what GET /rollcall/v1/backup gave")
		return
	}
	info, err := a.cfg.Durable.Restore(&reader{body})
	if err != nil {
		refuse(x, 400, fmt.Sprintf("nothing was restored: %v", err))
		return
	}
	a.log.Warn("durable state restored from a backup", "made", info.Time, "member", info.ID, "client", x.Client().String())
	answer(x, info)
}

// writer is a buffer whose bytes become the answer.
type writer []byte

func (w *writer) Write(p []byte) (int, error) {
	*w = append(*w, p...)
	return len(p), nil
}

type reader struct{ rest []byte }

func (r *reader) Read(p []byte) (int, error) {
	if len(r.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// answer writes v as JSON.
func answer(x *httpapi.Exchange, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		refuse(x, 500, "the answer cannot be written as JSON")
		return
	}
	x.JSON(200, body)
}

// refuse answers with a sentence.
func refuse(x *httpapi.Exchange, status int, text string) {
	body, err := json.Marshal(opsv1.Error{Error: text})
	if err != nil {
		body = []byte(`{"error":"internal"}`)
	}
	x.JSON(status, body)
}

// fail answers an internal error, whose text stays in the log.
func (a *API) fail(x *httpapi.Exchange, action string, err error) {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		refuse(x, 503, action+": the server is stopping, or it took too long; try again")
		return
	}
	a.log.Error("request failed", "action", action, "err", err)
	refuse(x, 500, action+" failed; the log of the server says why")
}

// service reads the service that a request names.
func service(p *httpapi.Params) registry.ServiceKey {
	name := p.Optional("service", "")
	group := p.Optional("group", "")
	if g, n, ok := registry.ParseGrouped(name); ok {
		group, name = g, n
	}
	if group == "" && name != "" {
		group = registry.DefaultGroup
	}
	return registry.ServiceKey{
		Namespace: registry.NamespaceID(p.Optional("namespace", "")), Group: group, Name: name,
	}
}
