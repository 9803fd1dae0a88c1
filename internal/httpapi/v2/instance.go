package v2

import (
	"strconv"
	"strings"

	"github.com/rollcall-registry/rollcall/internal/hosts"
	"github.com/rollcall-registry/rollcall/internal/httpapi"
	"github.com/rollcall-registry/rollcall/internal/httpapi/lookup"
	"github.com/rollcall-registry/rollcall/internal/httpapi/modern"
	"github.com/rollcall-registry/rollcall/internal/httpapi/result"
	"github.com/rollcall-registry/rollcall/internal/naming"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// instance answers GET /instance. Health is what the instance has, whatever a list
// would show under the protect threshold.
func (a *API) instance(x *httpapi.Exchange) {
	f := result.NewParams(x)
	key := modern.ParseService(f)
	if key.Name == "" {
		f.Refuse(blankName())
	}
	id := registry.InstanceKey{Cluster: f.Text("clusterName", registry.DefaultCluster), IP: f.Need("ip"), Port: int32(f.NeedInt("port"))}
	err := f.Err()
	if err != nil {
		a.Fail(x, err)
		return
	}
	view, i, err := a.Find(key, id)
	if err != nil {
		a.Fail(x, err)
		return
	}
	b := append(result.Begin(x.Scratch[:0]), '{')
	b = modern.AppendText(b, "serviceName", view.Grouped)
	b = modern.AppendText(b, "ip", i.IP)
	b = strconv.AppendInt(append(b, `,"port":`...), int64(i.Port), 10)
	b = modern.AppendText(b, "clusterName", i.Cluster)
	b = modern.AppendDouble(append(b, `,"weight":`...), i.Weight)
	b = strconv.AppendBool(append(b, `,"healthy":`...), i.Healthy)
	if i.HideID {
		b = append(b, `,"instanceId":null`...)
	} else {
		b = modern.AppendText(b, "instanceId", i.ID(view.Grouped))
	}
	b = i.Metadata.AppendJSON(append(b, `,"metadata":`...))
	a.Data(x, append(b, '}'))
}

// blankName is the refusal of a call that needs a service and gets an empty name.
func blankName() error {
	return result.Invalid("Param 'serviceName' is illegal, serviceName is blank")
}

// patch answers PATCH /instance with a text and no envelope.
func (a *API) patch(x *httpapi.Exchange) {
	f := result.NewParams(x)
	key := modern.ParseGroupedService(f)
	id := registry.InstanceKey{IP: f.Need("ip"), Cluster: f.Text("cluster", registry.DefaultCluster), Port: int32(f.NeedInt("port"))}
	weight, enabled, text := f.NeedFloat("weight"), f.NeedBool("enabled"), f.Need("metadata")
	over := registry.Override{Weight: &weight, Enabled: &enabled}
	err := f.Err()
	if err == nil && text != "" {
		var m registry.Metadata
		m, err = registry.ParseMetadata(text)
		over.Extra = &m
	}
	if err == nil {
		err = a.Patch(x, key, id, over)
	}
	if err != nil {
		a.Fail(x, err)
		return
	}
	x.OK()
}

// statuses answers GET /instance/statuses/{key} with addresses and health, for
// consoles of old: namespace##group@@service, or group@@service in the default
// namespace.
func (a *API) statuses(x *httpapi.Exchange) {
	ns, grouped, found := strings.Cut(x.PathValue("key"), "##")
	if !found {
		ns, grouped = registry.DefaultNamespace, ns
	}
	group, name, ok := registry.ParseGrouped(grouped)
	if !ok || name == "" || group == "" {
		a.Fail(x, result.Invalid("Param 'serviceName' is illegal, it should be format as 'groupName@@serviceName'"))
		return
	}
	var texts []string
	if view := a.Core.Store().View(registry.ServiceKey{Namespace: registry.NamespaceID(ns), Group: group, Name: name}); view != nil {
		for _, i := range view.Instances {
			texts = append(texts, i.IP+":"+strconv.Itoa(int(i.Port))+"_"+strconv.FormatBool(i.Healthy))
		}
	}
	x.Scratch = append(modern.AppendStrings(append(x.Scratch[:0], `{"ips":`...), texts), '}')
	x.JSON(200, x.Scratch)
}

// list answers GET /instance/list: who is in a service. With an address and the
// agent of a client that is pushed to over UDP it also subscribes.
func (a *API) list(x *httpapi.Exchange) {
	f := result.NewParams(x)
	key := modern.ParseService(f)
	filter := hosts.Filter{Clusters: f.Text("clusterName", "")}
	ip := f.Text("ip", "")
	port := f.Int("port", result.JavaInteger, 0)
	filter.HealthyOnly = f.Bool("healthyOnly", result.JavaBoolean, false)
	if key.Name == "" {
		f.Refuse(blankName())
	}
	err := f.Err()
	if err == nil {
		q := lookup.Query{Key: key, Clusters: filter.Clusters, App: f.Text("app", ""), UDPPort: port, ClientIP: ip}
		_, err = q.Subscribe(x, a.Core, a.Admit, "", a.Cause(x, "subscribe"))
	}
	if err != nil {
		a.Fail(x, err)
		return
	}
	view, err := a.Core.View(key)
	if err != nil {
		a.Fail(x, err)
		return
	}
	a.answerList(x, key, view, filter)
}

func (a *API) answerList(x *httpapi.Exchange, key registry.ServiceKey, view *registry.View, filter hosts.Filter) {
	list := hosts.Select(a.Encoder, view, filter)
	revision := a.Core.AbsentRevision()
	if view != nil {
		revision = view.Revision
	}
	b := append(result.Begin(x.Scratch[:0]), '{')
	b = modern.AppendText(b, "name", key.Grouped())
	b = modern.AppendText(b, "groupName", key.Group)
	b = modern.AppendText(b, "clusters", filter.Clusters)
	b = strconv.AppendInt(append(b, `,"cacheMillis":`...), a.Core.Store().Switches().DefaultPushCacheMillis, 10)
	b = append(append(b, `,"hosts":`...), list.Array...)
	b = strconv.AppendInt(append(b, `,"lastRefTime":`...), revision, 10)
	b = append(b, `,"checksum":"","allIPs":false,"reachProtectionThreshold":`...)
	b = strconv.AppendBool(b, list.Protected)
	a.Data(x, append(b, `,"valid":true}`...))
}

// catalog answers GET /catalog/instances: a page of instances, disabled ones too. A
// flag that is sent chooses those that are so, and not the others.
func (a *API) catalog(x *httpapi.Exchange) {
	f := result.NewParams(x)
	grouped := f.Need("serviceName")
	healthy, enabled := tristateOf(f, "healthyOnly"), tristateOf(f, "enabledOnly")
	page, size := f.NeedPlainInt("pageNo"), f.NeedPlainInt("pageSize")
	if f.Err() != nil {
		a.failCatalog(x, f)
		return
	}
	group, name, ok := registry.ParseGrouped(grouped)
	if !ok {
		group = registry.DefaultGroup
	}
	key := registry.ServiceKey{Namespace: registry.NamespaceID(f.Text("namespaceId", "")), Group: group, Name: name}
	view := a.Core.Store().View(key)
	if view == nil {
		a.Data(x, append(result.Begin(x.Scratch[:0]), `{"count":0}`...))
		return
	}
	var list []*registry.Instance
	for _, i := range view.Instances {
		if healthy.is(i.Healthy) && enabled.is(i.Enabled) {
			list = append(list, i)
		}
	}
	from, to := modern.PageOf(page, size, len(view.Instances))
	if len(list) > from && to > len(list) {
		// 2.5.1 cuts the page of all instances out of those that are left, and fails
		// (recorded: v2-catalog).
		x.Caused(500, "toIndex = "+strconv.Itoa(to))
		return
	}
	b := append(result.Begin(x.Scratch[:0]), '{')
	if len(list) > from {
		b = hosts.AppendAll(append(b, `"instances":`...), list[from:to], view.Grouped)
		b = append(b, ',')
	}
	b = strconv.AppendInt(append(b, `"count":`...), int64(len(list)), 10)
	a.Data(x, append(b, '}'))
}

// tristate is a flag that may not have been sent.
type tristate struct{ sent, value bool }

func tristateOf(f *result.Form, name string) tristate {
	return tristate{f.Text(name, "") != "", f.Bool(name, result.JavaBoolean, false)}
}

func (t tristate) is(value bool) bool { return !t.sent || t.value == value }

// failCatalog answers a fault of the catalog's parameters, which 2.5.1 answers
// without the envelope.
func (a *API) failCatalog(x *httpapi.Exchange, f *result.Form) {
	for _, name := range []string{"serviceName", "pageNo", "pageSize"} {
		if f.Text(name, "") == "" {
			x.Text(400, "Parameter '"+name+"' is missing")
			return
		}
	}
	x.Text(500, causes(f.Err()))
}

// beat answers PUT /instance/beat, without the envelope.
func (a *API) beat(x *httpapi.Exchange) {
	b, err := a.readBeat(x)
	if err != nil {
		a.Fail(x, err)
		return
	}
	answer, err := a.Core.Beat(x.Context(), a.Cause(x, "beat"), b.service, b.instance, b.full)
	if err != nil {
		a.Fail(x, err)
		return
	}
	if answer.Unnamed {
		a.Core.Introduce(b.service, b.instance, x.UserAgent())
	}
	x.Scratch = appendBeat(x.Scratch[:0], answer)
	x.JSON(200, x.Scratch)
}

// The codes in the answer to a beat. Source: Nacos NamingResponseCode.
const (
	beatTaken    = 10200
	beatNotFound = 20404
)

func appendBeat(b []byte, answer naming.BeatAnswer) []byte {
	code := int64(beatNotFound)
	if answer.Known {
		code = beatTaken
	}
	b = strconv.AppendInt(append(b, `{"clientBeatInterval":`...), answer.Interval.Milliseconds(), 10)
	b = strconv.AppendInt(append(b, `,"code":`...), code, 10)
	b = strconv.AppendBool(append(b, `,"lightBeatEnabled":`...), answer.Light)
	return append(b, '}')
}
