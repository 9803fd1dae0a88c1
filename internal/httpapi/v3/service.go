package v3

import (
	"strconv"

	"github.com/rollcall-registry/rollcall/internal/httpapi"
	"github.com/rollcall-registry/rollcall/internal/httpapi/modern"
	"github.com/rollcall-registry/rollcall/internal/httpapi/result"
	"github.com/rollcall-registry/rollcall/internal/httpapi/values"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// deleteService answers DELETE /ns/service.
func (a *API) deleteService(x *httpapi.Exchange) {
	key, _, err := modern.ServiceForm(x)
	if err == nil {
		err = a.DeleteService(x, key)
	}
	a.Done(x, err)
}

// service answers GET /admin/ns/service.
func (a *API) service(x *httpapi.Exchange) {
	key, _, err := modern.ServiceForm(x)
	if err != nil {
		a.Fail(x, err)
		return
	}
	view, err := a.Service(key)
	a.answerService(x, view, err)
}

// consoleService answers GET /console/ns/service, which has other words for a
// service that is not there.
func (a *API) consoleService(x *httpapi.Exchange) {
	key, _, err := modern.ServiceForm(x)
	if err != nil {
		a.Fail(x, err)
		return
	}
	view := a.Core.Store().View(key)
	if view == nil {
		err = missingService(key)
	}
	a.answerService(x, view, err)
}

func (a *API) answerService(x *httpapi.Exchange, view *registry.View, err error) {
	if err != nil {
		a.Fail(x, err)
		return
	}
	b := modern.AppendText(append(result.Begin(x.Scratch[:0]), '{'), "namespaceId", view.Key.Namespace)
	b = modern.AppendText(b, "serviceName", view.Key.Name)
	b = modern.AppendText(b, "groupName", view.Key.Group)
	a.Data(x, modern.AppendDetails(b, view, appendCluster))
}

func appendCluster(b []byte, c *registry.Cluster) []byte {
	b = modern.AppendText(append(b, '{'), "clusterName", c.Name)
	b = values.AppendChecker(append(b, `,"healthChecker":`...), c.Checker)
	b = strconv.AppendInt(append(b, `,"healthyCheckPort":`...), int64(c.CheckPort), 10)
	b = strconv.AppendBool(append(b, `,"useInstancePortForCheck":`...), c.UseInstancePort)
	b = c.Metadata.AppendJSON(append(b, `,"metadata":`...))
	return append(b, `,"hosts":null}`...)
}

// serviceSubscribers answers GET /ns/service/subscribers: who is told of changes of
// a service, over whatever protocol.
func (a *API) serviceSubscribers(x *httpapi.Exchange) {
	key, _, err := modern.ServiceForm(x)
	var p page
	if err == nil {
		p, err = readPage(x)
	}
	if err != nil {
		a.Fail(x, err)
		return
	}
	list := a.Core.Store().Subscribers(key)
	from, to := modern.PageOf(p.number, p.size, len(list))
	b := p.begin(result.Begin(x.Scratch[:0]), len(list))
	b = modern.AppendArray(b, list[from:to], func(b []byte, s *registry.Subscriber) []byte {
		ip, port := modern.SubscriberAddress(s)
		b = modern.AppendText(append(b, '{'), "namespaceId", s.Service.Namespace)
		b = modern.AppendText(b, "groupName", s.Service.Group)
		b = modern.AppendText(b, "serviceName", s.Service.Name)
		b = modern.AppendText(b, "ip", ip)
		b = strconv.AppendInt(append(b, `,"port":`...), int64(port), 10)
		b = modern.AppendText(b, "agent", s.Agent)
		b = modern.AppendText(b, "appName", s.App)
		return append(modern.AppendText(b, "address", ip+":"+strconv.Itoa(int(port))), '}')
	})
	a.Data(x, append(b, '}'))
}

// selectorTypes answers GET /ns/service/selector/types.
func (a *API) selectorTypes(x *httpapi.Exchange) {
	a.Data(x, modern.AppendStrings(result.Begin(x.Scratch[:0]), []string{registry.SelectorNone, registry.SelectorLabel}))
}

// setCluster answers PUT /ns/cluster: how the instances of a cluster are probed. The
// cluster need not be there, the service must.
func (a *API) setCluster(x *httpapi.Exchange) {
	key, next, err := clusterForm(x)
	if err == nil {
		err = a.Core.SetCluster(x.Context(), a.Cause(x, "set cluster"), key, next.Name, func(c *registry.Cluster) {
			c.Checker, c.Metadata, c.UseInstancePort = next.Checker, next.Metadata, next.UseInstancePort
			c.CheckPort, c.DefaultPort = next.CheckPort, next.CheckPort
		})
	}
	if modern.IsRefusal(err, registry.ServiceNotFound) {
		err = &result.Fault{
			Status: 400, Code: result.ServerError,
			Data: "service not found groupName: " + key.Group + ",serviceName: " + key.Name,
		}
	}
	a.Done(x, err)
}

func clusterForm(x *httpapi.Exchange) (registry.ServiceKey, registry.Cluster, error) {
	f := result.NewForm(x, "updateClusterForm")
	key := modern.ParseService(f)
	c := registry.Cluster{
		Name:            f.Need("clusterName"),
		CheckPort:       int32(f.NeedInt("checkPort")),
		UseInstancePort: f.NeedBool("useInstancePort4Check"),
	}
	checker := f.Need("healthChecker")
	if err := f.Err(); err != nil {
		return key, c, err
	}
	var err error
	if c.Checker, err = values.ParseChecker(checker); err != nil {
		return key, c, result.Invalid(err.Error())
	}
	c.Metadata, err = registry.ParseMetadata(f.Text("metadata", ""))
	return key, c, err
}

// checkers answers GET /admin/ns/health/checkers: the probes with their defaults, in
// the form of 2.5.1 (recorded: v1on25-health).
func (a *API) checkers(x *httpapi.Exchange) {
	a.Data(x, append(result.Begin(x.Scratch[:0]), `{"TCP":{},"HTTP":{"path":"","headers":"","expectedResponseCode":200},`+
		`"MYSQL":{"user":null,"pwd":null,"cmd":null},"NONE":{}}`...))
}
