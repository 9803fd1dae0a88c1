package grpcapi

import (
	"context"
	"errors"
	"strings"

	"github.com/rollcall-registry/rollcall/api/grpcv2"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// decodeFault is a request that cannot be read.
type decodeFault struct{ err error }

func (e decodeFault) Error() string { return e.err.Error() }

func (e decodeFault) Unwrap() error { return e.err }

// decoded wraps the error of a decoder.
func decoded(err error) error {
	if err == nil {
		return nil
	}
	return decodeFault{err}
}

// fault answers a call that failed. Its table is what the original was seen to
// answer.
func (x *call) fault(err error) {
	var unread decodeFault
	var refusal *registry.Error
	switch {
	case errors.Is(err, grpcv2.ErrNull):
		x.fail(grpcv2.ResultFailure, grpcv2.CodeBadRequest, "Invalid request")
	case errors.As(err, &unread):
		x.fail(grpcv2.ResultFailure, grpcv2.CodeBadRequest, "errCode: 101, errMsg: Nacos deserialize failed.  ")
	case errors.As(err, &refusal):
		x.refusal(refusal)
	default:
		x.internal(err)
	}
}

func (x *call) refusal(e *registry.Error) {
	switch e.Code {
	case registry.RefusedName, registry.MetadataTooLarge:
		x.refuse(grpcv2.CodeInvalid, "Param check invalid:"+e.Msg)
	case registry.KindMismatch:
		x.fail(grpcv2.CodeInvalid, grpcv2.CodeInvalid, "errCode: 400, errMsg: "+e.Msg+" ")
	case registry.ClientClosed:
		x.fail(grpcv2.CodeDisconnected, grpcv2.CodeDisconnected, "errCode: -401, errMsg: Client ["+
			string(x.client.id)+"] connection already disconnect, can't register ephemeral instance. ")
	case registry.InvalidClusterName:
		x.fail(grpcv2.CodeInvalid, grpcv2.CodeInvalid, "Instance 'clusterName' should be characters with only 0-9a-zA-Z-. (current: "+e.Value+")")
	case registry.LimitExceeded, registry.RegistrationDisabled, registry.ServiceDisabled, registry.Unavailable:
		x.fail(grpcv2.CodeServerError, grpcv2.CodeServerError, e.Msg)
	default:
		x.fail(grpcv2.CodeInvalid, grpcv2.CodeInvalid, e.Msg)
	}
}

// blank answers a call that lacks what it needs, as the original does: with code
// 500.
func (x *call) blank(what string) {
	x.fail(grpcv2.CodeServerError, grpcv2.CodeServerError, "Param '"+what+"' is illegal, "+what+" is blank")
}

// internal answers what went wrong on the server; its text stays there.
func (x *call) internal(err error) {
	if x.ctx.Err() == nil || !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
		x.client.api.log.Error("call failed", "client_id", x.client.id, "type", x.Type, "err", err)
	}
	x.fail(grpcv2.CodeServerError, grpcv2.CodeServerError, "the server could not do it, its log says why")
}

// isBlank reports whether a text is empty or white space.
func isBlank(s string) bool { return strings.TrimSpace(s) == "" }
