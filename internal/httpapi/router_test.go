package httpapi_test

import (
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rollcall-registry/rollcall/internal/httpapi"
	"github.com/rollcall-registry/rollcall/internal/httpapi/httpapitest"
)

// TestRouting has the answers of a Nacos 1.4.8 to odd paths and methods, as
// recorded (route-*, list-post, batch-wrong-method, console-core, console-login).
func TestRouting(t *testing.T) {
	address := start(t, httpapi.DefaultConfig(),
		route("GET", "/v1/ns/instance/list", ok),
		route("POST", "/v1/ns/instance", ok),
		route("GET", "/v1/console/health/liveness", ok),
		route("POST", "/v1/auth/login", ok),
		route("GET", "/prometheus/namespaceId/{ns}", func(x *httpapi.Exchange) { x.Text(200, "ns "+x.PathValue("ns")) }),
		route("GET", "/prometheus/namespaceId/{ns}/service/{s}", func(x *httpapi.Exchange) {
			x.Text(200, "ns "+x.PathValue("ns")+" s "+x.PathValue("s"))
		}),
		route("GET", "/prometheus/namespaceId/all", ok),
	)
	const (
		plain = "text/plain;charset=UTF-8"
		html  = "text/html;charset=UTF-8"
		page  = "application/json" // the error page, whose message follows
	)
	tests := []struct {
		method, target string
		status         int
		contentType    string
		body           string // message of an error page; "" is not compared
	}{
		{"GET", "/nacos/v1/ns/instance/list?serviceName=x", 200, plain, "ok"},
		{"GET", "/v1/ns/instance/list", 200, plain, "ok"}, // the root is served too
		{"GET", "/nacos/v1/ns/instance/list/", 200, plain, "ok"},
		{"POST", "/nacos/v1/ns/instance/?a=b", 200, plain, "ok"},
		{"GET", "/nacos/v1/ns/%69nstance/list", 200, plain, "ok"},
		{"GET", "/%6eacos/v1/ns/instance/list", 200, plain, "ok"},
		{"GET", "http://10.0.0.1:8848/nacos/v1/ns/instance/list?a=b", 200, plain, "ok"},

		{"GET", "/nacos/v1/ns", 501, page, "no such api:GET:/nacos/v1/ns"},
		{"GET", "/nacos/v1/ns/", 501, page, "no such api:GET:/nacos/v1/ns/"},
		{"PUT", "/nacos/v1/ns/instance/zzz?a=b", 501, page, "no such api:PUT:/nacos/v1/ns/instance/zzz"},
		{"GET", "/nacos/v1/ns/Instance/list", 501, page, "no such api:GET:/nacos/v1/ns/Instance/list"},
		{"GET", "/v1/ns/zzz", 501, page, "no such api:GET:/v1/ns/zzz"},
		{"POST", "/nacos/v1/ns/instance/list", 501, page, "no such api:POST:/nacos/v1/ns/instance/list"},
		{"PATCH", "/nacos/v1/ns/instance/list", 501, page, "no such api:PATCH:/nacos/v1/ns/instance/list"},
		{"OPTIONS", "/nacos/v1/ns/instance/list", 501, page, "no such api:OPTIONS:/nacos/v1/ns/instance/list"},
		{"HEAD", "/nacos/v1/ns/instance/list", 501, page, ""},
		{"HEAD", "/nacos/v1/console/health/liveness", 200, plain, ""},
		{"TRACE", "/nacos/v1/ns/instance", 405, html, ""},
		{"FOO", "/nacos/v1/ns/instance/list", 500, plain, "caused: Request method 'FOO' not supported;"},

		{"GET", "/nacos/v1/nsx/instance", 404, page, "No message available"},
		{"GET", "/nacos/v1", 404, page, "No message available"},
		{"GET", "/nacos/zzz", 404, page, "No message available"},
		{"GET", "/zzz", 404, html, ""},
		{"GET", "/", 404, html, ""},
		{"GET", "/nacosx/v1/ns/instance/list", 404, html, ""},
		{"GET", "/NACOS/v1/ns/instance/list", 404, html, ""},
		{"OPTIONS", "*", 404, html, ""},
		{"GET", "/nacos/v1/auth/login", 500, plain, "caused: Request method 'GET' not supported;"},
		{"OPTIONS", "/nacos/v1/auth/login", 200, "", ""},

		{"GET", "/nacos/v1/ns/instance/list//", 500, page, `The request was rejected because the URL contained a potentially malicious String "//"`},
		{"GET", "//nacos/v1/ns/instance/list", 500, page, `The request was rejected because the URL contained a potentially malicious String "//"`},
		{"GET", "/nacos/v1/ns/instance/list;a=b", 500, page, `The request was rejected because the URL contained a potentially malicious String ";"`},
		{"GET", "/nacos/v1/ns/x/../instance/list", 500, page, "The request was rejected because the URL was not normalized."},
		{"GET", "/nacos/v1/ns/%2e/instance/list", 500, page, "The request was rejected because the URL was not normalized."},
		{"GET", "/nacos/v1/ns/instance%2Flist", 400, html, ""},
		{"GET", "/nacos/v1/ns/instance/list%00", 400, html, ""},
		{"GET", "/nacos/v1/ns/instance/list?x={\"a\":1}", 400, html, ""},
		{"GET", "/nacos/v1/ns/instance/list?x=a|b", 400, html, ""},
		{"GET", "/nacos/v1/ns/instance/list?x=<a>", 400, html, ""},
		{"GET", "/nacos/v1/ns/instance/list?x=a^b`c", 400, html, ""},
		{"GET", "/nacos/v1/ns/instance/list?serviceName=DEFAULT_GROUP@@x", 200, plain, "ok"},

		{"GET", "/nacos/prometheus/namespaceId/dev", 200, plain, "ns dev"},
		{"GET", "/nacos/prometheus/namespaceId/a%20b/", 200, plain, "ns a b"},
		{"GET", "/prometheus/namespaceId/dev/service/orders", 200, plain, "ns dev s orders"},
		{"GET", "/nacos/prometheus/namespaceId/all", 200, plain, "ok"},
		{"GET", "/nacos/prometheus/namespaceId", 404, page, "No message available"},
		{"GET", "/nacos/prometheus/namespaceId/dev/service", 404, page, "No message available"},
	}
	for _, tt := range tests {
		got := dial(t, address).ask(request(tt.method, tt.target))
		if got.StatusCode != tt.status || got.Header.Get("Content-Type") != tt.contentType {
			t.Errorf("%s %s: %d %s, want %d %s", tt.method, tt.target, got.StatusCode, got.Header.Get("Content-Type"), tt.status, tt.contentType)
		}
		if got.Header.Get("Content-Security-Policy") != "script-src 'self'" {
			t.Errorf("%s %s: no content security policy", tt.method, tt.target)
		}
		body := got.body
		if tt.contentType == page && tt.method != "HEAD" {
			body = checkErrorPage(t, tt.status, tt.target, body)
		}
		if tt.body != "" && body != tt.body {
			t.Errorf("%s %s: %q, want %q", tt.method, tt.target, body, tt.body)
		}
	}
}

// checkErrorPage checks the constant parts of an error page and returns its
// message.
func checkErrorPage(t *testing.T, status int, target, body string) string {
	t.Helper()
	var p struct {
		Timestamp, Error, Message, Path string
		Status                          int
	}
	dec := json.NewDecoder(strings.NewReader(body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&p); err != nil {
		t.Errorf("%s: %v in %q", target, err, body)
	}
	path, _, _ := strings.Cut(target, "?")
	if _, err := time.Parse("2006-01-02T15:04:05.000-07:00", p.Timestamp); err != nil || p.Status != status || p.Error == "" || p.Path != path {
		t.Errorf("%s: error page %q", target, body)
	}
	return p.Message
}

func TestErrorPageInHTML(t *testing.T) {
	address := start(t, httpapi.DefaultConfig())
	got := dial(t, address).ask(request("GET", "/nacos/v1/ns/<", "Accept: text/html,*/*"))
	if got.StatusCode != 400 {
		t.Errorf("status %d", got.StatusCode)
	}
	got = dial(t, address).ask(request("GET", "/nacos/v1/ns/%3Cb%3E", "Accept: text/html,*/*"))
	if got.StatusCode != 501 || got.Header.Get("Content-Type") != "text/html;charset=UTF-8" || strings.Contains(got.body, "<b>") {
		t.Errorf("%d %s %q", got.StatusCode, got.Header.Get("Content-Type"), got.body)
	}
}

func TestHooks(t *testing.T) {
	type observed struct {
		path   string
		status int
	}
	seen := make(chan observed, 16)
	var down, refuse atomic.Bool
	hooks := httpapi.Hooks{
		Authorize: func(x *httpapi.Exchange) bool {
			if refuse.Load() && x.Route().Action == httpapi.Write {
				x.ErrorPage(403, "unknown user!")
				return false
			}
			return true
		},
		Observe: func(route *httpapi.Route, status int, took time.Duration) {
			if took < 0 {
				t.Errorf("took %v", took)
			}
			seen <- observed{route.Path, status}
		},
	}
	groups := httpapitest.Groups()
	groups[0].Gate = func(x *httpapi.Exchange) bool {
		if down.Load() {
			x.Text(503, "server is DOWNnow, please try again later!")
		}
		return down.Load()
	}
	write := route("POST", "/v1/ns/instance", ok)
	write.Action = httpapi.Write
	open := route("GET", "/livez", ok)
	open.Resource = httpapi.Open
	router, err := httpapi.NewRouter("/nacos", hooks, groups, []httpapi.Route{write, open})
	if err != nil {
		t.Fatal(err)
	}
	address := startRouter(t, router)
	check := func(method, target string, status int, label string) {
		t.Helper()
		if got := dial(t, address).ask(request(method, target)); got.StatusCode != status {
			t.Errorf("%s %s: %d %q, want %d", method, target, got.StatusCode, got.body, status)
		}
		if got := <-seen; got != (observed{label, status}) {
			t.Errorf("%s %s: observed %v, want %s %d", method, target, got, label, status)
		}
	}
	check("POST", "/nacos/v1/ns/instance", 200, "/v1/ns/instance")
	check("GET", "/nacos/v1/ns/zzz", 501, "/v1/ns/*")
	check("GET", "/nacos/zzz", 404, "/*")
	check("GET", "/nacos/zzz{", 400, "(unreadable)")
	check("TRACE", "/nacos/zzz", 405, "/*")
	refuse.Store(true)
	check("POST", "/nacos/v1/ns/instance", 403, "/v1/ns/instance")
	check("GET", "/livez", 200, "/livez")
	down.Store(true)
	check("POST", "/nacos/v1/ns/instance", 503, "/v1/ns/instance")
	check("GET", "/nacos/v1/ns/zzz", 503, "/v1/ns/*") // the gate stands before the look-up
	check("GET", "/livez", 200, "/livez")
}

func TestCORS(t *testing.T) {
	address := start(t, httpapi.DefaultConfig(), route("GET", "/v1/ns/instance/list", ok), route("POST", "/v1/auth/login", ok))
	got := dial(t, address).ask(request("GET", "/nacos/v1/ns/instance/list", "Origin: http://a.example"))
	want(t, got, "Access-Control-Allow-Origin", "http://a.example")
	want(t, got, "Access-Control-Allow-Credentials", "")
	want(t, got, "X-Content-Type-Options", "nosniff")
	want(t, got, "Vary", "Origin, Access-Control-Request-Method, Access-Control-Request-Headers")

	preflight := []string{"Origin: http://a.example", "Access-Control-Request-Method: POST", "Access-Control-Request-Headers: x-a,x-b"}
	got = dial(t, address).ask(request("OPTIONS", "/nacos/v1/auth/login", preflight...))
	if got.StatusCode != 200 {
		t.Errorf("preflight: %d", got.StatusCode)
	}
	want(t, got, "Access-Control-Allow-Origin", "http://a.example")
	want(t, got, "Access-Control-Allow-Methods", "POST")
	want(t, got, "Access-Control-Allow-Headers", "x-a,x-b")
	want(t, got, "Access-Control-Max-Age", "18000")

	if got = dial(t, address).ask(request("OPTIONS", "/nacos/v1/ns/instance/list", preflight...)); got.StatusCode != 200 {
		t.Errorf("preflight of /v1/ns: %d %q", got.StatusCode, got.body)
	}
	got = dial(t, address).ask(request("OPTIONS", "/nacos/v1/auth/login"))
	want(t, got, "Allow", "POST,OPTIONS")

	cfg := httpapi.DefaultConfig()
	cfg.CORS = false
	got = dial(t, start(t, cfg, route("GET", "/v1/ns/instance/list", ok))).
		ask(request("GET", "/nacos/v1/ns/instance/list", "Origin: http://a.example"))
	want(t, got, "Access-Control-Allow-Origin", "")
}

func want(t *testing.T, got answer, header, value string) {
	t.Helper()
	if v := got.Header.Get(header); v != value {
		t.Errorf("%s: %q, want %q", header, v, value)
	}
}

func TestNewRouterFaults(t *testing.T) {
	bad := []httpapi.Route{
		{Methods: []string{"GET"}, Path: "/a", Resource: httpapi.Open, Action: httpapi.Read},                     // no handler
		{Methods: []string{"GET"}, Path: "/b", Action: httpapi.Read, Handler: ok},                                // no resource
		{Methods: []string{"GET"}, Path: "/c", Resource: httpapi.Open, Handler: ok},                              // no action
		{Methods: []string{"GET"}, Path: "/d/", Resource: httpapi.Open, Action: httpapi.Read, Handler: ok},       // slash
		{Methods: []string{"GET"}, Path: "e", Resource: httpapi.Open, Action: httpapi.Read, Handler: ok},         // relative
		{Methods: []string{"BREW"}, Path: "/f", Resource: httpapi.Open, Action: httpapi.Read, Handler: ok},       // method
		{Path: "/g", Resource: httpapi.Open, Action: httpapi.Read, Handler: ok},                                  // no method
		{Methods: []string{"GET", "GET"}, Path: "/h", Resource: httpapi.Open, Action: httpapi.Read, Handler: ok}, // twice
	}
	_, err := httpapi.NewRouter("/nacos", httpapi.Hooks{}, httpapitest.Groups(), bad)
	if err == nil {
		t.Fatal("no fault found")
	}
	if n := strings.Count(err.Error(), "route "); n != len(bad) {
		t.Errorf("%d faults reported, want %d: %v", n, len(bad), err)
	}
	if _, err := httpapi.NewRouter("/nacos", httpapi.Hooks{}, httpapitest.Groups()[:1]); err == nil {
		t.Error("a router without a group for the rest is accepted")
	}
}
