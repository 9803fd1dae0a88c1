package v1

import (
	"errors"

	"github.com/rollcall-registry/rollcall/internal/httpapi"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// fail answers err in the form of 1.4.8: "caused: <sentence>;". What is no
// refusal is logged, and its text stays here.
func (a *API) fail(x *httpapi.Exchange, err error) {
	if x.RefuseParam(err) {
		return
	}
	if refusal, ok := errors.AsType[*registry.Error](err); ok {
		x.Caused(status(refusal.Code), httpapi.ErrorText(refusal.Msg))
		return
	}
	a.log.Error("request failed", "method", x.Method(), "path", x.Path(), "err", err)
	x.Caused(500, "internal error, see the server's log")
}

// failAs is fail with another status for refusals of one code: the original
// answers some of them differently from call to call.
func (a *API) failAs(x *httpapi.Exchange, code registry.Code, status int, err error) {
	if refusal, ok := errors.AsType[*registry.Error](err); ok && refusal.Code == code {
		x.Caused(status, httpapi.ErrorText(refusal.Msg))
		return
	}
	a.fail(x, err)
}

// isRefusal reports whether err is the core's refusal with that code.
func isRefusal(err error, code registry.Code) bool {
	refusal, ok := errors.AsType[*registry.Error](err)
	return ok && refusal.Code == code
}

// status is the HTTP status of a refusal. 1.4.8 answers 400 to what it raises as
// an illegal argument, and 500 to its own exception class, which it also uses
// for things that are not there.
func status(code registry.Code) int {
	switch code {
	case registry.InvalidArgument, registry.InvalidServiceName, registry.InvalidClusterName,
		registry.MetadataTooLarge, registry.InvalidSelector, registry.ServiceExists,
		registry.ServiceNotEmpty, registry.KindMismatch, registry.HealthChecked,
		registry.RegistrationDisabled, registry.NamespaceExists, registry.NamespaceNotFound,
		registry.InvalidSwitch, registry.UnknownSwitch, registry.LimitExceeded:
		return 400
	case registry.InvalidWeight, registry.InvalidMetadata, registry.ServiceNotFound,
		registry.Unavailable, registry.ServiceDisabled, registry.ClusterNotFound, registry.InstanceNotFound,
		registry.ClientClosed, registry.MalformedSwitch:
		return 500
	default:
		return 500
	}
}
