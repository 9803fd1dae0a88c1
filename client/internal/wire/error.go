package wire

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// Kind is what an error means for the one who called.
type Kind uint8

// The kinds of errors.
const (
	// Unknown is any other failure that a server reported.
	Unknown Kind = iota
	// NotConnected: no server was reached, or the connection ended before the answer.
	NotConnected
	// NotReady: a server answered that it is starting. It is not dead.
	NotReady
	// Unregistered: the server does not know the connection (any more).
	Unregistered
	// Invalid: the server refused an argument. Repeating it is pointless.
	Invalid
	// Unauthorized: the credentials are missing, wrong or expired.
	Unauthorized
	// Forbidden: the credentials are good and do not suffice.
	Forbidden
	// NotFound: there is no such thing.
	NotFound
	// Conflict: something else is in the way, as an instance of the other kind.
	Conflict
	// Overloaded: the server has too much to do, or hit a limit.
	Overloaded
	// Unsupported: the server does not know this operation.
	Unsupported
	// BadAnswer: the answer made no sense.
	BadAnswer
)

// Error is how an operation of a transport failed.
type Error struct {
	Kind Kind
	// Server is the host:port that was last asked, empty if none was.
	Server string
	// ResultCode and ErrorCode are those of gRPC answers, HTTPStatus and ErrorCode
	// those of HTTP; 0 where there is none.
	ResultCode, ErrorCode, HTTPStatus int
	// Message is what the server wrote, at most 256 bytes of it.
	Message   string
	RequestID string
	// Attempts is how many requests were made.
	Attempts int
	// Err is the cause when no server answered.
	Err error
}

func (e *Error) Error() string {
	switch {
	case e.Err != nil && e.Server != "":
		return fmt.Sprintf("%s: %v", e.Server, e.Err)
	case e.Err != nil:
		return e.Err.Error()
	case e.HTTPStatus != 0:
		return fmt.Sprintf("%s answered %d: %s", e.Server, e.HTTPStatus, e.Message)
	default:
		return fmt.Sprintf("%s answered code %d: %s", e.Server, e.ErrorCode, e.Message)
	}
}

func (e *Error) Unwrap() error { return e.Err }

// KindOf returns the kind of an error of a transport: NotConnected for errors
// that are no [*Error].
func KindOf(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return NotConnected
}

// Final reports whether repeating the operation as it is cannot help.
func Final(err error) bool {
	switch KindOf(err) {
	case Invalid, Forbidden, Conflict, Unsupported:
		return true
	default:
		return false
	}
}

// Refused reports whether a server has refused the operation, so that who waits for it need
// not wait on: as [Final], or for credentials, which were asked for again before. What the
// client goes on with by itself is tried again as after other failures, since credentials
// change.
func Refused(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return Final(err) || ok && e.Kind == Unauthorized && (e.HTTPStatus != 0 || e.ErrorCode != 0 || e.ResultCode != 0)
}

// PartError is how Publish failed for some instances; the others are as they were
// wanted. Any other error of Publish is about all of them.
type PartError struct{ Failed map[Key]error }

func (e *PartError) Error() string {
	for _, err := range e.Failed {
		return fmt.Sprintf("%d instances failed, one of them: %v", len(e.Failed), err)
	}
	return "no instance failed"
}

// Unwrap returns all causes.
func (e *PartError) Unwrap() []error { return slices.Collect(maps.Values(e.Failed)) }
