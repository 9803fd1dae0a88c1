package h2

import (
	"fmt"
	"strconv"
	"time"

	"golang.org/x/net/http2"

	"github.com/rollcall-registry/rollcall/internal/grpcapi/transport"
)

// Codes of gRPC. Source: google.golang.org/grpc/codes.
const (
	invalidArgument   = 3
	deadlineExceeded  = 4
	notFound          = 5
	resourceExhausted = 8
	unimplemented     = 12
	internal          = 13
)

var errDeadline = transport.Status{Code: deadlineExceeded, Message: "the deadline of the call has passed"}

func tooLarge(size uint32, most int) string {
	return fmt.Sprintf("the message has %d bytes, and %d is the most that is read", size, most)
}

// connError ends a connection with GOAWAY.
type connError struct {
	code http2.ErrCode
	text string
}

func (e *connError) Error() string { return e.text }

func violation(text string) error { return &connError{http2.ErrCodeProtocol, text} }

// parseTimeout reads the value of grpc-timeout: up to eight digits and a unit.
// Source: gRPC over HTTP/2, "Timeout".
func parseTimeout(s string) (time.Duration, bool) {
	const digits = 8
	if len(s) < 2 || len(s) > digits+1 {
		return 0, false
	}
	n, err := strconv.ParseUint(s[:len(s)-1], 10, 32)
	if err != nil {
		return 0, false
	}
	unit := timeUnit(s[len(s)-1])
	if unit == 0 {
		return 0, false
	}
	const longest = time.Duration(1<<63 - 1)
	if time.Duration(n) > longest/unit {
		return longest, true
	}
	return time.Duration(n) * unit, true
}

func timeUnit(c byte) time.Duration {
	switch c {
	case 'H':
		return time.Hour
	case 'M':
		return time.Minute
	case 'S':
		return time.Second
	case 'm':
		return time.Millisecond
	case 'u':
		return time.Microsecond
	case 'n':
		return time.Nanosecond
	default:
		return 0
	}
}
