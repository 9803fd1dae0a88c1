package result

import (
	"strings"

	"github.com/rollcall-registry/rollcall/internal/httpapi"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// A Check looks at the names in a request before its call does; which parameters
// they are in differs between calls. Source: Nacos' HttpParamExtractors.
type Check func(*httpapi.Params) error

// CheckNaming is the check of most calls.
func CheckNaming(p *httpapi.Params) error {
	if err := checkMetadata(p); err != nil {
		return err
	}
	return firstFault(
		registry.CheckNamespaceV2(get(p, "namespaceId")),
		checkService(alias(p, "serviceName", "serviceNameParam"), alias(p, "groupName", "groupNameParam")),
		registry.CheckClusterV2(alias(p, "clusterName", "cluster")),
		registry.CheckIPV2(get(p, "ip")),
		registry.CheckPortV2(alias(p, "port", "checkPort")),
	)
}

// CheckList is the check of a look-up.
func CheckList(p *httpapi.Params) error {
	return firstFault(
		registry.CheckNamespaceV2(get(p, "namespaceId")),
		checkService(get(p, "serviceName"), get(p, "groupName")),
		checkClusters(get(p, "clusters")),
	)
}

// CheckBeat is the check of a beat. What its body holds is for the call to check.
func CheckBeat(p *httpapi.Params) error {
	return firstFault(
		registry.CheckNamespaceV2(get(p, "namespaceId")),
		checkService(get(p, "serviceName"), get(p, "groupName")),
		registry.CheckIPV2(get(p, "ip")),
		registry.CheckPortV2(get(p, "port")),
	)
}

// CheckBatch is the check of a change of several instances.
func CheckBatch(p *httpapi.Params) error {
	if err := checkMetadata(p); err != nil {
		return err
	}
	return CheckBeat(p)
}

// CheckNamespace is the check of the calls of the console.
func CheckNamespace(p *httpapi.Params) error {
	return firstFault(
		registry.CheckNamespaceNameV2(get(p, "namespaceName")),
		registry.CheckNamespaceV2(alias(p, "namespaceId", "customNamespaceId")),
	)
}

// checkMetadata refuses what is no metadata, which the original reads before it
// looks at anything else. What it costs in length is for the core to say.
func checkMetadata(p *httpapi.Params) error {
	_, err := registry.ParseMetadata(get(p, "metadata"))
	return err
}

// checkService checks a service name, which may have a group in front.
func checkService(name, group string) error {
	if g, n, grouped := registry.ParseGrouped(name); grouped {
		name, group = n, g
	}
	if err := registry.CheckServiceNameV2(name); err != nil {
		return err
	}
	return registry.CheckGroupV2(group)
}

func checkClusters(text string) error {
	for name := range strings.SplitSeq(text, ",") {
		if err := registry.CheckClusterV2(strings.TrimSpace(name)); err != nil {
			return err
		}
	}
	return nil
}

func get(p *httpapi.Params, name string) string {
	value, _ := p.Get(name)
	return value
}

// alias returns a parameter, or when it is empty another one.
func alias(p *httpapi.Params, name, other string) string {
	if value := get(p, name); value != "" {
		return value
	}
	return get(p, other)
}

func firstFault(faults ...error) error {
	for _, err := range faults {
		if err != nil {
			return err
		}
	}
	return nil
}
