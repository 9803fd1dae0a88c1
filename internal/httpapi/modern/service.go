package modern

import (
	"math"
	"strconv"

	"github.com/rollcall-registry/rollcall/internal/httpapi"
	"github.com/rollcall-registry/rollcall/internal/httpapi/result"
	"github.com/rollcall-registry/rollcall/internal/httpapi/values"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// ServiceForm reads a service with its settings. What is not sent is empty, and a
// service is persistent unless the form says otherwise.
func ServiceForm(x *httpapi.Exchange) (registry.ServiceKey, registry.ServiceInfo, error) {
	f := result.NewForm(x, "serviceForm")
	info := registry.ServiceInfo{Kind: registry.KindPersistent}
	if f.Bool("ephemeral", result.JavaBoolean, false) {
		info.Kind = registry.KindEphemeral
	}
	threshold := f.Float("protectThreshold", result.JavaFloat, 0)
	key := ParseService(f)
	if math.IsNaN(threshold) || math.Abs(threshold) > math.MaxFloat32 { // no JSON could show it
		f.Refuse(result.Invalid("Param 'protectThreshold' is illegal, it must be a number."))
	}
	info.ProtectThreshold = float32(threshold)
	if err := f.Err(); err != nil {
		return key, info, err
	}
	var err error
	if info.Selector, err = parseSelector(f.Text("selector", "")); err != nil {
		return key, info, err
	}
	info.Metadata, err = registry.ParseMetadata(f.Text("metadata", ""))
	return key, info, err
}

func parseSelector(text string) (registry.Selector, error) {
	if text == "" {
		return registry.NewSelector(registry.SelectorNone, "")
	}
	s, err := values.ParseEscapedSelector(text)
	switch {
	case IsRefusal(err, registry.InvalidArgument):
		return registry.Selector{}, &result.Fault{Status: 400, Code: result.SelectorError, Data: "not match any type of selector!"}
	case err != nil:
		return registry.Selector{}, &result.Fault{Status: 400, Code: result.SelectorError, Data: err.Error()}
	}
	return registry.NewSelector(s.Kind, s.Expression)
}

// CreateService makes a service by hand.
func (a *API) CreateService(x *httpapi.Exchange) {
	key, info, err := ServiceForm(x)
	if err == nil {
		err = a.Core.CreateService(x.Context(), a.Cause(x, "create service"), key, info, registry.CheckServiceV2)
	}
	a.Done(x, err)
}

// UpdateService replaces threshold, metadata and selector of a service.
func (a *API) UpdateService(x *httpapi.Exchange) {
	_, err := a.updateService(x)
	a.Done(x, err)
}

// UpdateServiceConsole is UpdateService with the console's words for a service that
// is not there.
func (a *API) UpdateServiceConsole(x *httpapi.Exchange) {
	key, err := a.updateService(x)
	if IsRefusal(err, registry.ServiceNotFound) {
		err = &result.Fault{Status: 404, Code: result.ServiceNotExist, Data: "service " + JavaService(key, true) + " is not exist."}
	}
	a.Done(x, err)
}

func (a *API) updateService(x *httpapi.Exchange) (registry.ServiceKey, error) {
	key, next, err := ServiceForm(x)
	if err != nil {
		return key, err
	}
	return key, a.Core.UpdateService(x.Context(), a.Cause(x, "update service"), key, func(info *registry.ServiceInfo) {
		info.ProtectThreshold, info.Metadata, info.Selector = next.ProtectThreshold, next.Metadata, next.Selector
	})
}

// DeleteService removes a service that is empty.
func (a *API) DeleteService(x *httpapi.Exchange, key registry.ServiceKey) error {
	return a.Core.DeleteService(x.Context(), a.Cause(x, "delete service"), key, true)
}

// Service returns the view of a service, or the refusal of the calls that show one.
func (a *API) Service(key registry.ServiceKey) (*registry.View, error) {
	if view := a.Core.Store().View(key); view != nil {
		return view, nil
	}
	return nil, &result.Fault{
		Status: 400, Code: result.ServiceNotExist,
		Data: "service not found, namespace: " + key.Namespace + ", serviceName: " + key.Grouped(),
	}
}

// UsedCluster is a cluster with its instances, of which it has some.
type UsedCluster struct {
	*registry.Cluster
	Instances []*registry.Instance
}

// UsedClusters returns the clusters of a view that have instances: the others are
// not shown, whatever is set for them.
func UsedClusters(view *registry.View) []UsedCluster {
	in := make(map[string][]*registry.Instance, len(view.Clusters))
	for _, i := range view.Instances {
		in[i.Cluster] = append(in[i.Cluster], i)
	}
	used := make([]UsedCluster, 0, len(in))
	for _, c := range view.Clusters {
		if list := in[c.Name]; list != nil {
			used = append(used, UsedCluster{c, list})
		}
	}
	return used
}

// AppendSelector appends a selector as JSON.
func AppendSelector(b []byte, s registry.Selector) []byte {
	if s.Type != registry.SelectorLabel {
		return append(b, `{"type":"none","contextType":"NONE"}`...)
	}
	b = append(b, `{"type":"label","expression":`...)
	b = registry.AppendJSONString(b, s.Expression)
	b = append(b, `,"labels":`...)
	b = AppendStrings(b, s.Labels)
	return append(b, `,"contextType":"CMDB"}`...)
}

// AppendDetails appends what a service is, to an object that was begun with its names,
// and ends it. cluster writes one of its clusters.
func AppendDetails(b []byte, view *registry.View, cluster func([]byte, *registry.Cluster) []byte) []byte {
	b = append(b, `,"clusterMap":{`...)
	for n, c := range UsedClusters(view) {
		if n > 0 {
			b = append(b, ',')
		}
		b = cluster(append(registry.AppendJSONString(b, c.Name), ':'), c.Cluster)
	}
	b = view.Info.Metadata.AppendJSON(append(b, `},"metadata":`...))
	b = AppendFloat(append(b, `,"protectThreshold":`...), view.Info.ProtectThreshold)
	b = AppendSelector(append(b, `,"selector":`...), view.Info.Selector)
	b = strconv.AppendBool(append(b, `,"ephemeral":`...), Ephemeral(view))
	return append(b, '}')
}
