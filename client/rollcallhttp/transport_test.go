package rollcallhttp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	rollcall "github.com/rollcall-registry/rollcall/client"
	"github.com/rollcall-registry/rollcall/client/balance"
	"github.com/rollcall-registry/rollcall/client/clienttest"
	"github.com/rollcall-registry/rollcall/client/rollcallhttp"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func orders() rollcall.Service { return rollcall.Service{Name: "orders"} }

// serve starts a server that answers with its name, the Host header and the body.
func serve(t *testing.T, name string) rollcall.Instance {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		fmt.Fprintf(w, "%s %s %s %s", name, r.Host, r.URL.Path, body)
	}))
	t.Cleanup(s.Close)
	return instanceAt(t, s.URL)
}

func instanceAt(t *testing.T, address string) rollcall.Instance {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.ParseUint(u.Port(), 10, 16)
	if err != nil {
		t.Fatal(err)
	}
	return rollcall.NewInstance(u.Hostname(), uint16(port))
}

// dead returns an instance at which nothing listens.
func dead(t *testing.T) rollcall.Instance {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return instanceAt(t, "http://"+l.Addr().String())
}

// client returns a client of HTTP that uses the registry, and the transport in it. With
// it all connections end when the test does.
func client(t *testing.T, r *clienttest.Registry, options ...rollcallhttp.Option) (*http.Client, *rollcallhttp.Transport) {
	t.Helper()
	transport := rollcallhttp.NewTransport(r.Client(t), append([]rollcallhttp.Option{rollcallhttp.WithBase(&http.Transport{})}, options...)...)
	h := &http.Client{Transport: transport}
	t.Cleanup(func() {
		h.CloseIdleConnections()
		if err := transport.Close(); err != nil {
			t.Error(err)
		}
	})
	return h, transport
}

// ask sends a request and returns the text of the answer.
func ask(t *testing.T, h *http.Client, address string, body io.Reader) (string, error) {
	t.Helper()
	method := http.MethodGet
	if body != nil {
		method = http.MethodPost
	}
	req, err := http.NewRequestWithContext(t.Context(), method, address, body)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := h.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return string(text), err
}

func TestNames(t *testing.T) {
	r := clienttest.New()
	in := serve(t, "a")
	r.Set(orders(), in)
	h, _ := client(t, r)
	for address, want := range map[string]string{
		"http://orders.rollcall/x":      "a orders.rollcall /x ",
		"rollcall://orders/x":           "a orders /x ",
		"http://orders.rollcall:80/x":   "a orders.rollcall:80 /x ",
		"http://" + in.Addr() + "/past": "a " + in.Addr() + " /past ",
	} {
		if got, err := ask(t, h, address, nil); err != nil || got != want {
			t.Errorf("%s: %q, %v, want %q", address, got, err, want)
		}
	}
	if _, err := ask(t, h, "http://nobody.rollcall/", nil); !errors.Is(err, rollcall.ErrNoInstances) {
		t.Errorf("got %v", err)
	}
}

func TestWithNames(t *testing.T) {
	r := clienttest.New()
	r.Set(rollcall.Service{Group: "g", Name: "orders"}, serve(t, "a"))
	h, _ := client(t, r, rollcallhttp.WithNames(func(r *http.Request) (rollcall.Service, bool) {
		return rollcall.Service{Group: "g", Name: strings.TrimSuffix(r.URL.Hostname(), ".svc")}, true
	}))
	if got, err := ask(t, h, "http://orders.svc/x", nil); err != nil || !strings.HasPrefix(got, "a ") {
		t.Errorf("%q, %v", got, err)
	}
}

func TestSecure(t *testing.T) {
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.TLS != nil)
	}))
	defer s.Close()
	in := instanceAt(t, s.URL)
	in.Metadata = map[string]string{"secure": "true"}
	r := clienttest.New()
	r.Set(orders(), in)
	h, _ := client(t, r, rollcallhttp.WithBase(s.Client().Transport))
	if got, err := ask(t, h, "http://orders.rollcall/", nil); err != nil || got != "true" {
		t.Errorf("%q, %v", got, err)
	}
}

// TestDeadInstances: when no connection can be had, another instance is tried with the
// whole body.
func TestDeadInstances(t *testing.T) {
	r := clienttest.New()
	heavy, other := dead(t), dead(t)
	heavy.Weight, other.Weight = 10000, 10000 // so that draws hardly ever find the third
	r.Set(orders(), heavy, other, serve(t, "a"))
	for name, options := range map[string][]rollcallhttp.Option{
		"random": nil,
		"nil":    {rollcallhttp.WithBalancer(nil), rollcallhttp.WithNames(nil), rollcallhttp.WithKeys(nil), rollcallhttp.WithBase(nil)},
		"turn":   {rollcallhttp.WithBalancer(balance.RoundRobin())},
		"key":    {rollcallhttp.WithBalancer(balance.ConsistentHash()), rollcallhttp.WithKeys(func(*http.Request) uint64 { return 7 })},
	} {
		t.Run(name, func(t *testing.T) {
			h, _ := client(t, r, options...)
			for range 50 {
				got, err := ask(t, h, "http://orders.rollcall/x", strings.NewReader("body"))
				if err != nil || got != "a orders.rollcall /x body" {
					t.Fatalf("got %q, %v", got, err)
				}
			}
		})
	}
	r.Set(orders(), dead(t), serve(t, "a"))
	h, _ := client(t, r)
	once := struct{ io.Reader }{strings.NewReader("body")} // which cannot be read again
	for range 20 {
		if _, err := ask(t, h, "http://orders.rollcall/x", once); err != nil {
			return
		}
	}
	t.Error("a body that cannot be read again was sent again")
}

// TestWhatWasSentIsNotSentAgain even if the connection breaks.
func TestWhatWasSentIsNotSentAgain(t *testing.T) {
	var mu sync.Mutex
	requests := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		requests++
		mu.Unlock()
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		conn.Close()
	}))
	defer s.Close()
	r := clienttest.New()
	r.Set(orders(), instanceAt(t, s.URL), serve(t, "a"))
	h, _ := client(t, r, rollcallhttp.WithBalancer(balance.RoundRobin()))
	failed := 0
	for range 10 {
		if _, err := ask(t, h, "http://orders.rollcall/x", strings.NewReader("body")); err != nil {
			failed++
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if failed != 5 || requests != 5 {
		t.Errorf("%d requests failed and %d were seen, want 5 and 5", failed, requests)
	}
}

// TestDone: requests are in flight until their bodies are closed.
func TestDone(t *testing.T) {
	r := clienttest.New()
	r.Set(orders(), serve(t, "a"))
	b := &counting{Balancer: balance.RoundRobin()}
	h, transport := client(t, r, rollcallhttp.WithBalancer(b))
	if err := transport.Ready(t.Context(), orders()); err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://orders.rollcall/", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := h.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if b.picked != 1 || b.ended != 0 {
		t.Errorf("%d picked, %d ended, want 1 and 0", b.picked, b.ended)
	}
	resp.Body.Close()
	resp.Body.Close()
	if b.ended != 1 {
		t.Errorf("%d ended, want 1", b.ended)
	}
	r.Set(orders(), dead(t))
	if _, err := ask(t, h, "http://orders.rollcall/", nil); err == nil {
		t.Error("a dead instance answered")
	}
	if b.picked != b.ended {
		t.Errorf("%d picked and %d ended", b.picked, b.ended)
	}
}

// counting counts picks.
type counting struct {
	rollcall.Balancer
	picked, ended int
}

func (c *counting) Build(s *rollcall.Snapshot, _ rollcall.Picker) rollcall.Picker {
	return countingPicker{c.Balancer.Build(s, nil), c}
}

type countingPicker struct {
	rollcall.Picker
	count *counting
}

func (p countingPicker) Pick() (*rollcall.Instance, error) {
	in, err := p.Picker.Pick()
	if err == nil {
		p.count.picked++
	}
	return in, err
}

func (p countingPicker) Done(*rollcall.Instance, error) { p.count.ended++ }

func TestClose(t *testing.T) {
	r := clienttest.New()
	r.Set(orders(), serve(t, "a"))
	c := r.Client(t)
	transport := rollcallhttp.NewTransport(c)
	if err := transport.Ready(t.Context(), orders()); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := transport.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if n := c.Status().Watches; n != 0 {
		t.Errorf("%d watches are left", n)
	}
	if err := transport.Ready(t.Context(), orders()); !errors.Is(err, rollcall.ErrClosed) {
		t.Errorf("got %v", err)
	}
}

// TestManyServices does not watch without bound.
func TestManyServices(t *testing.T) {
	c := clienttest.New().Client(t)
	transport := rollcallhttp.NewTransport(c)
	defer transport.Close()
	for n := range 1100 {
		if err := transport.Ready(t.Context(), rollcall.Service{Name: "s" + strconv.Itoa(n)}); err != nil {
			t.Fatal(err)
		}
	}
	if n := c.Status().Watches; n != 1024 {
		t.Errorf("%d watches, want 1024", n)
	}
}

func TestConcurrentFirstRequests(t *testing.T) {
	r := clienttest.New()
	r.Set(orders(), serve(t, "a"))
	c := r.Client(t)
	transport := rollcallhttp.NewTransport(c)
	defer transport.Close()
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if err := transport.Ready(context.Background(), orders()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := c.Status().Watches; n != 1 {
		t.Errorf("%d watches, want 1", n)
	}
}

func Example() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "42") }))
	defer server.Close()
	u, _ := url.Parse(server.URL)
	port, _ := strconv.ParseUint(u.Port(), 10, 16)
	registry := clienttest.New() // a program uses rollcall.New(rollcall.WithServers(…))
	registry.Set(rollcall.Service{Name: "answers"}, rollcall.NewInstance(u.Hostname(), uint16(port)))
	client, err := rollcall.New(registry.Option())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()

	transport := rollcallhttp.NewTransport(client, rollcallhttp.WithBase(&http.Transport{DisableKeepAlives: true}))
	defer transport.Close()
	h := &http.Client{Transport: transport}
	resp, err := h.Get("http://answers.rollcall/")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	fmt.Println(string(text))
	// Output: 42
}
