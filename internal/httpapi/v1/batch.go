package v1

import (
	"strconv"

	"github.com/rollcall-registry/rollcall/internal/httpapi"
	"github.com/rollcall-registry/rollcall/internal/httpapi/values"
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

// matchListed returns the condition on instances that a JSON array names. A text
// that cannot be read names nobody.
func matchListed(text string) func(*registry.Instance) bool {
	wanted := map[values.Listed]bool{}
	list, err := values.ParseInstances(text)
	if err == nil {
		for _, one := range list {
			wanted[one] = true
		}
	}
	return func(i *registry.Instance) bool {
		key := i.Key()
		key.IP = registry.CanonicalIP(key.IP)
		return wanted[values.Listed{InstanceKey: key, Ephemeral: i.Ephemeral}]
	}
}
