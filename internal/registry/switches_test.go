package registry

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// The entries, values and texts are those of the recordings v1-1.4.8-serial and
// operator-switch-invalid.
func TestSetSwitch(t *testing.T) {
	set := func(change func(*Switches)) *Switches {
		s := DefaultSwitches()
		change(s)
		return s
	}
	for _, tt := range []struct {
		entry, value string
		want         *Switches // nil when refused
		text         string
	}{
		{"clientBeatInterval", "8000", set(func(s *Switches) { s.ClientBeatInterval = 8000 }), ""},
		{"clientBeatInterval", "1", set(func(s *Switches) { s.ClientBeatInterval = 1 }), ""},
		{"clientBeatInterval", "0", nil, "clientBeatInterval is too small(<1)"},
		{"clientBeatInterval", "-1", nil, "clientBeatInterval is too small(<1)"},
		{"clientBeatInterval", "abc", nil, `For input string: "abc"`},
		{"pushCacheMillis", "20000", set(func(s *Switches) { s.DefaultPushCacheMillis = 20000 }), ""},
		{"pushCacheMillis", "9999", nil, "min cache time for http or tcp is too small(<10000)"},
		{"pushCacheMillis", "x", nil, `For input string: "x"`},
		{"defaultCacheMillis", "4000", set(func(s *Switches) { s.DefaultCacheMillis = 4000 }), ""},
		{"defaultCacheMillis", "999", nil, "min default cache time  is too small(<1000)"},
		{"check", "false", set(func(s *Switches) { s.HealthCheckEnabled = false }), ""},
		{"check", "yes", set(func(s *Switches) { s.HealthCheckEnabled = false }), ""},
		{"check", "TRUE", set(func(s *Switches) {}), ""},
		{"autoChangeHealthCheckEnabled", "false", set(func(s *Switches) { s.AutoChangeHealthCheckEnabled = false }), ""},
		{"autoChangeHealthCheckEnabled", "yes", set(func(s *Switches) {}), ""},
		{"disableAddIP", "true", set(func(s *Switches) { s.DisableAddIP = true }), ""},
		{"disableAddIP", "yes", set(func(s *Switches) {}), ""},
		{"sendBeatOnly", "true", set(func(s *Switches) { s.SendBeatOnly = true }), ""},
		{"lightBeatEnabled", "false", set(func(s *Switches) { s.LightBeatEnabled = false }), ""},
		{"pushEnabled", "false", set(func(s *Switches) { s.PushEnabled = false }), ""},
		{"distro", "false", set(func(s *Switches) { s.DistroEnabled = false }), ""},
		{"defaultInstanceEphemeral", "false", set(func(s *Switches) { s.DefaultInstanceEphemeral = false }), ""},
		{"enableAuthentication", "true", set(func(s *Switches) { s.EnableAuthentication = true }), ""},
		{"enableStandalone", "false", set(func(s *Switches) {}), ""},
		{"distroThreshold", "0.5", set(func(s *Switches) { s.DistroThreshold = 0.5 }), ""},
		{"distroThreshold", "0", nil, "distroThreshold can not be zero or negative: 0.0"},
		{"distroThreshold", "x", nil, `For input string: "x"`},
		{"distroThreshold", "NaN", nil, `For input string: "NaN"`},
		{"distroThreshold", "Inf", nil, `For input string: "Inf"`},
		{"distroServerExpiredMillis", "20000", set(func(s *Switches) { s.DistroServerExpiredMillis = 20000 }), ""},
		{"serviceStatusSynchronizationPeriodMillis", "6000", set(func(s *Switches) { s.ServiceStatusSynchronizationPeriodMillis = 6000 }), ""},
		{"serviceStatusSynchronizationPeriodMillis", "4999", nil, "serviceStatusSynchronizationPeriodMillis is too small(<5000)"},
		{"serverStatusSynchronizationPeriodMillis", "1000", set(func(s *Switches) { s.ServerStatusSynchronizationPeriodMillis = 1000 }), ""},
		{"serverStatusSynchronizationPeriodMillis", "999", nil, "serverStatusSynchronizationPeriodMillis is too small(<15000)"},
		{"healthCheckTimes", "5", set(func(s *Switches) { s.CheckTimes = 5 }), ""},
		{"healthCheckTimes", "x", nil, `For input string: "x"`},
		{"masters", "", set(func(s *Switches) { s.Masters = []string{""} }), ""},
		{"masters", "a,b", set(func(s *Switches) { s.Masters = []string{"a", "b"} }), ""},
		{"pushVersion", "java:1.5.0", set(func(s *Switches) { s.PushJavaVersion = "1.5.0" }), ""},
		{"pushVersion", "python:1.5.0", set(func(s *Switches) { s.PushPythonVersion = "1.5.0" }), ""},
		{"pushVersion", "c:1.5.0", set(func(s *Switches) { s.PushCVersion = "1.5.0" }), ""},
		{"pushVersion", "go:10.20.30", set(func(s *Switches) { s.PushGoVersion = "10.20.30" }), ""},
		{"pushVersion", "csharp:1.5.0", nil, "unsupported client type: csharp"},
		{"pushVersion", "zzz:1.0.0", nil, "unsupported client type: zzz"},
		{"pushVersion", "java:abc", nil, `illegal version, must match: [0-9]+\.[0-9]+\.[0-9]+`},
		{"pushVersion", "java:1", nil, `illegal version, must match: [0-9]+\.[0-9]+\.[0-9]+`},
		{"pushVersion", "java:1.2.3x", nil, `illegal version, must match: [0-9]+\.[0-9]+\.[0-9]+`},
		{"pushVersion", "java", nil, `pushVersion must be type:x.y.z, not "java"`},
		{"limitedUrlMap", "/zzz:404", set(func(s *Switches) { s.LimitedURLMap["/zzz"] = 404 }), ""},
		{"limitedUrlMap", "/a?b=c:418,/d:503", set(func(s *Switches) { s.LimitedURLMap["/a?b=c"], s.LimitedURLMap["/d"] = 418, 503 }), ""},
		{"limitedUrlMap", "", set(func(s *Switches) {}), ""},
		{"limitedUrlMap", "abc", nil, "invalid input for limited urls"},
		{"limitedUrlMap", "/x:", nil, "invalid input for limited urls"},
		{"limitedUrlMap", "/x:1:2", nil, "invalid input for limited urls"},
		{"limitedUrlMap", "/x:-1", nil, "illegal normal status code: -1"},
		{"limitedUrlMap", "/x:7", nil, "illegal normal status code: 7"},
		{"limitedUrlMap", "/x:1000", nil, "illegal normal status code: 1000"},
		{"limitedUrlMap", "/x:abc", nil, `For input string: "abc"`},
		{"limitedUrlMap", ":404", nil, "url can not be empty , url: "},
		{"overriddenServerStatus", "READ_ONLY", set(func(s *Switches) { s.OverriddenServerStatus = new("READ_ONLY") }), ""},
		{"overriddenServerStatus", "null", set(func(s *Switches) { s.OverriddenServerStatus = new("") }), ""},
		{"overriddenServerStatus", "up", nil, `"up" is no server status; it is one of STARTING, UP, DOWN, READ_ONLY, WRITE_ONLY, PAUSED, null`},
		{"batch", "zzz", nil, "the switches are no JSON object"},
		{"batch", "null", nil, "the switches are no JSON object"},
		{"zzz", "1", nil, `"zzz" is no switch`},
		{"", "1", nil, `"" is no switch`},
	} {
		t.Run(tt.entry+"="+tt.value, func(t *testing.T) {
			w := newWorld(t)
			_, err := w.Apply(&SetSwitch{Meta: w.meta(), Entry: tt.entry, Value: tt.value})
			if check := newWorld(t).CheckSwitch(tt.entry, tt.value); (check == nil) != (err == nil) {
				t.Errorf("CheckSwitch says %v, Apply %v", check, err)
			}
			if tt.want == nil {
				var refusal *Error
				if !errors.As(err, &refusal) || refusal.Msg != tt.text || refusal.Param != tt.entry {
					t.Errorf("got %v, want %q", err, tt.text)
				}
				w.events()
				tt.want = DefaultSwitches()
			} else if err != nil || w.rec.events[0].Detail != tt.entry+"="+tt.value {
				t.Errorf("got %v, %+v", err, w.rec.events)
			}
			if got := w.Switches(); !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got\n%+v\nwant\n%+v", got, tt.want)
			}
		})
	}
}

func TestSwitchesJSON(t *testing.T) {
	const recorded = `{"masters":[""],"adWeightMap":{},"defaultPushCacheMillis":10000,"clientBeatInterval":5000,"defaultCacheMillis":3000,` +
		`"distroThreshold":0.7,"healthCheckEnabled":true,"autoChangeHealthCheckEnabled":true,"distroEnabled":true,"enableStandalone":true,` +
		`"pushEnabled":true,"checkTimes":3,"httpHealthParams":{"max":5000,"min":500,"factor":0.85},"tcpHealthParams":{"max":5000,"min":1000,"factor":0.75},` +
		`"mysqlHealthParams":{"max":3000,"min":2000,"factor":0.65},"incrementalList":[],"serverStatusSynchronizationPeriodMillis":2000,` +
		`"serviceStatusSynchronizationPeriodMillis":5000,"disableAddIP":false,"sendBeatOnly":false,"lightBeatEnabled":true,"limitedUrlMap":{"/zzz":404},` +
		`"distroServerExpiredMillis":10000,"pushGoVersion":"0.1.0","pushJavaVersion":"0.1.0","pushPythonVersion":"0.4.3","pushCVersion":"1.0.12",` +
		`"pushCSharpVersion":"0.9.0","enableAuthentication":false,"overriddenServerStatus":"","defaultInstanceEphemeral":true,"healthCheckWhiteList":[],` +
		`"name":"00-00---000-NACOS_SWITCH_DOMAIN-000---00-00","checksum":null}`
	w := newWorld(t)
	for _, entry := range [][2]string{{"masters", ""}, {"limitedUrlMap", "/zzz:404"}, {"overriddenServerStatus", "null"}} {
		w.must(&SetSwitch{Meta: w.meta(), Entry: entry[0], Value: entry[1]})
	}
	if got := marshal(t, w.Switches()); got != recorded {
		t.Errorf("got\n%s\nwant\n%s", got, recorded)
	}
	var partial Switches // of an older version, say
	if err := json.Unmarshal([]byte(`{"clientBeatInterval":7000}`), &partial); err != nil || partial.ClientBeatInterval != 7000 || !partial.PushEnabled {
		t.Errorf("got %+v, %v; want the defaults for what is not there", partial, err)
	}
}

func TestSwitchesBatch(t *testing.T) {
	w := newWorld(t)
	w.must(&SetSwitch{Meta: w.meta(), Entry: "clientBeatInterval", Value: "7000"})
	w.must(&SetSwitch{Meta: w.meta(), Entry: "batch", Value: ` {"checkTimes":4,"pushCSharpVersion":"9.9.9","enableStandalone":false,` +
		`"healthCheckWhiteList":["a"],"name":"x","checksum":"y","limitedUrlMap":null,"overriddenServerStatus":"DOWN"} `})
	want := DefaultSwitches() // the whole object is replaced, but for what stays
	want.CheckTimes, want.OverriddenServerStatus = 4, new("DOWN")
	if got := w.Switches(); !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%+v\nwant\n%+v", got, want)
	}
	for _, value := range []string{
		`{"httpHealthParams":{"max":5000,"min":499,"factor":0.5}}`, `{"tcpHealthParams":{"max":2999,"min":500,"factor":0.5}}`,
		`{"tcpHealthParams":{"max":3000,"min":500,"factor":1.1}}`, `{"overriddenServerStatus":"zzz"}`, `{"limitedUrlMap":{"":404}}`,
		`{"limitedUrlMap":{"/a":1}}`,
	} {
		w.refuse(&SetSwitch{Meta: w.meta(), Entry: "batch", Value: value}, InvalidSwitch)
	}
	for _, value := range []string{`{"checkTimes":"x"}`, `{"checkTimes":1} x`, `{`, `[]`, ``} {
		w.refuse(&SetSwitch{Meta: w.meta(), Entry: "batch", Value: value}, MalformedSwitch)
	}
	if got := w.Switches(); !reflect.DeepEqual(got, want) {
		t.Errorf("a refusal left\n%+v", got)
	}
}

func TestServerStatus(t *testing.T) {
	for _, tt := range []struct {
		forced *string
		want   string
	}{{nil, "UP"}, {new(""), "UP"}, {new("READ_ONLY"), "READ_ONLY"}} {
		if got := (&Switches{OverriddenServerStatus: tt.forced}).Status(); got != tt.want {
			t.Errorf("got %s, want %s", got, tt.want)
		}
	}
}

func FuzzSetSwitch(f *testing.F) {
	f.Add("batch", marshal(f, DefaultSwitches()))
	f.Add("limitedUrlMap", "/a:404,/b:503")
	f.Add("pushVersion", "go:1.2.3")
	f.Add("distroThreshold", "1e-3")
	f.Add("overriddenServerStatus", "null")
	f.Fuzz(func(t *testing.T, entry, value string) {
		got, err := DefaultSwitches().with(entry, value)
		if err != nil {
			var refusal *Error
			if !errors.As(err, &refusal) || !slices.Contains([]Code{InvalidSwitch, MalformedSwitch, UnknownSwitch}, refusal.Code) {
				t.Errorf("%q=%q: %v is no refusal", entry, value, err)
			}
			return
		}
		var back Switches // what is stored is in every snapshot
		if err := json.Unmarshal([]byte(marshal(t, got)), &back); err != nil {
			t.Fatal(err)
		}
		if strings.ToValidUTF8(value, "") == value && marshal(t, &back) != marshal(t, got) {
			t.Errorf("%s came back as %s", marshal(t, got), marshal(t, &back))
		}
		if _, err := got.with("batch", marshal(t, got)); err != nil {
			t.Errorf("%s is refused as a batch: %v", marshal(t, got), err)
		}
		for prefix, status := range got.LimitedURLMap {
			if prefix == "" || status < 200 {
				t.Errorf("a request for %q gets %s", prefix, fmt.Sprint(status))
			}
		}
	})
}
