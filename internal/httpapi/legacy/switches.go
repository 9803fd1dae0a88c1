package legacy

import (
	"encoding/json"
	"maps"
	"reflect"

	"github.com/rollcall-registry/rollcall/internal/httpapi"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// switchJSON are the switches as 0.9 shows them. Those that have no counterpart
// in later versions always show what 0.9 starts with.
type switchJSON struct {
	HealthCheckEnabled       bool                 `json:"healthCheckEnabled"`
	PushJavaVersion          string               `json:"pushJavaVersion"`
	MySQLHealthParams        registry.ProbeParams `json:"mysqlHealthParams"`
	DistroThreshold          float32              `json:"distroThreshold"`
	PushPythonVersion        string               `json:"pushPythonVersion"`
	TCPHealthParams          registry.ProbeParams `json:"tcpHealthParams"`
	HealthCheckWhiteList     []string             `json:"healthCheckWhiteList"`
	LimitedURLMap            map[string]int       `json:"limitedUrlMap"`
	Masters                  []string             `json:"masters"`
	DefaultHealthCheckMode   string               `json:"defaultHealthCheckMode"`
	Owners                   []string             `json:"owners"`
	PushCVersion             string               `json:"pushCVersion"`
	CacheMillisMap           struct{}             `json:"cacheMillisMap"`
	DisableAddIP             bool                 `json:"disableAddIP"`
	AllDomNameCache          bool                 `json:"allDomNameCache"`
	TrafficTengineVersion    string               `json:"trafficSchedulingTengineVersion"`
	ClientBeatInterval       int64                `json:"clientBeatInterval"`
	EnableStandalone         bool                 `json:"enableStandalone"`
	IncrementalList          []string             `json:"incrementalList"`
	DefaultCacheMillis       int64                `json:"defaultCacheMillis"`
	TrafficCVersion          string               `json:"trafficSchedulingCVersion"`
	DomStatusPeriod          int64                `json:"domStatusSynchronizationPeriodMillis"`
	CheckTimes               int                  `json:"checkTimes"`
	SendBeatOnly             bool                 `json:"sendBeatOnly"`
	DistroServerExpired      int64                `json:"distroServerExpiredMillis"`
	DistroEnabled            bool                 `json:"distroEnabled"`
	HTTPHealthParams         registry.ProbeParams `json:"httpHealthParams"`
	ProtectThreshold         int                  `json:"protectThreshold"`
	Token                    string               `json:"token"`
	AdWeightMap              map[string]int       `json:"adWeightMap"`
	PushCacheMillisMap       struct{}             `json:"pushCacheMillisMap"`
	TrafficJavaVersion       string               `json:"trafficSchedulingJavaVersion"`
	DefaultPushCacheMillis   int64                `json:"defaultPushCacheMillis"`
	PushGoVersion            string               `json:"pushGoVersion"`
	Name                     string               `json:"name"`
	TrafficPythonVersion     string               `json:"trafficSchedulingPythonVersion"`
	ServerStatusPeriodMillis int64                `json:"serverStatusSynchronizationPeriodMillis"`
	EnableAuthentication     bool                 `json:"enableAuthentication"`
	EnableCache              bool                 `json:"enableCache"`
}

// laterNames are the switches whose name later versions changed.
var laterNames = map[string]string{
	"domStatusSynchronizationPeriodMillis": "serviceStatusSynchronizationPeriodMillis",
}

// shownSwitches returns the switches as this API shows them.
func (a *API) shownSwitches(s *registry.Switches) switchJSON {
	return switchJSON{
		HealthCheckEnabled: s.HealthCheckEnabled, PushJavaVersion: s.PushJavaVersion,
		MySQLHealthParams: s.MySQLHealthParams, DistroThreshold: s.DistroThreshold,
		PushPythonVersion: s.PushPythonVersion, TCPHealthParams: s.TCPHealthParams,
		HealthCheckWhiteList: notNil(s.HealthCheckWhiteList), LimitedURLMap: s.LimitedURLMap,
		Masters: notNil(s.Masters), DefaultHealthCheckMode: "client", Owners: []string{},
		PushCVersion: s.PushCVersion, DisableAddIP: s.DisableAddIP, AllDomNameCache: true,
		TrafficTengineVersion: "2.0.0", ClientBeatInterval: s.ClientBeatInterval,
		EnableStandalone: s.EnableStandalone, IncrementalList: notNil(s.IncrementalList),
		DefaultCacheMillis: a.cacheMillis(s), TrafficCVersion: "1.0.5",
		DomStatusPeriod: s.ServiceStatusSynchronizationPeriodMillis, CheckTimes: s.CheckTimes,
		SendBeatOnly: s.SendBeatOnly, DistroServerExpired: s.DistroServerExpiredMillis,
		DistroEnabled: s.DistroEnabled, HTTPHealthParams: s.HTTPHealthParams,
		AdWeightMap: s.AdWeightMap, TrafficJavaVersion: "4.5.0",
		DefaultPushCacheMillis: s.DefaultPushCacheMillis, PushGoVersion: s.PushGoVersion,
		Name: "00-00---000-VIPSRV_SWITCH_DOMAIN-000---00-00", TrafficPythonVersion: "9999.0.0",
		ServerStatusPeriodMillis: s.ServerStatusSynchronizationPeriodMillis,
		EnableAuthentication:     s.EnableAuthentication, EnableCache: true,
	}
}

func notNil(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

// switches answers all switches.
func (a *API) switches(x *httpapi.Exchange) {
	b, err := json.Marshal(a.shownSwitches(a.core.Store().Switches()))
	if err != nil {
		a.fail(x, err)
		return
	}
	x.JSON(200, b)
}

// switchEntries are the switches that updateSwitch sets: the parameter that holds
// the value, and the entry by which the core knows the switch.
var switchEntries = map[string]struct{ param, entry string }{
	"distroThreshold":                      {"distroThreshold", "distroThreshold"},
	"clientBeatInterval":                   {"clientBeatInterval", "clientBeatInterval"},
	"pushVersion":                          {"version", "pushVersion"},
	"pushCacheMillis":                      {"millis", "pushCacheMillis"},
	"defaultCacheMillis":                   {"millis", "defaultCacheMillis"},
	"masters":                              {"names", "masters"},
	"distro":                               {"enabled", "distro"},
	"check":                                {"enabled", "check"},
	"domStatusSynchronizationPeriodMillis": {"millis", "serviceStatusSynchronizationPeriodMillis"},
	"serverStatusSynchronizationPeriodMillis": {"millis", "serverStatusSynchronizationPeriodMillis"},
	"healthCheckTimes":                        {"times", "healthCheckTimes"},
	"disableAddIP":                            {"disableAddIP", "disableAddIP"},
	"sendBeatOnly":                            {"sendBeatOnly", "sendBeatOnly"},
	"limitedUrlMap":                           {"limitedUrls", "limitedUrlMap"},
	"enableStandalone":                        {"enableStandalone", "enableStandalone"},
	"batch":                                   {"json", "batch"},
}

// updateSwitch sets a switch: for good, or with debug in memory until the next
// start. One that only 0.9 has is as unknown as any other.
func (a *API) updateSwitch(x *httpapi.Exchange) {
	p := x.Params()
	entry, value, err := a.switchOf(p)
	if err == nil {
		err = a.core.SetSwitch(x.Context(), cause(x, "updateSwitch"), entry, value, p.BoolStrict("debug", false))
	}
	if err != nil {
		a.fail(x, err)
		return
	}
	x.OK()
}

// switchOf decodes what to set: the core's entry and its value.
func (a *API) switchOf(p *httpapi.Params) (entry, value string, err error) {
	name, err := p.Required("entry")
	if err != nil {
		return "", "", err
	}
	known, ok := switchEntries[name]
	if !ok {
		return "", "", illegal("update entry not found: %s", name)
	}
	kind := ""
	if name == "pushVersion" {
		if kind, err = p.Required("type"); err != nil {
			return "", "", err
		}
		kind += ":"
	}
	if value, err = p.Required(known.param); err != nil {
		return "", "", err
	}
	if p.Optional("dom", "") != "" && known.param == "millis" {
		return "", "", illegal("Param 'dom' is illegal, a single service has no %s of its own.", name)
	}
	if name == "batch" {
		value, err = a.batch(value)
	}
	return known.entry, kind + value, err
}

// batch returns the whole switches of 1.x with those changed that differ in text
// from what this API shows: 0.9 does not know all, and shows some of its own.
func (a *API) batch(text string) (string, error) {
	s := a.core.Store().Switches()
	var given map[string]any
	if err := json.Unmarshal([]byte(text), &given); err != nil || given == nil {
		return "", malformed("json", "the switches are no JSON object")
	}
	present, err := fields(a.shownSwitches(s))
	if err != nil {
		return "", err
	}
	next, err := fields(s)
	if err != nil {
		return "", err
	}
	maps.DeleteFunc(given, func(name string, value any) bool { return reflect.DeepEqual(value, present[name]) })
	for name, value := range given {
		if later, ok := laterNames[name]; ok {
			name = later
		}
		if _, ok := next[name]; ok {
			next[name] = value
		}
	}
	data, err := json.Marshal(next)
	return string(data), err
}

// fields returns the members of the JSON object that v becomes.
func fields(v any) (map[string]any, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	var m map[string]any
	err = json.Unmarshal(data, &m)
	return m, err
}
