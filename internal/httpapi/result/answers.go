package result

import (
	"errors"
	"log/slog"
	"strings"

	"github.com/rollcall-registry/rollcall/internal/httpapi"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// Answers answers the requests of one generation.
type Answers struct {
	dialect Dialect
	log     *slog.Logger
}

// NewAnswers returns answers in the words of a dialect.
func NewAnswers(d Dialect, logger *slog.Logger) Answers { return Answers{d, logger} }

var done = []byte(`{"code":0,"message":"success","data":"ok"}`)

// Done answers "ok", or the refusal.
func (a *Answers) Done(x *httpapi.Exchange, err error) {
	if err != nil {
		a.Fail(x, err)
		return
	}
	x.JSON(200, done)
}

// True answers true, or the refusal.
func (a *Answers) True(x *httpapi.Exchange, err error) {
	if err != nil {
		a.Fail(x, err)
		return
	}
	x.JSON(200, []byte(`{"code":0,"message":"success","data":true}`))
}

// Data ends an envelope that was begun with [Begin] in x.Scratch and answers it.
func (a *Answers) Data(x *httpapi.Exchange, b []byte) {
	x.Scratch = append(b, '}')
	x.JSON(200, x.Scratch)
}

// Fail answers err. What is no refusal is logged, and its text stays here.
func (a *Answers) Fail(x *httpapi.Exchange, err error) {
	if f, ok := errors.AsType[*Fault](err); ok {
		a.refuse(x, f.Status, f.Code, f.Data)
		return
	}
	if e, ok := errors.AsType[*FormError](err); ok {
		a.unbound(x, a.dialect.Form(x, e.Form, e.List))
		return
	}
	if e, ok := errors.AsType[*ParamError](err); ok {
		a.unbound(x, a.dialect.Param(x, e.Mismatch))
		return
	}
	if e, ok := errors.AsType[*DecodeError](err); ok {
		x.ErrorPage(500, a.dialect.Decode(e))
		return
	}
	if e, ok := errors.AsType[*registry.Error](err); ok {
		a.refusal(x, e)
		return
	}
	a.log.Error("request failed", "method", x.Method(), "path", x.Path(), "err", err)
	a.refuse(x, 500, ServerError, "internal error, see the server's log")
}

// refusal answers a refusal of the core.
func (a *Answers) refusal(x *httpapi.Exchange, e *registry.Error) {
	switch e.Code {
	case registry.RefusedName:
		refuseCheck(x, e.Msg)
	case registry.MetadataTooLarge:
		refuseCheck(x, "Param 'Metadata' is illegal, the param length should not exceed "+e.Value+".")
	case registry.InvalidMetadata: // the check reads it before the call does
		x.ErrorPage(500, "ErrCode:400, ErrMsg:"+httpapi.ErrorText(e.Msg))
	default:
		f := faultOf(e)
		a.refuse(x, f.Status, f.Code, f.Data)
	}
}

// faultOf is the answer to a refusal of the core that means the same in every
// call.
func faultOf(e *registry.Error) Fault {
	switch e.Code {
	case registry.InvalidWeight:
		return Fault{400, WeightError, e.Msg}
	case registry.InvalidClusterName:
		return Fault{400, InstanceError, "Instance 'clusterName' should be characters with only 0-9a-zA-Z-. (current: " + e.Value + ")"}
	case registry.InvalidBeatTimes:
		return Fault{400, InstanceError, e.Msg}
	case registry.InvalidSelector:
		return Fault{500, ServerError, "Selector parses failed: " + e.Msg}
	case registry.ServiceExists:
		return Fault{400, ServiceExists, "specified service " + e.Value + " already exists!"}
	case registry.ServiceNotFound:
		return Fault{400, ServiceNotExist, "service " + e.Value + " not found!"}
	case registry.ServiceNotEmpty:
		return Fault{400, ServiceDelete, "Service " + e.Value + " is not empty, can't be delete. Please unregister instance first"}
	case registry.InstanceNotFound:
		return Fault{404, ResourceNotFound, e.Msg}
	case registry.ClusterNotFound:
		return Fault{404, ServerError, e.Msg}
	case registry.KindMismatch:
		return Fault{400, ServerError, "errCode: 400, errMsg: " + e.Msg + " "}
	case registry.NamespaceExists:
		return Fault{400, NamespaceExists, "namespaceId [" + e.Value + "] already exist."}
	case registry.NamespaceNotFound:
		return Fault{404, NamespaceNotExist, "namespaceId [ " + e.Value + " ] not exist"}
	case registry.InvalidArgument, registry.InvalidServiceName:
		return Fault{400, ParameterInvalid, e.Msg}
	case registry.ServiceDisabled, registry.InvalidSwitch, registry.UnknownSwitch, registry.MalformedSwitch, registry.Unavailable:
		return Fault{500, ServerError, e.Msg}
	case registry.HealthChecked, registry.RegistrationDisabled, registry.ClientClosed, registry.LimitExceeded:
		return Fault{400, ServerError, e.Msg}
	case registry.RefusedName, registry.MetadataTooLarge, registry.InvalidMetadata: // have no envelope
	}
	return Fault{500, ServerError, e.Msg}
}

// refuseCheck answers what the check of names refuses: a line of text without a
// type (recorded: v2-register-port-high).
func refuseCheck(x *httpapi.Exchange, text string) {
	x.Scratch = append(append(x.Scratch[:0], httpapi.ErrorText(text)...), "\r\n"...)
	x.Answer(400, "", x.Scratch)
}

// unbound answers a value of the wrong type.
func (a *Answers) unbound(x *httpapi.Exchange, text string) {
	if !acceptsJSON(x) {
		x.ErrorPage(500, text)
		return
	}
	x.Scratch = appendFailure(x.Scratch[:0], ServerError, text, nil)
	x.JSON(500, x.Scratch)
}

func (a *Answers) refuse(x *httpapi.Exchange, status int, code Code, data string) {
	data = httpapi.ErrorText(data)
	if !acceptsJSON(x) { // recorded: v2-accept-html, v3-accept-html
		x.ErrorPage(500, data)
		return
	}
	x.Scratch = appendFailure(x.Scratch[:0], code, "", &data)
	x.JSON(status, x.Scratch)
}

// FailCode answers 200 with the code and message of a failure and no data.
func (a *Answers) FailCode(x *httpapi.Exchange, code Code) {
	x.Scratch = appendFailure(x.Scratch[:0], code, "", nil)
	x.JSON(200, x.Scratch)
}

// FailText answers the code of a fault of the server with a message of its own.
func (a *Answers) FailText(x *httpapi.Exchange, status int, message string) {
	x.Scratch = appendFailure(x.Scratch[:0], ServerError, message, nil)
	x.JSON(status, x.Scratch)
}

// acceptsJSON reports whether a client that says what it accepts can be answered
// with JSON.
func acceptsJSON(x *httpapi.Exchange) bool {
	accept := x.Header("Accept")
	return accept == "" || strings.Contains(accept, "json") ||
		strings.Contains(accept, "*/*") || strings.Contains(accept, "application/*")
}
