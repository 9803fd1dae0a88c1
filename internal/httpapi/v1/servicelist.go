package v1

import (
	"strconv"
	"strings"

	"github.com/rollcall-registry/rollcall/internal/httpapi"
	"github.com/rollcall-registry/rollcall/internal/httpapi/values"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// allGroups is the group name that lists the services of all groups.
const allGroups = "*"

// serviceList answers GET /service/list: a page of names, in the order of the
// grouped names.
func (a *API) serviceList(x *httpapi.Exchange) {
	p := x.Params()
	page, err := listPage(p)
	if err != nil {
		a.fail(x, err)
		return
	}
	filter, err := metadataFilterOf(p)
	if err != nil {
		a.failAs(x, registry.InvalidSelector, 500, err)
		return
	}
	group := p.Optional("groupName", registry.DefaultGroup)
	grouped := group == allGroups
	if grouped {
		group = ""
	}
	keys, total := a.listed(namespace(p), group, filter, page)
	b := append(x.Scratch[:0], `{"doms":[`...)
	for n, key := range keys {
		if n > 0 {
			b = append(b, ',')
		}
		if grouped {
			b = appendGrouped(b, key)
		} else {
			b = registry.AppendJSONString(b, key.Name)
		}
	}
	b = append(b, `],"count":`...)
	b = strconv.AppendInt(b, int64(total), 10)
	x.Scratch = append(b, '}')
	x.JSON(200, x.Scratch)
}

// listed returns a page of the services that a filter lets pass, and how many
// there are. A zero filter lets all pass, at the cost of the page alone.
func (a *API) listed(ns, group string, filter metadataFilter, page page) (keys []registry.ServiceKey, total int) {
	if filter.key == "" {
		return a.core.Store().Services(ns, group, page.offset, page.limit)
	}
	all, _ := a.core.Store().Services(ns, group, 0, -1)
	passed := all[:0]
	for _, key := range all {
		if view := a.core.Store().View(key); view != nil && filter.passes(view) {
			passed = append(passed, key)
		}
	}
	from, to := page.of(len(passed))
	return passed[from:to], len(passed)
}

// metadataFilter keeps services with an entry of their own metadata, or of that
// of one of their instances. The zero value keeps all.
type metadataFilter struct {
	inInstances bool
	key, value  string
}

func (f *metadataFilter) passes(view *registry.View) bool {
	if !f.inInstances {
		return f.in(view.Info.Metadata)
	}
	for _, i := range view.Instances {
		if f.in(i.Metadata) {
			return true
		}
	}
	return false
}

func (f *metadataFilter) in(m registry.Metadata) bool {
	v, ok := m.Get(f.key)
	return ok && v == f.value
}

// metadataFilterOf reads the selector of a list call. As in 1.4.8 the expression
// is SERVICE.metadata.k='v' or INSTANCE.metadata.k='v', of which only the part
// behind the last dot is the key; one that begins otherwise filters nothing.
func metadataFilterOf(p *httpapi.Params) (metadataFilter, error) {
	text := p.Optional("selector", "")
	if text == "" {
		return metadataFilter{}, nil
	}
	s, err := values.ParseSelector(text)
	if err != nil || s.Kind != registry.SelectorLabel {
		return metadataFilter{}, err
	}
	expression := strings.Join(strings.Fields(s.Expression), "")
	path, value, found := strings.Cut(expression, "=")
	kind, _, _ := strings.Cut(path, ".")
	if kind != "SERVICE" && kind != "INSTANCE" {
		return metadataFilter{}, nil
	}
	key := path[strings.LastIndexByte(path, '.')+1:]
	if !found || key == "" || key == kind {
		return metadataFilter{}, values.MalformedSelector("its expression is not like SERVICE.metadata.k='v'")
	}
	value, _, _ = strings.Cut(value, "=")
	return metadataFilter{inInstances: kind == "INSTANCE", key: key, value: strings.ReplaceAll(value, "'", "")}, nil
}

// serviceNames answers GET /service/names: the names of one namespace, or of all,
// without their groups. The count is that of the namespaces.
func (a *API) serviceNames(x *httpapi.Exchange) {
	p := x.Params()
	if _, err := p.BoundBool("responsibleOnly", false); err != nil { // this server answers for all
		a.fail(x, err)
		return
	}
	find, err := values.NewSearch("expr", p.BoundOptional("expr", ""))
	if err != nil {
		a.fail(x, err)
		return
	}
	spaces, err := a.namespaces(p.BoundOptional("namespaceId", ""))
	if err != nil {
		a.fail(x, err)
		return
	}
	b := append(x.Scratch[:0], `{"services":{`...)
	for n, ns := range spaces {
		if n > 0 {
			b = append(b, ',')
		}
		b = registry.AppendJSONString(b, ns)
		b = append(b, ':')
		if b, err = a.appendNames(b, ns, find); err != nil {
			a.fail(x, err)
			return
		}
	}
	b = append(b, `},"count":`...)
	b = strconv.AppendInt(b, int64(len(spaces)), 10)
	x.Scratch = append(b, '}')
	x.JSON(200, x.Scratch)
}

// namespaces returns the namespace that is asked for, or all that have services
// when none is. One that nobody knows is refused.
func (a *API) namespaces(ns string) ([]string, error) {
	store := a.core.Store()
	if ns == "" {
		return store.ServiceNamespaces(), nil
	}
	if _, count := store.Services(ns, "", 0, 0); count == 0 && ns != registry.DefaultNamespace {
		if _, known := store.NamespaceByID(ns); !known {
			return nil, registry.Refuse(registry.ServiceNotFound, "namespaceId", ns, "namespace %s has no services", ns)
		}
	}
	return []string{ns}, nil
}

// appendNames appends the names of a namespace that are found as a JSON array.
// Services of one name in several groups are one name.
func (a *API) appendNames(b []byte, ns string, find *values.Search) ([]byte, error) {
	keys, _ := a.core.Store().Services(ns, "", 0, -1)
	seen := make(map[string]struct{}, len(keys))
	b = append(b, '[')
	for _, key := range keys {
		found, err := find.Matches(key.Grouped())
		if err != nil {
			return b, err
		}
		name := plainName(key)
		if _, twice := seen[name]; !found || twice {
			continue
		}
		if len(seen) > 0 {
			b = append(b, ',')
		}
		seen[name] = struct{}{}
		b = registry.AppendJSONString(b, name)
	}
	return append(b, ']'), nil
}
