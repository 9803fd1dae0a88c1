package legacy

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/rollcall-registry/rollcall/internal/httpapi"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// maxIPs bounds the instances of one ipList.
const maxIPs = 10_000

// defaultIPPort is the port of an instance that is given without one, where its
// cluster does not say. Source: Nacos naming.core.Cluster.
const defaultIPPort = 80

// ipJSON reads an instance in JSON.
type ipJSON struct {
	registry.Instance
	id string
}

func newIP() ipJSON {
	return ipJSON{Instance: registry.Instance{
		Cluster: registry.DefaultCluster, Weight: 1, Healthy: true, Enabled: true,
	}}
}

func (e *ipJSON) set(name string, v gjson.Result) bool {
	switch name {
	case "ip":
		return readText(v, &e.IP)
	case "port":
		return readInt(v, &e.Port)
	case "weight":
		return readNumber(v, &e.Weight)
	case "valid", "healthy":
		return readFlag(v, &e.Healthy)
	case "enabled":
		return readFlag(v, &e.Enabled)
	case "marked":
		return readFlag(v, &e.Marked)
	case "clusterName":
		return readText(v, &e.Cluster)
	case "app":
		return readText(v, &e.App) && len(e.App) <= maxApp
	case "instanceId":
		return readText(v, &e.id)
	case "metadata":
		return readMetadata(v, &e.Metadata)
	default:
		return true
	}
}

// instance returns what was read. 0.9 takes any weight.
func (e *ipJSON) instance() registry.Instance {
	i := e.Instance
	i.Weight = registry.FitWeight(i.Weight)
	i.HideID = e.id == "" // recorded: api-addip-json
	return i
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
	if text == "null" {
		return nil, nil
	}
	array := parse(text)
	if !array.IsArray() {
		return nil, unreadableIPs()
	}
	var list []registry.Instance
	var err error
	array.ForEach(func(_, item gjson.Result) bool {
		e := newIP()
		switch {
		case len(list) == maxIPs:
			err = tooManyIPs()
		case !item.IsObject() || !readFields(item, e.set):
			err = unreadableIPs()
		default:
			list = append(list, e.instance())
		}
		return err == nil
	})
	return list, err
}

func unreadableIPs() error { return malformed("ipList", "it is no JSON array of instances") }

func tooManyIPs() error {
	return illegal("Param 'ipList' is illegal, it has more than %d instances.", maxIPs)
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
		list = append(list, i)
	}
	return list, nil
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
	e := newIP()
	var ok bool
	if strings.HasPrefix(item, "{") {
		ok = readObject(item, e.set)
	} else {
		ok = e.setText(item)
	}
	return e.instance(), ok
}

// setText reads address[:port][_weight[_valid[_marked]]][_cluster]. As in 0.9 a
// weight or a flag that is none is left out.
func (e *ipJSON) setText(item string) (ok bool) {
	parts := strings.Split(strings.TrimRight(strings.TrimSpace(item), "_"), "_")
	if e.IP, e.Port, ok = splitAddress(parts[0]); !ok || registry.CheckIP(e.IP) != nil {
		return false
	}
	if len(parts) > 1 {
		if w, ok := httpapi.ParseJavaDouble(parts[1]); ok && !math.IsNaN(w) {
			e.Weight = w
		}
	}
	if len(parts) > 2 {
		setFlag(&e.Healthy, parts[2])
		if last := parts[len(parts)-1]; last != "true" && last != "false" {
			e.Cluster = last
		}
	}
	if len(parts) > 3 {
		setFlag(&e.Marked, parts[3])
	}
	return true
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
