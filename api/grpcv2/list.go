package grpcv2

import (
	"math"
	"strconv"
	"unsafe"
)

// ServiceInfo is the list of a service as a client reads it, without the hosts. All
// generations of the protocol have it: in answers and pushes of gRPC, as the body
// of HTTP lists, in UDP packets, and in the files of a client's cache.
type ServiceInfo struct {
	// Name is what the server called it: plain, or group@@service over HTTP. Servers
	// of 0.9 write it as dom.
	Name, Group, Clusters string
	CacheMillis           int64
	LastRefTime           int64
	Protected             bool
	// HasHosts is false if the member hosts was absent or null.
	HasHosts bool
}

// ReadServiceInfo reads the JSON object of a list. host is called for each instance
// and may be nil; the Host is used again for the next one, and its strings, as those
// of info, are parts of data. What lacks an address or a port is not given to host.
//
// Absent members stand for what servers that do not write them mean: weight 1,
// healthy, enabled, ephemeral.
func ReadServiceInfo(data []byte, info *ServiceInfo, host func(*Host)) error {
	*info = ServiceInfo{}
	r := &reader{data: data}
	read := func(r *reader, name string) bool { return info.member(r, name, host) }
	if !r.members(read) && r.err == nil {
		r.fail(errShape)
	}
	if r.peek(); r.err == nil && r.at < len(r.data) {
		r.fail(errSyntax)
	}
	return r.err
}

func (s *ServiceInfo) member(r *reader, name string, host func(*Host)) bool {
	switch name {
	case "name":
		s.Name, _ = r.text()
	case "dom":
		if dom, _ := r.text(); s.Name == "" {
			s.Name = dom
		}
	case "groupName":
		s.Group, _ = r.text()
	case "clusters":
		s.Clusters, _ = r.text()
	case "cacheMillis":
		s.CacheMillis = r.long()
	case "lastRefTime":
		s.LastRefTime = r.long()
	case "reachProtectionThreshold":
		r.boolean(&s.Protected)
	case "hosts":
		s.HasHosts = r.hosts(host)
	default:
		return false
	}
	return true
}

// hosts reads the instances of a list.
func (r *reader) hosts(f func(*Host)) bool {
	if !r.array() {
		return false
	}
	var h Host
	read := func(r *reader, name string) bool { return h.member(r, name) }
	for r.element() {
		h = Host{Weight: 1, Healthy: true, Enabled: true, Ephemeral: true}
		if r.members(read) && r.err == nil && h.IP != "" && h.Port > 0 && h.Port <= math.MaxUint16 && f != nil {
			f(&h)
		}
	}
	return true
}

func (h *Host) member(r *reader, name string) bool {
	switch name {
	case "instanceId":
		if id, given := r.text(); given {
			h.ID = bytesOf(id)
		}
	case "ip":
		h.IP, _ = r.text()
	case "port":
		r.integer(&h.Port)
	case "weight":
		h.Weight = r.weight()
	case "healthy", "valid": // 0.9 has valid only; 1.x writes both, and the same
		r.boolean(&h.Healthy)
	case "enabled":
		r.boolean(&h.Enabled)
	case "ephemeral":
		r.boolean(&h.Ephemeral)
	case "clusterName":
		h.Cluster, _ = r.text()
	case "serviceName":
		h.Service, _ = r.text()
	case "metadata":
		h.Metadata = alias(r.stringMap())
	default:
		return false
	}
	return true
}

// weight reads a weight, 1 for null. What is no finite number, which servers in Java
// write as text, is no weight at all: one such instance must not hide the others.
func (r *reader) weight() float64 {
	s, given := r.text()
	if !given {
		return 1
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
		return 0
	}
	return f
}

// long reads a whole number of 64 bits, 0 for null. What has a fraction is cut.
func (r *reader) long() int64 {
	s, given := r.text()
	if !given {
		return 0
	}
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return n
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsNaN(f) || f < math.MinInt64 || f >= math.MaxInt64 {
		r.fail(errShape)
		return 0
	}
	return int64(f)
}

// EachMetadata gives the entries of [Host.Metadata] to f until it returns false. Null
// stands for no entry. The strings are parts of metadata where it has no escapes.
func EachMetadata(metadata string, f func(key, value string) bool) {
	r := &reader{data: bytesOf(metadata)}
	if metadata == "" || !r.object() {
		return
	}
	for {
		key, ok := r.member()
		if !ok {
			return
		}
		if value, given := r.text(); given && !f(key, value) {
			return
		}
	}
}

// bytesOf returns the bytes of a string without copying them; they must not be
// written to.
func bytesOf(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }
