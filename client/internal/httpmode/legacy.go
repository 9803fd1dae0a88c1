package httpmode

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/rollcall-registry/rollcall/client/internal/wire"
)

// legacy is the dialect of servers that have the paths of 0.9 only: services have no
// group and are called dom.
type legacy struct{}

func (legacy) name(s wire.Service) string { return s.Name }
func (legacy) pushes() bool               { return true }

func (d legacy) identify(s wire.Service, i *wire.Instance) url.Values {
	return url.Values{
		"namespaceId": {s.Namespace},
		"serviceName": {s.Name},
		"dom":         {s.Name},
		"clusterName": {i.Cluster},
		"ip":          {i.IP},
		"port":        {strconv.Itoa(int(i.Port))},
	}
}

func (d legacy) register(s wire.Service, i *wire.Instance) *request {
	q := d.identify(s, i)
	q.Set("weight", strconv.FormatFloat(i.Weight, 'f', -1, 64))
	q.Set("enable", strconv.FormatBool(i.Enabled))
	q.Set("healthy", strconv.FormatBool(i.Healthy))
	q.Set("metadata", metadataJSON(i))
	return &request{method: http.MethodGet, path: "/v1/ns/api/regService", query: q, resource: s.Name}
}

func (d legacy) deregister(s wire.Service, i *wire.Instance) *request {
	q := d.identify(s, i)
	q.Set("cluster", i.Cluster) // this call has another name for it
	return &request{method: http.MethodGet, path: "/v1/ns/api/deRegService", query: q, resource: s.Name}
}

// beat has no light form here.
func (d legacy) beat(s wire.Service, i *wire.Instance, _ bool) *request {
	q := url.Values{"namespaceId": {s.Namespace}, "dom": {s.Name}, "serviceName": {s.Name}, "beat": {beatJSON(s.Name, i)}}
	return &request{method: http.MethodGet, path: "/v1/ns/api/clientBeat", query: q, resource: s.Name}
}

func (legacy) readBeat(body []byte) (beatAnswer, error) { return v1{}.readBeat(body) }

func (d legacy) list(s wire.Service, to udpTarget) *request {
	return &request{method: http.MethodGet, path: "/v1/ns/api/srvIPXT", resource: s.Name, query: url.Values{
		"namespaceId": {s.Namespace},
		"dom":         {s.Name},
		"clusters":    {""},
		"udpPort":     {strconv.Itoa(to.port)},
		"clientIP":    {to.ip},
	}}
}

func (legacy) readList(body []byte) ([]byte, error) { return body, nil }

func (legacy) services(namespace, _ string, _, _ int) *request {
	return &request{method: http.MethodGet, path: "/v1/ns/api/allDomNames", query: url.Values{"namespaceId": {namespace}}}
}

// readServices cuts a page out of the whole, which is what such servers send.
func (legacy) readServices(body []byte, namespace, group string, page, size int) ([]string, int, error) {
	var a struct{ Doms map[string][]string }
	if err := json.Unmarshal(body, &a); err != nil {
		return nil, 0, fmt.Errorf("list of services: %w", err)
	}
	all := a.Doms[namespace]
	if group != ungrouped {
		all = nil
	}
	from := min((page-1)*size, len(all))
	return all[from:min(from+size, len(all))], len(all), nil
}
