package sdk

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	rollcall "github.com/rollcall-registry/rollcall/client"
	"github.com/rollcall-registry/rollcall/servertest"
)

// generation stands before a server and leaves of it what servers of one generation
// have.
type generation struct {
	next http.Handler
	open func(path string) bool
	// status is what other paths are answered with.
	status int

	mu    sync.Mutex
	paths map[string]int
}

func (g *generation) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := strings.TrimPrefix(r.URL.Path, "/nacos")
	if !g.open(path) {
		w.WriteHeader(g.status)
		return
	}
	g.mu.Lock()
	if g.paths == nil {
		g.paths = make(map[string]int)
	}
	g.paths[r.Method+" "+path]++
	g.mu.Unlock()
	g.next.ServeHTTP(w, r)
}

func (g *generation) asked(line string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.paths[line]
}

// TestGenerations registers, watches and lists with servers that have the paths of 0.9
// only, and with those that have the ones of 3.x only.
func TestGenerations(t *testing.T) {
	tests := map[string]struct {
		open   func(path string) bool
		status int
		list   string // the call that looks up
	}{
		"1.x": {func(path string) bool {
			return strings.HasPrefix(path, "/v1/ns/") && !strings.HasPrefix(path, "/v1/ns/api")
		}, 404, "GET /v1/ns/instance/list"},
		"0.9": {func(path string) bool { return strings.HasPrefix(path, "/v1/ns/api/") }, 401, "GET /v1/ns/api/srvIPXT"},
		"3.x": {func(path string) bool { return strings.HasPrefix(path, "/v3/") }, 410, "GET /v3/client/ns/instance/list"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := servertest.New(t)
			target, err := url.Parse(server.URL())
			if err != nil {
				t.Fatal(err)
			}
			g := &generation{next: httputil.NewSingleHostReverseProxy(target), open: test.open, status: test.status}
			front := httptest.NewServer(g)
			defer front.Close()
			options := []rollcall.Option{
				rollcall.WithServers(front.URL), rollcall.WithProtocol(rollcall.HTTP), rollcall.WithUDP("off"), rollcall.WithNamespace("public"),
			}
			provider, consumer := dial(t, options...), dial(t, options...)
			w, err := consumer.Watch(within(t), orders)
			if err != nil {
				t.Fatal(err)
			}
			if w.Snapshot().Len() != 0 {
				t.Errorf("shows %d", w.Snapshot().Len())
			}
			in := rollcall.NewInstance("10.0.0.7", 8080, rollcall.Weighted(0.5), rollcall.Tagged("a", "b c&d"))
			r, err := provider.Register(within(t), orders, in, rollcall.WithHeartbeat(200*time.Millisecond, time.Second, 2*time.Second))
			if err != nil {
				t.Fatal(err)
			}
			got := see(t, w, "the instance", count(1)).At(0)
			if got.Weight != 0.5 || got.Metadata["a"] != "b c&d" || !got.Available() || got.Cluster != "DEFAULT" {
				t.Errorf("got %+v", got)
			}
			if g.asked(test.list) == 0 {
				t.Errorf("%s was not asked: %v", test.list, g.paths)
			}
			// beats keep it alive beyond the time after which it would be removed
			alive := time.Now()
			for time.Since(alive) < 4*time.Second {
				if s, err := consumer.Lookup(within(t), orders); err != nil || s.Len() != 1 || !s.At(0).Healthy {
					t.Fatalf("after %v: %v, %v", time.Since(alive), s, err)
				}
				time.Sleep(100 * time.Millisecond) //nolint:forbidigo // life in real time is what is tried
			}
			names := 0
			for s, err := range consumer.Services(within(t), rollcall.ServiceQuery{}) {
				if err != nil || s.Name != "orders" {
					t.Errorf("listed %v, %v", s, err)
				}
				names++
			}
			if names != 1 {
				t.Errorf("%d services", names)
			}
			if err := r.Deregister(within(t)); err != nil {
				t.Fatal(err)
			}
			see(t, w, "nothing", count(0))
		})
	}
}
