package rollcall

import (
	"errors"
	"fmt"

	"github.com/rollcall-registry/rollcall/client/internal/wire"
)

// What errors of this package are, for [errors.Is].
var (
	// ErrClosed: the client, the watch or the registration was closed.
	ErrClosed = errors.New("closed")
	// ErrNotConnected: no server can be reached, or the connection broke before
	// the answer.
	ErrNotConnected = errors.New("not connected")
	// ErrNoServers: the list of servers is empty or could not be had.
	ErrNoServers = errors.New("no servers")
	// ErrNoInstances: there is no instance that may be picked.
	ErrNoInstances = errors.New("no instances")
	// ErrNoHealthyInstances: there are instances, and none is healthy.
	ErrNoHealthyInstances = errors.New("no healthy instances")
	// ErrNotFound: the server knows no such thing. A service without instances is
	// an empty snapshot and not an error.
	ErrNotFound = errors.New("not found")
	// ErrInvalidArgument: an argument was refused, here or by the server.
	ErrInvalidArgument = errors.New("invalid argument")
	// ErrUnauthorized: credentials are missing, wrong or expired.
	ErrUnauthorized = errors.New("unauthorized")
	// ErrForbidden: the credentials do not suffice.
	ErrForbidden = errors.New("forbidden")
	// ErrOverloaded: the server has too much to do, or hit a limit.
	ErrOverloaded = errors.New("server overloaded")
	// ErrServerNotReady: the server is starting.
	ErrServerNotReady = errors.New("server not ready")
	// ErrUnsupported: the server does not know the operation.
	ErrUnsupported = errors.New("unsupported")
	// ErrConflict: something else is in the way, as an instance of the other kind.
	ErrConflict = errors.New("conflict")
	// ErrReplaced: another registration of the same instance took the place of this one.
	ErrReplaced = errors.New("replaced by another registration")
	// ErrMayRemain: an instance was given up, and no server has said that it is gone. One
	// that remembers it lists it until it expires there, or for good if it is persistent.
	ErrMayRemain = errors.New("a server may still list the instance")
)

// OpError says which operation failed, and where. Its cause is a *[ServerError],
// a network error, or an error of the context.
type OpError struct {
	Op       string // register, deregister, watch, lookup, services, …
	Service  Service
	Server   string // host:port that was asked last; empty if none was
	Attempts int    // requests that were made
	Err      error
}

func (e *OpError) Error() string {
	if e.Service == (Service{}) {
		return e.Op + ": " + e.Err.Error()
	}
	return e.Op + " " + e.Service.String() + ": " + e.Err.Error()
}

func (e *OpError) Unwrap() error { return e.Err }

// ServerError is how a server refused. [errors.Is] matches it with the error of
// this package that the codes stand for.
type ServerError struct {
	// ResultCode and ErrorCode are those of gRPC answers, HTTPStatus and ErrorCode
	// those of HTTP; 0 where there is none.
	ResultCode, ErrorCode, HTTPStatus int
	// Message is the server's text, cut to 256 bytes.
	Message   string
	RequestID string

	kind   error
	server string
}

func (e *ServerError) Error() string {
	code := e.ErrorCode
	if e.HTTPStatus != 0 {
		code = e.HTTPStatus
	}
	text := fmt.Sprintf("%s answered %d", e.server, code)
	if e.kind != nil {
		text += " (" + e.kind.Error() + ")"
	}
	if e.Message != "" {
		text += ": " + e.Message
	}
	return text
}

// Is reports whether target is what the codes stand for.
func (e *ServerError) Is(target error) bool { return e.kind != nil && target == e.kind }

// meanings are the errors that the kinds of package wire stand for.
var meanings = map[wire.Kind]error{
	wire.NotConnected: ErrNotConnected,
	wire.NotReady:     ErrServerNotReady,
	wire.Unregistered: ErrNotConnected,
	wire.Invalid:      ErrInvalidArgument,
	wire.Unauthorized: ErrUnauthorized,
	wire.Forbidden:    ErrForbidden,
	wire.NotFound:     ErrNotFound,
	wire.Conflict:     ErrConflict,
	wire.Overloaded:   ErrOverloaded,
	wire.Unsupported:  ErrUnsupported,
}

// opError makes an error of an operation from one of a transport or a context.
func opError(op string, s Service, err error) error {
	out := &OpError{Op: op, Service: s, Err: public(err)}
	if e, ok := errors.AsType[*wire.Error](err); ok {
		out.Server, out.Attempts = e.Server, e.Attempts
	}
	return out
}

// public makes an error of this package from one of a transport. Others stay, and those
// that wrap one: they have been through here.
func public(err error) error {
	switch e := err.(type) { //nolint:errorlint // see above
	case *interrupted:
		return &interrupted{e.ended, public(e.last)}
	case *remaining:
		return &remaining{public(e.err)}
	case *wire.PartError:
		for _, err := range e.Failed {
			return public(err)
		}
	case *wire.Error:
		if e.Err != nil {
			return &causeError{meanings[e.Kind], e}
		}
		return &ServerError{
			ResultCode: e.ResultCode, ErrorCode: e.ErrorCode, HTTPStatus: e.HTTPStatus,
			Message: e.Message, RequestID: e.RequestID, kind: meanings[e.Kind], server: e.Server,
		}
	}
	return err
}

// remaining is why an instance may remain.
type remaining struct{ err error }

func (e *remaining) Error() string   { return ErrMayRemain.Error() + ": " + e.err.Error() }
func (e *remaining) Unwrap() []error { return []error{ErrMayRemain, e.err} }

// causeError is a failure without an answer, with what it means.
type causeError struct {
	meaning error // may be nil
	err     error
}

func (e *causeError) Error() string {
	if e.meaning == nil {
		return e.err.Error()
	}
	return e.meaning.Error() + ": " + e.err.Error()
}

func (e *causeError) Unwrap() []error {
	if e.meaning == nil {
		return []error{e.err}
	}
	return []error{e.meaning, e.err}
}

// invalid returns an error that is ErrInvalidArgument.
func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrInvalidArgument, fmt.Sprintf(format, args...))
}
