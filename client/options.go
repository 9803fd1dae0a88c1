package rollcall

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/rollcall-registry/rollcall/client/internal/auth"
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

// Option sets up a [Client].
type Option func(*config)

// config is what the options of a client say. Faults in options are kept until
// New reports them together.
type config struct {
	source      servers.Source
	sources     int      // options that gave one
	entries     []string // of WithServers
	static      bool     // the list does not change
	endpoint    string
	ports       servers.Ports
	protocol    Protocol
	contextPath string
	namespace   string
	group       string
	tls         *tls.Config
	dial        func(ctx context.Context, network, address string) (net.Conn, error)
	credentials auth.Source
	timeout     time.Duration
	backoff     servers.Backoff
	logger      *slog.Logger
	metrics     Metrics

	diskDir         string
	diskMaxAge      time.Duration
	failoverDir     string
	emptyProtection time.Duration
	resync          time.Duration

	localIP   string
	appName   string
	labels    map[string]string
	udp       string
	transport wire.Transport

	faults []error
}

// The defaults of a client.
const (
	defaultTimeout = 3 * time.Second
	defaultResync  = 60 * time.Second
	minBackoff     = 100 * time.Millisecond
	maxBackoff     = 5 * time.Second
	// endpointRefresh is how often the list of servers is asked for again; Nacos
	// clients do it each 30 s.
	endpointRefresh = 30 * time.Second
)

func defaults() config {
	return config{
		ports:       servers.Ports{Offset: 1000},
		contextPath: "/nacos",
		namespace:   DefaultNamespace,
		group:       DefaultGroup,
		timeout:     defaultTimeout,
		backoff:     servers.Backoff{Min: minBackoff, Max: maxBackoff},
		logger:      slog.New(slog.DiscardHandler),
		metrics:     noMetrics{},
		resync:      defaultResync,
		udp:         ":0",
	}
}

func (c *config) fault(format string, args ...any) {
	c.faults = append(c.faults, invalid(format, args...))
}

// check returns all that is wrong with the configuration, and completes it.
func (c *config) check() error {
	if c.endpoint != "" && c.sources == 1 {
		source, err := servers.Endpoint(c.httpClient(), c.endpoint)
		if err != nil {
			c.fault("%v", err)
		}
		c.source = source
	}
	for _, entry := range c.entries {
		if _, err := servers.Parse(entry, c.ports); err != nil {
			c.fault("%v", err)
		}
	}
	faults := c.faults
	switch {
	case c.transport != nil:
	case c.sources == 0:
		faults = append(faults, fmt.Errorf("%w: give WithServers, WithEndpoint or WithServerSource", ErrNoServers))
	case c.sources > 1:
		faults = append(faults, invalid("WithServers, WithEndpoint and WithServerSource exclude each other"))
	}
	return errors.Join(faults...)
}

// httpClient returns a client of HTTP for the endpoint. It keeps no connection: it is
// used each 30 s.
func (c *config) httpClient() *http.Client {
	return &http.Client{Transport: &http.Transport{DialContext: c.dial, TLSClientConfig: c.tls, DisableKeepAlives: true}}
}

// WithServers gives the servers: host, host:port, [v6]:port or http(s)://host:port.
// The port is that of HTTP, by default 8848; see [WithGRPCPort] for the other one.
// A name is resolved at each dial, and is one server however many addresses it has.
func WithServers(entries ...string) Option {
	return func(c *config) {
		c.sources++
		c.source, c.entries, c.static = servers.Static(entries), entries, true
		if len(entries) == 0 {
			c.fault("WithServers without a server")
		}
	}
}

// WithEndpoint gives the URL of an address server, which answers with a server a line,
// each in the form of [WithServers], as /nacos/serverlist of Nacos and Rollcall does;
// that path is meant if the URL has none. It is asked as a source is, see
// [WithServerSource].
func WithEndpoint(url string) Option {
	return func(c *config) { c.sources, c.endpoint = c.sources+1, url }
}

// WithServerSource gives a function that returns the servers as they are now, in
// the form of [WithServers]. It is asked at the start and each 30 s; while it
// fails or returns none, the list stays as it was.
func WithServerSource(source func(ctx context.Context) ([]string, error)) Option {
	return func(c *config) { c.sources, c.source = c.sources+1, servers.Source(source) }
}

// WithNamespace sets the namespace of services that do not name one, by default
// public.
func WithNamespace(id string) Option {
	return func(c *config) {
		if id != "" {
			c.namespace = id
		}
	}
}

// WithGroup sets the group of services that do not name one, by default
// DEFAULT_GROUP.
func WithGroup(name string) Option {
	return func(c *config) {
		if name != "" {
			c.group = name
		}
	}
}

// WithContextPath sets what precedes the paths of HTTP requests, by default
// /nacos; empty or / for none.
func WithContextPath(path string) Option { return func(c *config) { c.contextPath = path } }

// WithGRPCPort sets the gRPC port of all servers, where it is not the HTTP port
// plus 1000.
func WithGRPCPort(port uint16) Option { return func(c *config) { c.ports.GRPC = port } }

// WithGRPCPortOffset sets what is added to the HTTP port to have the gRPC port, by
// default 1000. 0 is for a server that serves both on one port.
func WithGRPCPortOffset(offset int) Option { return func(c *config) { c.ports.Offset = offset } }

// WithProtocol forbids the client to choose the protocol.
func WithProtocol(p Protocol) Option {
	return func(c *config) {
		if p > HTTP {
			c.fault("there is no protocol %d", p)
		}
		c.protocol = p
	}
}

// WithTLS makes connections secure, those of HTTP to servers without a scheme too.
func WithTLS(t *tls.Config) Option { return func(c *config) { c.tls = t.Clone() } }

// WithDialer replaces how TCP connections are made.
func WithDialer(dial func(ctx context.Context, network, address string) (net.Conn, error)) Option {
	return func(c *config) { c.dial = dial }
}

// Credentials are who the client is: a name and a password, for which it logs in,
// or a pair of keys, with which it signs requests, or a token to send as it is.
type Credentials struct {
	Username, Password   string
	AccessKey, SecretKey string
	Token                string
}

// WithCredentials gives a function that returns the credentials as they are now. It
// is asked before each login and when a server refused them, so that a change is
// taken up without a restart; it may read a file.
func WithCredentials(source func(ctx context.Context) (Credentials, error)) Option {
	return func(c *config) {
		c.credentials = func(ctx context.Context) (auth.Credentials, error) {
			credentials, err := source(ctx)
			return auth.Credentials(credentials), err
		}
	}
}

// WithUserPassword gives a name and a password that do not change.
func WithUserPassword(username, password string) Option {
	return fixed(Credentials{Username: username, Password: password})
}

// WithAccessKey gives keys that do not change.
func WithAccessKey(access, secret string) Option {
	return fixed(Credentials{AccessKey: access, SecretKey: secret})
}

func fixed(credentials Credentials) Option {
	return WithCredentials(func(context.Context) (Credentials, error) { return credentials, nil })
}

// WithTimeout bounds each single request to a server, by default 3 s. The whole of
// an operation is bounded by its context.
func WithTimeout(d time.Duration) Option {
	return func(c *config) {
		if d <= 0 {
			c.fault("a timeout of %v", d)
		}
		c.timeout = d
	}
}

// WithBackoff sets the pause after a failure: random between zero and least, twice
// that after each further failure, at most most. By default 100 ms and 5 s.
func WithBackoff(least, most time.Duration) Option {
	return func(c *config) {
		if least <= 0 || most < least {
			c.fault("a back-off of %v to %v", least, most)
		}
		c.backoff = servers.Backoff{Min: least, Max: most}
	}
}

// WithLogger sets where the client logs; without it, nowhere. Repeated messages are
// collapsed, and neither credentials nor metadata are logged.
func WithLogger(l *slog.Logger) Option {
	return func(c *config) {
		if l != nil {
			c.logger = l
		}
	}
}

// WithMetrics sets who counts what the client does.
func WithMetrics(m Metrics) Option {
	return func(c *config) {
		if m != nil {
			c.metrics = m
		}
	}
}

// WithDiskCache keeps the last known state of each watched service in dir, in the
// layout of Nacos clients, and serves it, marked as [FromDisk], while no server can
// be asked; not if it is older than maxAge, which 0 does not bound. A disk that
// cannot be written costs one warning and nothing else.
func WithDiskCache(dir string, maxAge time.Duration) Option {
	return func(c *config) { c.diskDir, c.diskMaxAge = dir, maxAge }
}

// WithFailoverDir names the cache directory of which the failover switch of Nacos
// clients is obeyed: while it is on, services are what the files beside it say. It
// is looked at each 5 s.
func WithFailoverDir(dir string) Option { return func(c *config) { c.failoverDir = dir } }

// WithEmptyProtection holds the instances of a service for d when a server says that
// there are none any more; see [SnapshotInfo]. By default an empty list is believed.
func WithEmptyProtection(d time.Duration) Option { return func(c *config) { c.emptyProtection = d } }

// WithResync sets how often a watched service is asked for although pushes would
// tell of changes, give or take a fifth; by default each 60 s, 0 for never. A push
// that was lost is healed by it. Over HTTP the client polls as often as the server
// says.
func WithResync(d time.Duration) Option { return func(c *config) { c.resync = d } }

// WithLocalIP sets the address that the client gives as its own; without it, the one
// from which the server is reached.
func WithLocalIP(ip string) Option { return func(c *config) { c.localIP = ip } }

// WithAppName tells servers the name of the application.
func WithAppName(name string) Option { return func(c *config) { c.appName = name } }

// WithLabels adds labels to the connection.
func WithLabels(labels map[string]string) Option { return func(c *config) { c.labels = labels } }

// WithUDP sets where pushes over UDP are received in HTTP mode, by default ":0", any
// port of any address; "off" for polling alone.
func WithUDP(address string) Option { return func(c *config) { c.udp = address } }

// WithTransport replaces the protocols. It is for package clienttest: no other can
// make a transport.
func WithTransport(t wire.Transport) Option { return func(c *config) { c.transport = t } }
