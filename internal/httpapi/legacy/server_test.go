package legacy

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/rollcall-registry/rollcall/internal/httpapi"
	"github.com/rollcall-registry/rollcall/internal/httpapi/httpapitest"
	v1 "github.com/rollcall-registry/rollcall/internal/httpapi/v1"
	"github.com/rollcall-registry/rollcall/internal/naming"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// testServer is the API over a real core, whose durable log applies at once and
// keeps nothing, beside the v1 API.
type testServer struct {
	api   *API
	store *registry.Store
	core  *naming.Core
	http  *httpapi.Server
	url   string // once it is started
}

// newTestServer starts a server on loopback; it ends with the test.
func newTestServer(t testing.TB) *testServer {
	t.Helper()
	s := newTestAPI(t, httpapitest.Running(time.Now()))
	s.url = "http://" + httpapitest.Start(t, s.http)
	return s
}

// newTestAPI is a server without a listener.
func newTestAPI(t testing.TB, clock naming.Clock) *testServer {
	t.Helper()
	discard := slog.New(slog.DiscardHandler)
	core, store := httpapitest.Core(clock)
	encoder := naming.NewEncoder(naming.DefaultEncoderBudget)
	later := v1.New(v1.Parts{
		Core: core, Encoder: encoder, Admit: httpapitest.OwnAddress, Pushes: noPushes{}, Members: oneMember{}, Log: discard,
	})
	api := New(Parts{
		Core: core, Encoder: encoder, Admit: httpapitest.OwnAddress,
		ProbeTime: func(registry.ServiceKey, string) (best, worst, normalized int64) { return 1<<63 - 1, 0, 4419 },
		Load:      func() (cpu, average, memory float64) { return 0.25, 1.5, 0.5 },
		Members:   oneMember{},
		Shared:    Shared{List: later.List, Beat: later.Beat, Hello: later.Hello, PushState: later.PushState},
		Log:       discard,
	})
	router, err := httpapi.NewRouter("/nacos", httpapi.Hooks{}, later.Groups(), later.Routes(), api.Routes(), []httpapi.Route{idle})
	if err != nil {
		t.Fatal(err)
	}
	server, err := httpapi.New(httpapi.DefaultConfig(), router, discard)
	if err != nil {
		t.Fatal(err)
	}
	return &testServer{api: api, store: store, core: core, http: server}
}

// idle is for benchmarks: what HTTP alone costs.
var idle = httpapi.Route{
	Methods: []string{"GET"}, Path: "/nothing", Resource: httpapi.Open, Action: httpapi.Read,
	Handler: func(x *httpapi.Exchange) { x.OK() },
}

type noPushes struct{}

func (noPushes) PushState(int) v1.PushState { return v1.PushState{} }
func (noPushes) ResetPushState()            {}

type oneMember struct{}

func (oneMember) Self() naming.Member {
	return naming.Member{Host: "10.0.0.1", Port: 8848, State: naming.MemberUp, Seen: 1700000000000}
}
func (m oneMember) Members() []naming.Member { return []naming.Member{m.Self()} }

// answer is what a request got.
type answer struct {
	status      int
	contentType string
	body        string
}

// get sends a call with everything in the query.
func (s *testServer) get(t testing.TB, call, params string, headers ...string) answer {
	t.Helper()
	return s.send(t, "GET", "/nacos/v1/ns/api/"+call+"?"+params, "", headers...)
}

func (s *testServer) send(t testing.TB, method, target, body string, headers ...string) answer {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, s.url+target, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("User-Agent", "")
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
	return answer{resp.StatusCode, resp.Header.Get("Content-Type"), string(text)}
}

// ok sends a call that must be answered "ok".
func (s *testServer) ok(t testing.TB, call, params string) {
	t.Helper()
	if got := s.get(t, call, params); got.status != 200 || got.body != "ok" {
		t.Fatalf("%s?%s: got %d %q, want 200 ok", call, params, got.status, got.body)
	}
}

// json sends a call that must be answered with a JSON object.
func (s *testServer) json(t testing.TB, call, params string, headers ...string) map[string]any {
	t.Helper()
	got := s.get(t, call, params, headers...)
	var object map[string]any
	if err := json.Unmarshal([]byte(got.body), &object); got.status != 200 || err != nil {
		t.Fatalf("%s?%s: got %d %q, want a JSON object", call, params, got.status, got.body)
	}
	return object
}

// replay serves one request without a socket.
func (s *testServer) replay(t testing.TB, method, target, form string) answer {
	t.Helper()
	request := fmt.Sprintf("%s /nacos/v1/ns/api/%s HTTP/1.1\r\nHost: a\r\nClient-Version: Nacos-Java-Client:v0.9.0\r\n"+
		"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: %d\r\n\r\n%s", method, target, len(form), form)
	got := httpapitest.Replay(s.http, []byte(request), 1)
	resp, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(got)), nil)
	if err != nil {
		t.Fatalf("%s %q: %v in %q", method, target, err, got)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("%s %q: %v in %q", method, target, err, got)
	}
	return answer{resp.StatusCode, resp.Header.Get("Content-Type"), string(body)}
}

// key is a service in the default namespace and group.
func key(name string) registry.ServiceKey {
	return registry.ServiceKey{Namespace: registry.DefaultNamespace, Group: registry.DefaultGroup, Name: name}
}

// find returns an instance as readers see it, nil when it is not there.
func (s *testServer) find(name, ip string, port int32, cluster string) *registry.Instance {
	view := s.store.View(key(name))
	if view == nil {
		return nil
	}
	return view.Find(registry.InstanceKey{IP: ip, Port: port, Cluster: cluster})
}

func escape(text string) string { return url.QueryEscape(text) }
