package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/rollcall-registry/rollcall/server"
	"github.com/rollcall-registry/rollcall/servertest"
)

// caller calls one server over HTTP/1.1.
type caller struct {
	base   string
	client *http.Client
}

func newCaller(t *testing.T, s *servertest.Server) *caller {
	t.Helper()
	transport := &http.Transport{MaxIdleConnsPerHost: 16}
	t.Cleanup(transport.CloseIdleConnections)
	return &caller{s.URL(), &http.Client{Transport: transport}}
}

// do returns status and body of the answer.
func (c *caller) do(method, path string, query url.Values) (int, string, error) {
	req, err := http.NewRequest(method, c.base+path+"?"+query.Encode(), nil)
	if err != nil {
		return 0, "", err
	}
	resp, err := c.client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(body), err
}

// register registers 10.0.0.1:port and returns nil once that is acknowledged.
func (c *caller) register(service string, port int, ephemeral bool) error {
	status, body, err := c.do("POST", "/nacos/v1/ns/instance", url.Values{
		"serviceName": {service}, "ip": {"10.0.0.1"}, "port": {fmt.Sprint(port)}, "ephemeral": {fmt.Sprint(ephemeral)},
	})
	if err == nil && (status != http.StatusOK || body != "ok") {
		err = fmt.Errorf("register %s on port %d: %d %s", service, port, status, body)
	}
	return err
}

// ports returns the ports that are listed.
func (c *caller) ports(t *testing.T, service string) map[int]bool {
	t.Helper()
	_, body, err := c.do("GET", "/nacos/v1/ns/instance/list", url.Values{"serviceName": {service}})
	if err != nil {
		t.Fatal(err)
	}
	var list struct{ Hosts []struct{ Port int } }
	if err := json.Unmarshal([]byte(body), &list); err != nil {
		t.Fatalf("list of %s: %v in %s", service, err, body)
	}
	ports := map[int]bool{}
	for _, h := range list.Hosts {
		ports[h.Port] = true
	}
	return ports
}

// TestTwoServers: servers of one process share nothing.
func TestTwoServers(t *testing.T) {
	t.Parallel()
	a, b := newCaller(t, servertest.New(t)), newCaller(t, servertest.New(t))
	if err := a.register("orders", 8080, true); err != nil {
		t.Fatal(err)
	}
	if got := a.ports(t, "orders"); !got[8080] {
		t.Errorf("the first server lists %v, want 8080", got)
	}
	if got := b.ports(t, "orders"); len(got) != 0 {
		t.Errorf("the second server lists %v of the first", got)
	}
	const counted = `rollcall_events_total{cause="request",kind="registered"} 1`
	for server, want := range map[*caller]bool{a: true, b: false} {
		_, metrics, err := server.do("GET", "/metrics", nil)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(metrics, counted) != want {
			t.Errorf("%s counts the registration: %v, want %v", server.base, !want, want)
		}
	}
}

func TestConfigTellsOfAllFaults(t *testing.T) {
	t.Parallel()
	cfg := server.DefaultConfig()
	cfg.Listen = []string{"nowhere"}
	cfg.DataDir = ""
	cfg.CacheBytes = -1
	cfg.Recovery.SnapshotInterval = 0
	_, err := server.New(cfg, slog.New(slog.DiscardHandler))
	for _, want := range []string{`listen: "nowhere"`, "data-dir:", "cache: -1", "recovery.snapshot-interval:"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not tell of %s", err, want)
		}
	}
}

// local is the configuration of a server on loopback that logs nothing.
func local(t *testing.T) server.Config {
	t.Helper()
	cfg := server.DefaultConfig()
	cfg.Listen = []string{"127.0.0.1:0"}
	cfg.UDP.Host = "127.0.0.1"
	cfg.DataDir = filepath.Join(t.TempDir(), "data")
	return cfg
}

// refusal returns why a server cannot start.
func refusal(t *testing.T, cfg server.Config) string {
	t.Helper()
	s, err := server.New(cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { // a server that starts after all is ended
		select {
		case <-s.Ready():
			cancel()
		case <-ctx.Done():
		}
	}()
	err = s.Run(ctx)
	if err == nil {
		t.Fatal("the server started")
	}
	return err.Error()
}

// TestCannotStart: whatever is in the way is told in one sentence that names it,
// and nothing stays open or changed, so that the next attempt succeeds.
func TestCannotStart(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { taken.Close() })
	takenUDP, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { takenUDP.Close() })
	for _, tt := range []struct {
		name string
		// spoil puts something in the way and returns what names it.
		spoil func(t *testing.T, cfg *server.Config) string
		// mend takes it away.
		mend func(t *testing.T, cfg *server.Config)
	}{
		{
			"TCP port in use",
			func(_ *testing.T, cfg *server.Config) string {
				cfg.Listen = append(cfg.Listen, taken.Addr().String())
				return "listen on " + taken.Addr().String()
			},
			func(_ *testing.T, cfg *server.Config) { cfg.Listen = cfg.Listen[:1] },
		},
		{
			"UDP port in use",
			func(_ *testing.T, cfg *server.Config) string {
				cfg.UDP.Port = takenUDP.LocalAddr().(*net.UDPAddr).Port
				return takenUDP.LocalAddr().String()
			},
			func(_ *testing.T, cfg *server.Config) { cfg.UDP.Port = 0 },
		},
		{
			"data directory in use",
			func(t *testing.T, cfg *server.Config) string {
				other := servertest.New(t, servertest.WithDataDir(cfg.DataDir))
				cfg.DataDir = other.DataDir()
				return cfg.DataDir
			},
			func(t *testing.T, cfg *server.Config) { cfg.DataDir = t.TempDir() },
		},
		{
			"memory of ephemeral instances that cannot be read",
			func(t *testing.T, cfg *server.Config) string {
				servertest.New(t, servertest.WithDataDir(cfg.DataDir)).Stop(t)
				path := filepath.Join(cfg.DataDir, "ephemeral")
				if err := os.Remove(path); err != nil {
					t.Fatal(err)
				}
				if err := os.Mkdir(path, 0o700); err != nil {
					t.Fatal(err)
				}
				return path
			},
			func(t *testing.T, cfg *server.Config) {
				if err := os.Remove(filepath.Join(cfg.DataDir, "ephemeral")); err != nil {
					t.Fatal(err)
				}
			},
		},
		{
			"damaged durable log",
			func(t *testing.T, cfg *server.Config) string {
				servertest.New(t, servertest.WithDataDir(cfg.DataDir)).Stop(t)
				path := filepath.Join(cfg.DataDir, "raft")
				if err := os.RemoveAll(path); err != nil {
					t.Fatal(err)
				}
				if err := os.Mkdir(path, 0o700); err != nil {
					t.Fatal(err)
				}
				return path
			},
			func(t *testing.T, cfg *server.Config) { cfg.DataDir = t.TempDir() },
		},
		{
			"durable log removed",
			func(t *testing.T, cfg *server.Config) string {
				servertest.New(t, servertest.WithDataDir(cfg.DataDir)).Stop(t)
				path := filepath.Join(cfg.DataDir, "raft")
				if err := os.RemoveAll(path); err != nil {
					t.Fatal(err)
				}
				return path
			},
			func(t *testing.T, cfg *server.Config) { cfg.DataDir = t.TempDir() },
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			cfg := local(t)
			want := tt.spoil(t, &cfg)
			if got := refusal(t, cfg); !strings.Contains(got, want) || strings.Contains(got, "\n") {
				t.Errorf("got %q, want one sentence that names %s", got, want)
			}
			tt.mend(t, &cfg)
			servertest.New(t, func(c *server.Config) { *c = cfg })
		})
	}
}

// TestDamagedMemory: a damaged memory of ephemeral instances is set aside, and what is
// durable, or in the history, is there.
func TestDamagedMemory(t *testing.T) {
	t.Parallel()
	s := servertest.New(t)
	for _, query := range []string{"ip=10.0.0.1&port=1", "ip=10.0.0.2&port=2&ephemeral=false"} {
		call(t, "POST", s.URL()+"/nacos/v1/ns/instance?serviceName=orders&"+query)
	}
	s.Stop(t)
	path := filepath.Join(s.DataDir(), "ephemeral")
	if err := os.WriteFile(path, []byte("no snapshot\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	again := servertest.New(t, servertest.WithDataDir(s.DataDir()))
	list := call(t, "GET", again.URL()+"/nacos/v1/ns/instance/list?serviceName=orders")
	if !strings.Contains(list, "10.0.0.1") || !strings.Contains(list, "10.0.0.2") {
		t.Errorf("listed %s", list)
	}
	if aside, err := filepath.Glob(path + "-damaged-*"); err != nil || len(aside) != 1 {
		t.Errorf("set aside: %v, %v", aside, err)
	}
}

// TestNothingStaysOpen: a server that could not start has let go of every port,
// also of those that were free.
func TestNothingStaysOpen(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	free, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	cfg := local(t)
	cfg.Listen = []string{taken.Addr().String()}
	cfg.UDP.Port = free.LocalAddr().(*net.UDPAddr).Port
	if err := free.Close(); err != nil {
		t.Fatal(err)
	}
	refusal(t, cfg)
	conn, err := net.ListenPacket("udp", fmt.Sprint("127.0.0.1:", cfg.UDP.Port))
	if err != nil {
		t.Fatalf("the UDP port was not given free: %v", err)
	}
	conn.Close()
}

// TestReadyEndpoints: what probes ask, once the server answers.
func TestReadyEndpoints(t *testing.T) {
	t.Parallel()
	c := newCaller(t, servertest.New(t))
	for _, path := range []string{"/livez", "/readyz", "/nacos/v1/console/health/readiness", "/nacos/v1/console/health/liveness"} {
		if status, body, err := c.do("GET", path, nil); err != nil || status != http.StatusOK {
			t.Errorf("%s: %d %s %v", path, status, body, err)
		}
	}
}

// storm registers instances of both kinds, each on a port of its own, until it is
// refused, and returns what was acknowledged.
type storm struct {
	callers sync.WaitGroup
	next    atomic.Int64
	mu      sync.Mutex
	acked   map[bool][]int // ports, by ephemeral
	enough  chan struct{}  // closed when many are acknowledged
}

const (
	stormCallers = 8
	stormEnough  = 400
)

// startStorm begins after the port from.
func startStorm(c *caller, from int64) *storm {
	s := &storm{acked: map[bool][]int{}, enough: make(chan struct{})}
	s.next.Store(from)
	for range stormCallers {
		s.callers.Go(func() {
			for {
				n := int(s.next.Add(1))
				ephemeral := n%2 == 0
				if err := c.register(stormService(ephemeral), n, ephemeral); err != nil {
					return
				}
				s.note(n, ephemeral)
			}
		})
	}
	return s
}

func stormService(ephemeral bool) string { return fmt.Sprint("storm-", ephemeral) }

func (s *storm) note(port int, ephemeral bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.acked[ephemeral] = append(s.acked[ephemeral], port)
	if len(s.acked[true])+len(s.acked[false]) == stormEnough {
		close(s.enough)
	}
}

// checkKept reports each acknowledged instance that c does not list.
func (s *storm) checkKept(t *testing.T, c *caller, ephemeral bool) {
	t.Helper()
	ports, lost := c.ports(t, stormService(ephemeral)), 0
	for _, port := range s.acked[ephemeral] {
		if !ports[port] {
			lost++
		}
	}
	if lost > 0 {
		t.Errorf("%d of %d acknowledged instances are lost (ephemeral: %v)", lost, len(s.acked[ephemeral]), ephemeral)
	}
}

// TestStopUnderLoadLosesNothing stops a server that is busy and looks in the next
// one for all that it had acknowledged.
func TestStopUnderLoadLosesNothing(t *testing.T) {
	t.Parallel()
	dir := servertest.WithDataDir(t.TempDir())
	first := servertest.New(t, dir)
	load := startStorm(newCaller(t, first), 0)
	<-load.enough
	first.Stop(t)
	load.callers.Wait()
	second := newCaller(t, servertest.New(t, dir))
	load.checkKept(t, second, true)
	load.checkKept(t, second, false)
	if _, history, err := second.do("GET", "/rollcall/v1/history", url.Values{"service": {stormService(true)}, "limit": {"1"}}); err != nil || !strings.Contains(history, "registered") {
		t.Errorf("the history begins anew: %s %v", history, err)
	}
}
