package modern

import (
	"strconv"

	"github.com/rollcall-registry/rollcall/internal/httpapi"
	"github.com/rollcall-registry/rollcall/internal/httpapi/result"
	"github.com/rollcall-registry/rollcall/internal/httpapi/values"
	"github.com/rollcall-registry/rollcall/internal/naming"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// LayMetadata lays entries over the metadata of several instances.
func (a *API) LayMetadata(x *httpapi.Exchange) { a.batch(x, naming.LayMetadata) }

// LiftMetadata takes laid entries off, whatever their values; what the clients
// registered stays.
func (a *API) LiftMetadata(x *httpapi.Exchange) { a.batch(x, naming.LiftMetadata) }

// batch changes the metadata of the instances that a request lists, or of all of
// the service, and answers with those that are there. What consistencyType says
// makes no difference (live 2.5.1).
func (a *API) batch(x *httpapi.Exchange, op naming.MetadataOp) {
	match, err := listedInstances(x.Params())
	if err != nil {
		a.Fail(x, err)
		return
	}
	f := result.NewForm(x, "instanceMetadataBatchOperationForm")
	key := ParseService(f)
	text := f.Need("metadata")
	if err := f.Err(); err != nil {
		a.Fail(x, err)
		return
	}
	metadata, err := registry.ParseMetadata(text)
	if err != nil {
		a.Fail(x, err)
		return
	}
	touched, err := a.Core.UpdateMetadata(x.Context(), a.Cause(x, "update metadata"), key, op, metadata, match)
	if err != nil && !IsRefusal(err, registry.ServiceNotFound) {
		a.Fail(x, err)
		return
	}
	b := append(result.Begin(x.Scratch[:0]), `{"updated":`...)
	b = AppendArray(b, touched, appendTouched)
	a.Data(x, append(b, '}'))
}

// appendTouched appends how the original names an instance in such a list.
func appendTouched(b []byte, i *registry.Instance) []byte {
	kind := "persist"
	if i.Ephemeral {
		kind = "ephemeral"
	}
	return registry.AppendJSONString(b, i.IP+":"+strconv.Itoa(int(i.Port))+":unknown:"+i.Cluster+":"+kind)
}

// batchClass is what the original reads the list of instances as.
const batchClass = "com.alibaba.nacos.naming.paramcheck.NamingInstanceMetadataBatchHttpParamExtractor$1"

// listedInstances returns the condition on the instances that a batch is for: those
// listed, whatever their kind, or all when none are.
func listedInstances(p *httpapi.Params) (func(*registry.Instance) bool, error) {
	text, _ := p.Get("instances")
	if text == "" {
		return everyInstance, nil
	}
	list, err := values.ParseInstances(text)
	if err != nil {
		return nil, &result.DecodeError{Class: batchClass, Text: text, Cause: err}
	}
	if len(list) == 0 {
		return everyInstance, nil
	}
	wanted := make(map[registry.InstanceKey]bool, len(list))
	for _, one := range list {
		if err := checkListed(one.InstanceKey); err != nil {
			return nil, err
		}
		wanted[one.InstanceKey] = true
	}
	return func(i *registry.Instance) bool {
		key := i.Key()
		key.IP = registry.CanonicalIP(key.IP)
		return wanted[key]
	}, nil
}

func everyInstance(*registry.Instance) bool { return true }

func checkListed(key registry.InstanceKey) error {
	if err := registry.CheckClusterV2(key.Cluster); err != nil {
		return err
	}
	if err := registry.CheckIPV2(key.IP); err != nil {
		return err
	}
	return registry.CheckPortV2(strconv.Itoa(int(key.Port)))
}
