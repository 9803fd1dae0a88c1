package legacy

import (
	"strconv"
	"strings"

	"github.com/rollcall-registry/rollcall/internal/httpapi"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// ip4Dom lists the instances of a service with their real health.
func (a *API) ip4Dom(x *httpapi.Exchange) {
	p := x.Params()
	key, err := domOf(p, "dom")
	if err != nil {
		a.fail(x, err)
		return
	}
	view, err := a.existing(key, func(name string) error { return illegal("dom: %s not found!", name) })
	if err != nil {
		a.fail(x, err)
		return
	}
	clusters, err := clustersOf(view, p.Optional("clusters", ""))
	if err != nil {
		a.fail(x, err)
		return
	}
	agent := httpapi.ParseAgent(p.Optional("header:Client-Version", ""), "")
	whole := agent.Version.Less(httpapi.Version{Major: 1, Minor: 5})
	sel := registry.Select(view, registry.Query{Clusters: clusters, WithDisabled: true})
	b := append(x.Scratch[:0], `{"ips":[`...)
	for n, i := range sel.Instances {
		if n > 0 {
			b = append(b, ',')
		}
		b = appendIP(b, i, whole)
	}
	x.Scratch = append(b, "]}"...)
	x.JSON(200, x.Scratch)
}

// noCheckRT is how long the probe of a single instance took: nobody measures it
// (recorded: api-ip4dom).
const noCheckRT = "-1"

// appendIP appends an instance. Clients before 1.5.0 read whole weights: a part of
// one is cut off, but nothing above 0 becomes 0.
func appendIP(b []byte, i *registry.Instance, whole bool) []byte {
	b = append(b, `{"valid":`...)
	b = strconv.AppendBool(b, i.Healthy)
	b = append(b, `,"marked":`...)
	b = strconv.AppendBool(b, i.Marked)
	b = append(b, `,"app":`...)
	b = registry.AppendJSONString(b, i.App)
	b = append(b, `,"cluster":`...)
	b = registry.AppendJSONString(b, i.Cluster)
	b = append(b, `,"checkRT":`+noCheckRT+`,"port":`...)
	b = strconv.AppendInt(b, int64(i.Port), 10)
	b = append(b, `,"ip":`...)
	b = registry.AppendJSONString(b, i.IP)
	b = append(b, `,"weight":`...)
	switch {
	case !whole:
		b = appendNumber(b, i.Weight, 64)
	case i.Weight > 0 && i.Weight < 1:
		b = append(b, '1')
	default:
		b = strconv.AppendInt(b, int64(i.Weight), 10)
	}
	return append(b, '}')
}

// ip4Dom2 lists addresses and health of a service that is named by its name or as
// namespace##name.
func (a *API) ip4Dom2(x *httpapi.Exchange) {
	text, err := x.Params().Required("dom")
	if err != nil {
		a.fail(x, err)
		return
	}
	namespace, name, found := strings.Cut(text, namespaceSeparator)
	if !found {
		namespace, name = "", text
	}
	view, err := a.existing(domNamed(registry.NamespaceID(namespace), name),
		func(name string) error { return missing("dom: %s not found.", name) })
	if err != nil {
		a.fail(x, err)
		return
	}
	b := append(x.Scratch[:0], `{"ips":[`...)
	for n, i := range view.Instances {
		if n > 0 {
			b = append(b, ',')
		}
		b = registry.AppendJSONString(b, i.IP+":"+portText(i.Port)+"_"+strconv.FormatBool(i.Healthy))
	}
	x.Scratch = append(b, "]}"...)
	x.JSON(200, x.Scratch)
}

// namespaceSeparator joins namespace and service.
const namespaceSeparator = "##"

// domCount answers how many services there are.
func (a *API) domCount(x *httpapi.Exchange) {
	b := append(x.Scratch[:0], `{"count":`...)
	b = strconv.AppendInt(b, a.core.Store().Counts().Services, 10)
	x.Scratch = append(b, '}')
	x.JSON(200, x.Scratch)
}

// lastListDNS is the last version of the DNS client that reads the services of the
// default namespace as one list.
var lastListDNS = httpapi.Version{Major: 1, Minor: 0, Patch: 1}

// allDomNames lists the services of all namespaces.
func (a *API) allDomNames(x *httpapi.Exchange) {
	agent := x.Agent()
	count, b := 0, append(x.Scratch[:0], `{"doms":`...)
	if agent.Kind == httpapi.DNSAgent && !lastListDNS.Less(agent.Version) {
		b, count = a.appendNames(b, registry.DefaultNamespace)
	} else {
		b = append(b, '{')
		for i, namespace := range a.core.Store().ServiceNamespaces() {
			if i > 0 {
				b = append(b, ',')
			}
			var n int
			b = append(registry.AppendJSONString(b, namespace), ':')
			b, n = a.appendNames(b, namespace)
			count += n
		}
		b = append(b, '}')
	}
	b = append(b, `,"count":`...)
	b = strconv.AppendInt(b, int64(count), 10)
	x.Scratch = append(b, '}')
	x.JSON(200, x.Scratch)
}

func (a *API) appendNames(b []byte, namespace string) (_ []byte, count int) {
	keys, _ := a.core.Store().Services(namespace, "", 0, -1)
	b = append(b, '[')
	for n, key := range keys {
		if n > 0 {
			b = append(b, ',')
		}
		b = registry.AppendJSONString(b, shown(key))
	}
	return append(b, ']'), len(keys)
}

// getDomsByIP lists the services of all namespaces that have an instance at an
// address, with or without a port.
func (a *API) getDomsByIP(x *httpapi.Exchange) {
	text, err := x.Params().Required("ip")
	if err != nil {
		a.fail(x, err)
		return
	}
	host, port, ok := splitAddress(text)
	doms := []string{}
	if ok {
		host = registry.CanonicalIP(host)
		doms = a.domsAt(host, port)
	}
	b := append(x.Scratch[:0], `{"doms":`...)
	x.Scratch = append(appendStrings(b, doms), '}')
	x.JSON(200, x.Scratch)
}

// domsAt looks at every instance of the server: it is an operator's question. Port
// 0 is any.
func (a *API) domsAt(host string, port int32) []string {
	store := a.core.Store()
	doms := []string{}
	for _, namespace := range store.ServiceNamespaces() {
		keys, _ := store.Services(namespace, "", 0, -1)
		for _, key := range keys {
			if hasAddress(store.View(key), host, port) {
				doms = append(doms, namespace+namespaceSeparator+shown(key))
			}
		}
	}
	return doms
}

// hasAddress reports whether a view has an instance at a canonical address. view
// may be nil.
func hasAddress(view *registry.View, host string, port int32) bool {
	if view == nil {
		return false
	}
	for _, i := range view.Instances {
		if registry.CanonicalIP(i.IP) == host && (port == 0 || i.Port == port) {
			return true
		}
	}
	return false
}
