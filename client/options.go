package rollcall

import (
	"context"
	"crypto/tls"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/rollcall-registry/rollcall/client/internal/servers"
	"github.com/rollcall-registry/rollcall/client/internal/wire"
)

// Protocol is how a client speaks to servers.
type Protocol uint8

// The protocols.
const (
	// Auto takes gRPC where it can be reached and HTTP where it cannot.
	Auto Protocol = iota
	// GRPC is what servers of 2.x, 3.x and Rollcall speak.
	GRPC
	// HTTP is what servers of 0.9 and 1.x speak, and most later ones besides.
	HTTP
)

func (p Protocol) String() string { return [...]string{"auto", "grpc", "http"}[min(p, HTTP)] }

// Option sets up a [Client]. Where one is given twice, the last counts, but for those
// that say otherwise. What is wrong with an option is in the error of [New].
type Option func(*config)

// WithServers gives the servers: host, host:port, [v6]:port or http(s)://host:port; a URL
// may end in the path of [WithContextPath], too, as http://host:8848/nacos.
// The port is that of HTTP, by default 8848; see [WithGRPCPort] for the other one, which
// must be said for a server whose port is above 64535, unless the protocol is HTTP.
// A name is resolved at each dial, and is one server however many addresses it has.
//
// A client has one of WithServers, [WithEndpoint] and [WithServerSource].
func WithServers(entries ...string) Option {
	entries = slices.Clone(entries)
	return func(c *config) {
		c.sources = append(c.sources, "WithServers")
		c.source, c.entries, c.static = servers.Static(entries), entries, true
		if len(entries) == 0 {
			c.fault("WithServers(): name at least one server")
		}
	}
}

// WithEndpoint gives the URL of an address server, which answers with a server a line,
// each in the form of [WithServers], as /nacos/serverlist of Nacos and Rollcall does;
// that path is meant if the URL has none. It is asked as a source is, see
// [WithServerSource].
func WithEndpoint(url string) Option {
	return func(c *config) {
		c.sources, c.endpoint = append(c.sources, "WithEndpoint"), url
		if url == "" {
			c.fault(`WithEndpoint(""): give a URL such as http://registry.example.com:8848`)
		}
	}
}

// WithServerSource gives a function that returns the servers as they are now, in
// the form of [WithServers]. It is asked at the start and each 30 s; while it
// fails or returns none, the list stays as it was.
func WithServerSource(source func(ctx context.Context) ([]string, error)) Option {
	return func(c *config) {
		c.sources, c.source = append(c.sources, "WithServerSource"), servers.Source(source)
		if source == nil {
			c.fault("WithServerSource(nil): give a function")
		}
	}
}

// WithNamespace sets the namespace of services that do not name one, by default
// public, which an empty one stands for. It is the ID of the namespace, not its
// display name.
func WithNamespace(id string) Option {
	return func(c *config) {
		if id == "" {
			id = DefaultNamespace
		}
		c.namespace = id
		c.name("WithNamespace", id)
	}
}

// WithGroup sets the group of services that do not name one, by default
// DEFAULT_GROUP, which an empty one stands for.
func WithGroup(name string) Option {
	return func(c *config) {
		if name == "" {
			name = DefaultGroup
		}
		c.group = name
		c.name("WithGroup", name)
	}
}

// name checks an argument that is part of the names of services.
func (c *config) name(option, name string) {
	if err := checkName(name); err != nil {
		c.fault("%s(%s): %v", option, shortened(name), err)
	}
}

// WithContextPath sets what precedes the paths of HTTP requests, by default
// /nacos; empty or / for none.
func WithContextPath(path string) Option {
	return func(c *config) {
		c.contextPath = path
		c.path("WithContextPath", path)
	}
}

// WithGRPCPort sets the gRPC port of all servers, 1 to 65535, where it is not the HTTP
// port plus 1000. It is an alternative to [WithGRPCPortOffset].
func WithGRPCPort(port uint16) Option {
	return func(c *config) {
		c.grpcPort("WithGRPCPort")
		c.ports.GRPC = port
		if port == 0 {
			c.fault("WithGRPCPort(0): give 1 to 65535, or leave it out for the HTTP port plus 1000")
		}
	}
}

// WithGRPCPortOffset sets what is added to the HTTP port to have the gRPC port, by
// default 1000. 0 is for a server that serves both on one port.
func WithGRPCPortOffset(offset int) Option {
	return func(c *config) {
		c.grpcPort("WithGRPCPortOffset")
		c.ports.Offset = offset
		if offset <= -1<<16 || offset >= 1<<16 {
			c.fault("WithGRPCPortOffset(%d): no two ports are so far apart", offset)
			c.ports.Offset = 0 // so that it is not told for each server
		}
	}
}

// grpcPort notes that an option says what the gRPC port is.
func (c *config) grpcPort(option string) {
	if c.portOption != "" && c.portOption != option {
		c.fault("%s and %s: each gives the gRPC port; keep one", c.portOption, option)
	}
	c.portOption = option
}

// WithProtocol sets the protocol, by default [Auto]. GRPC and HTTP forbid the client to
// take the other one.
func WithProtocol(p Protocol) Option {
	return func(c *config) {
		if p > HTTP {
			c.fault("WithProtocol(%d): give Auto, GRPC or HTTP", p)
		}
		c.protocol = p
	}
}

// WithTLS makes connections secure, over gRPC and over HTTP, also to servers that were
// given without a scheme; by default only those given with https are, over HTTP, by
// the certificates of the system. The zero tls.Config stands for these too.
func WithTLS(t *tls.Config) Option {
	return func(c *config) {
		if t == nil {
			c.fault("WithTLS(nil): give a *tls.Config, which may be empty; nothing would be secure")
		}
		c.tls = t.Clone()
	}
}

// WithDialer replaces how TCP connections are made, by default with a [net.Dialer].
func WithDialer(dial func(ctx context.Context, network, address string) (net.Conn, error)) Option {
	return func(c *config) {
		if dial == nil {
			c.fault("WithDialer(nil): give a function")
		}
		c.dial = dial
	}
}

// Credentials are who the client is: a pair of keys, with which it signs requests, or a
// token to send as it is, or a name and a password, for which it logs in. The first of
// these that is set counts.
type Credentials struct {
	Username, Password   string
	AccessKey, SecretKey string
	Token                string
}

// WithCredentials gives a function that returns the credentials as they are now. It
// is asked before each login and when a server refused them, so that a change is
// taken up without a restart; it may read a file. Without credentials, requests have
// none.
//
// A client has one of WithCredentials, [WithUserPassword] and [WithAccessKey].
func WithCredentials(source func(ctx context.Context) (Credentials, error)) Option {
	return func(c *config) {
		if source == nil {
			c.fault("WithCredentials(nil): give a function")
		}
		c.identity("WithCredentials", source)
	}
}

// WithUserPassword gives a name and a password that do not change, neither empty.
func WithUserPassword(username, password string) Option {
	return fixed("WithUserPassword", "user name or password", Credentials{Username: username, Password: password}, username, password)
}

// WithAccessKey gives keys that do not change, neither empty.
func WithAccessKey(access, secret string) Option {
	return fixed("WithAccessKey", "access or secret key", Credentials{AccessKey: access, SecretKey: secret}, access, secret)
}

// fixed is an option of credentials that do not change; its faults do not show them.
func fixed(option, what string, credentials Credentials, parts ...string) Option {
	return func(c *config) {
		if slices.Contains(parts, "") {
			c.fault("%s: %s is empty; leave it out if the server wants no credentials", option, what)
		}
		c.identity(option, func(context.Context) (Credentials, error) { return credentials, nil })
	}
}

// WithTimeout bounds each single request to a server, by default 3 s; 1 ms to 24 h. The
// whole of an operation is bounded by its context.
func WithTimeout(d time.Duration) Option {
	return func(c *config) {
		c.duration("WithTimeout", d, "")
		c.timeout = d
	}
}

// WithBackoff sets the pause after a failure: random between zero and least, twice
// that after each further failure, at most most. By default they are 100 ms and 5 s;
// 1 ms ≤ least ≤ most ≤ 24 h.
func WithBackoff(least, most time.Duration) Option {
	return func(c *config) {
		if least < leastDuration || most < least || most > mostDuration {
			c.fault("WithBackoff(%v, %v): give %v ≤ least ≤ most ≤ %v", least, most, leastDuration, mostDuration)
		}
		c.backoff = servers.Backoff{Min: least, Max: most}
	}
}

// WithLogger sets where the client logs; without it, nowhere. Repeated messages are
// collapsed, and neither credentials nor metadata are logged.
func WithLogger(l *slog.Logger) Option {
	return func(c *config) {
		if l == nil {
			c.fault("WithLogger(nil): leave it out for a client that does not log")
			return
		}
		c.logger = l
	}
}

// WithMetrics sets who counts what the client does; without it, nobody.
func WithMetrics(m Metrics) Option {
	return func(c *config) {
		if m == nil {
			c.fault("WithMetrics(nil): leave it out for a client that is not counted")
			return
		}
		c.metrics = m
	}
}

// WithDiskCache keeps the last known state of each watched service in dir, in the
// layout of Nacos clients, and serves it, marked as [FromDisk], while no server can
// be asked; not if it is older than maxAge, which 0 does not bound. A change is on
// disk after a second, or when the client is closed. A disk that cannot be written
// costs one warning and nothing else. By default nothing is kept.
func WithDiskCache(dir string, maxAge time.Duration) Option {
	return func(c *config) {
		if dir == "" {
			c.fault(`WithDiskCache(""): give a directory, or leave it out for none`)
		}
		if maxAge < 0 {
			c.fault("WithDiskCache(%q, %v): give an age above 0, or 0 for any", dir, maxAge)
		}
		c.diskDir, c.diskMaxAge = dir, maxAge
	}
}

// WithFailoverDir names the cache directory of which the failover switch of Nacos
// clients is obeyed: while it is on, services are what the files beside it say. It
// is looked at each 5 s. By default there is none.
func WithFailoverDir(dir string) Option {
	return func(c *config) {
		if dir == "" {
			c.fault(`WithFailoverDir(""): give a directory, or leave it out for none`)
		}
		c.failoverDir = dir
	}
}

// WithEmptyProtection holds the instances of a service for d, 1 ms to 24 h, when a
// server says that there are none any more; see [SnapshotInfo]. By default, and with 0,
// an empty list is believed.
func WithEmptyProtection(d time.Duration) Option {
	return func(c *config) {
		c.duration("WithEmptyProtection", d, "no protection")
		c.emptyProtection = d
	}
}

// WithResync sets how often a watched service is asked for although pushes would
// tell of changes, give or take a fifth; by default each 60 s, 0 for never, otherwise
// 1 ms to 24 h. A push that was lost is healed by it. Over HTTP the client polls as
// often as the server says.
func WithResync(d time.Duration) Option {
	return func(c *config) {
		c.duration("WithResync", d, "never")
		c.resync = d
	}
}

// WithLocalIP sets the address that the client gives as its own; without it, the one
// from which the server is reached.
func WithLocalIP(ip string) Option {
	return func(c *config) {
		if a, err := netip.ParseAddr(ip); err != nil || a.IsUnspecified() || a.IsMulticast() {
			c.fault("WithLocalIP(%q): give one address of this host, such as 10.0.0.7", ip)
		}
		c.localIP = ip
	}
}

// WithAppName tells servers the name of the application; by default they are told none.
func WithAppName(name string) Option {
	return func(c *config) {
		c.text("WithAppName", name)
		c.appName = name
	}
}

// WithLabels adds labels to the connection over gRPC, which servers can show. Given
// several times, they add up. The map stays the caller's.
func WithLabels(labels map[string]string) Option {
	labels = maps.Clone(labels)
	return func(c *config) {
		if c.labels == nil {
			c.labels = make(map[string]string)
		}
		for key, value := range labels {
			if key == "" || hasControl(key) || hasControl(value) {
				c.fault("WithLabels: %q=%q: give a key that is not empty, and no control characters", key, value)
			}
			c.labels[key] = value
		}
	}
}

// noUDP is an address that stands for none.
const noUDP = "off"

// WithUDP sets where pushes over UDP are received in HTTP mode, by default ":0", any
// port of any address; "off" for polling alone.
func WithUDP(address string) Option {
	return func(c *config) {
		c.udpAddress("WithUDP", address)
		c.udp = address
	}
}

// WithTransport replaces the protocols; build is called for each client. It is for package
// clienttest: no other can make a transport.
func WithTransport(build func() wire.Transport) Option {
	return func(c *config) {
		if build == nil {
			c.fault("WithTransport(nil): it is for package clienttest")
			return
		}
		c.transport = build()
	}
}
