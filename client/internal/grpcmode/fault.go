package grpcmode

import (
	"context"
	"errors"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/rollcall-registry/rollcall/api/grpcv2"
	"github.com/rollcall-registry/rollcall/client/internal/wire"
)

// Codes that servers and clients use besides those that grpcv2 names. Source:
// NacosException and ResponseCode of Nacos.
const (
	codeUnauthorized  = 401
	codeForbidden     = 403
	codeConflict      = 409
	codeOverThreshold = 503
	codeBeatNotFound  = 20404
)

// maxText is how much of a server's text an error repeats, in bytes.
const maxText = 256

var (
	errNoSession = errors.New("no server is connected")
	errClosed    = errors.New("the connection was closed")
	errTooLarge  = errors.New("the answer is larger than 16 MiB")
	errNoList    = errors.New("the answer has no list")
	errNoServers = errors.New("the list of servers is empty")
)

// refusal makes an error of an answer that is no success.
func refusal(server string, a *grpcv2.Answer) *wire.Error {
	return &wire.Error{
		Kind: kindOf(a), Server: server, ResultCode: int(a.ResultCode), ErrorCode: int(a.ErrorCode),
		Message: cut(a.Message), RequestID: a.RequestID, Attempts: 1,
	}
}

// cut returns what an error repeats of a text, in memory of its own.
func cut(text string) string {
	return strings.ToValidUTF8(strings.Clone(text[:min(len(text), maxText)]), "")
}

// kindOf says what the code of an answer means.
func kindOf(a *grpcv2.Answer) wire.Kind {
	switch a.ErrorCode {
	case grpcv2.CodeStarting:
		return wire.NotReady
	case grpcv2.CodeUnregistered, grpcv2.CodeDisconnected:
		return wire.Unregistered
	case grpcv2.CodeNoHandler, grpcv2.CodeNotSupported:
		return wire.Unsupported
	case grpcv2.CodeInvalid, -grpcv2.CodeInvalid:
		if ofOtherKind(a.Message) {
			return wire.Conflict
		}
		return wire.Invalid
	case codeUnauthorized:
		return wire.Unauthorized
	case codeForbidden:
		// Also the answer to a client that has not logged in, or whose token has ended.
		if strings.Contains(a.Message, "oken") || strings.Contains(a.Message, "ser not found") {
			return wire.Unauthorized
		}
		return wire.Forbidden
	case grpcv2.CodeNotFound, codeBeatNotFound:
		return wire.NotFound
	case codeConflict:
		return wire.Conflict
	case grpcv2.CodeBadRequest, codeOverThreshold, -codeOverThreshold, grpcv2.CodePatternLimit, grpcv2.CodeMatchLimit:
		return wire.Overloaded
	default:
		return wire.Unknown
	}
}

// ofOtherKind reports whether a service has instances of the other kind, for which
// there is no code of its own.
func ofOtherKind(message string) bool {
	return strings.Contains(message, "is persistent service") || strings.Contains(message, "is ephemeral service")
}

// kindOfStatus says what a status of gRPC means where it is not that there is no answer.
// Servers of the protocol answer with codes of their own; these are of what stands before
// them, and of limits.
var kindOfStatus = map[codes.Code]wire.Kind{
	codes.ResourceExhausted: wire.Overloaded,
	codes.Unimplemented:     wire.Unsupported,
	codes.Unauthenticated:   wire.Unauthorized,
	codes.PermissionDenied:  wire.Forbidden,
}

// broken makes an error of a call that had no answer: of grpc-go, or of what ended the
// connection or the wait.
func broken(server string, err error) *wire.Error {
	if cause, ok := errors.AsType[*wire.Error](err); ok {
		e := *cause
		return &e
	}
	e := &wire.Error{Kind: wire.NotConnected, Server: server, Err: err, Attempts: 1}
	s, ok := status.FromError(err)
	if !ok {
		return e
	}
	if kind, known := kindOfStatus[s.Code()]; known {
		e.Kind = kind
	}
	e.Err = errors.New(cut(s.Message())) // without "rpc error: code = "
	return e
}

// interrupted returns why the context of an operation ended, nil while it has not.
func interrupted(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	return context.Cause(ctx)
}
