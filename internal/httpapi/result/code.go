package result

import (
	"strconv"

	"github.com/rollcall-registry/rollcall/internal/registry"
)

// Code is the code of an answer. Source: Nacos api.model.v2.ErrorCode.
type Code int

// The codes that are answered here.
const (
	Success           Code = 0
	ParameterMissing  Code = 10000
	AccessDenied      Code = 10001
	ParameterInvalid  Code = 20002
	MediaType         Code = 20003
	ResourceNotFound  Code = 20004
	WeightError       Code = 21001
	InstanceNotFound  Code = 21003
	InstanceError     Code = 21004
	SelectorError     Code = 21006
	ServiceExists     Code = 21007
	ServiceNotExist   Code = 21008
	ServiceDelete     Code = 21009
	IllegalNamespace  Code = 22000
	NamespaceNotExist Code = 22001
	NamespaceExists   Code = 22002
	IllegalState      Code = 23000
	ServerError       Code = 30000
)

// Message is the fixed text of a code.
func (c Code) Message() string {
	switch c {
	case Success:
		return "success"
	case ParameterMissing:
		return "parameter missing"
	case AccessDenied:
		return "access denied"
	case ParameterInvalid:
		return "parameter validate error"
	case MediaType:
		return "MediaType Error"
	case ResourceNotFound:
		return "resource not found"
	case WeightError:
		return "weight error"
	case InstanceNotFound:
		return "instance not found"
	case InstanceError:
		return "instance error"
	case SelectorError:
		return "selector error"
	case ServiceExists:
		return "service already exist"
	case ServiceNotExist:
		return "service not exist"
	case ServiceDelete:
		return "service delete failure"
	case IllegalNamespace:
		return "illegal namespace"
	case NamespaceNotExist:
		return "namespace not exist"
	case NamespaceExists:
		return "namespace already exist"
	case IllegalState:
		return "illegal state"
	case ServerError:
		return "server error"
	}
	return ""
}

// Begin begins the envelope of a success. The data and a closing brace must
// follow.
func Begin(b []byte) []byte { return append(b, `{"code":0,"message":"success","data":`...) }

// appendFailure appends the envelope of a failure. The message is that of the code,
// unless another is given, and data is a text or null.
func appendFailure(b []byte, code Code, message string, data *string) []byte {
	if message == "" {
		message = code.Message()
	}
	b = append(b, `{"code":`...)
	b = strconv.AppendInt(b, int64(code), 10)
	b = append(b, `,"message":`...)
	b = registry.AppendJSONString(b, message)
	b = append(b, `,"data":`...)
	if data == nil {
		b = append(b, "null"...)
	} else {
		b = registry.AppendJSONString(b, *data)
	}
	return append(b, '}')
}
