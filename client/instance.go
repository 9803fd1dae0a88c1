package rollcall

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"regexp"
	"strconv"
	"strings"

	"github.com/rollcall-registry/rollcall/client/internal/wire"
)

// Instance is one address at which a service is offered. [NewInstance] fills it
// with what most want; the zero value would be disabled, unhealthy and of no
// weight.
//
// An Instance in a [Snapshot] is shared, and so is its Metadata, with other instances
// too: neither may be changed.
type Instance struct {
	// ID is what the server made of the instance. When registering it is usually
	// empty.
	ID string
	// IP is an address, IPv4 or IPv6, or a host name.
	IP   string
	Port uint16 // not 0
	// Weight is the share of requests that the instance wants, 0 to 10000; 0 means none.
	// A smaller one than 0.01 that is not 0 becomes 0.01, as on servers.
	Weight float64
	// Healthy is what servers think of the instance, by its beats, its connection or
	// their probes.
	Healthy bool
	// Enabled is false for an instance that an operator or its owner took out.
	Enabled bool
	// Ephemeral instances live as long as their client says so; others until they
	// are deregistered.
	Ephemeral bool
	// Cluster is the group of instances within the service, by default DEFAULT: up to 64
	// letters, digits and dashes.
	Cluster string
	// Metadata is what the instance says of itself, such as its version or zone. Servers
	// bound it: Rollcall to 64 KiB unless told otherwise, the original to less.
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

// Weighted sets the weight, 0 to 10000, by default 1.
func Weighted(weight float64) InstanceOption { return func(i *Instance) { i.Weight = weight } }

// InCluster sets the cluster, by default DEFAULT.
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

// Persistent makes the instance one that stays until it is deregistered, whatever becomes
// of the client. Its health is a matter of the server's probes.
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
	maxHost   = 253  // bytes of a host name, by RFC 1035
	// maxMetadata bounds the keys and values together, in bytes, so that what no
	// server takes is not sent. Servers take less: Rollcall 64 KiB by default.
	maxMetadata = 1 << 20
)

var clusterName = regexp.MustCompile(`^[0-9a-zA-Z-]{1,64}$`)

// normal returns the instance as it is registered, or all that is wrong with it.
func (i Instance) normal() (wire.Instance, error) {
	i.IP = strings.TrimSpace(i.IP)
	if i.Cluster == "" {
		i.Cluster = DefaultCluster
	}
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, invalid(format, args...)) }
	if why := hostFault(i.IP); why != "" {
		fault("Instance.IP %s: %s", shortened(i.IP), why)
	}
	if i.Port == 0 {
		fault("Instance.Port is 0: give 1 to 65535")
	}
	if !(i.Weight >= 0 && i.Weight <= maxWeight) { // NaN is neither
		fault("Instance.Weight %v: give 0 to %d", i.Weight, maxWeight)
	}
	if !clusterName.MatchString(i.Cluster) {
		fault("Instance.Cluster %s: give up to 64 letters, digits and dashes", shortened(i.Cluster))
	}
	size := 0
	for key, value := range i.Metadata {
		size += len(key) + len(value)
	}
	if size > maxMetadata {
		fault("Instance.Metadata has %d bytes: give at most %d", size, maxMetadata)
	}
	if faults != nil {
		return wire.Instance{}, errors.Join(faults...)
	}
	if i.Weight > 0 && i.Weight < minWeight {
		i.Weight = minWeight
	}
	i.Metadata = maps.Clone(i.Metadata)
	return wire.Instance(i), nil
}

// hostFault says why clients could not reach a host; it is empty if they may.
func hostFault(host string) string {
	address, err := netip.ParseAddr(host)
	switch {
	case err == nil && (address.IsUnspecified() || address.IsMulticast()):
		return "nobody can connect to it; give the address of one host"
	case err == nil:
		return ""
	case host == "":
		return "it is empty; give an address or a host name"
	case len(host) > maxHost:
		return fmt.Sprintf("a host name has at most %d bytes", maxHost)
	case strings.ContainsAny(host, " ,;/:[]") || hasControl(host):
		return "it is neither an address nor a host name; the port is a field of its own"
	}
	return ""
}
