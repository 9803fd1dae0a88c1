package grpcapi

import (
	"strconv"

	"github.com/rollcall-registry/rollcall/api/grpcv2"
	"github.com/rollcall-registry/rollcall/internal/naming"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// instance answers InstanceRequest: the connection's slot in a service is filled
// with one instance, or emptied. What a deregistration says of the instance does
// not count, as in the original.
func (x *call) instance() error {
	return x.change(func(key registry.ServiceKey, i registry.Instance) error {
		return x.publish("register", key, i)
	}, func(key registry.ServiceKey, _ *grpcv2.Instance) error {
		return x.client.api.core.Leave(x.ctx, x.client.cause("deregister"), key, x.client.id)
	})
}

// persistent answers PersistentInstanceRequest: the instance is in the durable
// store, whoever is connected.
func (x *call) persistent() error {
	core := x.client.api.core
	return x.change(func(key registry.ServiceKey, i registry.Instance) error {
		i.Ephemeral = false
		i.Weight = registry.FitWeight(i.Weight)
		return core.Register(x.ctx, x.client.cause("register"), naming.Registration{Service: key, Instance: i}.Modern())
	}, func(key registry.ServiceKey, i *grpcv2.Instance) error {
		if i == nil {
			return nil
		}
		return core.DeregisterAddress(x.ctx, x.client.cause("deregister"), key, i.IP, i.Port, false)
	})
}

// change answers a request that registers or deregisters one instance of a service,
// whichever its type says.
func (x *call) change(
	register func(registry.ServiceKey, registry.Instance) error,
	deregister func(registry.ServiceKey, *grpcv2.Instance) error,
) error {
	q, err := grpcv2.DecodeInstance(x.Body)
	if err != nil {
		return decoded(err)
	}
	if ok, err := x.admit(&q); !ok || err != nil {
		return err
	}
	key := keyOf(&q.Service)
	x.client.hold(x.answer, key)
	switch q.Type.Value {
	case grpcv2.Register:
		var i registry.Instance
		if i, err = registrable(q.Instance, key); err == nil {
			err = register(key, i)
		}
	case grpcv2.Deregister:
		err = deregister(key, q.Instance)
	default:
		x.unsupported(q.Type)
		return nil
	}
	if err != nil {
		return err
	}
	x.finish(q.Type.Value)
	return nil
}

// batch answers BatchInstanceRequest: the connection's slot in a service is filled
// with all of the instances. Other than for a single one, cluster names with an
// underscore and any life times are taken, as in the original.
func (x *call) batch() error {
	q, err := grpcv2.DecodeBatch(x.Body)
	if err != nil {
		return decoded(err)
	}
	if err := checkService(&q.Service); err != nil {
		return err
	}
	for _, i := range q.Instances {
		if err := checkMember(i); err != nil {
			return err
		}
	}
	if !x.complete(&q.Service) {
		return nil
	}
	if q.Type.Value != grpcv2.BatchRegister {
		x.unsupported(q.Type)
		return nil
	}
	if !q.Given {
		x.blank("instances")
		return nil
	}
	key := keyOf(&q.Service)
	x.client.hold(x.answer, key)
	list := make([]registry.Instance, 0, len(q.Instances))
	for _, i := range q.Instances {
		converted, err := instanceOf(i, key)
		if err != nil {
			return err
		}
		list = append(list, converted)
	}
	if err := x.publish("batch register", key, list...); err != nil {
		return err
	}
	x.finish(q.Type.Value)
	return nil
}

func (x *call) publish(op string, key registry.ServiceKey, instances ...registry.Instance) error {
	_, err := x.client.api.core.Publish(x.ctx, x.client.cause(op), naming.Slot{Service: key, Client: x.client.id, Instances: instances})
	return err
}

// finish answers a request that was done.
func (x *call) finish(requestType string) {
	x.answer.Type = x.route.response
	x.answer.Buf = grpcv2.AppendInstanceDone(x.answer.Buf, requestType)
}

// unsupported answers a request with another type than those that it may have.
func (x *call) unsupported(t grpcv2.Optional) {
	if !t.Given {
		x.blank("type")
		return
	}
	x.fail(grpcv2.CodeInvalid, grpcv2.CodeInvalid, "Unsupported request type "+t.Value)
}

// admit checks what comes before a request about one instance is looked at. ok is
// false when the request has been answered.
func (x *call) admit(q *grpcv2.InstanceRequest) (ok bool, err error) {
	if err := checkService(&q.Service); err != nil {
		return false, err
	}
	if q.Instance != nil {
		if err := checkInstance(q.Instance); err != nil {
			return false, err
		}
	}
	return x.complete(&q.Service), nil
}

// complete reports whether a request names its service, and answers it if not. A
// registration without a namespace is refused, as in the original, where no
// client sends one; null and an empty one mean the default (recorded:
// register-minimal).
func (x *call) complete(s *grpcv2.Service) bool {
	switch {
	case isBlank(s.Name.Value):
		x.blank("serviceName")
	case isBlank(s.Group.Value):
		x.blank("groupName")
	case !s.HasNamespace:
		x.blank("namespace")
	default:
		return true
	}
	return false
}

// keyOf returns the service that a request names. Its strings are parts of the
// request.
func keyOf(s *grpcv2.Service) registry.ServiceKey {
	return registry.ServiceKey{Namespace: registry.NamespaceID(s.Namespace), Group: s.Group.Value, Name: s.Name.Value}
}

// checkService makes the checks that 2.x makes of the names in every request.
func checkService(s *grpcv2.Service) error {
	if err := registry.CheckNamespaceV2(s.Namespace); err != nil {
		return err
	}
	if err := registry.CheckServiceNameV2(trimBlank(s.Name.Value)); err != nil {
		return err
	}
	return registry.CheckGroupV2(trimBlank(s.Group.Value))
}

// trimBlank returns nothing for a blank text: it is missing, not illegal.
func trimBlank(s string) string {
	if isBlank(s) {
		return ""
	}
	return s
}

func checkInstance(i *grpcv2.Instance) error {
	if err := registry.CheckClusterV2(trimBlank(i.Cluster.Value)); err != nil {
		return err
	}
	if err := registry.CheckIPV2(trimBlank(i.IP)); err != nil {
		return err
	}
	return registry.CheckPortV2(strconv.Itoa(int(i.Port)))
}

// checkMember checks an instance of a batch. It must not name another service.
func checkMember(i *grpcv2.Instance) error {
	if i == nil {
		return registry.Refuse(registry.RefusedName, "instances", "", "Param 'instances' is illegal, one of them is null.")
	}
	if err := registry.CheckServiceNameV2(trimBlank(i.Service)); err != nil {
		return err
	}
	return checkInstance(i)
}

// registrable returns an instance that is to be registered alone, if it may be.
func registrable(i *grpcv2.Instance, key registry.ServiceKey) (registry.Instance, error) {
	if i == nil {
		return registry.Instance{}, registry.Refuse(registry.InvalidArgument, "instance", "", "Instance can not be null.")
	}
	converted, err := instanceOf(i, key)
	if err == nil {
		err = registry.CheckBeatTimes(converted.Metadata)
	}
	if err == nil {
		err = registry.CheckCluster(converted.Cluster)
	}
	return converted, err
}

// maxInstanceID bounds the ID that a client chooses, in bytes.
const maxInstanceID = 1024

// instanceOf converts an instance of a service. Its strings are parts of the
// request.
func instanceOf(i *grpcv2.Instance, key registry.ServiceKey) (registry.Instance, error) {
	out := registry.Instance{
		IP: i.IP, Port: i.Port, Cluster: i.Cluster.Value, Weight: i.Weight,
		Healthy: i.Healthy, Enabled: i.Enabled, Ephemeral: true,
	}
	if isBlank(out.Cluster) {
		out.Cluster, out.Unclustered = registry.DefaultCluster, registry.NullCluster
		if i.Cluster.Given {
			out.Unclustered = registry.BlankCluster
		}
	}
	if id := ownID(i, &out, key); id != "" {
		if len(id) > maxInstanceID {
			return out, registry.Refuse(registry.RefusedName, "instanceId", "",
				"Param 'instanceId' is illegal, the param length should not exceed %d.", maxInstanceID)
		}
		out.Rare = &registry.Rare{ID: id}
	}
	var err error
	out.Metadata, err = registry.ParseMetadata(text(i.Metadata))
	return out, err
}

// ownID returns the ID of an instance that is not computed from what it is: one
// that the client chose, or, as in the original, one that is computed from another
// name of the service that the client put into the instance.
func ownID(i *grpcv2.Instance, out *registry.Instance, key registry.ServiceKey) string {
	if i.ID != "" || isBlank(i.Service) {
		return i.ID
	}
	if group, name, ok := registry.ParseGrouped(i.Service); ok && group == key.Group && name == key.Name {
		return ""
	}
	return out.ID(i.Service)
}
