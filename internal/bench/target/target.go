// Package target is a server under load, as its clients see it: sessions over HTTP
// v1 and over gRPC that register, beat, look up and deregister the instances of a
// fleet, and subscribers that are told of changes by UDP or on a gRPC stream.
//
// Requests are those of nacos-client 1.4 and 2.x. Every answer is checked: an error
// of a call means that the server did not say that it did what it was asked.
package target

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"time"

	"github.com/rollcall-registry/rollcall/internal/bench/fleet"
	"github.com/rollcall-registry/rollcall/internal/bench/process"
	"github.com/rollcall-registry/rollcall/internal/bench/rpc"
)

// Protocol is how clients speak to the server.
type Protocol string

// The protocols: HTTP v1 with UDP pushes, and gRPC.
const (
	HTTP Protocol = "http"
	GRPC Protocol = "grpc"
)

// Target is one server. It is immutable once it is in use.
type Target struct {
	// Name is what it is called in reports.
	Name string
	// HTTP and GRPC are its addresses, host:port.
	HTTP, GRPC string
	// PID is its process on this machine, 0 if it is to be found; see Process.
	PID int
	// Yardstick is a server that does nothing: its answers are not looked at beyond
	// their status, and nothing is verified. It shows what a stack costs by itself.
	Yardstick bool
	// Timeout bounds each call.
	Timeout time.Duration

	httpTLS, grpcTLS *tls.Config // nil for clear text
	login            *login      // nil for nobody
	dialer           *rpc.Dialer
}

// grpcOffset is how far above the HTTP port SDKs look for gRPC. Source: Nacos,
// GrpcSdkClient.rpcPortOffset.
const grpcOffset = 1000

// DefaultTimeout bounds a call when nothing else is said.
const DefaultTimeout = 10 * time.Second

// New returns the server at the HTTP address host:port. An empty grpc is the port
// that SDKs compute.
func New(name, http, grpc string, options ...Option) (*Target, error) {
	host, port, err := net.SplitHostPort(http)
	if err != nil {
		return nil, fmt.Errorf("server %q: %w; write host:port", http, err)
	}
	if grpc == "" {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil {
			return nil, fmt.Errorf("server %q: the port is no number: %w", http, err)
		}
		grpc = net.JoinHostPort(host, strconv.FormatUint(n+grpcOffset, 10))
	} else if _, _, err := net.SplitHostPort(grpc); err != nil {
		return nil, fmt.Errorf("grpc %q: %w; write host:port", grpc, err)
	}
	t := &Target{Name: name, HTTP: http, GRPC: grpc, Timeout: DefaultTimeout}
	for _, option := range options {
		option(t)
	}
	t.dialer = rpc.NewDialer(grpc, DefaultTimeout, t.grpcTLS)
	return t, nil
}

// Loopback reports whether both addresses are of this machine; see Remote.
func (t *Target) Loopback() bool { return t.Remote() == "" }

// Remote returns the first of its addresses that is not of this machine, empty if both
// are. A host name other than localhost is not, whatever it resolves to.
func (t *Target) Remote() string {
	for _, address := range []string{t.HTTP, t.GRPC} {
		if !loopback(address) {
			return address
		}
	}
	return ""
}

func loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

// Session is the connection of one client. It is for one goroutine at a time. A session
// whose connection breaks has lost what the server ties to it; the next call
// connects again.
type Session interface {
	// Register registers an instance; it does so again if it is there already.
	Register(i fleet.Instance) error
	// RegisterService registers all instances of a service, for this session.
	RegisterService(s fleet.Service) error
	Deregister(i fleet.Instance) error
	// Beat says that an instance, over gRPC that the client, is alive. It returns
	// [ErrUnknown] when the server does not know it.
	Beat(i fleet.Instance) error
	// Count looks a service up and returns how many instances are listed.
	Count(s fleet.Service) (int, error)
	// List looks a service up and decodes what is listed.
	List(s fleet.Service) ([]fleet.Host, error)
	// LastAnswer is the body of the last answer, over gRPC its encoded message. It is
	// valid until the next call.
	LastAnswer() []byte
	// Close closes the connection. It does not deregister.
	Close()
}

// Dial opens a session. A target with a user must have been logged in before.
func (t *Target) Dial(ctx context.Context, p Protocol) (s Session, err error) {
	if p == GRPC {
		s, err = t.dialGRPC(ctx, hearing{})
	} else {
		s, err = t.dialHTTP(ctx)
	}
	if err != nil {
		return nil, Advised(err)
	}
	return s, nil
}

// Process returns the server's process: PID, which must be there, or the one that
// listens at the HTTP address now. It is 0 if that is not of this machine or not ours
// to look at.
func (t *Target) Process() (int, error) {
	if t.PID != 0 {
		_, err := process.Read(t.PID)
		return t.PID, err
	}
	_, port, err := net.SplitHostPort(t.HTTP)
	if err != nil || !loopback(t.HTTP) {
		return 0, err
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return 0, fmt.Errorf("server %q: the port is no number: %w", t.HTTP, err)
	}
	pid, _ := process.Listener(uint16(n))
	return pid, nil
}
