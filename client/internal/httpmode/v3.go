package httpmode

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/rollcall-registry/rollcall/client/internal/wire"
)

// v3 is the dialect of servers of 3.x whose older API is closed. They do not push.
type v3 struct{}

func (v3) name(s wire.Service) string { return v1{}.name(s) }
func (v3) pushes() bool               { return false }

func (d v3) identify(s wire.Service, i *wire.Instance) url.Values {
	q := v1{}.identify(s, i)
	q.Set("serviceName", s.Name)
	q.Set("ephemeral", strconv.FormatBool(i.Ephemeral))
	return q
}

func (d v3) register(s wire.Service, i *wire.Instance) *request {
	form := d.identify(s, i)
	form.Set("weight", strconv.FormatFloat(i.Weight, 'f', -1, 64))
	form.Set("enabled", strconv.FormatBool(i.Enabled))
	form.Set("healthy", strconv.FormatBool(i.Healthy))
	form.Set("metadata", metadataJSON(i))
	return &request{method: http.MethodPost, path: "/v3/client/ns/instance", body: form, resource: d.name(s)}
}

func (d v3) deregister(s wire.Service, i *wire.Instance) *request {
	return &request{method: http.MethodDelete, path: "/v3/client/ns/instance", query: d.identify(s, i), resource: d.name(s)}
}

// beat is a registration that says that it is a beat.
func (d v3) beat(s wire.Service, i *wire.Instance, _ bool) *request {
	r := d.register(s, i)
	r.body.Set("heartBeat", "true")
	return r
}

// result is the envelope of all answers of 3.x.
type result struct {
	Code    int
	Message string
	Data    json.RawMessage
}

func (r *result) read(body []byte) error {
	if err := json.Unmarshal(body, r); err != nil {
		return err
	}
	if r.Code != 0 {
		return fmt.Errorf("code %d: %s", r.Code, r.Message)
	}
	return nil
}

func (v3) readBeat(body []byte) (beatAnswer, error) {
	var r result
	err := r.read(body)
	if r.Code != 0 {
		return beatAnswer{unknown: true}, nil // registering again tells what is wrong
	}
	return beatAnswer{}, err
}

func (d v3) list(s wire.Service, _ udpTarget) *request {
	return &request{method: http.MethodGet, path: "/v3/client/ns/instance/list", resource: d.name(s), query: url.Values{
		"namespaceId": {s.Namespace},
		"serviceName": {s.Name},
		"groupName":   {s.Group},
		"healthyOnly": {"false"},
	}}
}

// readList makes a ServiceInfo of an array of instances. Such servers do not say how
// often they want to be asked.
func (v3) readList(body []byte) ([]byte, error) {
	var r result
	if err := r.read(body); err != nil {
		return nil, fmt.Errorf("list: %w", err)
	}
	if len(r.Data) == 0 {
		return nil, errors.New("list: no data")
	}
	return append(append([]byte(`{"hosts":`), r.Data...), '}'), nil
}

func (v3) services(namespace, group string, page, size int) *request {
	return &request{method: http.MethodGet, path: "/v3/admin/ns/service/list", query: url.Values{
		"namespaceId":    {namespace},
		"groupNameParam": {group},
		"pageNo":         {strconv.Itoa(page)},
		"pageSize":       {strconv.Itoa(size)},
	}}
}

func (v3) readServices(body []byte, _, group string, _, _ int) ([]string, int, error) {
	var r result
	var page struct {
		TotalCount int
		PageItems  []struct{ Name, ServiceName, GroupName string }
	}
	if err := r.read(body); err != nil {
		return nil, 0, fmt.Errorf("list of services: %w", err)
	}
	if err := json.Unmarshal(r.Data, &page); err != nil {
		return nil, 0, fmt.Errorf("list of services: %w", err)
	}
	var names []string
	for _, item := range page.PageItems {
		if item.GroupName == group {
			names = append(names, item.Name+item.ServiceName) // one of them is there
		}
	}
	return names, page.TotalCount, nil
}
