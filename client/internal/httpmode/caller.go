package httpmode

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rollcall-registry/rollcall/client/internal/auth"
	"github.com/rollcall-registry/rollcall/client/internal/servers"
	"github.com/rollcall-registry/rollcall/client/internal/wire"
)

// agent is what the client calls itself: servers push only to agents that they know.
const agent = "Nacos-Go-Client:v2.3.5"

// Limits of messages.
const (
	// maxBody bounds an answer, after decompression.
	maxBody = 16 << 20
	// maxQuery is how long a query may be; what is longer goes into the body, where
	// servers from 2.0 on look as well. Tomcat refuses heads above 8 KiB.
	maxQuery = 7 << 10
	// maxMessage is how much of a server's text an error repeats.
	maxMessage = 256
	// maxIPs is how many addresses of servers are remembered as senders of pushes.
	maxIPs = 256
)

// request is one request, whichever server gets it.
type request struct {
	method, path string // the path below the context path
	query        url.Values
	body         url.Values // of a form; nil for none
	resource     string     // what is signed: group@@service
	bare         bool       // without credentials
}

// answer is a body with status 200, and who sent it.
type answer struct {
	body   []byte
	server servers.Server
	from   netip.Addr // of the server; invalid if it is not known
}

// caller sends requests to one of the servers.
type caller struct {
	servers     *servers.List
	auth        *auth.Provider
	timeout     time.Duration
	contextPath string
	secure      bool // also to servers whose entry has no scheme
	appName     string
	client      *http.Client

	preferred atomic.Pointer[servers.Server] // the last that answered

	mu  sync.Mutex
	ips map[netip.Addr]struct{} // of servers; see known
}

// CallerConfig is what requests need.
type CallerConfig struct {
	Servers     *servers.List
	Auth        *auth.Provider
	Timeout     time.Duration // of one request
	ContextPath string
	AppName     string
	TLS         *tls.Config // nil for clear text
	Dial        func(ctx context.Context, network, address string) (net.Conn, error)
}

func newCaller(cfg CallerConfig) *caller {
	c := &caller{
		servers: cfg.Servers, auth: cfg.Auth, timeout: cfg.Timeout, secure: cfg.TLS != nil, appName: cfg.AppName,
		contextPath: "/" + strings.Trim(cfg.ContextPath, "/"), ips: make(map[netip.Addr]struct{}),
	}
	if c.contextPath == "/" {
		c.contextPath = ""
	}
	dial := cfg.Dial
	if dial == nil {
		dial = (&net.Dialer{}).DialContext
	}
	c.client = &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
				conn, err := dial(ctx, network, address)
				if err == nil {
					c.learn(conn.RemoteAddr())
				}
				return conn, err
			},
			TLSClientConfig:        cfg.TLS,
			MaxIdleConns:           64,
			MaxIdleConnsPerHost:    2,                // enough for hundreds of polls a second
			IdleConnTimeout:        30 * time.Second, // above the 20 s after which Tomcat closes, with room
			MaxResponseHeaderBytes: 64 << 10,
		},
	}
	return c
}

// close closes idle connections.
func (c *caller) close() { c.client.CloseIdleConnections() }

// learn remembers the address of a server.
func (c *caller) learn(remote net.Addr) {
	ip := ipOf(remote)
	c.mu.Lock()
	defer c.mu.Unlock()
	if ip.IsValid() && len(c.ips) < maxIPs {
		c.ips[ip] = struct{}{}
	}
}

// ipOf returns the address of an end of a connection; invalid if it has none.
func ipOf(end net.Addr) netip.Addr {
	address, err := netip.ParseAddrPort(end.String())
	if err != nil {
		return netip.Addr{}
	}
	return address.Addr().Unmap()
}

// known reports whether a server has this address.
func (c *caller) known(ip netip.Addr) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, ok := c.ips[ip.Unmap()]
	return ok
}

// order returns the servers in the order in which they are to be tried: the one that
// answered last, then the others at random.
func (c *caller) order() []servers.Server {
	round := c.servers.Round()
	if p := c.preferred.Load(); p != nil {
		if i := slices.Index(round, *p); i > 0 {
			round[0], round[i] = round[i], round[0]
		}
	}
	return round
}

var errNoServers = errors.New("the list of servers is empty")

// do sends a request to one server after the other until one answers. It asks each
// once. Its error is [*wire.Error] or that of ctx.
func (c *caller) do(ctx context.Context, r *request) (answer, error) {
	var failure *wire.Error
	for n, server := range c.order() {
		a, err := c.authorized(ctx, server, r)
		if err == nil {
			c.preferred.Store(&server)
			return a, nil
		}
		if ctx.Err() != nil {
			return answer{}, context.Cause(ctx)
		}
		if failure == nil || worse(failure, err) {
			failure = err
		}
		failure.Attempts = n + 1
		if !elsewhere(err) {
			c.preferred.Store(&server)
			break
		}
	}
	if failure == nil {
		failure = &wire.Error{Kind: wire.NotConnected, Err: errNoServers}
	}
	return answer{}, failure
}

// worse reports whether a tells less of what is wrong than b does.
func worse(a, b *wire.Error) bool { return a.Kind == wire.NotConnected || b.Kind != wire.NotConnected }

// elsewhere reports whether another server may answer better.
func elsewhere(e *wire.Error) bool {
	switch e.Kind {
	case wire.NotConnected, wire.NotReady, wire.Overloaded, wire.BadAnswer:
		return true
	case wire.Unknown:
		return e.HTTPStatus >= 500 || e.HTTPStatus/100 == 3
	default:
		return false
	}
}

// authorized sends a request with credentials, and once more with others if the
// server refused those.
func (c *caller) authorized(ctx context.Context, server servers.Server, r *request) (answer, *wire.Error) {
	if r.bare {
		return c.once(ctx, server, r, nil)
	}
	for again := false; ; again = true {
		fields, err := c.auth.Fields(ctx, r.resource)
		if err != nil {
			if refusal, ok := errors.AsType[*wire.Error](err); ok {
				own := *refusal // others who wait for the same login have it, too
				own.Server = cmp.Or(own.Server, server.HTTP())
				return answer{}, &own
			}
			return answer{}, &wire.Error{Kind: wire.Unauthorized, Server: server.HTTP(), Err: err}
		}
		a, refusal := c.once(ctx, server, r, fields)
		if refusal == nil || again || refusal.HTTPStatus != http.StatusForbidden && refusal.HTTPStatus != http.StatusUnauthorized || !c.auth.Refused(fields) {
			return a, refusal
		}
	}
}

// once sends a request to a server.
func (c *caller) once(ctx context.Context, server servers.Server, r *request, fields []auth.Field) (answer, *wire.Error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.timeout, fmt.Errorf("no answer within %v", c.timeout))
	defer cancel()
	var from netip.Addr
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(got httptrace.GotConnInfo) { from = ipOf(got.Conn.RemoteAddr()) },
	})
	req, err := c.build(ctx, server, r, fields)
	if err != nil {
		return answer{}, &wire.Error{Kind: wire.Invalid, Server: server.HTTP(), Err: err}
	}
	response, err := c.client.Do(req)
	if err != nil {
		return answer{}, &wire.Error{Kind: wire.NotConnected, Server: server.HTTP(), Err: cause(ctx, err)}
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxBody+1))
	switch {
	case err != nil:
		return answer{}, &wire.Error{Kind: wire.NotConnected, Server: server.HTTP(), Err: cause(ctx, err)}
	case len(body) > maxBody:
		return answer{}, &wire.Error{Kind: wire.BadAnswer, Server: server.HTTP(), Err: fmt.Errorf("an answer above %d bytes", maxBody)}
	case response.StatusCode != http.StatusOK:
		return answer{}, refusal(server, response.StatusCode, body)
	}
	return answer{body, server, from}, nil
}

// cause returns why a request failed, without the URL, which may hold secrets.
func cause(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}

// build makes the request for a server. Credentials go where the parameters are.
func (c *caller) build(ctx context.Context, server servers.Server, r *request, fields []auth.Field) (*http.Request, error) {
	query, form := url.Values{}, url.Values{}
	for k, v := range r.query {
		query[k] = v
	}
	for k, v := range r.body {
		form[k] = v
	}
	for _, f := range fields {
		query.Set(f.Name, f.Value)
	}
	encoded := query.Encode()
	if len(encoded) > maxQuery && r.method != http.MethodGet {
		for k, v := range query {
			form[k] = v
		}
		encoded = ""
	}
	u := url.URL{Scheme: "http", Host: server.HTTP(), Path: c.contextPath + r.path, RawQuery: encoded}
	if server.Secure || c.secure {
		u.Scheme = "https"
	}
	var body io.Reader
	if len(form) > 0 {
		body = strings.NewReader(form.Encode())
	}
	req, err := http.NewRequestWithContext(ctx, r.method, u.String(), body)
	if err != nil {
		return nil, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	req.Header.Set("User-Agent", agent)
	req.Header.Set("Client-Version", agent)
	req.Header.Set("Request-Module", "Naming")
	if c.appName != "" {
		req.Header.Set("app", c.appName)
	}
	// All requests may be repeated. This lets net/http do so when a server closed
	// an idle connection that it was just about to use.
	req.Header["X-Idempotency-Key"] = nil
	return req, nil
}

// refusal makes an error of an answer that is not 200.
func refusal(server servers.Server, status int, body []byte) *wire.Error {
	return &wire.Error{Kind: kindOf(status, string(body)), Server: server.HTTP(), HTTPStatus: status, Message: message(body)}
}

// absent reports whether a registry said that it has no such thing: servers of 0.9 in
// words, those of 3.x with a code. Whatever else answers 404, as a proxy before a server
// that is away, or a server of another generation, has not looked.
func absent(err error) bool {
	e, ok := errors.AsType[*wire.Error](err)
	return ok && e.Kind == wire.NotFound && (strings.HasPrefix(e.Message, "dom not found") || strings.HasPrefix(e.Message, `{"code":`))
}

// message cuts a server's text to what an error repeats.
func message(body []byte) string {
	text := strings.ToValidUTF8(strings.TrimSpace(string(body[:min(len(body), maxMessage)])), "")
	if strings.HasPrefix(text, "<") {
		return "" // a page of a proxy or a container
	}
	return text
}

func kindOf(status int, text string) wire.Kind {
	switch status {
	case http.StatusBadRequest:
		return wire.Invalid
	case http.StatusUnauthorized:
		return wire.Unauthorized
	case http.StatusForbidden:
		// 1.x and 2.x answer 403 to whoever did not log in, too.
		if strings.Contains(text, "token") || strings.Contains(text, "unknown user") || strings.Contains(text, "user not found") {
			return wire.Unauthorized
		}
		return wire.Forbidden
	case http.StatusNotFound:
		return wire.NotFound
	case http.StatusConflict:
		return wire.Conflict
	case http.StatusGone, http.StatusNotImplemented, http.StatusMethodNotAllowed:
		return wire.Unsupported
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusGatewayTimeout:
		return wire.Overloaded
	case http.StatusServiceUnavailable:
		// Of TrafficReviseFilter: "server is STARTING now, please try again later!"
		if strings.Contains(text, "STARTING") || strings.Contains(text, "DOWN") || strings.Contains(text, "not ready") {
			return wire.NotReady
		}
		return wire.Overloaded
	default:
		return wire.Unknown
	}
}
