package v1

import (
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/rollcall-registry/rollcall/internal/httpapi"
	"github.com/rollcall-registry/rollcall/internal/httpapi/httpapitest"
	"github.com/rollcall-registry/rollcall/internal/naming"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// testServer is an API over a real core, whose durable log applies at once and
// keeps nothing.
type testServer struct {
	api   *API
	store *registry.Store
	core  *naming.Core
	told  *figures
	http  *httpapi.Server
	url   string // once it is started
}

// newTestServer starts a server on loopback; it ends with the test.
func newTestServer(t testing.TB) *testServer {
	t.Helper()
	return newTestAPI(t, httpapitest.Running(time.Now())).start(t)
}

// newTestAPI is a server without a listener.
func newTestAPI(t testing.TB, clock naming.Clock) *testServer {
	t.Helper()
	discard := slog.New(slog.DiscardHandler)
	core, store := httpapitest.Core(clock)
	told := &figures{}
	alone := naming.NewAlone(clock)
	alone.SetAddress("127.0.0.1", 8848)
	api := New(Parts{
		Core: core, Encoder: naming.NewEncoder(naming.DefaultEncoderBudget),
		Admit: httpapitest.OwnAddress, Pushes: told, Probes: told, Machine: told, Members: alone,
		Ready: func() error { return told.ready }, Levels: OneLevel{&told.level}, Log: discard,
	})
	nothing := httpapi.Route{ // for benchmarks: what HTTP alone costs
		Methods: []string{"GET"}, Path: "/nothing", Resource: httpapi.Open, Action: httpapi.Read,
		Handler: func(x *httpapi.Exchange) { x.OK() },
	}
	return &testServer{api: api, store: store, core: core, told: told, http: testHTTP(t, api, nothing)}
}

func (s *testServer) start(t testing.TB) *testServer {
	s.url = "http://" + httpapitest.Start(t, s.http)
	return s
}

// answer is what a request got.
type answer struct {
	status      int
	contentType string
	body        string
	header      http.Header
}

// call sends a request with everything in the query. params is a query such as
// "serviceName=a&ip=1.1.1.1", not escaped where that is not needed.
func (s *testServer) call(t testing.TB, method, path, params string, headers ...string) answer {
	t.Helper()
	return s.send(t, method, path+"?"+params, "", headers...)
}

// form sends the parameters in a form body.
func (s *testServer) form(t testing.TB, method, path, params string, headers ...string) answer {
	t.Helper()
	return s.send(t, method, path, params, append(headers, "Content-Type", "application/x-www-form-urlencoded")...)
}

// send sends a request to a target, see fullTarget.
func (s *testServer) send(t testing.TB, method, target, body string, headers ...string) answer {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, s.url+fullTarget(target), strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("User-Agent", "test")
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header.Get("Content-Type"), string(text), resp.Header}
}

// fullTarget completes a target that is meant below /nacos/v1/ns.
func fullTarget(target string) string {
	if strings.HasPrefix(target, "/nacos") || strings.HasPrefix(target, "/v1/") {
		return target
	}
	return "/nacos/v1/ns" + target
}

// ok sends a request that must be answered "ok".
func (s *testServer) ok(t testing.TB, method, path, params string, headers ...string) {
	t.Helper()
	if got := s.call(t, method, path, params, headers...); got.status != 200 || got.body != "ok" {
		t.Fatalf("%s %s?%s: got %d %q, want 200 ok", method, path, params, got.status, got.body)
	}
}

// key is a service in the default namespace and group.
func key(name string) registry.ServiceKey {
	return registry.ServiceKey{Namespace: registry.DefaultNamespace, Group: registry.DefaultGroup, Name: name}
}

// find returns an instance as readers see it, nil when it is not there.
func (s *testServer) find(name, ip string, port int32) *registry.Instance {
	view := s.store.View(key(name))
	if view == nil {
		return nil
	}
	return view.Find(registry.InstanceKey{IP: ip, Port: port, Cluster: registry.DefaultCluster})
}

func escape(text string) string { return url.QueryEscape(text) }
