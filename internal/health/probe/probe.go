// Package probe checks once whether an instance answers: by a TCP connection,
// an HTTP request or a MySQL login. It keeps no state between checks, holds one
// descriptor while one runs and none after, and connects to nothing that its
// [Config] denies.
//
// When to check, and what to make of the outcomes, is the work of package
// health.
package probe

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"syscall"
	"time"

	"github.com/rollcall-registry/rollcall/internal/registry"
)

// Outcome is what a check found. A check says one thing or the other; how many
// of them count is for the caller.
type Outcome uint8

// The outcomes. The zero value is none of them.
const (
	// Up: the instance answered as it should.
	Up Outcome = iota + 1
	// Down: it did not answer in time or not as it should, which may pass.
	Down
	// Refused: it answered that it does not serve.
	Refused
	// Denied: the configuration forbids to connect there. It says nothing about
	// the instance.
	Denied
)

// String names the outcome in metrics.
func (o Outcome) String() string {
	switch o {
	case Up:
		return "up"
	case Down:
		return "down"
	case Refused:
		return "refused"
	case Denied:
		return "denied"
	default:
		return "none"
	}
}

// Result is the outcome with what the instance's history says of it. Detail
// holds no credentials.
type Result struct {
	Outcome Outcome
	Detail  string
}

// Target is what is checked.
type Target struct {
	Host string // an address, IPv6 without brackets, or a host name
	Port int32
	// Check says how. Its type is TCP, HTTP or MYSQL.
	Check registry.HealthCheck
}

// Address returns host:port, with brackets where IPv6 needs them.
func (t *Target) Address() string { return net.JoinHostPort(t.Host, strconv.Itoa(int(t.Port))) }

// Config bounds the checks.
type Config struct {
	// Timeout bounds a check, the look-up of a host name included. A MySQL
	// command gets twice as much, after the login.
	Timeout time.Duration
	// Allow are the addresses that may be connected to, all when empty; Deny are
	// those that may not, and wins.
	Allow, Deny []netip.Prefix
}

// Prober checks. It is safe for concurrent use.
type Prober struct {
	cfg    Config
	dialer net.Dialer
}

// New returns a prober.
func New(cfg Config) *Prober {
	p := &Prober{cfg: cfg, dialer: net.Dialer{KeepAlive: -1}}
	if len(cfg.Allow) > 0 || len(cfg.Deny) > 0 {
		// Checked on the address that is connected to, so that no host name gets
		// around it.
		p.dialer.ControlContext = func(_ context.Context, _, address string, _ syscall.RawConn) error {
			return cfg.permit(address)
		}
	}
	return p
}

var errDenied = errors.New("the configuration denies probes of this address")

// permit returns errDenied for an address:port that must not be connected to.
func (c *Config) permit(address string) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("probe %q: %w", address, err)
	}
	addr := to.Addr().Unmap().WithZone("")
	if contains(c.Deny, addr) || len(c.Allow) > 0 && !contains(c.Allow, addr) {
		return errDenied
	}
	return nil
}

func contains(ranges []netip.Prefix, addr netip.Addr) bool {
	for _, r := range ranges {
		if r.Contains(addr) {
			return true
		}
	}
	return false
}

// Probe checks t once. It blocks for at most the time-outs of the configuration,
// and less when ctx ends.
func (p *Prober) Probe(ctx context.Context, t Target) Result {
	if t.Host == "" { // the net package would take it for this machine
		return Result{Down, "the instance has no address"}
	}
	switch t.Check.Type {
	case registry.CheckHTTP:
		return p.http(ctx, &t)
	case registry.CheckMySQL:
		return p.mySQL(ctx, &t)
	default:
		return p.tcp(ctx, &t)
	}
}

// failed classifies an error on the way to the instance or from it.
func failed(err error) Result {
	switch {
	case errors.Is(err, errDenied):
		return Result{Denied, errDenied.Error()}
	case refused(err):
		return Result{Refused, "connection refused"}
	case errors.Is(err, context.DeadlineExceeded), isTimeout(err):
		return Result{Down, "no answer in time"}
	default:
		return Result{Down, err.Error()}
	}
}

func isTimeout(err error) bool {
	var timeout interface{ Timeout() bool }
	return errors.As(err, &timeout) && timeout.Timeout()
}

// winsockRefused is WSAECONNREFUSED, which the syscall package does not name.
const winsockRefused = syscall.Errno(10061)

func refused(err error) bool {
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, winsockRefused)
}
