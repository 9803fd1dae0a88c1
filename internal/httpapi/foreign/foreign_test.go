package foreign

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollcall-registry/rollcall/internal/httpapi"
	"github.com/rollcall-registry/rollcall/internal/naming"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// testServer is an HTTP server over a real core.
type testServer struct {
	core *naming.Core
	http *httpapi.Server
}

func newTestServer(t testing.TB) *testServer {
	t.Helper()
	discard := slog.New(slog.DiscardHandler)
	store := registry.NewStore(registry.DefaultConfig(), naming.Sinks{})
	core := naming.New(naming.DefaultConfig(), store, noLog{}, stopped{}, discard)
	api := New(Parts{Core: core, Servers: func() []string { return []string{"10.0.0.1:8848", "[::1]:8848"} }})
	router, err := httpapi.NewRouter("/nacos", httpapi.Hooks{}, []httpapi.Group{
		{NoRoute: httpapi.NotFound, WrongMethod: httpapi.MethodNotSupported},
	}, api.Routes())
	if err != nil {
		t.Fatal(err)
	}
	server, err := httpapi.New(httpapi.DefaultConfig(), router, discard)
	if err != nil {
		t.Fatal(err)
	}
	return &testServer{core, server}
}

// noLog keeps nothing, as no test here makes durable changes.
type noLog struct{}

func (noLog) Propose(context.Context, registry.Command) (registry.Result, error) {
	panic("a durable change")
}

type stopped struct{}

func (stopped) Now() registry.Instant { return registry.Instant{Wall: 1700000000000} }

func (s *testServer) register(t testing.TB, namespace, grouped string, i registry.Instance) {
	t.Helper()
	group, name, _ := registry.ParseGrouped(grouped)
	i.Ephemeral, i.Healthy, i.Enabled, i.Weight = true, true, true, 1
	if i.Cluster == "" {
		i.Cluster = registry.DefaultCluster
	}
	err := s.core.Register(t.Context(), registry.Cause{Kind: registry.CauseRequest}, naming.Registration{
		Service: registry.ServiceKey{Namespace: namespace, Group: group, Name: name}, Instance: i,
	})
	if err != nil {
		t.Fatal(err)
	}
}

// reply is what a request got.
type reply struct {
	status            int
	contentType, body string
	header            http.Header
	after             time.Duration
}

// send sends one request over a pipe, whose other end the server serves until
// ctx ends.
func (s *testServer) send(ctx context.Context, t testing.TB, method, target, form string, headers ...string) reply {
	t.Helper()
	client, server := net.Pipe()
	served := make(chan struct{})
	go func() {
		defer close(served)
		s.http.ServeConn(ctx, server, nil)
	}()
	defer func() { client.Close(); <-served }()
	request := fmt.Sprintf("%s %s HTTP/1.1\r\nHost: registry:8848\r\nContent-Length: %d\r\n", method, target, len(form))
	if form != "" {
		request += "Content-Type: application/x-www-form-urlencoded\r\n"
	}
	for i := 0; i+1 < len(headers); i += 2 {
		request += headers[i] + ": " + headers[i+1] + "\r\n"
	}
	began := time.Now()
	if _, err := io.WriteString(client, request+"\r\n"+form); err != nil {
		t.Fatalf("%s %s: %v", method, target, err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(client), nil)
	if err != nil {
		t.Fatalf("%s %s: %v", method, target, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("%s %s: %v", method, target, err)
	}
	return reply{resp.StatusCode, resp.Header.Get("Content-Type"), string(body), resp.Header, time.Since(began)}
}

// TestConfigurations: each generation's answer that there is no configuration,
// and that none can be made. Source: reading of Nacos 1.4.8 (ConfigServletInner),
// 2.5.1 (ConfigControllerV2) and 3.0.3 (ConfigOpenApiController,
// ConfigControllerV3).
func TestConfigurations(t *testing.T) {
	s := newTestServer(t)
	const (
		refusedResult = `{"code":30000,"message":"server error","data":"Rollcall is a service registry and keeps no configurations"}`
		refusedV1     = "caused: Rollcall is a service registry and keeps no configurations;"
		none          = `{"code":20004,"message":"resource not found","data":`
		noneV3        = none + `"Config not exist, please publish Config first."}`
	)
	for _, tt := range []struct {
		method, target string
		status         int
		body           string
	}{
		{"GET", "/nacos/v1/cs/configs?dataId=a&group=DEFAULT_GROUP", 404, "config data not exist"},
		{"GET", "/v1/cs/configs?dataId=a&group=DEFAULT_GROUP&tenant=dev", 404, "config data not exist"},
		{
			"GET", "/nacos/v1/cs/configs?dataId=&group=&search=blur&pageNo=1&pageSize=10", 200,
			`{"totalCount":0,"pageNumber":1,"pagesAvailable":0,"pageItems":[]}`,
		},
		{"GET", "/nacos/v1/cs/configs?show=all&dataId=a&group=b", 200, ""},
		{"POST", "/nacos/v1/cs/configs?dataId=a&group=b&content=c", 501, refusedV1},
		{"DELETE", "/nacos/v1/cs/configs?dataId=a&group=b", 501, refusedV1},
		{"PUT", "/nacos/v1/cs/configs", 500, "caused: Request method 'PUT' not supported;"},
		{"GET", "/nacos/v2/cs/config?dataId=a&group=b", 404, none + `"config data not exist"}`},
		{"POST", "/nacos/v2/cs/config?dataId=a&group=b&content=c", 501, refusedResult},
		{"DELETE", "/nacos/v2/cs/config?dataId=a&group=b", 501, refusedResult},
		{"GET", "/nacos/v3/client/cs/config?dataId=a&groupName=b", 200, none + "null}"},
		{"GET", "/nacos/v3/admin/cs/config?dataId=a&groupName=b", 404, noneV3},
		{"POST", "/nacos/v3/admin/cs/config?dataId=a&groupName=b&content=c", 501, refusedResult},
		{"DELETE", "/nacos/v3/admin/cs/config?dataId=a&groupName=b", 501, refusedResult},
		{"GET", "/nacos/v3/console/cs/config?dataId=a&groupName=b", 404, noneV3},
		{"POST", "/nacos/v3/console/cs/config?dataId=a&groupName=b&content=c", 501, refusedResult},
		{"GET", "/nacos/serverlist", 200, "10.0.0.1:8848\n[::1]:8848\n"},
		{"GET", "/nacos/serverlist?namespace=dev", 200, "10.0.0.1:8848\n[::1]:8848\n"},
		{"GET", "/nacos/actuator/health", 200, `{"status":"UP"}`},
		{"GET", "/nacos/actuator/zzz", 404, ""},
	} {
		got := s.send(t.Context(), t, tt.method, tt.target, "")
		if got.status != tt.status || tt.body != "" && got.body != tt.body {
			t.Errorf("%s %s: got %d %q, want %d %q", tt.method, tt.target, got.status, got.body, tt.status, tt.body)
		}
	}
}

// TestListener: source: Nacos 1.4.8 (LongPollingService), and its clients, which
// ask again as soon as they are answered.
func TestListener(t *testing.T) {
	const configs = "Listening-Configs=a%02DEFAULT_GROUP%02%01"
	for _, tt := range []struct {
		name    string
		form    string
		headers []string
		status  int
		after   time.Duration
	}{
		{"as Java asks", configs, []string{"Long-Pulling-Timeout", "30000"}, 200, 29500 * time.Millisecond},
		{"a new listener", configs, []string{"Long-Pulling-Timeout", "30000", "Long-Pulling-Timeout-No-Hangup", "true"}, 200, 0},
		{"that is not one", configs, []string{"Long-Pulling-Timeout", "30000", "Long-Pulling-Timeout-No-Hangup", "false"}, 200, 29500 * time.Millisecond},
		{"a short time", configs, []string{"Long-Pulling-Timeout", "600"}, 200, 590 * time.Millisecond},
		{"a long time", configs, []string{"Long-Pulling-Timeout", "9223372036854775807"}, 200, 59 * time.Second},
		{"no long poll", configs, nil, 200, 0},
		{"no number", configs, []string{"Long-Pulling-Timeout", "soon"}, 200, 0},
		{"negative", configs, []string{"Long-Pulling-Timeout", "-30000"}, 200, 0},
		{"nothing to listen to", "", []string{"Long-Pulling-Timeout", "30000"}, 400, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				got := newTestServer(t).send(ctx, t, "POST", "/nacos/v1/cs/configs/listener", tt.form, tt.headers...)
				if got.status != tt.status || got.after != tt.after {
					t.Errorf("got %d after %v, want %d after %v", got.status, got.after, tt.status, tt.after)
				}
				if got.status == 200 && got.body != "" {
					t.Errorf("got %q, want nothing: that is a list of changes", got.body)
				}
			})
		})
	}
}

// TestListenerAtShutdown: a poll does not hold up the stop of the server.
func TestListenerAtShutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		time.AfterFunc(3*time.Second, stop)
		got := newTestServer(t).send(ctx, t, "POST", "/nacos/v1/cs/configs/listener",
			"Listening-Configs=a", "Long-Pulling-Timeout", "30000")
		if got.status != 200 || got.after != 3*time.Second {
			t.Errorf("got %d after %v, want 200 after 3s", got.status, got.after)
		}
	})
}

// TestPrometheus: source: Prometheus' http_sd, and Nacos 2.x (PrometheusUtils) for
// the labels.
func TestPrometheus(t *testing.T) {
	s := newTestServer(t)
	metadata := registry.NewMetadata(map[string]string{
		"app.kubernetes-io": "x", "app_kubernetes_io": "y", "9": "z", "": "v", "ü": "\"", "__meta_serviceName": "forged",
	})
	s.register(t, "public", "DEFAULT_GROUP@@orders", registry.Instance{IP: "10.0.0.7", Port: 8080, Metadata: metadata})
	s.register(t, "public", "g@@orders", registry.Instance{IP: "::1", Port: 1, Cluster: "c"})
	s.register(t, "dev", "DEFAULT_GROUP@@pay", registry.Instance{IP: "pay.example", Port: 2})
	target := func(address, cluster, ns, group, name, more string) string {
		return fmt.Sprintf(`{"targets":[%q],"labels":{"__meta_clusterName":%q,"__meta_namespaceId":%q,"__meta_groupName":%q,"__meta_serviceName":%q%s}}`,
			address, cluster, ns, group, name, more)
	}
	orders := target("10.0.0.7:8080", "DEFAULT", "public", "DEFAULT_GROUP", "orders", `,"_9":"z","app_kubernetes_io":"x","__":"\""`)
	grouped := target("[::1]:1", "c", "public", "g", "orders", "")
	pay := target("pay.example:2", "DEFAULT", "dev", "DEFAULT_GROUP", "pay", "")
	for path, want := range map[string][]string{
		"/nacos/prometheus":                                            {pay, orders, grouped},
		"/nacos/prometheus/":                                           {pay, orders, grouped},
		"/nacos/prometheus/namespaceId/public":                         {orders, grouped},
		"/nacos/prometheus/namespaceId/dev":                            {pay},
		"/nacos/prometheus/namespaceId/nowhere":                        {},
		"/nacos/prometheus/namespaceId/public/service/orders":          {orders, grouped},
		"/nacos/prometheus/namespaceId/public/service/g%40%40orders":   {grouped},
		"/prometheus/namespaceId/public/service/nobody":                {},
		"/nacos/prometheus/namespaceId/dev/service/DEFAULT_GROUP@@pay": {pay},
	} {
		got := s.send(t.Context(), t, "GET", path, "")
		if body := "[" + strings.Join(want, ",") + "]"; got.body != body {
			t.Errorf("%s: got %s, want %s", path, got.body, body)
		}
		if got.status != 200 || !strings.HasPrefix(got.contentType, "application/json") {
			t.Errorf("%s: got %d %s", path, got.status, got.contentType)
		}
	}
}

func TestActuator(t *testing.T) {
	s := newTestServer(t)
	got := s.send(t.Context(), t, "GET", "/nacos/actuator", "")
	var links struct {
		Links map[string]struct{ Href string } `json:"_links"`
	}
	if err := json.Unmarshal([]byte(got.body), &links); err != nil {
		t.Fatal(err)
	}
	if href := links.Links["health"].Href; href != "http://registry:8848/nacos/actuator/health" {
		t.Errorf("got %s: health at %q", got.body, href)
	}
	for _, path := range []string{"/nacos/actuator", "/nacos/actuator/health"} {
		if got := s.send(t.Context(), t, "GET", path, ""); got.contentType != typeActuator {
			t.Errorf("%s: got type %s, want %s (recorded: console-actuator)", path, got.contentType, typeActuator)
		}
	}
}

// TestHome: source: the recording console-root.
func TestHome(t *testing.T) {
	s := newTestServer(t)
	for path, status := range map[string]int{
		"/nacos": 302, "/nacos/": 200, "/": 404, "/zzz": 404, "/nacos/index.html": 200,
	} {
		got := s.send(t.Context(), t, "GET", path, "")
		if got.status != status {
			t.Errorf("%s: got %d, want %d", path, got.status, status)
		}
		if location := got.header.Get("Location"); status == 302 && location != "/nacos/" {
			t.Errorf("%s: sent to %q", path, location)
		}
		if status == 200 && (got.contentType != "text/html;charset=UTF-8" || !strings.Contains(got.body, "Rollcall")) {
			t.Errorf("%s: got %s %q", path, got.contentType, got.body)
		}
	}
}

// FuzzPrometheus registers whatever metadata and reads it: the answer is JSON with
// labels that Prometheus takes.
func FuzzPrometheus(f *testing.F) {
	f.Add("a.b", "v", "/nacos/prometheus")
	f.Add("\xff", "\x00", "/nacos/prometheus/namespaceId/%ff/service/%00")
	f.Add("__meta_x", "9", "/nacos/prometheus/namespaceId/public/service/a%2Fb")
	f.Fuzz(func(t *testing.T, key, value, path string) {
		s := newTestServer(t)
		metadata := registry.NewMetadata(map[string]string{key: value, "a": "1"})
		if metadata.Len() > 64<<10 {
			return
		}
		s.register(t, "public", "g@@a", registry.Instance{IP: "1.1.1.1", Port: 1, Metadata: metadata})
		body := s.send(t.Context(), t, "GET", "/nacos/prometheus", "").body
		var groups []struct {
			Targets []string
			Labels  map[string]string
		}
		if err := json.Unmarshal([]byte(body), &groups); err != nil || len(groups) != 1 {
			t.Fatalf("%q=%q: %v in %q", key, value, err, body)
		}
		for name := range groups[0].Labels {
			if strings.ContainsFunc(name, func(r rune) bool {
				return r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
			}) || name == "" || name[0] >= '0' && name[0] <= '9' {
				t.Errorf("%q=%q: label %q", key, value, name)
			}
		}
		got := s.send(t.Context(), t, "GET", "/nacos/prometheus/namespaceId/"+url.PathEscape(path), "")
		switch got.status {
		case 200, 400, 404, 500: // the last for paths that are refused, such as a//b
		default:
			t.Errorf("%q: got %d", path, got.status)
		}
	})
}
