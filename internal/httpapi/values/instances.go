package values

import (
	"cmp"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/rollcall-registry/rollcall/internal/registry"
)

// Listed is one instance in the parameter instances: its identity, with the
// address in its canonical spelling, and its kind.
type Listed struct {
	registry.InstanceKey
	Ephemeral bool
}

// maxListed is the largest parameter instances that is read, in bytes.
const maxListed = 1 << 20

// ParseInstances reads a JSON array of instances with the tolerance of the
// original: numbers may be strings, the cluster is DEFAULT and the kind ephemeral
// when they are not named.
func ParseInstances(text string) ([]Listed, error) {
	if len(text) > maxListed {
		return nil, illegalInstances("it is larger than 1 MiB")
	}
	if !validJSON(text) {
		return nil, illegalInstances("it is not JSON")
	}
	array := gjson.Parse(text)
	if !array.IsArray() {
		return nil, illegalInstances("it is not a JSON array")
	}
	var list []Listed
	readable := true
	array.ForEach(func(_, item gjson.Result) bool {
		var one Listed
		if one, readable = listedOf(item); readable {
			list = append(list, one)
		}
		return readable
	})
	if !readable {
		return nil, illegalInstances("it has a value of the wrong type")
	}
	return list, nil
}

func illegalInstances(reason string) error {
	return registry.Refuse(registry.InvalidArgument, "instances", "", "Param 'instances' is illegal, %s.", reason)
}

func listedOf(item gjson.Result) (Listed, bool) {
	ip, okIP := textOf(item.Get("ip"))
	port, okPort := portOf(item.Get("port"))
	name, okName := textOf(item.Get("clusterName"))
	ephemeral, okFlag := flagOf(item.Get("ephemeral"))
	name = cmp.Or(strings.TrimSpace(name), registry.DefaultCluster)
	return Listed{
		InstanceKey: registry.InstanceKey{IP: registry.CanonicalIP(ip), Port: port, Cluster: name},
		Ephemeral:   ephemeral,
	}, item.IsObject() && okIP && okPort && okName && okFlag
}
