package v1

import (
	"strconv"

	"github.com/rollcall-registry/rollcall/internal/httpapi"
	"github.com/rollcall-registry/rollcall/internal/httpapi/values"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

func (a *API) operatorRoutes() []httpapi.Route {
	var routes []httpapi.Route
	for _, base := range []string{"/v1/ns/operator", "/v1/ns/ops"} {
		routes = append(routes,
			httpapi.Get(base+"/metrics", httpapi.Open, a.metrics),
			httpapi.Get(base+"/push/state", httpapi.Open, a.pushState),
			httpapi.Get(base+"/switches", httpapi.Open, a.switches),
			httpapi.Change("PUT", base+"/switches", resourceSwitches, a.setSwitch),
			httpapi.Change("PUT", base+"/log", resourceLog, a.setLogLevel),
			httpapi.Get(base+"/distro/server", httpapi.Open, a.responsibleServer),
			httpapi.Get(base+"/distro/status", httpapi.Open, a.distroStatus),
			httpapi.Get(base+"/servers", httpapi.Open, a.servers),
			httpapi.Get(base+"/cluster/state", httpapi.Open, a.clusterState),
			httpapi.Get(base+"/server/status", httpapi.Open, a.serverStatus),
		)
	}
	return routes
}

// metrics answers GET /operator/metrics. Every 1.x client takes a status of UP
// for a healthy server, and Dubbo starts on nothing else.
func (a *API) metrics(x *httpapi.Exchange) {
	store := a.core.Store()
	counts, load := store.Counts(), a.machine.Load()
	services := strconv.FormatInt(counts.Services, 10)
	instances := strconv.FormatInt(counts.Ephemeral+counts.Persistent, 10)
	b := append(x.Scratch[:0], `{"status":`...)
	b = registry.AppendJSONString(b, store.Switches().Status())
	b = append(b, `,"serviceCount":`+services+`,"instanceCount":`+instances+
		// What waits to be told is the business of the pusher here, and this server
		// answers for all services.
		`,"raftNotifyTaskCount":0,"responsibleServiceCount":`+services+
		`,"responsibleInstanceCount":`+instances+`,"cpu":`...)
	b = appendFloat(b, float32(load.CPU))
	b = append(b, `,"load":`...)
	b = appendFloat(b, float32(load.Average))
	b = append(b, `,"mem":`...)
	b = appendFloat(b, float32(load.Memory))
	x.Scratch = append(b, '}')
	x.JSON(200, x.Scratch)
}

// maxUnacked bounds how many packets a detailed push state shows.
const maxUnacked = 1000

// pushState answers GET /operator/push/state: how many UDP packets were sent and
// acknowledged.
func (a *API) pushState(x *httpapi.Exchange) {
	p := x.Params()
	detail, err := p.BoundBool("detail", false)
	if err != nil {
		a.fail(x, err)
		return
	}
	reset, err := p.BoundBool("reset", false)
	if err != nil {
		a.fail(x, err)
		return
	}
	limit := 0
	if detail {
		limit = maxUnacked
	}
	st := a.pushes.PushState(limit)
	b := append(x.Scratch[:0], `{"succeed":`...)
	b = strconv.AppendInt(b, st.Succeed, 10)
	b = append(b, `,"total":`...)
	b = strconv.AppendInt(b, st.Total, 10)
	b = append(b, `,"ratio":`...)
	if st.Total > 0 {
		b = appendFloat(b, float32(st.Succeed)/float32(st.Total))
	} else {
		b = append(b, '0')
	}
	if detail {
		b = append(b, `,"data":`...)
		b = appendStrings(b, st.Unacked)
	}
	if reset {
		a.pushes.ResetPushState()
	}
	b = append(b, `,"reset":`...)
	b = strconv.AppendBool(b, reset)
	x.Scratch = append(b, '}')
	x.JSON(200, x.Scratch)
}

// switches answers GET /operator/switches.
func (a *API) switches(x *httpapi.Exchange) {
	b, err := encodeJSON(a.core.Store().Switches())
	if err != nil {
		a.fail(x, err)
		return
	}
	x.JSON(200, b)
}

// setSwitch answers PUT /operator/switches. As in 1.4.8 a switch that does not
// exist is answered ok.
func (a *API) setSwitch(x *httpapi.Exchange) {
	p := x.Params()
	entry, err := p.Bound("entry")
	if err != nil {
		a.fail(x, err)
		return
	}
	value, err := p.Bound("value")
	if err != nil {
		a.fail(x, err)
		return
	}
	debug, err := p.BoundBool("debug", false)
	if err == nil {
		err = a.core.SetSwitch(x.Context(), cause(x, "set switch"), entry, value, debug)
	}
	if err != nil && !isRefusal(err, registry.UnknownSwitch) {
		a.fail(x, err)
		return
	}
	x.OK()
}

// setLogLevel answers PUT /operator/log. A logger or a level that does not exist
// changes nothing and is no error, as in 1.4.8.
func (a *API) setLogLevel(x *httpapi.Exchange) {
	p := x.Params()
	name, err := p.Bound("logName")
	if err != nil {
		a.fail(x, err)
		return
	}
	word, err := p.Bound("logLevel")
	if err != nil {
		a.fail(x, err)
		return
	}
	if level, ok := values.ParseLevel(word); ok && a.levels != nil {
		a.levels.SetLevel(name, level)
	}
	x.OK()
}
