package v1

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
)

// TestPushState: source: reference http-api-v1 7.
func TestPushState(t *testing.T) {
	s := newTestServer(t)
	s.told.push = PushState{Total: 10, Succeed: 9, Unacked: []string{`{"type":"dom"}`}}
	for _, tt := range []struct {
		params, want string
		resets       int
	}{
		{"", `{"succeed":9,"total":10,"ratio":0.9,"reset":false}`, 0},
		{"detail=true", `{"succeed":9,"total":10,"ratio":0.9,"data":["{\"type\":\"dom\"}"],"reset":false}`, 0},
		{"reset=yes", `{"succeed":9,"total":10,"ratio":0.9,"reset":true}`, 1},
		{"reset=0", `{"succeed":9,"total":10,"ratio":0.9,"reset":false}`, 1},
	} {
		got := s.call(t, "GET", "/operator/push/state", tt.params)
		if got.body != tt.want || s.told.resets != tt.resets {
			t.Errorf("%s: got %s after %d resets, want %s after %d", tt.params, got.body, s.told.resets, tt.want, tt.resets)
		}
	}
	for _, params := range []string{"detail=zzz", "reset=zzz"} {
		want(t, params, s.call(t, "GET", "/operator/push/state", params), 500, "Invalid boolean value [zzz]")
	}
}

// TestMetricsCount: instances of both kinds count, and so do those of a brake.
func TestMetricsCount(t *testing.T) {
	s := newTestServer(t)
	s.ok(t, "POST", "/instance", "serviceName=a&ip=1.1.1.1&port=1")
	s.ok(t, "POST", "/instance", "serviceName=a&ip=127.0.0.9&port=1&ephemeral=false")
	s.ok(t, "POST", "/service", "serviceName=b")
	want(t, "metrics", s.call(t, "GET", "/operator/metrics", "app=x&namespaceId=public"), 200,
		`{"status":"UP","serviceCount":2,"instanceCount":2,"raftNotifyTaskCount":0,"responsibleServiceCount":2,"responsibleInstanceCount":2,`)
}

func TestReadiness(t *testing.T) {
	s := newTestServer(t)
	s.told.ready = errors.New("starting")
	got := s.send(t, "GET", "/nacos/v1/console/health/readiness", "")
	if got.status != 500 || got.body != "Naming is not in readiness" {
		t.Errorf("got %d %q", got.status, got.body)
	}
	want(t, "liveness", s.send(t, "GET", "/nacos/v1/console/health/liveness", ""), 200, "OK")
}

func TestLogLevel(t *testing.T) {
	s := newTestServer(t)
	for _, tt := range []struct {
		name, level string
		want        slog.Level
	}{
		{"naming-main", "debug", slog.LevelDebug},
		{"zzz", "ERROR", slog.LevelDebug}, // nothing happens
		{"root", "zzz", slog.LevelDebug},
		{"ROOT", "Warn", slog.LevelWarn},
		{"naming-push", "OFF", slog.LevelError + 1},
		{"core-raft", "TRACE", slog.LevelDebug},
		{"root", "INFO", slog.LevelInfo},
	} {
		s.ok(t, "PUT", "/operator/log", "logName="+tt.name+"&logLevel="+tt.level)
		if got := s.told.level.Level(); got != tt.want {
			t.Errorf("%s of %s: got %v, want %v", tt.level, tt.name, got, tt.want)
		}
	}
	s.api.levels = nil
	s.ok(t, "PUT", "/operator/log", "logName=root&logLevel=DEBUG")
}

// TestMembers: what a console sees of a cluster of two.
func TestMembers(t *testing.T) {
	s := newTestServer(t)
	s.api.members = twoMembers()
	const (
		one = `{"ip":"10.0.0.1","port":8848,"state":"UP","extendInfo":{"lastRefreshTime":1700000000000,` +
			`"raftPort":"7848","version":"1.4.8"},"address":"10.0.0.1:8848","failAccessCnt":0}`
		two = `{"ip":"10.0.0.2","port":8848,"state":"SUSPICIOUS","extendInfo":{"lastRefreshTime":1700000000001,` +
			`"raftPort":"7848","version":"1.4.8"},"address":"10.0.0.2:8848","failAccessCnt":3}`
	)
	for target, body := range map[string]string{
		"/operator/servers":                              `{"servers":[` + one + `,` + two + `]}`,
		"/operator/servers?healthy=true":                 `{"servers":[` + one + `]}`,
		"/operator/distro/status":                        `{"status":[` + one + `,` + two + `]}`,
		"/nacos/v1/core/cluster/self":                    `{"code":200,"message":null,"data":` + one + `}`,
		"/nacos/v1/core/cluster/nodes?keyword=10.0.0.2:": `{"code":200,"message":null,"data":[` + two + `]}`,
		"/nacos/v1/core/cluster/simple/nodes":            `{"code":200,"message":null,"data":["10.0.0.1:8848","10.0.0.2:8848"]}`,
		"/nacos/v1/console/server/state":                 `{"version":"1.4.8","standalone_mode":"cluster","function_mode":null}`,
	} {
		if got := s.send(t, "GET", target, ""); got.status != 200 || got.body != body {
			t.Errorf("%s: got %d %s, want %s", target, got.status, got.body, body)
		}
	}
	got := s.call(t, "GET", "/operator/server/status", "serverStatus="+escape("x#10.0.0.2:8848#1#1\r\nx#10.0.0.3:8848#1#1"))
	want(t, "status of a stranger", got, 400, "server: 10.0.0.3:8848 is not in serverlist")
}

// TestTokenHeader: some clients read the token from the header.
func TestTokenHeader(t *testing.T) {
	s := newTestServer(t)
	got := s.replay(t, "POST", "/nacos/v1/auth/login?username=a%0d%0aSet-Cookie:x&password=b", "")
	if got.status != 200 || strings.Contains(got.body, "Set-Cookie:x\n") {
		t.Fatalf("got %d %q", got.status, got.body)
	}
	if header := "Bearer " + between(got.body, `"accessToken":"`, `"`); got.header.Get("Authorization") != header {
		t.Errorf("got Authorization %q, want %q", got.header.Get("Authorization"), header)
	}
}

func between(text, before, after string) string {
	_, text, _ = strings.Cut(text, before)
	text, _, _ = strings.Cut(text, after)
	return text
}
