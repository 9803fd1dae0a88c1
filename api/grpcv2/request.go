package grpcv2

import (
	"errors"
	"fmt"
)

// ErrNull is returned for a body that is the JSON value null, which the original
// answers in other words than broken JSON.
var ErrNull = errors.New("the body is null")

// Optional is a string that may be absent, which null is too.
type Optional struct {
	Value string
	Given bool
}

func (r *reader) optional() Optional {
	s, given := r.text()
	return Optional{Value: s, Given: given}
}

// Service are the members that all naming requests share. Over gRPC the name is
// without its group.
type Service struct {
	Namespace string
	// HasNamespace: the member is there, be it null.
	HasNamespace bool
	Name         Optional
	Group        Optional
}

// member reads a member if it is one of Service.
func (s *Service) member(r *reader, name string) bool {
	switch name {
	case "namespace":
		s.Namespace, _ = r.text()
		s.HasNamespace = true
	case "serviceName":
		s.Name = r.optional()
	case "groupName":
		s.Group = r.optional()
	default:
		return false
	}
	return true
}

// decode reads an object whose members f reads; f returns false for those that it
// does not know. What follows the object is ignored, as Jackson does.
func decode(body []byte, f func(r *reader, name string) bool) error {
	r := reader{data: body}
	if r.null() {
		return ErrNull
	}
	r.members(f)
	if r.err != nil {
		return fmt.Errorf("decode: %w", r.err)
	}
	return nil
}

// members reads the members of an object with f and skips those that f does not
// know. It returns false for null.
func (r *reader) members(f func(r *reader, name string) bool) bool {
	if !r.object() {
		return false
	}
	for {
		name, ok := r.member()
		if !ok {
			return true
		}
		if !f(r, name) {
			r.skip()
		}
	}
}

// DecodeEmpty checks a request of which no member counts, such as
// HealthCheckRequest.
func DecodeEmpty(body []byte) error {
	return decode(body, func(*reader, string) bool { return false })
}

// InstanceRequest registers or deregisters one instance; it is the body of
// PersistentInstanceRequest as well.
type InstanceRequest struct {
	Service
	Type     Optional
	Instance *Instance // nil when absent
}

// DecodeInstance reads an InstanceRequest.
func DecodeInstance(body []byte) (q InstanceRequest, err error) {
	err = decode(body, func(r *reader, name string) bool {
		switch name {
		case "type":
			q.Type = r.optional()
		case "instance":
			q.Instance = r.instance()
		default:
			return q.member(r, name)
		}
		return true
	})
	return q, err
}

// BatchRequest replaces what a connection registered of a service.
type BatchRequest struct {
	Service
	Type Optional
	// Instances has nil for members that are null.
	Instances []*Instance
	Given     bool // the list is there and not null
}

// maxBatch bounds the instances of one request. A request of the largest size
// holds fewer real ones.
const maxBatch = 1 << 16

var errBatch = errors.New("more than 65536 instances")

// DecodeBatch reads a BatchInstanceRequest.
func DecodeBatch(body []byte) (q BatchRequest, err error) {
	err = decode(body, func(r *reader, name string) bool {
		switch name {
		case "type":
			q.Type = r.optional()
		case "instances":
			q.Instances, q.Given = r.instances()
		default:
			return q.member(r, name)
		}
		return true
	})
	return q, err
}

func (r *reader) instances() (list []*Instance, given bool) {
	if !r.array() {
		return nil, false
	}
	for r.element() {
		if len(list) == maxBatch {
			r.fail(errBatch)
			return nil, false
		}
		list = append(list, r.instance())
	}
	return list, true
}

// QueryRequest asks who is in a service.
type QueryRequest struct {
	Service
	Clusters    Optional
	HealthyOnly bool
}

// DecodeQuery reads a ServiceQueryRequest. The Python SDK has another name for
// healthyOnly.
func DecodeQuery(body []byte) (q QueryRequest, err error) {
	err = decode(body, func(r *reader, name string) bool {
		switch name {
		case "cluster":
			q.Clusters = r.optional()
		case "healthyOnly", "healthOnly":
			r.boolean(&q.HealthyOnly)
		default:
			return q.member(r, name)
		}
		return true
	})
	return q, err
}

// SubscribeRequest begins or ends a subscription.
type SubscribeRequest struct {
	Service
	Clusters  Optional
	Subscribe bool
}

// DecodeSubscribe reads a SubscribeServiceRequest.
func DecodeSubscribe(body []byte) (q SubscribeRequest, err error) {
	err = decode(body, func(r *reader, name string) bool {
		switch name {
		case "clusters":
			q.Clusters = r.optional()
		case "subscribe":
			r.boolean(&q.Subscribe)
		default:
			return q.member(r, name)
		}
		return true
	})
	return q, err
}

// ListRequest asks for a page of the names of services.
type ListRequest struct {
	Service
	PageNo, PageSize int32
}

// DecodeList reads a ServiceListRequest. Its selector is ignored, as in the
// original.
func DecodeList(body []byte) (q ListRequest, err error) {
	err = decode(body, func(r *reader, name string) bool {
		switch name {
		case "pageNo":
			r.integer(&q.PageNo)
		case "pageSize":
			r.integer(&q.PageSize)
		default:
			return q.member(r, name)
		}
		return true
	})
	return q, err
}

// FuzzyWatchRequest begins or ends the watch of a pattern (3.x).
type FuzzyWatchRequest struct {
	Namespace string
	Pattern   string // namespace>>group>>service
	WatchType string // WATCH or CANCEL_WATCH
	// Initializing: the client has seen nothing of the pattern yet.
	Initializing bool
	// Received are the services that the client knows, namespace@@group@@service.
	Received []string
}

// maxReceived bounds the keys that a client says it knows, well above the 500
// services that a pattern may match.
const maxReceived = 1 << 14

var errReceived = errors.New("more than 16384 received keys")

// DecodeFuzzyWatch reads a NamingFuzzyWatchRequest.
func DecodeFuzzyWatch(body []byte) (q FuzzyWatchRequest, err error) {
	err = decode(body, func(r *reader, name string) bool {
		switch name {
		case "namespace":
			q.Namespace, _ = r.text()
		case "groupKeyPattern":
			q.Pattern, _ = r.text()
		case "watchType":
			q.WatchType, _ = r.text()
		case "initializing":
			r.boolean(&q.Initializing)
		case "receivedGroupKeys":
			q.Received = r.names(maxReceived, errReceived)
		default:
			return false
		}
		return true
	})
	return q, err
}

// Response is what counts of a client's answer to a request of the server.
type Response struct {
	RequestID  string
	ResultCode int32
}

// OK reports whether the client says that it did what it was asked. Some say
// success:false with the result code 200, which is meant as success.
func (a Response) OK() bool { return a.ResultCode == ResultSuccess }

// DecodeResponse reads a client's answer, of whatever type.
func DecodeResponse(body []byte) (a Response, err error) {
	err = decode(body, func(r *reader, name string) bool {
		switch name {
		case "requestId":
			a.RequestID, _ = r.text()
		case "resultCode":
			r.integer(&a.ResultCode)
		default:
			return false
		}
		return true
	})
	return a, err
}
