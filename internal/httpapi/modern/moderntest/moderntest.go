// Package moderntest serves an API of 2.x or 3.x in tests: over a real core whose
// durable log applies at once, with a clock that stands still and figures that the
// test sets.
package moderntest

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/rollcall-registry/rollcall/internal/httpapi"
	"github.com/rollcall-registry/rollcall/internal/httpapi/httpapitest"
	"github.com/rollcall-registry/rollcall/internal/httpapi/modern"
	"github.com/rollcall-registry/rollcall/internal/naming"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// API is an API under test.
type API interface {
	Routes() []httpapi.Route
	Groups() []httpapi.Group
}

// Server serves an API below /nacos on loopback.
type Server struct {
	Store *registry.Store
	Core  *naming.Core
	// Told is what the server's surroundings say and are told.
	Told *Figures
	HTTP *httpapi.Server

	routes []httpapi.Route
	url    string // once it is started
}

// New returns a server without a listener.
func New(t testing.TB, make func(modern.Parts) API) *Server {
	t.Helper()
	discard := slog.New(slog.DiscardHandler)
	s := &Server{Told: &Figures{}}
	s.Core, s.Store = httpapitest.Core(httpapitest.Stopped{})
	alone := naming.NewAlone(httpapitest.Stopped{})
	alone.SetAddress("127.0.0.1", 8848)
	api := make(modern.Parts{
		Core: s.Core, Encoder: naming.NewEncoder(naming.DefaultEncoderBudget), Members: alone,
		Admit: httpapitest.OwnAddress, Load: s.Told.load, Connections: s.Told,
		Ready: func() error { return s.Told.Ready }, Levels: s.Told, Log: discard,
	})
	s.routes = api.Routes()
	groups := append(api.Groups(), httpapi.Group{NoRoute: httpapi.NotFound, WrongMethod: httpapi.MethodNotSupported})
	router, err := httpapi.NewRouter("/nacos", httpapi.Hooks{}, groups, s.routes)
	if err != nil {
		t.Fatal(err)
	}
	cfg := httpapi.DefaultConfig()
	if s.HTTP, err = httpapi.New(cfg, router, discard); err != nil {
		t.Fatal(err)
	}
	return s
}

// Start serves s until the test ends.
func (s *Server) Start(t testing.TB) *Server {
	t.Helper()
	s.url = "http://" + httpapitest.Start(t, s.HTTP)
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	return s
}

// Figures stand for what surrounds the front-ends.
type Figures struct {
	Ready error
	// Open are the gRPC connections.
	Open []naming.Connection
	// Resets are the connections that were asked to go, and where to; Sheds the
	// numbers of connections that were to be left. Level is what logs were set to.
	Resets []string
	Sheds  []int
	Level  slog.Level
}

func (f *Figures) load() (cpu, average, memory float64) { return 0.25, 1.5, 0.5 }

// Connections implements [modern.Connections].
func (f *Figures) Connections() []naming.Connection { return f.Open }

// Connection implements [modern.Connections].
func (f *Figures) Connection(id registry.ClientID) (naming.Connection, bool) {
	for _, c := range f.Open {
		if c.ID == id {
			return c, true
		}
	}
	return naming.Connection{}, false
}

// Reset implements [modern.Connections].
func (f *Figures) Reset(_ context.Context, id registry.ClientID, redirect string) bool {
	f.Resets = append(f.Resets, string(id)+" to "+redirect)
	_, ok := f.Connection(id)
	return ok
}

// Shed implements [modern.Connections].
func (f *Figures) Shed(target int, _ string) { f.Sheds = append(f.Sheds, target) }

// SetLevel implements [modern.LogLevels].
func (f *Figures) SetLevel(_ string, level slog.Level) { f.Level = level }

// Answer is what a request got.
type Answer struct {
	Status      int
	ContentType string
	Body        string
}

// Call sends a request with everything in the query. params is a query such as
// "serviceName=a&ip=1.1.1.1", not escaped where that is not needed. headers are
// names and values.
func (s *Server) Call(t testing.TB, method, path, params string, headers ...string) Answer {
	t.Helper()
	return s.send(t, method, path+"?"+params, "", headers...)
}

// send sends a request to a path and query below the context path.
func (s *Server) send(t testing.TB, method, target, body string, headers ...string) Answer {
	t.Helper()
	path, query, _ := strings.Cut(target, "?")
	if query != "" {
		query = "?" + escapeQuery(query)
	}
	req, err := http.NewRequestWithContext(t.Context(), method, s.url+"/nacos"+path+query, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("User-Agent", "test")
	for n := 0; n+1 < len(headers); n += 2 {
		req.Header.Set(headers[n], headers[n+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(res.Body)
	_ = res.Body.Close()
	if err != nil {
		t.Fatal(err)
	}
	return Answer{res.StatusCode, res.Header.Get("Content-Type"), string(got)}
}

// escapeQuery escapes what a readable query has and a request may not.
func escapeQuery(query string) string {
	var out bytes.Buffer
	for _, c := range []byte(query) {
		if c <= ' ' || c >= 0x7f || strings.IndexByte(`"{}<>|\^#[]`, c) >= 0 {
			out.WriteString(strings.ReplaceAll(url.QueryEscape(string(rune(c))), "+", "%20"))
			continue
		}
		out.WriteByte(c)
	}
	return out.String()
}
