// Package servers keeps the list of registry servers that a client may use, and
// the order in which it tries them. A [List] is safe for concurrent use; it
// starts no goroutine.
package servers

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
)

// Server is one server. Host may be a name: it is resolved at each dial.
type Server struct {
	// Secure says that the entry began with https://.
	Secure bool
	Host   string
	// Port serves HTTP, GRPCPort gRPC.
	Port, GRPCPort uint16
}

// HTTP returns host:port for HTTP.
func (s Server) HTTP() string { return net.JoinHostPort(s.Host, strconv.Itoa(int(s.Port))) }

// GRPC returns host:port for gRPC.
func (s Server) GRPC() string { return net.JoinHostPort(s.Host, strconv.Itoa(int(s.GRPCPort))) }

// DefaultPort is the HTTP port of entries without one.
const DefaultPort = 8848

// Ports says how the gRPC port of a server follows from its HTTP port.
type Ports struct {
	// GRPC is the port of all servers if it is not 0.
	GRPC uint16
	// Offset is added to the HTTP port otherwise.
	Offset int
}

// Parse reads host, host:port, [v6]:port, a bare v6 address, or a URL of http or
// https, the path of which is ignored.
func Parse(entry string, ports Ports) (Server, error) {
	rest := strings.TrimSpace(entry)
	s := Server{Port: DefaultPort}
	if scheme, after, ok := strings.Cut(rest, "://"); ok {
		u, err := url.Parse(rest)
		if err != nil || u.User != nil || (scheme != "http" && scheme != "https") {
			return Server{}, fmt.Errorf("server %q is no URL of http or https", entry)
		}
		s.Secure = scheme == "https"
		rest, _, _ = strings.Cut(after, "/")
	}
	host, port, err := net.SplitHostPort(rest)
	switch {
	case err == nil:
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 {
			return Server{}, fmt.Errorf("server %q: %q is no port", entry, port)
		}
		s.Host, s.Port = host, uint16(n)
	case strings.HasPrefix(rest, "[") && strings.HasSuffix(rest, "]"):
		s.Host = rest[1 : len(rest)-1]
	default:
		s.Host = rest
	}
	if err := checkHost(s.Host); err != nil {
		return Server{}, fmt.Errorf("server %q: %w", entry, err)
	}
	grpc := int(ports.GRPC)
	if grpc == 0 {
		grpc = int(s.Port) + ports.Offset
	}
	if grpc < 1 || grpc > 65535 {
		return Server{}, fmt.Errorf("server %q: the gRPC port would be %d; say which it is, or use HTTP alone", entry, grpc)
	}
	s.GRPCPort = uint16(grpc)
	return s, nil
}

var errHost = errors.New("no host name or address")

func checkHost(host string) error {
	if strings.Contains(host, ":") {
		if _, err := netip.ParseAddr(host); err != nil {
			return errHost
		}
		return nil
	}
	if host == "" || strings.ContainsFunc(host, notInNames) {
		return errHost
	}
	return nil
}

// notInNames reports whether no name of a host has a character, as those of a page in
// HTML, which a proxy may send instead of a list.
func notInNames(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-._", r)
}

// Source returns the entries of the list as they are now. It may block until ctx
// ends.
type Source func(ctx context.Context) ([]string, error)

// List is the servers of one client.
type List struct {
	source Source
	ports  Ports

	mu      sync.Mutex
	servers []Server      // never changed in place
	changed chan struct{} // closed when servers changes
}

// New returns an empty list, which [List.Refresh] fills from source.
func New(source Source, ports Ports) *List {
	return &List{source: source, ports: ports, changed: make(chan struct{})}
}

// Static is the source of entries that do not change.
func Static(entries []string) Source {
	return func(context.Context) ([]string, error) { return entries, nil }
}

// Refresh asks the source. If it fails, names no server or one that cannot be
// read, the list stays as it is and the error says why.
func (l *List) Refresh(ctx context.Context) error {
	entries, err := l.source(ctx)
	if err != nil {
		return fmt.Errorf("list of servers: %w", err)
	}
	var fresh []Server
	for _, entry := range entries {
		s, err := Parse(entry, l.ports)
		if err != nil {
			return err
		}
		if !slices.Contains(fresh, s) {
			fresh = append(fresh, s)
		}
	}
	if len(fresh) == 0 {
		return errors.New("list of servers: it is empty")
	}
	l.set(fresh)
	return nil
}

func (l *List) set(fresh []Server) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(fresh) == len(l.servers) && !slices.ContainsFunc(fresh, func(s Server) bool { return !slices.Contains(l.servers, s) }) {
		return
	}
	l.servers = fresh
	close(l.changed)
	l.changed = make(chan struct{})
}

// Round returns all servers in a new random order: who tries them in turn spreads
// clients over servers, and asks each once. The caller owns the slice.
func (l *List) Round() []Server {
	l.mu.Lock()
	round := slices.Clone(l.servers)
	l.mu.Unlock()
	rand.Shuffle(len(round), func(i, j int) { round[i], round[j] = round[j], round[i] })
	return round
}

// Has reports whether a server is in the list.
func (l *List) Has(s Server) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Contains(l.servers, s)
}

// Changed returns a channel that is closed at the next change of the list.
func (l *List) Changed() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.changed
}

// LocalIP returns the address from which a server is reached, as the routing table
// says. Nothing is sent but questions for names: connecting a socket of UDP sends
// nothing.
func LocalIP(ctx context.Context, s Server) (string, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "udp", s.HTTP())
	if err != nil {
		return "", err
	}
	defer conn.Close()
	host, _, err := net.SplitHostPort(conn.LocalAddr().String())
	return host, err
}
