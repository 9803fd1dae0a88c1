package legacy

import (
	"strconv"
	"strings"

	"github.com/rollcall-registry/rollcall/internal/httpapi"
	"github.com/rollcall-registry/rollcall/internal/httpapi/lookup"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

func lookupOf(p *httpapi.Params) (lookup.Query, error) {
	key, err := domOf(p, "dom")
	if err != nil {
		return lookup.Query{}, err
	}
	return lookup.Parse(p, key)
}

// srvIPXT answers who is in a service, and subscribes a client that asks for UDP
// packets.
func (a *API) srvIPXT(x *httpapi.Exchange) {
	q, err := lookupOf(x.Params())
	if err != nil {
		a.fail(x, err)
		return
	}
	cacheMillis, err := a.subscribe(x, &q)
	if err != nil {
		a.fail(x, err)
		return
	}
	view, err := a.core.View(q.Key)
	if view == nil && err == nil {
		err = missing("dom not found: %s", shown(q.Key))
	}
	var clusters []string
	if err == nil {
		clusters, err = clustersOf(view, q.Clusters)
	}
	switch {
	case err != nil:
		a.fail(x, err)
	case q.IsCheck:
		x.JSON(200, []byte("{}"))
	default:
		x.Scratch = a.appendLookup(x.Scratch[:0], view, &q, clusters, cacheMillis)
		x.JSON(200, x.Scratch)
	}
}

// clustersOf returns the clusters of a list with commas, nil when it names none.
// Unlike later versions 0.9 knows no cluster that is not there.
func clustersOf(view *registry.View, text string) ([]string, error) {
	clusters := clusterNames(text)
	for _, name := range clusters {
		if view.Cluster(name) == nil {
			return nil, illegal("can not find cluster: %s, dom:%s", name, shown(view.Key))
		}
	}
	return clusters, nil
}

// clusterNames splits a list with commas; it returns nil when it names none.
func clusterNames(text string) []string {
	var names []string
	for name := range strings.SplitSeq(text, ",") {
		if name = strings.TrimSpace(name); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// appendLookup appends the answer to a look-up, with its fields in the order in
// which 0.9 happens to send them.
func (a *API) appendLookup(b []byte, view *registry.View, q *lookup.Query, clusters []string, cacheMillis int64) []byte {
	b = append(b, `{"metadata":`...)
	b = view.Info.Metadata.AppendJSON(b)
	b = append(b, `,"dom":`...)
	b = registry.AppendJSONString(b, shown(view.Key))
	b = append(b, `,"cacheMillis":`...)
	b = strconv.AppendInt(b, cacheMillis, 10)
	b = append(b, `,"useSpecifiedURL":false,"hosts":`...)
	b = append(b, a.hosts(view, clusters, q.HealthyOnly)...)
	b = append(b, `,"checksum":"`...)
	b = appendChecksum(b, view)
	b = strconv.AppendInt(b, view.Revision, 10) // 0.9 appends the time
	b = append(b, `","lastRefTime":`...)
	b = strconv.AppendInt(b, view.Revision, 10)
	b = append(b, `,"env":`...)
	b = registry.AppendJSONString(b, q.Env)
	b = append(b, `,"clusters":`...)
	b = registry.AppendJSONString(b, q.Clusters)
	return append(b, '}')
}

// hosts returns the encoded instances of a view, which are shared.
func (a *API) hosts(view *registry.View, clusters []string, healthyOnly bool) []byte {
	form := "legacy list"
	if healthyOnly {
		form = "legacy list healthy"
	}
	if len(clusters) > 0 {
		form += " in " + strings.Join(clusters, ",")
	}
	return a.encoder.Encode(view, form, func(b []byte) []byte {
		sel := registry.Select(view, registry.Query{
			Clusters: clusters, HealthyOnly: healthyOnly, WithDisabled: true, Policy: registry.PolicyV1,
		})
		dom := shown(view.Key)
		b = append(b, '[')
		for n, i := range sel.Instances {
			if n > 0 {
				b = append(b, ',')
			}
			b = appendHost(b, i, sel.Healthy(i), dom)
		}
		return append(b, ']')
	})
}

// appendHost appends one instance. healthy is the health to show.
func appendHost(b []byte, i *registry.Instance, healthy bool, dom string) []byte {
	id := ""
	if i.HideID { // 0.9 shows what addIP4Dom was given (recorded: api-addip-json)
		dom = ""
	} else {
		id = i.ID(dom)
	}
	b = append(b, `{"valid":`...)
	b = strconv.AppendBool(b, healthy)
	b = append(b, `,"marked":`...)
	b = strconv.AppendBool(b, i.Marked)
	b = append(b, `,"metadata":`...)
	b = i.Metadata.AppendJSON(b)
	b = append(b, `,"instanceId":`...)
	b = registry.AppendJSONString(b, id)
	b = append(b, `,"port":`...)
	b = strconv.AppendInt(b, int64(i.Port), 10)
	b = append(b, `,"ip":`...)
	b = registry.AppendJSONString(b, i.IP)
	b = append(b, `,"clusterName":`...)
	b = registry.AppendJSONString(b, i.Cluster)
	b = append(b, `,"weight":`...)
	b = appendNumber(b, i.Weight, 64)
	b = append(b, `,"serviceName":`...)
	b = registry.AppendJSONString(b, dom)
	b = append(b, `,"enabled":`...)
	b = strconv.AppendBool(b, i.Enabled)
	return append(b, '}')
}
