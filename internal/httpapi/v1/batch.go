package v1

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/rollcall-registry/rollcall/internal/httpapi"
	"github.com/rollcall-registry/rollcall/internal/naming"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// mergeMetadata answers PUT /instance/metadata/batch.
func (a *API) mergeMetadata(x *httpapi.Exchange) { a.batch(x, naming.MergeMetadata) }

// removeMetadata answers DELETE /instance/metadata/batch: the keys go, whatever
// their values.
func (a *API) removeMetadata(x *httpapi.Exchange) { a.batch(x, naming.RemoveMetadata) }

// batch changes the metadata of the instances that a request names and answers
// with them. As in 1.4.8 a service that is not there and a list of instances
// that cannot be read name nobody.
func (a *API) batch(x *httpapi.Exchange, op naming.MetadataOp) {
	p := x.Params()
	key, err := serviceKey(p)
	if err != nil {
		a.fail(x, err)
		return
	}
	match := batchMatch(p)
	metadata, err := requiredMetadata(p)
	if err != nil {
		a.fail(x, err)
		return
	}
	touched, err := a.core.UpdateMetadata(x.Context(), cause(x, "update metadata"), key, op, metadata, match)
	if err != nil && !isRefusal(err, registry.ServiceNotFound) {
		a.fail(x, err)
		return
	}
	b := append(x.Scratch[:0], `{"updated":[`...)
	for n, i := range touched {
		if n > 0 {
			b = append(b, ',')
		}
		b = appendUpdated(b, i)
	}
	x.Scratch = append(b, "]}"...)
	x.JSON(200, x.Scratch)
}

func requiredMetadata(p *httpapi.Params) (registry.Metadata, error) {
	text, err := p.Required("metadata")
	if err != nil {
		return "", err
	}
	return registry.ParseMetadata(text)
}

// appendUpdated appends how 1.4.8 names an instance: its address, without a port
// that is none, and its kind.
func appendUpdated(b []byte, i *registry.Instance) []byte {
	b = append(b, '"')
	start := len(b)
	b = append(b, i.IP...)
	if i.Port > 0 {
		b = append(b, ':')
		b = strconv.AppendInt(b, int64(i.Port), 10)
	}
	b = append(b, ":unknown:"...)
	b = append(b, i.Cluster...)
	if i.Ephemeral {
		b = append(b, ":ephemeral"...)
	} else {
		b = append(b, ":persist"...)
	}
	return endString(b, start)
}

// batchMatch returns the condition on the instances that a batch is for: all of
// the kind that consistencyType names, or without one those that are listed.
func batchMatch(p *httpapi.Params) func(*registry.Instance) bool {
	switch p.Optional("consistencyType", "") {
	case "":
		return matchListed(p.Optional("instances", ""))
	case "ephemeral":
		return func(i *registry.Instance) bool { return i.Ephemeral }
	case "persist":
		return func(i *registry.Instance) bool { return !i.Ephemeral }
	default:
		return func(*registry.Instance) bool { return false }
	}
}

// listed is one instance in the parameter instances.
type listed struct {
	registry.InstanceKey
	ephemeral bool
}

// maxListed is the largest parameter instances that is read, in bytes.
const maxListed = 1 << 20

// matchListed reads a JSON array of instances with the tolerance of 1.4.8. A
// text that cannot be read names nobody.
func matchListed(text string) func(*registry.Instance) bool {
	wanted := map[listed]bool{}
	if len(text) <= maxListed && validJSON(text) {
		wanted = listedIn(gjson.Parse(text))
	}
	return func(i *registry.Instance) bool {
		key := i.Key()
		key.IP = registry.CanonicalIP(key.IP)
		return wanted[listed{key, i.Ephemeral}]
	}
}

func listedIn(array gjson.Result) map[listed]bool {
	wanted := map[listed]bool{}
	if !array.IsArray() {
		return wanted
	}
	readable := true
	array.ForEach(func(_, item gjson.Result) bool {
		var one listed
		if one, readable = listedOf(item); readable {
			wanted[one] = true
		}
		return readable
	})
	if !readable {
		clear(wanted)
	}
	return wanted
}

func listedOf(item gjson.Result) (listed, bool) {
	ip, okIP := textOf(item.Get("ip"))
	port, okPort := portOf(item.Get("port"))
	name, okName := textOf(item.Get("clusterName"))
	ephemeral, okFlag := flagOf(item.Get("ephemeral"))
	name = cmp.Or(strings.TrimSpace(name), registry.DefaultCluster)
	return listed{
		InstanceKey: registry.InstanceKey{IP: registry.CanonicalIP(ip), Port: port, Cluster: name},
		ephemeral:   ephemeral,
	}, item.IsObject() && okIP && okPort && okName && okFlag
}
