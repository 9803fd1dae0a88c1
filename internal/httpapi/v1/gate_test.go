package v1

import (
	"testing"

	"github.com/rollcall-registry/rollcall/internal/registry"
)

// TestStatusGate: source: reference http-api-v1 1.5 (live 1.4.8) and the recording
// switch-status-readonly.
func TestStatusGate(t *testing.T) {
	s := newTestServer(t)
	requests := map[string]struct{ method, target, agent string }{
		"read":   {"GET", "/instance/list?serviceName=a", "test"},
		"write":  {"POST", "/instance?serviceName=a&ip=1.1.1.1&port=1", "test"},
		"none":   {"GET", "/zzz", "test"},
		"server": {"GET", "/operator/metrics", "Nacos-Server:v1.4.8"},
		"undo":   {"PUT", "/operator/switches?entry=overriddenServerStatus&value=DOWN&debug=true", "Nacos-Server:v1.4.8"},
		"other":  {"GET", "/nacos/v1/console/health/readiness", "test"},
		"root":   {"GET", "/v1/ns/instance/list?serviceName=a", "test"},
	}
	for _, tt := range []struct {
		status string
		want   map[string]int // 200 when it is not here
	}{
		{"UP", map[string]int{"none": 501}},
		{"null", map[string]int{"none": 501}},
		{"READ_ONLY", map[string]int{"write": 503, "none": 501}},
		{"WRITE_ONLY", map[string]int{"read": 503, "root": 503, "none": 503}},
		{"DOWN", map[string]int{"read": 503, "root": 503, "write": 503, "none": 503}},
		{"STARTING", map[string]int{"read": 503, "root": 503, "write": 503, "none": 503}},
		{"PAUSED", map[string]int{"read": 503, "root": 503, "write": 503, "none": 503}},
	} {
		for name, r := range requests {
			s.setSwitch(t, "overriddenServerStatus", tt.status)
			want := tt.want[name]
			if want == 0 {
				want = 200
			}
			got := s.send(t, r.method, r.target, "", "User-Agent", r.agent)
			if got.status != want {
				t.Errorf("%s, %s: got %d %q, want %d", tt.status, name, got.status, got.body, want)
			}
			if text := "server is " + tt.status + "now, please try again later!"; want == 503 && got.body != text {
				t.Errorf("%s, %s: got %q, want %q", tt.status, name, got.body, text)
			}
		}
	}
}

// setSwitch sets a switch past the gate.
func (s *testServer) setSwitch(t testing.TB, entry, value string) {
	t.Helper()
	cause := registry.Cause{Kind: registry.CauseRequest, API: "test"}
	if err := s.core.SetSwitch(t.Context(), cause, entry, value, true); err != nil {
		t.Fatal(err)
	}
}

// TestLimitedURLs: source: reference http-api-v1 1.5 and the recording
// switch-limited. That the call which sets switches is never limited is ours.
func TestLimitedURLs(t *testing.T) {
	s := newTestServer(t)
	s.setSwitch(t, "limitedUrlMap", "/nacos/v1/ns/instance/list?serviceName=a:418,"+
		"/nacos/v1/ns/service:403,/nacos/v1/ns/service/list:429,/nacos/v1/ns/operator:404,/nacos/v1/ns/instance?:410")
	for _, tt := range []struct {
		method, target string
		want           int
	}{
		{"GET", "/nacos/v1/ns/instance/list?serviceName=abc", 418},
		{"GET", "/nacos/v1/ns/instance/list?serviceName=b", 200},
		{"GET", "/nacos/v1/ns/instance/list?x=1&serviceName=a", 200}, // a prefix is no pattern
		{"GET", "/nacos/v1/ns/instance/list", 400},
		{"GET", "/nacos/v1/ns/service/names", 403},
		{"GET", "/nacos/v1/ns/service/list?pageNo=1&pageSize=1", 429}, // the longest prefix counts
		{"GET", "/nacos/v1/ns/serviceX", 403},
		{"GET", "/v1/ns/service/names", 403}, // at the root
		{"GET", "/v1/ns/instance/list?serviceName=abc", 418},
		{"GET", "/nacos/v1/ns/operator/metrics", 404},
		{"PUT", "/nacos/v1/ns/operator/switches?entry=check&value=true", 200},
		{"GET", "/nacos/v1/ns/operator/switches", 404},
		{"GET", "/nacos/v1/ns/instance?serviceName=a&ip=1.1.1.1&port=1", 410},
		{"DELETE", "/nacos/v1/ns/instance", 400},
		{"GET", "/nacos/v1/console/health/liveness", 200},
	} {
		got := s.send(t, tt.method, tt.target, "", "User-Agent", "Nacos-Server:v1.4.8")
		if got.status != tt.want {
			t.Errorf("%s %s: got %d %q, want %d", tt.method, tt.target, got.status, got.body, tt.want)
		}
		if tt.want == 418 && (got.body != "" || got.contentType != "") {
			t.Errorf("%s %s: got %s %q, want no body", tt.method, tt.target, got.contentType, got.body)
		}
	}
}
