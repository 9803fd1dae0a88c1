package registry

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// Switches are the run-time settings of Nacos, all that its API shows. Those
// marked "stored" have no effect, in Nacos 1.4 as here; they are kept because
// consoles and scripts set and read them. A Switches is immutable once in a
// [Store]. The JSON form is that of GET /v1/ns/operator/switches.
type Switches struct {
	Masters     []string       `json:"masters"`     // stored
	AdWeightMap map[string]int `json:"adWeightMap"` // stored
	// DefaultPushCacheMillis is the poll period told to clients that are pushed to.
	DefaultPushCacheMillis int64 `json:"defaultPushCacheMillis"`
	// ClientBeatInterval is told to clients, in milliseconds.
	ClientBeatInterval int64 `json:"clientBeatInterval"`
	// DefaultCacheMillis is the poll period told to clients that only poll.
	DefaultCacheMillis int64   `json:"defaultCacheMillis"`
	DistroThreshold    float32 `json:"distroThreshold"` // stored
	// HealthCheckEnabled: off stops the expiry of beats and the probes.
	HealthCheckEnabled           bool `json:"healthCheckEnabled"`
	AutoChangeHealthCheckEnabled bool `json:"autoChangeHealthCheckEnabled"` // stored
	DistroEnabled                bool `json:"distroEnabled"`
	EnableStandalone             bool `json:"enableStandalone"` // stored
	// PushEnabled: off stops pushes, and new UDP subscriptions.
	PushEnabled bool `json:"pushEnabled"`
	// CheckTimes is how many probes in a row must agree to flip an instance.
	CheckTimes                               int            `json:"checkTimes"`
	HTTPHealthParams                         ProbeParams    `json:"httpHealthParams"`
	TCPHealthParams                          ProbeParams    `json:"tcpHealthParams"`
	MySQLHealthParams                        ProbeParams    `json:"mysqlHealthParams"`
	IncrementalList                          []string       `json:"incrementalList"`                          // stored
	ServerStatusSynchronizationPeriodMillis  int64          `json:"serverStatusSynchronizationPeriodMillis"`  // stored
	ServiceStatusSynchronizationPeriodMillis int64          `json:"serviceStatusSynchronizationPeriodMillis"` // stored
	DisableAddIP                             bool           `json:"disableAddIP"`                             // on: no new instances
	SendBeatOnly                             bool           `json:"sendBeatOnly"`                             // stored
	LightBeatEnabled                         bool           `json:"lightBeatEnabled"`                         // clients may leave the beat's body out
	LimitedURLMap                            map[string]int `json:"limitedUrlMap"`                            // URL prefix to status
	DistroServerExpiredMillis                int64          `json:"distroServerExpiredMillis"`                // stored
	PushGoVersion                            string         `json:"pushGoVersion"`                            // lowest versions pushed to
	PushJavaVersion                          string         `json:"pushJavaVersion"`
	PushPythonVersion                        string         `json:"pushPythonVersion"`
	PushCVersion                             string         `json:"pushCVersion"`
	PushCSharpVersion                        string         `json:"pushCSharpVersion"`
	EnableAuthentication                     bool           `json:"enableAuthentication"`   // stored
	OverriddenServerStatus                   *string        `json:"overriddenServerStatus"` // nil or a status; "" is cleared
	DefaultInstanceEphemeral                 bool           `json:"defaultInstanceEphemeral"`
	HealthCheckWhiteList                     []string       `json:"healthCheckWhiteList"` // stored
	Name                                     string         `json:"name"`
	Checksum                                 *string        `json:"checksum"`
}

// ProbeParams bound the adaptive period of a kind of probe, in milliseconds.
type ProbeParams struct {
	Max    int     `json:"max"`
	Min    int     `json:"min"`
	Factor float32 `json:"factor"`
}

// switchesName is the key under which Nacos keeps its switches; its API shows it.
const switchesName = "00-00---000-NACOS_SWITCH_DOMAIN-000---00-00"

// DefaultSwitches returns the defaults of Nacos 1.4.8.
func DefaultSwitches() *Switches {
	return &Switches{
		AdWeightMap: map[string]int{}, DefaultPushCacheMillis: 10000, ClientBeatInterval: 5000,
		DefaultCacheMillis: 3000, DistroThreshold: 0.7, HealthCheckEnabled: true,
		AutoChangeHealthCheckEnabled: true, DistroEnabled: true, EnableStandalone: true, PushEnabled: true,
		CheckTimes:                               3,
		HTTPHealthParams:                         ProbeParams{Max: 5000, Min: 500, Factor: 0.85},
		TCPHealthParams:                          ProbeParams{Max: 5000, Min: 1000, Factor: 0.75},
		MySQLHealthParams:                        ProbeParams{Max: 3000, Min: 2000, Factor: 0.65},
		IncrementalList:                          []string{},
		ServerStatusSynchronizationPeriodMillis:  2000,
		ServiceStatusSynchronizationPeriodMillis: 5000,
		LightBeatEnabled:                         true, LimitedURLMap: map[string]int{},
		DistroServerExpiredMillis: 10000,
		PushGoVersion:             "0.1.0", PushJavaVersion: "0.1.0", PushPythonVersion: "0.4.3",
		PushCVersion: "1.0.12", PushCSharpVersion: "0.9.0",
		DefaultInstanceEphemeral: true, HealthCheckWhiteList: []string{}, Name: switchesName,
	}
}

// Switches returns the present switches, which must not be changed.
func (s *Store) Switches() *Switches { return s.switches.Load() }

// UnmarshalJSON reads what a snapshot or an operator holds of the switches; what
// is not there has its default.
func (s *Switches) UnmarshalJSON(data []byte) error {
	type plain Switches // without this method
	p := plain(*DefaultSwitches())
	if err := json.Unmarshal(data, &p); err != nil {
		return err
	}
	*s = Switches(p)
	return nil
}

// SetSwitch is a durable command: it sets one switch by the name that Nacos
// gives it. It may also be applied on its own, for this server only.
type SetSwitch struct {
	Meta
	Entry string `json:"entry"`
	Value string `json:"value"`
}

func (c *SetSwitch) apply(s *Store) (Result, error) {
	s.switching.Lock()
	defer s.switching.Unlock()
	next, err := s.Switches().with(c.Entry, strings.Clone(c.Value))
	if err != nil {
		return Result{}, err
	}
	s.switches.Store(next)
	s.sink.Emit(&Event{Kind: SwitchSet, At: c.At, Cause: c.Cause, Detail: c.Entry + "=" + c.Value})
	return Result{}, nil
}

// CheckSwitch reports whether a switch would take a value, without setting it.
func (s *Store) CheckSwitch(entry, value string) error {
	_, err := s.Switches().with(entry, value)
	return err
}

// with returns a copy with one switch set. An unknown entry is refused with
// [UnknownSwitch], a value that cannot even be split with [MalformedSwitch], and
// a bad one with [InvalidSwitch] and the text of 1.4.
func (s *Switches) with(entry, value string) (*Switches, error) {
	n := *s
	var err error
	switch entry {
	case "batch":
		return s.batch(value)
	case "clientBeatInterval":
		err = setMillis(&n.ClientBeatInterval, entry, value, 1, "clientBeatInterval is too small(<1)")
	case "pushCacheMillis":
		err = setMillis(&n.DefaultPushCacheMillis, entry, value, 10000, "min cache time for http or tcp is too small(<10000)")
	case "defaultCacheMillis":
		err = setMillis(&n.DefaultCacheMillis, entry, value, 1000, "min default cache time  is too small(<1000)")
	case "serviceStatusSynchronizationPeriodMillis":
		err = setMillis(&n.ServiceStatusSynchronizationPeriodMillis, entry, value, 5000,
			"serviceStatusSynchronizationPeriodMillis is too small(<5000)")
	case "serverStatusSynchronizationPeriodMillis": // the text of the original names another bound than it keeps
		err = setMillis(&n.ServerStatusSynchronizationPeriodMillis, entry, value, 1000,
			"serverStatusSynchronizationPeriodMillis is too small(<15000)")
	case "distroServerExpiredMillis":
		err = setMillis(&n.DistroServerExpiredMillis, entry, value, 0, "")
	case "distroThreshold":
		err = n.setDistroThreshold(value)
	case "healthCheckTimes":
		err = n.setCheckTimes(value)
	case "pushVersion":
		err = n.setPushVersion(value)
	case "limitedUrlMap":
		err = n.setLimitedURLs(value)
	case "overriddenServerStatus":
		err = n.setStatus(value)
	case "masters":
		n.Masters = strings.Split(value, ",")
	case "enableStandalone": // the original never applies it
	default:
		err = n.setFlag(entry, value)
	}
	if err != nil {
		return nil, err
	}
	return &n, nil
}

// setFlag sets a boolean switch. As in the original only "true", in any case,
// is true.
func (s *Switches) setFlag(entry, value string) error {
	flags := map[string]*bool{
		"pushEnabled": &s.PushEnabled, "check": &s.HealthCheckEnabled, "distro": &s.DistroEnabled,
		"lightBeatEnabled": &s.LightBeatEnabled, "defaultInstanceEphemeral": &s.DefaultInstanceEphemeral,
		"sendBeatOnly": &s.SendBeatOnly, "disableAddIP": &s.DisableAddIP,
		"autoChangeHealthCheckEnabled": &s.AutoChangeHealthCheckEnabled,
		"enableAuthentication":         &s.EnableAuthentication,
	}
	flag := flags[entry]
	if flag == nil {
		return Refuse(UnknownSwitch, entry, value, "%q is no switch", entry)
	}
	*flag = strings.EqualFold(value, "true")
	if entry == "autoChangeHealthCheckEnabled" || entry == "lightBeatEnabled" { // these take yes, on and the like
		*flag = lenientTrue(value)
	}
	return nil
}

func lenientTrue(value string) bool {
	switch strings.ToLower(value) {
	case "true", "t", "on", "yes", "y":
		return true
	}
	return false
}

func badSwitch(entry, value, format string, args ...any) error {
	return Refuse(InvalidSwitch, entry, value, format, args...)
}

func malformedSwitch(entry, value, format string, args ...any) error {
	return Refuse(MalformedSwitch, entry, value, format, args...)
}

func badNumber(entry, value string) error {
	return badSwitch(entry, value, "For input string: %q", value)
}

func setMillis(field *int64, entry, value string, least int64, tooSmall string) error {
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil {
		return badNumber(entry, value)
	}
	if tooSmall != "" && n < least {
		return badSwitch(entry, value, "%s", tooSmall)
	}
	*field = n
	return nil
}

// setStatus forces a server status; the word null clears it.
func (s *Switches) setStatus(value string) error {
	if value == "null" {
		value = ""
	}
	s.OverriddenServerStatus = &value
	return checkStatus(value)
}

func (s *Switches) setDistroThreshold(value string) error {
	f, err := strconv.ParseFloat(value, 32)
	if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
		return badNumber("distroThreshold", value)
	}
	if f <= 0 {
		return badSwitch("distroThreshold", value, "distroThreshold can not be zero or negative: %.1f", f)
	}
	s.DistroThreshold = float32(f)
	return nil
}

func (s *Switches) setCheckTimes(value string) error {
	n, err := strconv.ParseInt(value, 10, 32)
	if err != nil {
		return badNumber("healthCheckTimes", value)
	}
	s.CheckTimes = int(n)
	return nil
}

// versionPattern is what the original demands of a version.
const versionPattern = `[0-9]+\.[0-9]+\.[0-9]+`

func (s *Switches) setPushVersion(value string) error {
	kind, version, found := strings.Cut(value, ":")
	if !found {
		return malformedSwitch("pushVersion", value, "pushVersion must be type:x.y.z, not %q", value)
	}
	if ok, _ := regexp.MatchString("^"+versionPattern+"$", version); !ok {
		return badSwitch("pushVersion", value, "illegal version, must match: %s", versionPattern)
	}
	fields := map[string]*string{
		"java": &s.PushJavaVersion, "python": &s.PushPythonVersion,
		"c": &s.PushCVersion, "go": &s.PushGoVersion,
	}
	if fields[kind] == nil {
		return badSwitch("pushVersion", value, "unsupported client type: %s", kind)
	}
	*fields[kind] = version
	return nil
}

// setLimitedURLs reads prefix:status pairs. An empty value changes nothing.
func (s *Switches) setLimitedURLs(value string) error {
	if value == "" {
		return nil
	}
	limited := map[string]int{}
	for pair := range strings.SplitSeq(value, ",") {
		prefix, text, found := strings.Cut(pair, ":")
		if !found || text == "" || strings.Contains(text, ":") {
			return badSwitch("limitedUrlMap", value, "invalid input for limited urls")
		}
		status, err := strconv.Atoi(text)
		if err != nil {
			return badNumber("limitedUrlMap", text)
		}
		limited[prefix] = status
	}
	s.LimitedURLMap = limited
	return checkLimitedURLs(limited)
}

// checkLimitedURLs refuses an empty prefix, which would lock everybody out, this
// switch included, and numbers that are no final HTTP status.
func checkLimitedURLs(limited map[string]int) error {
	for prefix, status := range limited {
		if prefix == "" {
			return badSwitch("limitedUrlMap", "", "url can not be empty , url: ")
		}
		if status < 200 || status > 599 {
			return badSwitch("limitedUrlMap", prefix, "illegal normal status code: %d", status)
		}
	}
	return nil
}

// The server statuses that overriddenServerStatus may force.
const (
	StatusStarting  = "STARTING"
	StatusUp        = "UP"
	StatusDown      = "DOWN"
	StatusReadOnly  = "READ_ONLY"
	StatusWriteOnly = "WRITE_ONLY"
	StatusPaused    = "PAUSED"
)

func checkStatus(status string) error {
	switch status {
	case "", StatusStarting, StatusUp, StatusDown, StatusReadOnly, StatusWriteOnly, StatusPaused:
		return nil
	}
	return badSwitch("overriddenServerStatus", status, "%q is no server status; it is one of %s", status,
		strings.Join([]string{StatusStarting, StatusUp, StatusDown, StatusReadOnly, StatusWriteOnly, StatusPaused, "null"}, ", "))
}

// batch replaces the switches by a whole object, as PUT switches?entry=batch
// does. As in the original enableStandalone, pushCSharpVersion and
// healthCheckWhiteList stay.
func (s *Switches) batch(value string) (*Switches, error) {
	var n Switches
	if !strings.HasPrefix(strings.TrimSpace(value), "{") {
		return nil, malformedSwitch("batch", value, "the switches are no JSON object")
	}
	if err := json.Unmarshal([]byte(value), &n); err != nil {
		return nil, malformedSwitch("batch", value, "the switches are no JSON object: %v", err)
	}
	for _, p := range []struct {
		name   string
		params ProbeParams
	}{{"httpHealthParams", n.HTTPHealthParams}, {"tcpHealthParams", n.TCPHealthParams}} {
		if err := p.params.check(p.name); err != nil {
			return nil, err
		}
	}
	n.EnableStandalone, n.PushCSharpVersion = s.EnableStandalone, s.PushCSharpVersion
	n.HealthCheckWhiteList, n.Name, n.Checksum = s.HealthCheckWhiteList, s.Name, s.Checksum
	if n.LimitedURLMap == nil {
		n.LimitedURLMap = map[string]int{}
	}
	if err := checkLimitedURLs(n.LimitedURLMap); err != nil {
		return nil, err
	}
	if n.OverriddenServerStatus != nil {
		if err := checkStatus(*n.OverriddenServerStatus); err != nil {
			return nil, err
		}
	}
	return &n, nil
}

// check keeps the bounds of the original on the probe parameters.
func (p ProbeParams) check(name string) error {
	var fault string
	switch {
	case p.Min < 500:
		fault = "min check time is too small(<500)"
	case p.Max < 3000:
		fault = "max check time is too small(<3000)"
	case p.Factor < 0 || p.Factor > 1:
		fault = "malformed factor"
	default:
		return nil
	}
	return badSwitch("batch", fmt.Sprint(p), "%s: %s", name, fault)
}

// Status returns the forced server status, or UP when none is forced.
func (s *Switches) Status() string {
	if s.OverriddenServerStatus == nil {
		return StatusUp
	}
	return cmp.Or(*s.OverriddenServerStatus, StatusUp)
}
