package foreign

import (
	"slices"
	"strconv"
	"strings"

	"github.com/rollcall-registry/rollcall/internal/httpapi"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// typeDiscovery is the content type that Prometheus' http_sd demands.
const typeDiscovery = "application/json; charset=UTF-8"

// allTargets answers GET /prometheus: every instance of every namespace.
func (a *API) allTargets(x *httpapi.Exchange) {
	a.targets(x, a.parts.Core.Store().ServiceNamespaces(), everyService)
}

// namespaceTargets answers GET /prometheus/namespaceId/{namespace}. A namespace
// that nobody knows has no instances.
func (a *API) namespaceTargets(x *httpapi.Exchange) {
	a.targets(x, []string{registry.NamespaceID(x.PathValue("namespace"))}, everyService)
}

// serviceTargets answers GET /prometheus/namespaceId/{namespace}/service/{service}:
// the service of that name in every group, or in one when the name has its group
// in front.
func (a *API) serviceTargets(x *httpapi.Exchange) {
	want := x.PathValue("service")
	group, name, grouped := registry.ParseGrouped(want)
	a.targets(x, []string{registry.NamespaceID(x.PathValue("namespace"))}, func(key registry.ServiceKey) bool {
		return key.Name == name && (!grouped || key.Group == group)
	})
}

func everyService(registry.ServiceKey) bool { return true }

// targets answers with the instances of the services that match: an http_sd
// array. Unhealthy and disabled ones are in it, as in Nacos: what is monitored is
// the process, and whether it is up is for Prometheus to find out.
func (a *API) targets(x *httpapi.Exchange, namespaces []string, match func(registry.ServiceKey) bool) {
	store := a.parts.Core.Store()
	b := append(x.Scratch[:0], '[')
	for _, ns := range namespaces {
		keys, _ := store.Services(ns, "", 0, -1)
		for _, key := range keys {
			if !match(key) {
				continue
			}
			view := store.View(key)
			if view == nil {
				continue
			}
			for _, i := range view.Instances {
				if len(b) > 1 {
					b = append(b, ',')
				}
				b = appendTarget(b, key, i)
			}
		}
	}
	x.Scratch = append(b, ']')
	x.Answer(200, typeDiscovery, x.Scratch)
}

// appendTarget appends one instance. As in Nacos its metadata are labels; the
// service is told in labels that Prometheus drops unless they are kept on purpose.
func appendTarget(b []byte, key registry.ServiceKey, i *registry.Instance) []byte {
	b = append(b, `{"targets":[`...)
	b = registry.AppendJSONString(b, hostPort(i))
	b = append(b, `],"labels":{"__meta_clusterName":`...)
	b = registry.AppendJSONString(b, i.Cluster)
	b = append(b, `,"__meta_namespaceId":`...)
	b = registry.AppendJSONString(b, key.Namespace)
	b = append(b, `,"__meta_groupName":`...)
	b = registry.AppendJSONString(b, key.Group)
	b = append(b, `,"__meta_serviceName":`...)
	b = registry.AppendJSONString(b, key.Name)
	b = appendLabels(b, i.Metadata)
	return append(b, "}}"...)
}

// appendLabels appends metadata as labels. Of several keys that become one label
// the first counts, and none replaces what is told of the service.
func appendLabels(b []byte, m registry.Metadata) []byte {
	var seen []string
	for key, value := range m.All() {
		name := label(key)
		if name == "" || strings.HasPrefix(name, "__meta_") || slices.Contains(seen, name) {
			continue
		}
		seen = append(seen, name)
		b = append(b, ',')
		b = registry.AppendJSONString(b, name)
		b = append(b, ':')
		b = registry.AppendJSONString(b, value)
	}
	return b
}

// hostPort returns the address to scrape, IPv6 in brackets.
func hostPort(i *registry.Instance) string {
	host := registry.CanonicalIP(i.IP)
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return host + ":" + strconv.Itoa(int(i.Port))
}

// label returns a metadata key as a label name: what may not be in one becomes _,
// of which Nacos does so with . and - alone.
func label(key string) string {
	name := []byte(key)
	for n, c := range name {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') {
			name[n] = '_'
		}
	}
	if len(name) > 0 && name[0] >= '0' && name[0] <= '9' {
		name = append([]byte{'_'}, name...)
	}
	return string(name)
}
