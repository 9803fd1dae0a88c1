package rollcall

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/rollcall-registry/rollcall/client/internal/auth"
	"github.com/rollcall-registry/rollcall/client/internal/servers"
	"github.com/rollcall-registry/rollcall/client/internal/wire"
)

// config is what the options of a client say. An option that is wrong leaves a fault;
// New tells all of them together.
type config struct {
	source      servers.Source
	sources     []string // the options that gave one
	entries     []string // of WithServers
	static      bool     // the list does not change
	endpoint    string
	ports       servers.Ports
	portOption  string // the option that set ports; empty if none did
	protocol    Protocol
	contextPath string
	namespace   string
	group       string
	tls         *tls.Config
	dial        func(ctx context.Context, network, address string) (net.Conn, error)
	credentials auth.Source
	identities  []string // the options that gave credentials
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
	anyUDP         = ":0"
	// endpointRefresh is how often the list of servers is asked for again; Nacos
	// clients do it each 30 s.
	endpointRefresh = 30 * time.Second
)

// The range of durations that options take. A duration without a unit is one of
// nanoseconds, which the lower bound finds.
const (
	leastDuration = time.Millisecond
	mostDuration  = 24 * time.Hour
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
		udp:         anyUDP,
	}
}

// configOf applies options, and returns all that is wrong with them.
func configOf(options []Option) (config, error) {
	c := defaults()
	for n, option := range options {
		if option == nil {
			c.fault("option %d of New is nil; leave it out", n+1)
			continue
		}
		option(&c)
	}
	c.checkServers()
	c.checkTogether()
	return c, errors.Join(c.faults...)
}

// applyEach applies the options of an operation, and returns an error if some are nil.
func applyEach[O any](options []O, apply func(O)) error {
	var faults []error
	for n, option := range options {
		if any(option) == nil {
			faults = append(faults, invalid("option %d is nil; leave it out", n+1))
			continue
		}
		apply(option)
	}
	return errors.Join(faults...)
}

func (c *config) fault(format string, args ...any) {
	c.faults = append(c.faults, invalid(format, args...))
}

// checkServers checks the servers with the ports that other options gave, and makes
// the source of an endpoint.
func (c *config) checkServers() {
	if c.protocol == HTTP {
		c.ports = servers.Ports{} // gRPC has none that could be wrong
	}
	if c.endpoint != "" {
		source, err := servers.Endpoint(c.httpClient(), c.endpoint)
		if err != nil {
			c.fault("WithEndpoint(%q): %v", c.endpoint, err)
		}
		c.source = source
	}
	seen := make(map[string]string, len(c.entries))
	for _, entry := range c.entries {
		s, err := servers.Parse(entry, c.ports)
		if err != nil {
			c.fault("WithServers(%q): %v", entry, err)
			continue
		}
		if path := pathOf(entry); path != "" && path != strings.Trim(c.contextPath, "/") {
			c.fault("WithServers(%q): the path of calls is /%s; leave out /%s, or give it by WithContextPath", entry, strings.Trim(c.contextPath, "/"), path)
		}
		if before, ok := seen[s.HTTP()]; ok {
			c.fault("WithServers(%q): it is the same server as %q; name it once", entry, before)
		}
		seen[s.HTTP()] = entry
	}
}

// pathOf returns the path of a server that is given as a URL, without the slashes at its
// ends.
func pathOf(entry string) string {
	_, rest, _ := strings.Cut(entry, "://")
	_, path, _ := strings.Cut(rest, "/")
	return strings.Trim(strings.TrimSpace(path), "/")
}

// checkTogether finds options that do not go together. Those that say how the servers
// are, as ports and the address for UDP, go with every protocol: a program may choose
// that by a flag.
func (c *config) checkTogether() {
	switch {
	case c.transport != nil:
	case len(c.sources) == 0:
		c.faults = append(c.faults, fmt.Errorf("%w: %w: give WithServers, WithEndpoint or WithServerSource", ErrInvalidArgument, ErrNoServers))
	case len(c.sources) > 1:
		c.fault("%s: each gives the servers; keep one", strings.Join(c.sources, " and "))
	}
	if len(c.identities) > 1 {
		c.fault("%s: each gives the credentials; keep one", strings.Join(c.identities, " and "))
	}
}

// duration checks an argument of an option; zero says what 0 stands for, and is empty
// where it stands for nothing.
func (c *config) duration(option string, d time.Duration, zero string) {
	switch {
	case d == 0 && zero != "", d >= leastDuration && d <= mostDuration:
	case zero != "":
		c.fault("%s(%v): give %v to %v, or 0 for %s", option, d, leastDuration, mostDuration, zero)
	default:
		c.fault("%s(%v): give %v to %v", option, d, leastDuration, mostDuration)
	}
}

// text checks a text that becomes part of requests.
func (c *config) text(option, s string) {
	if hasControl(s) {
		c.fault("%s(%q): it has control characters", option, s)
	}
}

// path checks what precedes the paths of requests.
func (c *config) path(option, path string) {
	if strings.ContainsAny(path, "?#%\\ ") || strings.Contains(path, "//") || hasControl(path) {
		c.fault("%s(%q): give a plain path such as /nacos, or / for none", option, path)
	}
}

// identity notes that an option gave the credentials.
func (c *config) identity(option string, source func(ctx context.Context) (Credentials, error)) {
	c.identities = append(c.identities, option)
	c.credentials = func(ctx context.Context) (auth.Credentials, error) {
		credentials, err := source(ctx)
		return auth.Credentials(credentials), err
	}
}

// udpAddress checks where pushes are to be received.
func (c *config) udpAddress(option, address string) {
	if address == noUDP {
		return
	}
	host, port, err := net.SplitHostPort(address)
	if err == nil && host != "" && host != "localhost" {
		_, err = netip.ParseAddr(host)
	}
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		c.fault("%s(%q): give an address of this host and a port, such as 10.0.0.7:0 or :8850, or off", option, address)
	}
}

// httpClient returns a client of HTTP for the endpoint. It keeps no connection: it is
// used each 30 s.
func (c *config) httpClient() *http.Client {
	return &http.Client{Transport: &http.Transport{DialContext: survive(c.dial), TLSClientConfig: c.tls, DisableKeepAlives: true}}
}
