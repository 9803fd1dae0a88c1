package legacy

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"

	"github.com/rollcall-registry/rollcall/internal/httpapi"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// maxIPs bounds the instances of one ipList.
const maxIPs = 10_000

// defaultIPPort is the port of an instance that is given without one, where its
// cluster does not say. Source: Nacos naming.core.Cluster.
const defaultIPPort = 80

// ipJSON is an instance in JSON.
type ipJSON struct {
	IP         looseText       `json:"ip"`
	Port       looseInt        `json:"port"` // 0: the cluster's
	Weight     looseNumber     `json:"weight"`
	Valid      looseFlag       `json:"valid"`
	Healthy    looseFlag       `json:"healthy"` // another name of valid
	Enabled    looseFlag       `json:"enabled"`
	Marked     looseFlag       `json:"marked"`
	Cluster    looseText       `json:"clusterName"`
	App        looseText       `json:"app"`
	InstanceID looseText       `json:"instanceId"`
	Metadata   json.RawMessage `json:"metadata"`
}

// UnmarshalJSON implements [json.Unmarshaler] with the defaults of 0.9.
func (e *ipJSON) UnmarshalJSON(data []byte) error {
	type plain ipJSON // without this method
	p := plain{Weight: 1, Valid: true, Healthy: true, Enabled: true}
	err := json.Unmarshal(data, &p)
	*e = ipJSON(p)
	return err
}

func (e *ipJSON) instance() (registry.Instance, error) {
	i := registry.Instance{
		IP: string(e.IP), Port: int32(e.Port), Cluster: string(e.Cluster), App: string(e.App),
		Weight:  float64(e.Weight),
		Healthy: bool(e.Valid && e.Healthy), Enabled: bool(e.Enabled), Marked: bool(e.Marked),
		HideID: e.InstanceID == "", // recorded: api-addip-json
	}
	var err error
	if i.Metadata, err = metadataOf("ipList", e.Metadata); err != nil {
		return i, err
	}
	if len(i.App) > maxApp {
		return i, illegal("Param 'ipList' is illegal, an app has %d bytes and may have %d.", len(i.App), maxApp)
	}
	return i, nil
}

// ipListOf reads the instances of a call: with json=true a JSON array, else a list
// with commas of JSON objects and texts. Instances without a port have port 0.
func ipListOf(p *httpapi.Params) ([]registry.Instance, error) {
	text, err := p.Required("ipList")
	if err != nil {
		return nil, err
	}
	if p.BoolStrict("json", false) {
		return parseIPArray(text)
	}
	return parseIPList(text)
}

func parseIPArray(text string) ([]registry.Instance, error) {
	var items []ipJSON
	if err := json.Unmarshal([]byte(text), &items); err != nil {
		return nil, malformed("ipList", "it is no JSON array of instances")
	}
	if len(items) > maxIPs {
		return nil, tooManyIPs()
	}
	list := make([]registry.Instance, 0, len(items))
	for n := range items {
		i, err := items[n].instance()
		if err != nil {
			return nil, err
		}
		list = append(list, tidy(i))
	}
	return list, nil
}

func parseIPList(text string) ([]registry.Instance, error) {
	var list []registry.Instance
	for rest := strings.TrimRight(text, ","); rest != ""; {
		if len(list) == maxIPs {
			return nil, tooManyIPs()
		}
		var item string
		item, rest = cutItem(rest)
		i, ok := parseIP(item)
		if !ok {
			return nil, illegal("malfomed ip config: %s", item)
		}
		list = append(list, tidy(i))
	}
	return list, nil
}

func tooManyIPs() error {
	return illegal("Param 'ipList' is illegal, it has more than %d instances.", maxIPs)
}

// tidy brings what 0.9 accepts of a listed instance into the form of a
// registration: it takes any weight, and a blank cluster for the default one.
func tidy(i registry.Instance) registry.Instance {
	i.Weight = registry.FitWeight(i.Weight)
	if i.Cluster == "" {
		i.Cluster = registry.DefaultCluster
	}
	return i
}

// cutItem cuts the first item off a list with commas. An item that begins as a
// JSON object ends with it.
func cutItem(text string) (item, rest string) {
	text = strings.TrimLeft(text, " ")
	end := 0
	if strings.HasPrefix(text, "{") {
		dec := json.NewDecoder(strings.NewReader(text))
		var object json.RawMessage
		if dec.Decode(&object) == nil {
			end = int(dec.InputOffset())
		}
	}
	if comma := strings.IndexByte(text[end:], ','); comma >= 0 {
		return text[:end+comma], text[end+comma+1:]
	}
	return text, ""
}

func parseIP(item string) (registry.Instance, bool) {
	if !strings.HasPrefix(item, "{") {
		return parseIPText(item)
	}
	var e ipJSON
	if json.Unmarshal([]byte(item), &e) != nil {
		return registry.Instance{}, false
	}
	i, err := e.instance()
	return i, err == nil
}

// parseIPText reads address[:port][_weight[_valid[_marked]]][_cluster].
func parseIPText(item string) (registry.Instance, bool) {
	parts := strings.Split(strings.TrimRight(strings.TrimSpace(item), "_"), "_")
	i := registry.Instance{Weight: 1, Healthy: true, Enabled: true, HideID: true}
	var ok bool
	if i.IP, i.Port, ok = splitAddress(parts[0]); !ok || registry.CheckIP(i.IP) != nil {
		return i, false
	}
	if len(parts) > 1 {
		if w, ok := httpapi.ParseJavaDouble(parts[1]); ok && !math.IsNaN(w) {
			i.Weight = w
		}
	}
	if len(parts) > 2 {
		setFlag(&i.Healthy, parts[2])
		if last := parts[len(parts)-1]; last != "true" && last != "false" {
			i.Cluster = last
		}
	}
	if len(parts) > 3 {
		setFlag(&i.Marked, parts[3])
	}
	return i, true
}

func setFlag(flag *bool, text string) {
	if text == "true" || text == "false" {
		*flag = text == "true"
	}
}

// splitAddress splits host:port. Without a port it is 0. An IPv6 address with a
// port is in brackets.
func splitAddress(text string) (host string, port int32, ok bool) {
	host, digits := text, ""
	switch end := strings.LastIndexByte(text, ']'); {
	case end > 0 && text[0] == '[':
		host, digits = text[1:end], text[end+1:]
		if digits != "" && digits[0] != ':' {
			return host, 0, false
		}
		digits = strings.TrimPrefix(digits, ":")
	case strings.Count(text, ":") == 1:
		host, digits, _ = strings.Cut(text, ":")
	}
	if digits == "" {
		return host, 0, true
	}
	n, err := strconv.ParseUint(digits, 10, 16)
	return host, int32(n), err == nil
}

func portText(port int32) string { return strconv.Itoa(int(port)) }
