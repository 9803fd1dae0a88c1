package rollcall

import (
	"maps"
	"math"
	"net"
	"regexp"
	"strconv"
	"strings"

	"github.com/rollcall-registry/rollcall/client/internal/wire"
)

// Instance is one address at which a service is offered. [NewInstance] fills it
// with what most want; the zero value would be disabled, unhealthy and of no
// weight.
//
// An Instance in a [Snapshot] is shared: neither it nor its Metadata may be
// changed.
type Instance struct {
	// ID is what the server made of the instance. When registering it is usually
	// empty.
	ID string
	// IP is an address or a host name.
	IP   string
	Port uint16
	// Weight is the share of requests that the instance wants, 0 to 10000; 0
	// means none.
	Weight  float64
	Healthy bool
	// Enabled is false for an instance that an operator or its owner took out.
	Enabled bool
	// Ephemeral instances live as long as their client says so; others until they
	// are deregistered.
	Ephemeral bool
	// Cluster is the group of instances within the service, by default DEFAULT.
	Cluster  string
	Metadata map[string]string
}

// InstanceOption changes an instance that [NewInstance] makes.
type InstanceOption func(*Instance)

// NewInstance returns an instance as most want to register it: weight 1, healthy,
// enabled, ephemeral, of cluster DEFAULT.
func NewInstance(ip string, port uint16, options ...InstanceOption) Instance {
	i := Instance{IP: ip, Port: port, Weight: 1, Healthy: true, Enabled: true, Ephemeral: true, Cluster: DefaultCluster}
	for _, option := range options {
		option(&i)
	}
	return i
}

// Weighted sets the weight.
func Weighted(weight float64) InstanceOption { return func(i *Instance) { i.Weight = weight } }

// InCluster sets the cluster.
func InCluster(name string) InstanceOption { return func(i *Instance) { i.Cluster = name } }

// Tagged adds an entry to the metadata.
func Tagged(key, value string) InstanceOption {
	return func(i *Instance) {
		if i.Metadata == nil {
			i.Metadata = make(map[string]string)
		}
		i.Metadata[key] = value
	}
}

// Persistent makes the instance one that stays until it is deregistered.
func Persistent() InstanceOption { return func(i *Instance) { i.Ephemeral = false } }

// Addr returns host:port.
func (i *Instance) Addr() string { return net.JoinHostPort(i.IP, strconv.Itoa(int(i.Port))) }

// Available reports whether requests may be sent to the instance: it is healthy,
// enabled and has weight.
func (i *Instance) Available() bool { return i.Healthy && i.Enabled && i.Weight > 0 }

// Equal reports whether two instances are the same in all fields.
func (i *Instance) Equal(o *Instance) bool {
	return i.IP == o.IP && i.Port == o.Port && i.Cluster == o.Cluster && i.ID == o.ID &&
		i.Weight == o.Weight && i.Healthy == o.Healthy && i.Enabled == o.Enabled && i.Ephemeral == o.Ephemeral &&
		maps.Equal(i.Metadata, o.Metadata)
}

// Limits of an instance.
const (
	maxWeight = 10000
	minWeight = 0.01 // a smaller one that is not 0 becomes this, as on servers
)

var clusterName = regexp.MustCompile(`^[0-9a-zA-Z-]{1,64}$`)

// normal returns the instance as it is registered, or what is wrong with it.
func (i Instance) normal() (wire.Instance, error) {
	i.IP = strings.TrimSpace(i.IP)
	if i.Cluster == "" {
		i.Cluster = DefaultCluster
	}
	switch {
	case i.IP == "":
		return wire.Instance{}, invalid("an instance has no address")
	case strings.ContainsAny(i.IP, " \t\r\n\x00,;/"):
		return wire.Instance{}, invalid("%q is no address", i.IP)
	case i.Port == 0:
		return wire.Instance{}, invalid("the port of an instance is 0")
	case math.IsNaN(i.Weight) || i.Weight < 0 || i.Weight > maxWeight:
		return wire.Instance{}, invalid("weight %v is not between 0 and %d", i.Weight, maxWeight)
	case !clusterName.MatchString(i.Cluster):
		return wire.Instance{}, invalid("cluster %q may have letters, digits and dashes only, at most 64", i.Cluster)
	}
	if i.Weight > 0 && i.Weight < minWeight {
		i.Weight = minWeight
	}
	i.Metadata = maps.Clone(i.Metadata)
	return wire.Instance(i), nil
}
