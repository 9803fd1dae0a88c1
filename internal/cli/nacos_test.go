package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/rollcall-registry/rollcall/servertest"
)

// htmlNotFound is what Tomcat says outside the context path.
const htmlNotFound = `<!doctype html><html lang="en"><head><title>HTTP Status 404 – Not Found</title></head><body><h1>HTTP Status 404 – Not Found</h1></body></html>`

// generation is what a version of Nacos has, and how it refuses the rest.
type generation struct {
	version string
	has     func(method, path string) bool
	refuse  func(r *http.Request) (status int, body string)
}

// container is the form in which the container of Nacos refuses.
func container(r *http.Request, status int, message string) (int, string) {
	body, _ := json.Marshal(map[string]any{ // of texts and numbers
		"timestamp": "2026-11-30T00:32:16.966+00:00", "status": status, "error": http.StatusText(status), "message": message, "path": r.URL.Path,
	})
	return status, string(body)
}

// gone is how 3.x refuses what was of before.
func gone(r *http.Request) (int, string) {
	return container(r, http.StatusGone, `{"code":40000,"message":"Current API will be deprecated, please use API(s) of v3 instead."}`)
}

// clientAPI reports whether a call of 1.x is one of those of clients, which 3.0 has.
func clientAPI(method, path string) bool {
	switch path {
	case "/nacos/v1/ns/instance":
		return method != http.MethodPut
	case "/nacos/v1/ns/instance/list", "/nacos/v1/ns/instance/beat", "/nacos/v1/ns/operator/metrics", "/nacos/v1/ns/service/list":
		return true
	default:
		return false
	}
}

// generations are as recorded of these versions; the last is one without anything of
// before 3.
var generations = []generation{
	{
		"1.4.8",
		func(_, path string) bool { return strings.HasPrefix(path, "/nacos/v1/") },
		func(r *http.Request) (int, string) { return container(r, http.StatusNotFound, "No message available") },
	},
	{
		"2.5.1",
		func(_, path string) bool {
			return strings.HasPrefix(path, "/nacos/v1/") || strings.HasPrefix(path, "/nacos/v2/")
		},
		func(r *http.Request) (int, string) { return container(r, http.StatusNotFound, "No message available") },
	},
	{
		"3.0.3",
		func(method, path string) bool {
			return strings.HasPrefix(path, "/nacos/v3/") || clientAPI(method, path)
		},
		gone,
	},
	{
		"3.9.9",
		func(_, path string) bool { return strings.HasPrefix(path, "/nacos/v3/") },
		func(r *http.Request) (int, string) {
			if strings.HasPrefix(r.URL.Path, "/nacos/v1/ns/") {
				return container(r, http.StatusNotImplemented, "no such api:"+r.Method+":"+r.URL.Path)
			}
			return container(r, http.StatusNotFound, "No endpoint "+r.Method+" "+r.URL.Path+".")
		},
	},
}

// nacos is a server that has what a version has, and no gRPC port.
func nacos(t *testing.T, g *generation) string {
	t.Helper()
	u, err := url.Parse(servertest.New(t).URL())
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(u)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status, body := http.StatusNotFound, htmlNotFound
		switch path := r.URL.Path; {
		case path == "/nacos/v1/console/server/state" && g.has(r.Method, path):
			status, body = http.StatusOK, fmt.Sprintf(`{"version":%q,"standalone_mode":"standalone","function_mode":null}`, g.version)
		case path == "/nacos/v3/admin/core/state" && g.has(r.Method, path):
			status, body = http.StatusOK, fmt.Sprintf(`{"code":0,"message":"success","data":{"version":%q}}`, g.version)
		case g.has(r.Method, path):
			proxy.ServeHTTP(w, r)
			return
		case strings.HasPrefix(path, "/nacos/"):
			status, body = g.refuse(r)
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(front.Close)
	return front.URL
}

// TestNacos runs the commands against each generation: what the protocol has works, and
// of the rest they say what it is.
func TestNacos(t *testing.T) {
	t.Parallel()
	for i := range generations {
		g := &generations[i]
		t.Run(g.version, func(t *testing.T) {
			t.Parallel()
			address := nacos(t, g)
			alone := address + " is Nacos " + g.version + ", and `rollcall %s` asks for what Rollcall alone knows"
			for _, tt := range []struct {
				args string
				code int
				want string // of both outputs
			}{
				{"ready", exitOK, address + " is ready"},
				{"register orders 10.0.0.7:80 --persistent --metadata zone=a", exitOK, "registered 10.0.0.7:80 in orders"},
				{"list", exitOK, "SERVICE\norders\n"},
				{"list orders", exitOK, "10.0.0.7:80  DEFAULT  healthy  1       persistent           zone=a"},
				{"services", exitOK, "orders"},
				{"instances orders", exitOK, "10.0.0.7:80"},
				{"instances orders --json", exitOK, `"weight": 1,`},
				{"drain orders 10.0.0.7:80 --wait 0s", exitOK, "drained 10.0.0.7:80 in orders"},
				{"instances orders --json", exitOK, `"weight": 0,`},
				{"drain orders 10.0.0.7:80 --weight 2", exitOK, "reweighed 10.0.0.7:80 in orders"},
				{"instances orders --json", exitOK, `"zone": "a"`},
				{"deregister orders 10.0.0.7:80", exitOK, "deregistered 10.0.0.7:80 in orders"},
				{"deregister orders 10.0.0.7:80", exitFailed, "10.0.0.7:80 is not in cluster DEFAULT of orders"},
				{"register carts 10.0.0.8:80", exitOK, "without beats it does not last"},
				{"deregister carts 10.0.0.8:80", exitOK, "deregistered 10.0.0.8:80 in carts"},
				{"namespaces", exitOK, "public     public"},
				{"namespaces create dev --name Development", exitOK, "created namespace dev"},
				{"namespaces", exitOK, "dev        Development"},
				{"namespaces delete dev", exitOK, "deleted namespace dev"},
				{"namespaces delete dev", exitFailed, "has no namespace dev"},
				{"switches pushEnabled false", exitOK, "pushEnabled is false"},
				{"switches", exitOK, "pushEnabled                               false"},
				{"switches nothing", exitFailed, "has no switch nothing"},
				{"why orders", exitFailed, fmt.Sprintf(alone, "why")},
				{"history", exitFailed, fmt.Sprintf(alone, "history")},
				{"clients", exitFailed, fmt.Sprintf(alone, "clients")},
				{"backup", exitFailed, fmt.Sprintf(alone, "backup")},
			} {
				got := run(t, Process{}, append(strings.Fields(tt.args), "-s", address)...)
				if got.code != tt.code || !strings.Contains(got.stdout+got.stderr, tt.want) {
					t.Errorf("%s: %+v, want code %d and %q", tt.args, got, tt.code, tt.want)
				}
			}
			keepAndWatch(t, address)
		})
	}
}

// keepAndWatch has one command keep an instance alive that another one watches.
func keepAndWatch(t *testing.T, address string) {
	t.Helper()
	kept := start(t, "register", "stock", "10.0.0.9:80", "--beat", "-s", address)
	kept.waitFor("keeping it alive over http")
	watched := start(t, "watch", "stock", "-s", address)
	watched.waitFor("+  10.0.0.9:80")
	if got := kept.interrupt(); got.code != exitOK || !strings.Contains(got.stdout, "deregistered 10.0.0.9:80 in stock") {
		t.Errorf("register --beat: %+v", got)
	}
	watched.waitFor("-  10.0.0.9:80")
	if got := watched.interrupt(); got.code != exitOK || got.stderr != "" {
		t.Errorf("watch: %+v", got)
	}
}

// TestDeregisterWordless: a server may say of an instance that is not there no more than
// that there is an error. What clients see decides then.
func TestDeregisterWordless(t *testing.T) {
	t.Parallel()
	u, err := url.Parse(servertest.New(t).URL())
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(u)
	proxy.ModifyResponse = func(r *http.Response) error {
		if r.Request.URL.Path == instanceV1 && r.Request.Method == http.MethodGet && r.StatusCode != http.StatusOK {
			r.StatusCode, r.Body, r.ContentLength = http.StatusInternalServerError, io.NopCloser(strings.NewReader("error")), -1
			r.Header.Del("Content-Length")
		}
		return nil
	}
	front := httptest.NewServer(proxy)
	t.Cleanup(front.Close)
	for _, tt := range []struct {
		args string
		code int
		want string // of both outputs
	}{
		{"register orders 10.0.0.7:80 --persistent", exitOK, "registered"},
		{"deregister orders 10.0.0.7:80", exitOK, "deregistered"},
		{"deregister orders 10.0.0.7:80", exitFailed, "10.0.0.7:80 is not in cluster DEFAULT of orders"},
	} {
		got := run(t, Process{}, append(strings.Fields(tt.args), "-s", front.URL)...)
		if got.code != tt.code || !strings.Contains(got.stdout+got.stderr, tt.want) {
			t.Errorf("%s: %+v, want code %d and %q", tt.args, got, tt.code, tt.want)
		}
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		status      int
		text, want  string
		unknownPath bool
	}{
		{http.StatusNotFound, htmlNotFound, "", true},
		{http.StatusNotFound, "404 page not found", "404 page not found", true},
		{http.StatusNotFound, `{"timestamp":"2026-11-30T00:32:16.966+00:00","status":404,"error":"Not Found","message":"No message available"}`, "", true},
		{http.StatusGone, `{"timestamp":1,"status":410,"error":"Gone","message":"{\"code\":40000,\"message\":\"use v3\"}"}`, "use v3", true},
		{http.StatusNotImplemented, `{"timestamp":1,"status":501,"error":"Not Implemented","message":"no such api:GET:/x"}`, "no such api:GET:/x", true},
		{http.StatusNotFound, "no ips found for cluster DEFAULT in service DEFAULT_GROUP@@a", "no ips found for cluster DEFAULT in service DEFAULT_GROUP@@a", false},
		{http.StatusNotFound, `{"code":20004,"message":"resource not found","data":"no such instance"}`, "resource not found: no such instance", false},
		{http.StatusNotFound, `{"code":22001,"message":"namespace not exist","data":null}`, "namespace not exist", false},
		{http.StatusNotFound, `{"error":"there is no client x"}`, "there is no client x", false},
		{http.StatusInternalServerError, "caused: no matched ip found!;", "no matched ip found!", false},
		{http.StatusBadRequest, "", "", false},
		{http.StatusNotFound, `{"code":`, `{"code":`, true},
		{http.StatusNotFound, "null", "null", true},
	} {
		e := &refusedError{status: tt.status, text: tt.text}
		if got, _ := e.reason(); got != tt.want || e.unknownPath() != tt.unknownPath {
			t.Errorf("%d %s: got %q, %v", tt.status, tt.text, got, e.unknownPath())
		}
	}
}

// FuzzRefusal: whatever a server answers, there is a sentence of one line, not too long,
// that a terminal does not obey.
func FuzzRefusal(f *testing.F) {
	f.Add(404, htmlNotFound)
	f.Add(410, `{"timestamp":1,"message":"{\"code\":40000,\"message\":\"use v3\"}"}`)
	f.Add(400, `{"code":1,"message":"a","data":{"b":[1]}}`)
	f.Fuzz(func(t *testing.T, status int, text string) {
		e := &refusedError{server: "s", path: "/p", status: status, text: text}
		if got := e.Error(); len(got) > 2000 || strings.ContainsAny(got, "\n\r\x1b") {
			t.Errorf("%q", got)
		}
	})
}
