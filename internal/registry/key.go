package registry

import (
	"cmp"
	"net/netip"
	"strings"
)

// The defaults that every API shares.
const (
	DefaultNamespace = "public"
	DefaultGroup     = "DEFAULT_GROUP"
	DefaultCluster   = "DEFAULT"
	// GroupSeparator joins group and service in a grouped name.
	GroupSeparator = "@@"
)

// ServiceKey names a service. All three parts are set; see [NamespaceID] and
// [ParseGrouped] for the defaults.
type ServiceKey struct {
	Namespace string `json:"ns"`
	Group     string `json:"group"`
	Name      string `json:"service"`
}

// Grouped returns group@@service. It allocates.
func (k ServiceKey) Grouped() string { return k.Group + GroupSeparator + k.Name }

// String returns namespace##group@@service, as Nacos logs print it.
func (k ServiceKey) String() string {
	return k.Namespace + "##" + k.Group + GroupSeparator + k.Name
}

// compare orders keys by namespace, then by grouped name.
func (k ServiceKey) compare(o ServiceKey) int {
	if c := strings.Compare(k.Namespace, o.Namespace); c != 0 {
		return c
	}
	if k.Group == o.Group {
		return strings.Compare(k.Name, o.Name)
	}
	return strings.Compare(k.Grouped(), o.Grouped())
}

// Clone returns a copy that shares no memory with k.
func (k ServiceKey) Clone() ServiceKey {
	k, _ = k.clone(strings.Clone(k.Namespace))
	return k
}

// clone copies the strings into one allocation, so that a key made of request
// memory may be kept. grouped is group@@service in the same memory.
func (k ServiceKey) clone(namespace string) (key ServiceKey, grouped string) {
	grouped = k.Grouped()
	return ServiceKey{
		Namespace: namespace,
		Group:     grouped[:len(k.Group)],
		Name:      grouped[len(k.Group)+len(GroupSeparator):],
	}, grouped
}

// NamespaceID maps the spellings of the default namespace (absent, empty,
// "public") to one. Namespaces are case sensitive.
func NamespaceID(s string) string {
	if s == "" {
		return DefaultNamespace
	}
	return s
}

// ParseGrouped splits group@@service at the first separator. ok is false when
// there is none; then name is the whole text.
func ParseGrouped(s string) (group, name string, ok bool) {
	if g, n, found := strings.Cut(s, GroupSeparator); found {
		return g, n, true
	}
	return "", s, false
}

// InstanceKey is the identity of an instance within its service. Two spellings
// of one IPv6 address are one identity; see [CanonicalIP].
type InstanceKey struct {
	IP      string `json:"ip"`
	Port    int32  `json:"port"`
	Cluster string `json:"cluster"`
}

// compare orders keys by address, port and cluster.
func (k InstanceKey) compare(o InstanceKey) int {
	return cmp.Or(strings.Compare(k.IP, o.IP), cmp.Compare(k.Port, o.Port), strings.Compare(k.Cluster, o.Cluster))
}

// identity returns k with its canonical address. As in Nacos 1.x, all ports at
// or below zero of one address and cluster are one identity.
func (k InstanceKey) identity() InstanceKey {
	k.IP = CanonicalIP(k.IP)
	if k.Port < 0 {
		k.Port = 0
	}
	return k
}

// CanonicalIP returns the one spelling by which an address is identified:
// IPv6 without brackets, compressed and in lower case, IPv4 mapped into IPv6 as
// plain IPv4. Anything else, host names included, is returned as it is. It
// allocates only for IPv6 addresses that are not canonical.
func CanonicalIP(ip string) string {
	if strings.IndexByte(ip, ':') < 0 {
		return ip
	}
	bare := ip
	if len(ip) > 2 && ip[0] == '[' && ip[len(ip)-1] == ']' {
		bare = ip[1 : len(ip)-1]
	}
	addr, err := netip.ParseAddr(bare)
	if err != nil {
		return ip
	}
	if s := addr.Unmap().String(); s != ip {
		return s
	}
	return ip
}
