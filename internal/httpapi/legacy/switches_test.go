package legacy

import (
	"encoding/json"
	"testing"
)

func TestUpdateSwitch(t *testing.T) {
	s := newTestServer(t)
	for _, tt := range []struct {
		params string
		status int
		body   string
	}{
		{"", 400, "Param 'entry' is required.\n"},
		{"entry=enableCache&enableCache=true", 400, "update entry not found: enableCache\n"},
		{"entry=check", 400, "Param 'enabled' is required.\n"},
		{"entry=pushVersion&version=1.0.0", 400, "Param 'type' is required.\n"},
		{"entry=pushVersion&type=java", 400, "Param 'version' is required.\n"},
		{"entry=healthCheckTimes&times=x", 400, "For input string: \"x\"\n"},
		{"entry=defaultCacheMillis&millis=999", 400, "min default cache time  is too small(<1000)\n"},
		{"entry=pushCacheMillis&millis=20000&dom=a", 400, "Param 'dom' is illegal, a single service has no pushCacheMillis of its own.\n"},
		{"entry=limitedUrlMap&limitedUrls=a", 400, "invalid input for limited urls\n"},
		{"entry=batch&json=zzz", 500, "Param 'json' is illegal, the switches are no JSON object."},
		{"entry=batch&json=" + escape(`{"clientBeatInterval":"x"}`), 500, "Param 'json' is illegal, it has a switch with a value of the wrong type."},
		{"entry=batch&json=" + escape(`{"httpHealthParams":{"min":1,"max":5000,"factor":0.5}}`), 400, "httpHealthParams: min check time is too small(<500)\n"},
		{"entry=check&enabled=false", 200, "ok"},
		{"entry=distro&enabled=TRUE", 200, "ok"},
		{"entry=healthCheckTimes&times=5", 200, "ok"},
		{"entry=masters&names=a,b", 200, "ok"},
		{"entry=pushVersion&type=go&version=0.2.0", 200, "ok"},
		{"entry=clientBeatInterval&clientBeatInterval=6000&debug=true", 200, "ok"},
		{"entry=domStatusSynchronizationPeriodMillis&millis=6000", 200, "ok"},
		{"entry=limitedUrlMap&limitedUrls=/x:429", 200, "ok"},
	} {
		got := s.get(t, "updateSwitch", tt.params)
		if got.status != tt.status || got.body != tt.body {
			t.Errorf("%s: got %d %q, want %d %q", tt.params, got.status, got.body, tt.status, tt.body)
		}
	}
	now := s.store.Switches()
	if now.HealthCheckEnabled || now.CheckTimes != 5 || len(now.Masters) != 2 || now.PushGoVersion != "0.2.0" ||
		now.ClientBeatInterval != 6000 || now.ServiceStatusSynchronizationPeriodMillis != 6000 || now.LimitedURLMap["/x"] != 429 {
		t.Errorf("got %+v", now)
	}
}

// TestBatchChangesWhatDiffers: an operator sends back what switches showed, with
// changes. Nothing else may change: neither what 0.9 shows otherwise nor what it
// does not know.
func TestBatchChangesWhatDiffers(t *testing.T) {
	s := newTestServer(t)
	s.ok(t, "updateSwitch", "entry=clientBeatInterval&clientBeatInterval=7000")
	if got := s.send(t, "PUT", "/nacos/v1/ns/operator/switches?entry=lightBeatEnabled&value=false", ""); got.body != "ok" {
		t.Fatal(got)
	}
	shown := s.json(t, "switches", "")
	shown["checkTimes"], shown["domStatusSynchronizationPeriodMillis"], shown["enableCache"] = 9, 8000, false
	data, err := json.Marshal(shown)
	if err != nil {
		t.Fatal(err)
	}
	s.ok(t, "updateSwitch", "entry=batch&json="+escape(string(data)))
	now := s.store.Switches()
	if now.CheckTimes != 9 || now.ServiceStatusSynchronizationPeriodMillis != 8000 {
		t.Errorf("not changed: %+v", now)
	}
	if now.ClientBeatInterval != 7000 || now.LightBeatEnabled || now.DefaultCacheMillis != 3000 || now.Masters != nil || !now.PushEnabled {
		t.Errorf("changed: %+v", now)
	}
}
