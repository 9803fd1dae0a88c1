package target

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"strings"
	"syscall"

	"github.com/rollcall-registry/rollcall/internal/bench/rpc"
)

// Advised adds to an error of connecting or of a call what may be done about it, if
// that is known. Settings are named as the flags of the command are.
func Advised(err error) error {
	advice := adviceFor(err)
	if advice == "" || errors.As(err, new(*advisedError)) {
		return err
	}
	return &advisedError{err, advice}
}

// advisedError is an error with what to do about it, said once however often it passes
// by.
type advisedError struct {
	error
	advice string
}

func (e *advisedError) Error() string { return e.error.Error() + "; " + e.advice }
func (e *advisedError) Unwrap() error { return e.error }

func adviceFor(err error) string {
	var unknown x509.UnknownAuthorityError
	var name x509.HostnameError
	var alert *net.OpError
	var notTLS tls.RecordHeaderError
	var status *rpc.StatusError
	switch {
	case errors.Is(err, errDenied):
		return "the server wants to know who asks: give user and password-file of one who may read and write"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "nothing listens there: start the server, or name its address (server, grpc)"
	case errors.Is(err, syscall.EMFILE):
		return "too many open files: raise the limit (ulimit -n), or ask for fewer connections"
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return "no local port is free: ask for fewer connections, or wait a minute for those of before"
	case errors.As(err, &unknown):
		return "its certificate is signed by nobody that is trusted: name its authority with ca-file"
	case errors.As(err, &name):
		return "its certificate is for another name: give that with server-name"
	case errors.As(err, &notTLS):
		return "it does not speak TLS there: write http:// before the address"
	case errors.As(err, &alert) && alert.Op == remoteAlert && strings.Contains(alert.Error(), "application protocol"):
		return "it does not speak HTTP/2 there (ALPN h2): name its gRPC address"
	case errors.As(err, &alert) && alert.Op == remoteAlert:
		return "it refuses the handshake: it may ask for a certificate, see cert-file"
	case errors.As(err, &status) && status.Code == unimplemented:
		return "it serves gRPC, but not this: is it the address for clients?"
	default:
		return ""
	}
}

// remoteAlert is how crypto/tls calls an alert of its peer.
const remoteAlert = "remote error"

// unimplemented is the status of a gRPC method that a server does not have.
const unimplemented = 12
