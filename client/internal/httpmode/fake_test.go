package httpmode

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollcall-registry/rollcall/client/internal/auth"
	"github.com/rollcall-registry/rollcall/client/internal/servers"
	"github.com/rollcall-registry/rollcall/client/internal/wire"
	"github.com/rollcall-registry/rollcall/test/faulttest"
)

// fake is a server of 1.x in memory, which writes down what it is asked.
type fake struct {
	mu          sync.Mutex
	calls       []call
	began       time.Time
	instances   map[string]bool // registered, by ip:port
	list        string
	interval    int64
	light       bool
	status      int // of all answers if it is not 0
	text        string
	token       string // that is demanded
	handle      func(w http.ResponseWriter, r *http.Request) bool
	cacheMillis int64
}

// call is one request, and when it came after the fake was made.
type call struct {
	at       time.Duration
	line     string // method and path
	form     map[string]string
	fullBeat bool
}

func newFake() *fake {
	return &fake{began: time.Now(), instances: make(map[string]bool), interval: 5000, cacheMillis: 10000, light: true}
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm()
	if r.Method == http.MethodPut { // ParseForm reads the bodies of POST, PUT and PATCH
		_ = r.PostForm
	}
	form := make(map[string]string)
	for k := range r.Form {
		form[k] = r.Form.Get(k)
	}
	f.mu.Lock()
	line := r.Method + " " + strings.TrimPrefix(r.URL.Path, "/nacos")
	f.calls = append(f.calls, call{time.Since(f.began), line, form, form["beat"] != ""})
	status, text, handle, token := f.status, f.text, f.handle, f.token
	f.mu.Unlock()
	switch {
	case handle != nil && handle(w, r):
	case status != 0:
		w.WriteHeader(status)
		fmt.Fprint(w, text)
	case strings.HasSuffix(line, "/auth/users/login"):
		f.login(w, form)
	case token != "" && form["accessToken"] != token && !strings.HasSuffix(line, "/metrics"):
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, "token invalid!")
	default:
		f.naming(w, line, form)
	}
}

func (f *fake) login(w http.ResponseWriter, form map[string]string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if form["username"] != "nacos" || form["password"] != "%+&$# é" {
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, "unknown user!")
		return
	}
	fmt.Fprintf(w, `{"accessToken":%q,"tokenTtl":18000,"globalAdmin":true}`, f.token)
}

func (f *fake) naming(w http.ResponseWriter, line string, form map[string]string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	id := form["ip"] + ":" + form["port"]
	switch line {
	case "GET /v1/ns/operator/metrics":
		fmt.Fprint(w, `{"status":"UP"}`)
	case "POST /v1/ns/instance":
		f.instances[id] = true
		fmt.Fprint(w, "ok")
	case "DELETE /v1/ns/instance":
		delete(f.instances, id)
		fmt.Fprint(w, "ok")
	case "PUT /v1/ns/instance/beat":
		if form["beat"] != "" {
			f.instances[id] = true
		}
		if !f.instances[id] {
			fmt.Fprintf(w, `{"clientBeatInterval":%d,"code":20404}`, f.interval)
			return
		}
		fmt.Fprintf(w, `{"clientBeatInterval":%d,"code":10200,"lightBeatEnabled":%t}`, f.interval, f.light)
	case "GET /v1/ns/instance/list":
		if f.list != "" {
			fmt.Fprint(w, f.list)
			return
		}
		fmt.Fprintf(w, `{"name":%q,"cacheMillis":%d,"hosts":[],"lastRefTime":1}`, form["serviceName"], f.cacheMillis)
	default:
		http.Error(w, "no such api", http.StatusNotImplemented)
	}
}

func (f *fake) set(change func(f *fake)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f)
}

// of returns the calls with a line.
func (f *fake) of(line string) []call {
	f.mu.Lock()
	defer f.mu.Unlock()
	var found []call
	for _, c := range f.calls {
		if c.line == line {
			found = append(found, c)
		}
	}
	return found
}

func (f *fake) has(id string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.instances[id]
}

// recorder takes the events of a transport.
type recorder struct {
	mu      sync.Mutex
	ups     int
	downs   []error
	lists   []wire.List
	dropped map[string]int
}

func (r *recorder) Connected(wire.Session) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ups++
}

func (r *recorder) Disconnected(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.downs = append(r.downs, err)
}

func (r *recorder) Pushed(l wire.List) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lists = append(r.lists, l)
}

func (r *recorder) ServicesChanged(wire.ServicesChange) {}

func (r *recorder) Dropped(reason string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.dropped == nil {
		r.dropped = make(map[string]int)
	}
	r.dropped[reason]++
}

func (r *recorder) pushes() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.lists)
}

// since returns the lists that came after the first n.
func (r *recorder) since(n int) []wire.List {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.lists[n:])
}

// world is a network with fakes and a transport that runs.
type world struct {
	*Transport
	net    *faulttest.Network
	fakes  map[string]*fake // by host:port
	events *recorder
}

const first = "10.0.0.1:8848"

// inWorld runs f in a bubble with a transport and fakes at some addresses.
func inWorld(t *testing.T, addresses []string, credentials auth.Source, f func(t *testing.T, w *world)) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{net: faulttest.NewNetwork(t), fakes: make(map[string]*fake), events: new(recorder)}
		for _, at := range addresses {
			w.fakes[at] = newFake()
			serve(t, w.net.Listen(at), w.fakes[at])
		}
		list := servers.New(servers.Static(addresses), servers.Ports{Offset: 1000})
		if err := list.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		calls := CallerConfig{Servers: list, Timeout: 3 * time.Second, ContextPath: "/nacos", Dial: w.net.Dial}
		calls.Auth = auth.New(credentials, NewLogin(calls))
		w.Transport = New(Config{
			CallerConfig: calls, Backoff: servers.Backoff{Min: 100 * time.Millisecond, Max: 5 * time.Second},
			Logger: slog.New(slog.DiscardHandler), UDP: "off", LocalIP: "192.0.2.1",
		})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { _ = w.Run(ctx, w.events); close(done) }()
		synctest.Wait()
		f(t, w)
		cancel()
		<-done
	})
}

// serve runs an HTTP server until the test ends.
func serve(t *testing.T, l net.Listener, h http.Handler) {
	server := &http.Server{Handler: h}
	done := make(chan error, 1)
	go func() { done <- server.Serve(l) }()
	t.Cleanup(func() {
		_ = server.Close()
		if err := <-done; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
}

var orders = wire.Service{Namespace: "public", Group: "DEFAULT_GROUP", Name: "orders"}

func instance(port uint16) wire.Instance {
	return wire.Instance{IP: "10.1.0.1", Port: port, Weight: 1, Healthy: true, Enabled: true, Ephemeral: true, Cluster: "DEFAULT"}
}
