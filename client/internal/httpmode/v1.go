package httpmode

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/rollcall-registry/rollcall/client/internal/wire"
)

// v1 is the dialect of 1.x; 2.x and Rollcall understand it, and 3.x by default.
type v1 struct{}

func (v1) name(s wire.Service) string { return s.Group + "@@" + s.Name }
func (v1) pushes() bool               { return true }

// identify are the parameters that name an instance.
func (d v1) identify(s wire.Service, i *wire.Instance) url.Values {
	return url.Values{
		"namespaceId": {s.Namespace},
		"serviceName": {d.name(s)},
		"groupName":   {s.Group},
		"clusterName": {i.Cluster},
		"ip":          {i.IP},
		"port":        {strconv.Itoa(int(i.Port))},
	}
}

func (d v1) register(s wire.Service, i *wire.Instance) *request {
	q := d.identify(s, i)
	q.Set("weight", strconv.FormatFloat(i.Weight, 'f', -1, 64))
	q.Set("enable", strconv.FormatBool(i.Enabled))
	q.Set("healthy", strconv.FormatBool(i.Healthy))
	q.Set("ephemeral", strconv.FormatBool(i.Ephemeral))
	q.Set("metadata", metadataJSON(i))
	return &request{method: http.MethodPost, path: "/v1/ns/instance", query: q, resource: d.name(s)}
}

func (d v1) deregister(s wire.Service, i *wire.Instance) *request {
	q := d.identify(s, i)
	q.Set("ephemeral", strconv.FormatBool(i.Ephemeral))
	return &request{method: http.MethodDelete, path: "/v1/ns/instance", query: q, resource: d.name(s)}
}

// beatInfo is the JSON of a full beat. Source: BeatInfo of Nacos clients.
type beatInfo struct {
	Port        uint16            `json:"port"`
	IP          string            `json:"ip"`
	Weight      float64           `json:"weight"`
	ServiceName string            `json:"serviceName"`
	Dom         string            `json:"dom,omitempty"` // of 0.9
	Cluster     string            `json:"cluster"`
	Metadata    map[string]string `json:"metadata"`
	Scheduled   bool              `json:"scheduled"`
	Period      int64             `json:"period"`
	Stopped     bool              `json:"stopped"`
}

func beatJSON(name string, i *wire.Instance) string {
	b := beatInfo{
		Port: i.Port, IP: i.IP, Weight: i.Weight, ServiceName: name, Cluster: i.Cluster, Metadata: i.Metadata,
		Period: beatInterval(i).Milliseconds(),
	}
	if b.Metadata == nil {
		b.Metadata = map[string]string{}
	}
	text, _ := json.Marshal(b) // strings, finite numbers and booleans
	return string(text)
}

func (d v1) beat(s wire.Service, i *wire.Instance, light bool) *request {
	r := &request{method: http.MethodPut, path: "/v1/ns/instance/beat", query: d.identify(s, i), resource: d.name(s)}
	if !light {
		r.body = url.Values{"beat": {beatJSON(d.name(s), i)}}
	}
	return r
}

// Codes of beat answers.
const (
	beatOK      = 10200
	beatUnknown = 20404
)

func (v1) readBeat(body []byte) (beatAnswer, error) {
	var a struct {
		ClientBeatInterval int64
		Code               *int
		LightBeatEnabled   bool
	}
	if err := json.Unmarshal(body, &a); err != nil {
		return beatAnswer{}, fmt.Errorf("answer to a beat: %w", err)
	}
	if a.Code != nil && *a.Code != beatOK && *a.Code != beatUnknown {
		return beatAnswer{}, fmt.Errorf("answer to a beat: code %d", *a.Code)
	}
	return beatAnswer{
		millis:  a.ClientBeatInterval,
		unknown: a.Code != nil && *a.Code == beatUnknown,
		light:   a.LightBeatEnabled,
	}, nil
}

func (d v1) list(s wire.Service, to udpTarget) *request {
	return &request{method: http.MethodGet, path: "/v1/ns/instance/list", resource: d.name(s), query: url.Values{
		"namespaceId": {s.Namespace},
		"serviceName": {d.name(s)},
		"groupName":   {s.Group},
		"clusters":    {""},
		"udpPort":     {strconv.Itoa(to.port)},
		"clientIP":    {to.ip},
		"healthyOnly": {"false"},
	}}
}

func (v1) readList(body []byte) ([]byte, error) { return body, nil }

func (v1) services(namespace, group string, page, size int) *request {
	return &request{method: http.MethodGet, path: "/v1/ns/service/list", query: url.Values{
		"namespaceId": {namespace},
		"groupName":   {group},
		"pageNo":      {strconv.Itoa(page)},
		"pageSize":    {strconv.Itoa(size)},
	}}
}

func (v1) readServices(body []byte, _, group string, _, _ int) ([]string, int, error) {
	var a struct {
		Count int
		Doms  []string
	}
	if err := json.Unmarshal(body, &a); err != nil {
		return nil, 0, fmt.Errorf("list of services: %w", err)
	}
	for n := range a.Doms {
		a.Doms[n] = strings.TrimPrefix(a.Doms[n], group+"@@")
	}
	return a.Doms, a.Count, nil
}

func metadataJSON(i *wire.Instance) string {
	if len(i.Metadata) == 0 {
		return "{}"
	}
	text, _ := json.Marshal(i.Metadata) // a map of strings
	return string(text)
}
