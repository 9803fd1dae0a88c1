package v2

import (
	"strconv"

	"github.com/rollcall-registry/rollcall/internal/httpapi"
	"github.com/rollcall-registry/rollcall/internal/httpapi/modern"
	"github.com/rollcall-registry/rollcall/internal/httpapi/result"
	"github.com/rollcall-registry/rollcall/internal/httpapi/values"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// deleteService answers DELETE /service.
func (a *API) deleteService(x *httpapi.Exchange) {
	f := result.NewParams(x)
	key := modern.ParseService(f)
	err := f.Err()
	if err == nil {
		err = a.DeleteService(x, key)
	}
	a.Done(x, err)
}

// service answers GET /service.
func (a *API) service(x *httpapi.Exchange) {
	f := result.NewParams(x)
	key := modern.ParseService(f)
	if err := f.Err(); err != nil {
		a.Fail(x, err)
		return
	}
	view, err := a.Service(key)
	if err != nil {
		a.Fail(x, err)
		return
	}
	b := append(result.Begin(x.Scratch[:0]), '{')
	b = modern.AppendText(b, "namespace", key.Namespace)
	b = modern.AppendText(b, "serviceName", key.Name)
	b = modern.AppendText(b, "groupName", key.Group)
	a.Data(x, modern.AppendDetails(b, view, appendCluster))
}

func appendCluster(b []byte, c *registry.Cluster) []byte {
	b = modern.AppendText(append(b, '{'), "clusterName", c.Name)
	b = values.AppendChecker(append(b, `,"healthChecker":`...), c.Checker)
	b = c.Metadata.AppendJSON(append(b, `,"metadata":`...))
	return append(b, `,"hosts":null}`...)
}

// defaultPageSize is the size of a page of services when none is asked for. Source:
// Nacos ServiceControllerV2.
const defaultPageSize = 20

// serviceList answers GET /service/list with the names of a group.
func (a *API) serviceList(x *httpapi.Exchange) {
	f := result.NewParams(x)
	namespace, group := registry.NamespaceID(f.Text("namespaceId", "")), f.Text("groupName", registry.DefaultGroup)
	page, size := f.Int("pageNo", result.JavaInteger, 1), f.Int("pageSize", result.JavaInteger, defaultPageSize)
	if err := f.Err(); err != nil {
		a.Fail(x, err)
		return
	}
	store := a.Core.Store()
	_, count := store.Services(namespace, group, 0, 0)
	from, to := modern.PageOf(page, size, count)
	keys, _ := store.Services(namespace, group, from, to-from)
	b := strconv.AppendInt(append(result.Begin(x.Scratch[:0]), `{"count":`...), int64(count), 10)
	b = modern.AppendArray(append(b, `,"services":`...), keys, func(b []byte, key registry.ServiceKey) []byte {
		return registry.AppendJSONString(b, key.Name)
	})
	a.Data(x, append(b, '}'))
}
