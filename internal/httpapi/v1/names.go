package v1

import (
	"strings"

	"github.com/rollcall-registry/rollcall/internal/httpapi"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// namespace returns the namespace that a request means. Its strings, as those of
// all decoders of this package, are memory of the request.
func namespace(p *httpapi.Params) string {
	return registry.NamespaceID(p.Optional("namespaceId", ""))
}

// groupedName returns group and service name as the naming filter of 1.x makes
// them for every call below /v1/ns: serviceName, or dom when that is blank, has
// its group in front, or else that of groupName. found is false when both are
// blank. The parts are not checked; see [serviceKey].
//
// A group is trimmed in front only: 1.4.8 trims the joined name (recorded:
// reg-name-trim).
func groupedName(p *httpapi.Params) (group, name string, found bool) {
	name = p.Optional("serviceName", "")
	if name == "" {
		name = p.Optional("dom", "")
	}
	if name == "" {
		return "", "", false
	}
	if g, n, ok := registry.ParseGrouped(name); ok {
		return g, n, true
	}
	group, _ = p.Untrimmed("groupName")
	group = strings.TrimLeft(group, blanks)
	if group == "" {
		return registry.DefaultGroup, name, true
	}
	if g, rest, ok := registry.ParseGrouped(group); ok { // recorded: reg-group-bad
		return g, rest + registry.GroupSeparator + name, true
	}
	return group, name, true
}

// blanks are the bytes that Java's String.trim drops.
const blanks = "\x00\x01\x02\x03\x04\x05\x06\x07\x08\t\n\v\f\r\x0e\x0f" +
	"\x10\x11\x12\x13\x14\x15\x16\x17\x18\x19\x1a\x1b\x1c\x1d\x1e\x1f "

// serviceKey returns the service that a request must name, or a refusal with the
// texts of 1.4.8.
func serviceKey(p *httpapi.Params) (registry.ServiceKey, error) {
	group, name, found := groupedName(p)
	if !found {
		if _, err := p.Required("serviceName"); err != nil {
			return registry.ServiceKey{}, err
		}
	}
	return checkedKey(namespace(p), group, name)
}

// checkedKey refuses a service without a group or without a name. As in 1.4.8
// only separators are no name.
func checkedKey(namespace, group, name string) (registry.ServiceKey, error) {
	if strings.ReplaceAll(name, registry.GroupSeparator, "") == "" {
		return registry.ServiceKey{}, registry.Refuse(registry.InvalidArgument, "serviceName", name,
			"Param 'serviceName' is illegal, it should be format as 'groupName@@serviceName'")
	}
	if group == "" {
		return registry.ServiceKey{}, registry.Refuse(registry.InvalidArgument, "serviceName", name,
			"Param 'serviceName' is illegal, groupName can't be empty")
	}
	return registry.ServiceKey{Namespace: namespace, Group: group, Name: name}, nil
}

// plainName returns the service name without its group as answers show it. A
// name that itself has a separator is cut there (recorded: reg-group-odd).
func plainName(key registry.ServiceKey) string {
	name, _, _ := strings.Cut(key.Name, registry.GroupSeparator)
	return name
}

// cluster returns clusterName, or when that is blank its older name cluster, or
// when both are the default cluster.
func cluster(p *httpapi.Params) string {
	if name := p.Optional("clusterName", ""); name != "" {
		return name
	}
	return p.Optional("cluster", registry.DefaultCluster)
}
