package grpcv2

import (
	"maps"
	"slices"
)

// Client requests begin so. Servers ignore headers within the JSON; the members are
// those that all SDKs send.
const clientRequest = `{"headers":{}`

// AppendBare appends a request of a client that says nothing, such as
// ServerCheckRequest and HealthCheckRequest.
func AppendBare(b []byte) []byte {
	return append(append(append(b, clientRequest...), internalModule...), '}')
}

// SetupRequest is what a client says of itself.
type SetupRequest struct {
	ClientVersion string
	Tenant        string
	Labels        map[string]string
	// Abilities is the ability table: what the client is able to do. It is sent be it
	// empty, so that the server answers with its own.
	Abilities []string
}

// Append appends ConnectionSetupRequest.
func (s *SetupRequest) Append(b []byte) []byte {
	b = append(append(b, clientRequest...), internalModule...)
	b = appendString(append(b, `,"clientVersion":`...), s.ClientVersion)
	b = appendString(append(b, `,"tenant":`...), s.Tenant)
	b = AppendStringMap(append(b, `,"labels":`...), s.Labels)
	b = append(b, `,"abilityTable":{`...)
	for n, ability := range s.Abilities {
		if n > 0 {
			b = append(b, ',')
		}
		b = append(appendString(b, ability), `:true`...)
	}
	return append(b, `}}`...)
}

// AppendStringMap appends a map of strings as a JSON object, in the order of the keys.
func AppendStringMap(b []byte, m map[string]string) []byte {
	b = append(b, '{')
	for n, k := range slices.Sorted(maps.Keys(m)) {
		if n > 0 {
			b = append(b, ',')
		}
		b = appendString(b, k)
		b = appendString(append(b, ':'), m[k])
	}
	return append(b, '}')
}

// ServiceName names a service in the requests of a client. Name is without the group.
type ServiceName struct{ Namespace, Group, Name string }

func (s *ServiceName) append(b []byte) []byte {
	b = append(append(b, clientRequest...), namingModule...)
	b = appendString(append(b, `,"namespace":`...), s.Namespace)
	b = appendString(append(b, `,"serviceName":`...), s.Name)
	return appendString(append(b, `,"groupName":`...), s.Group)
}

// Published is an instance as a client registers it.
type Published struct {
	ID        string // left out when empty: the server makes one
	IP        string
	Cluster   string
	Metadata  map[string]string
	Weight    float64 // finite
	Port      uint16
	Healthy   bool
	Enabled   bool
	Ephemeral bool
}

func (i *Published) append(b []byte, s *ServiceName) []byte {
	b = append(b, '{')
	if i.ID != "" {
		b = append(appendString(append(b, `"instanceId":`...), i.ID), ',')
	}
	b = appendString(append(b, `"ip":`...), i.IP)
	b = appendInt(append(b, `,"port":`...), int64(i.Port))
	b = appendDouble(append(b, `,"weight":`...), i.Weight)
	b = appendBool(append(b, `,"healthy":`...), i.Healthy)
	b = appendBool(append(b, `,"enabled":`...), i.Enabled)
	b = appendBool(append(b, `,"ephemeral":`...), i.Ephemeral)
	b = appendString(append(b, `,"clusterName":`...), i.Cluster)
	b = appendString(append(b, `,"serviceName":`...), s.Name)
	b = AppendStringMap(append(b, `,"metadata":`...), i.Metadata)
	return append(b, '}')
}

// AppendInstanceRequest appends InstanceRequest or PersistentInstanceRequest, which
// have the same members. kind is [Register] or [Deregister].
func AppendInstanceRequest(b []byte, s *ServiceName, kind string, i *Published) []byte {
	b = appendString(append(s.append(b), `,"type":`...), kind)
	b = i.append(append(b, `,"instance":`...), s)
	return append(b, '}')
}

// AppendBatchRequest appends BatchInstanceRequest, which replaces all that the
// connection has registered of the service.
func AppendBatchRequest(b []byte, s *ServiceName, instances []Published) []byte {
	b = appendString(append(s.append(b), `,"type":`...), BatchRegister)
	b = append(b, `,"instances":[`...)
	for n := range instances {
		if n > 0 {
			b = append(b, ',')
		}
		b = instances[n].append(b, s)
	}
	return append(b, `]}`...)
}

// AppendQueryRequest appends ServiceQueryRequest for all clusters and all instances,
// healthy or not.
func AppendQueryRequest(b []byte, s *ServiceName) []byte {
	return append(s.append(b), `,"cluster":"","healthyOnly":false,"udpPort":0}`...)
}

// AppendSubscribeRequest appends SubscribeServiceRequest for all clusters, or the end
// of such a subscription.
func AppendSubscribeRequest(b []byte, s *ServiceName, subscribe bool) []byte {
	b = appendBool(append(s.append(b), `,"clusters":"","subscribe":`...), subscribe)
	return append(b, '}')
}

// AppendListRequest appends ServiceListRequest. Pages count from 1.
func AppendListRequest(b []byte, namespace, group string, page, size int) []byte {
	b = (&ServiceName{Namespace: namespace, Group: group}).append(b)
	b = appendInt(append(b, `,"pageNo":`...), int64(page))
	b = appendInt(append(b, `,"pageSize":`...), int64(size))
	return append(b, `,"selector":""}`...)
}

// AppendFuzzyRequest appends NamingFuzzyWatchRequest. kind is [Watch] or
// [CancelWatch], received are the services that the client knows. A watch is always
// one that begins, which the server ends with [SyncFinish].
func AppendFuzzyRequest(b []byte, kind, namespace, pattern string, received []string) []byte {
	b = append(append(b, clientRequest...), namingModule...)
	b = appendString(append(b, `,"namespace":`...), namespace)
	b = appendString(append(b, `,"groupKeyPattern":`...), pattern)
	b = appendString(append(b, `,"watchType":`...), kind)
	b = append(b, `,"initializing":true,"receivedGroupKeys":[`...)
	for n, key := range received {
		if n > 0 {
			b = append(b, ',')
		}
		b = appendString(b, key)
	}
	return append(b, `]}`...)
}

// AppendAck appends a client's answer to a request of the server, of whatever type.
func AppendAck(b []byte, requestID string) []byte {
	b = append(append(b, succeeded...), `,"requestId":`...)
	return append(appendString(b, requestID), '}')
}
