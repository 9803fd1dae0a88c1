package compat

import (
	"bytes"
	"flag"
	"io/fs"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

var configFor = flag.Duration("config-for", time.Minute, "how long to watch a client whose configuration half is switched on")

// What a client with both halves on may ask of the server and write to its logs, a
// minute. An idle client sends a beat or a health check each 5 s and half, and looks
// at its configurations every few seconds.
const (
	requestsAMinute = 90
	linesAMinute    = 90
	// The server has nothing to say of an idle client.
	serverLinesAMinute = 2
)

// config switches the SDK's configuration half on, which this server does not
// serve: the client must be told so in a way that leaves it quiet, and its naming
// half alone.
func config(t *testing.T, b *bench) {
	s := serve(t, b.bin)
	p := b.driver.place("config")
	c := b.client(t, s, p.namespace)
	inst := b.driver.rich(p, 8080)
	c.do("register", inst)
	c.do("subscribe", Instance{Service: p.service, Group: p.group})
	answer := c.do("config", Instance{Service: "app.yaml", Group: "g1"})
	t.Logf("config: %s", answer.Text)
	if strings.Contains(strings.ToLower(answer.Text), "publish: true") {
		t.Error("the SDK believes that its configuration was published")
	}
	// What follows from the start is over when the first turn of every poll is.
	throughout(t, aPoll, "the instance is there", func() bool { _, ok := s.candidate(p, inst.addr()); return ok })

	before, lines, logged := s.requests(), c.lines(), s.logged.Load()
	start := time.Now()
	events := len(s.history(p, inst.addr()))
	throughout(t, *configFor, "the instance is healthy", func() bool {
		got, ok := s.candidate(p, inst.addr())
		return ok && got.Healthy
	})
	minutes := time.Since(start).Minutes()
	asked := 0
	for route, n := range s.requests() {
		if n -= before[route]; n > 0 && !strings.Contains(route, "/rollcall/") && !strings.Contains(route, "metrics") {
			t.Logf("%s: %d requests in %s", route, n, *configFor)
			asked += n
		}
	}
	written := c.lines() - lines
	logged = s.logged.Load() - logged
	t.Logf("%.1f requests/s, %.1f lines a minute, after %d lines at the start; the server wrote %d",
		float64(asked)/minutes/60, float64(written)/minutes, lines, logged)
	if float64(asked)/minutes > requestsAMinute {
		t.Errorf("%d requests in %s", asked, *configFor)
	}
	if float64(written)/minutes > float64(max(linesAMinute, b.driver.lines)) {
		t.Errorf("%d lines of log in %s", written, *configFor)
	}
	if float64(logged)/minutes > serverLinesAMinute {
		t.Errorf("the server wrote %d lines of log in %s", logged, *configFor)
	}
	if reconnects := s.requests()["grpc/ServerCheckRequest"] - before["grpc/ServerCheckRequest"]; reconnects > 0 {
		t.Errorf("the client connected anew %d times", reconnects)
	}
	if now := len(s.history(p, inst.addr())); now != events {
		t.Errorf("history:\n%s", tell(s.history(p, inst.addr())))
	}
	if l := c.do("status", Instance{}); l.Text != "UP" {
		t.Errorf("the SDK finds the server %q, want UP", l.Text)
	}
}

// requestLine finds the number of requests of a route and a status.
var requestLine = regexp.MustCompile(`(?m)^rollcall_requests_total\{code="[^"]*",route="([^"]*)"\} (\d+)$`)

// requests returns how many requests of each route the server has answered.
func (s *server) requests() map[string]int {
	s.t.Helper()
	out := map[string]int{}
	for _, m := range requestLine.FindAllStringSubmatch(s.call(http.MethodGet, "/metrics", nil), -1) {
		n, err := strconv.Atoi(m[2])
		if err != nil {
			s.t.Fatal(err)
		}
		out[m[1]] += n
	}
	return out
}

// lines returns how many lines the SDK has written to its output and its logs.
func (c *client) lines() int {
	c.t.Helper()
	c.mu.Lock()
	n := c.talked
	c.mu.Unlock()
	dir := os.DirFS(c.cmd.Dir)
	err := fs.WalkDir(dir, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.Contains(path, "log") {
			return err
		}
		text, err := fs.ReadFile(dir, path)
		n += bytes.Count(text, []byte("\n"))
		return err
	})
	if err != nil {
		c.t.Fatal(err)
	}
	return n
}
