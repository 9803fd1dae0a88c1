package compat

import (
	"bufio"
	"encoding/json"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rollcall-registry/rollcall/api/opsv1"
)

// A server is a process of the binary, on loopback.
type server struct {
	t    *testing.T
	bin  string
	dir  string // its data directory
	addr string // the same after a restart
	cmd  *exec.Cmd

	logged atomic.Int64 // lines, since it was ready
}

// serve runs a server with an empty data directory until the test ends.
func serve(t *testing.T, bin string) *server {
	t.Helper()
	s := &server{t: t, bin: bin, dir: filepath.Join(t.TempDir(), "data"), addr: freeAddr(t)}
	s.start()
	t.Cleanup(s.kill)
	return s
}

// lowestPort and highestPort bound the ports of servers: below those that systems
// choose for outgoing connections, so that a server gets its ports again after a
// restart, with room for the port of gRPC.
const (
	lowestPort  = 20000
	highestPort = 31000
	grpcOffset  = 1000 // what SDKs add to the port that they are told
)

// freeAddr returns a loopback address whose port, and that of gRPC, are free.
func freeAddr(t *testing.T) string {
	t.Helper()
	for range 100 {
		port := lowestPort + rand.IntN(highestPort-lowestPort)
		if isFree(port) && isFree(port+grpcOffset) {
			return addrOf("127.0.0.1", int32(port))
		}
	}
	t.Fatal("no pair of ports is free")
	return ""
}

// isFree reports whether a loopback port can be listened on.
func isFree(port int) bool {
	l, err := net.Listen("tcp", addrOf("127.0.0.1", int32(port)))
	return err == nil && l.Close() == nil
}

// readyLine finds the address in the line that a server prints when it is ready.
var readyLine = regexp.MustCompile(`^ready http=(\S+)`)

// start starts the server, again at the address it had, and waits until it is
// ready.
func (s *server) start() {
	s.t.Helper()
	s.cmd = exec.Command(s.bin, "serve", "--listen", s.addr, "--udp-host", "127.0.0.1", "--data-dir", s.dir)
	stderr, err := s.cmd.StderrPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	lines := bufio.NewScanner(stderr)
	var said []string
	for lines.Scan() {
		if m := readyLine.FindStringSubmatch(lines.Text()); m != nil {
			s.addr = m[1]
			go func() { // ends with the process
				for lines.Scan() {
					s.logged.Add(1)
				}
			}()
			return
		}
		said = append(said, lines.Text())
	}
	s.t.Fatalf("the server did not start:\n%s", strings.Join(said, "\n"))
}

// kill ends the server as kill -9 does.
func (s *server) kill() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait() // it was killed
}

// forget removes the data directory of a server that does not run.
func (s *server) forget() {
	s.t.Helper()
	if err := os.RemoveAll(s.dir); err != nil {
		s.t.Fatal(err)
	}
}

// call sends a request as curl would and returns the answer's body, which must
// have status 200.
func (s *server) call(method, path string, params url.Values) string {
	s.t.Helper()
	client := http.Client{Timeout: 5 * time.Second}
	req, err := http.NewRequestWithContext(s.t.Context(), method, "http://"+s.addr+path+"?"+params.Encode(), nil)
	if err != nil {
		s.t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK {
		s.t.Fatalf("%s %s: %s: %s", method, path, resp.Status, body)
	}
	return string(body)
}

// ask reads a JSON answer.
func (s *server) ask(path string, params url.Values, into any) {
	s.t.Helper()
	if err := json.Unmarshal([]byte(s.call(http.MethodGet, path, params)), into); err != nil {
		s.t.Fatalf("GET %s: %v", path, err)
	}
}

// A place names a service, with empty parts for the defaults.
type place struct{ namespace, group, service string }

func (p place) params() url.Values {
	return url.Values{"namespace": {p.namespace}, "group": {p.group}, "service": {p.service}}
}

// explain asks what a look-up of a service gives, and why.
func (s *server) explain(p place) opsv1.Explanation {
	s.t.Helper()
	var e opsv1.Explanation
	s.ask("/rollcall/v1/explain", p.params(), &e)
	return e
}

// candidate returns one instance as the server explains it.
func (s *server) candidate(p place, addr string) (opsv1.Candidate, bool) {
	s.t.Helper()
	for _, c := range s.explain(p).Candidates {
		if addrOf(c.IP, c.Port) == addr {
			return c, true
		}
	}
	return opsv1.Candidate{}, false
}

// history returns what happened to one instance, oldest first.
func (s *server) history(p place, addr string) []opsv1.Event {
	s.t.Helper()
	params := p.params()
	params.Set("order", "oldest")
	params.Set("limit", "1000")
	var h opsv1.History
	s.ask("/rollcall/v1/history", params, &h)
	var out []opsv1.Event
	for _, e := range h.Events {
		if e.Instance != nil && addrOf(e.Instance.IP, e.Instance.Port) == addr {
			out = append(out, e)
		}
	}
	return out
}

// happened reports whether an event of some kind is among events.
func happened(events []opsv1.Event, kinds ...string) bool {
	for _, e := range events {
		for _, k := range kinds {
			if e.Kind == k {
				return true
			}
		}
	}
	return false
}

// tell shows events in a few lines.
func tell(events []opsv1.Event) string {
	var b strings.Builder
	for _, e := range events {
		b.WriteString(time.UnixMilli(e.Time).Format("15:04:05.000") + " " + e.Kind + ": " + e.Cause.Text + "\n")
	}
	return b.String()
}

// register registers an instance by hand. Nobody beats for it.
func (s *server) register(p place, inst Instance) {
	s.t.Helper()
	s.call(http.MethodPost, "/nacos/v1/ns/instance", s.instanceParams(p, inst))
}

// deregister removes an instance by hand.
func (s *server) deregister(p place, inst Instance) {
	s.t.Helper()
	s.call(http.MethodDelete, "/nacos/v1/ns/instance", s.instanceParams(p, inst))
}

func (s *server) instanceParams(p place, inst Instance) url.Values {
	s.t.Helper()
	metadata, err := json.Marshal(inst.Metadata)
	if err != nil {
		s.t.Fatal(err)
	}
	weight, err := json.Marshal(inst.Weight)
	if err != nil {
		s.t.Fatal(err)
	}
	addr := strings.SplitN(inst.addr(), ":", 2)
	return url.Values{
		"namespaceId": {p.namespace}, "groupName": {p.group}, "serviceName": {p.service}, "clusterName": {inst.Cluster},
		"ip": {addr[0]}, "port": {addr[1]}, "weight": {string(weight)}, "metadata": {string(metadata)},
	}
}

// addrOf returns ip:port.
func addrOf(ip string, port int32) string { return Instance{IP: ip, Port: int(port)}.addr() }
