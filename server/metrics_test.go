package server_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/rollcall-registry/rollcall/servertest"
)

// TestMetrics reads the figures of a server with one instance of each kind, under
// our names and under those of Nacos.
func TestMetrics(t *testing.T) {
	t.Parallel()
	s := servertest.New(t)
	const instance = "/nacos/v1/ns/instance?serviceName=orders&ip=10.0.0.7&port="
	call(t, "POST", s.URL()+instance+"8080")
	call(t, "POST", s.URL()+instance+"8081&ephemeral=false")
	call(t, "DELETE", s.URL()+instance+"8080")
	call(t, "POST", s.URL()+instance+"8082&healthy=false")
	for _, path := range []string{"/metrics", "/nacos/actuator/prometheus"} {
		lines := strings.Split(call(t, "GET", s.URL()+path), "\n")
		have := make(map[string]bool, len(lines))
		for _, line := range lines {
			have[line] = true
		}
		for _, want := range []string{
			`rollcall_services 1`,
			`rollcall_instances{kind="ephemeral"} 1`,
			`rollcall_instances{kind="persistent"} 1`,
			`rollcall_healthy_instances 1`,
			`rollcall_requests_total{code="200",route="/v1/ns/instance"} 4`,
			`rollcall_events_total{cause="request",kind="registered"} 3`,
			`rollcall_events_total{cause="request",kind="removed"} 1`,
			`rollcall_durable_healthy 1`,
			`nacos_monitor{module="naming",name="serviceCount"} 1`,
			`nacos_monitor{module="naming",name="ipCount"} 2`,
			`nacos_monitor{module="naming",name="subscriberCount"} 0`,
			`nacos_monitor{module="naming",name="leaderStatus"} 1`,
		} {
			if !have[want] {
				t.Errorf("%s has no line %s", path, want)
			}
		}
	}
}

// call sends a request and returns the body of the answer.
func call(t *testing.T, method, url string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	if answer.StatusCode != http.StatusOK {
		t.Fatalf("%s %s: %d %s", method, url, answer.StatusCode, body)
	}
	return string(body)
}
