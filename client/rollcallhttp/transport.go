package rollcallhttp

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync/atomic"

	rollcall "github.com/rollcall-registry/rollcall/client"
	"github.com/rollcall-registry/rollcall/client/balance"
)

const (
	// scheme and suffix mark the hosts that name services.
	scheme = "rollcall"
	suffix = ".rollcall"
	// secureKey is the metadata that asks for https, as Spring Cloud Alibaba writes it.
	secureKey = "secure"
	// attempts is how many instances are tried for one request.
	attempts = 3
	// draws is how often one is picked at most until it is another one than was tried.
	// Then a picker of the others is built, which may take longer.
	draws = 16
)

// Option changes a transport.
type Option func(*Transport)

// WithBase sets who sends the requests, by default, and if it is nil,
// [http.DefaultTransport].
func WithBase(base http.RoundTripper) Option {
	return func(t *Transport) {
		if t.base = base; base == nil {
			t.base = http.DefaultTransport
		}
	}
}

// WithBalancer sets how instances are picked, by default, and if it is nil, by
// [balance.WeightedRandom].
func WithBalancer(b rollcall.Balancer) Option {
	return func(t *Transport) {
		if t.balancer = b; b == nil {
			t.balancer = balance.WeightedRandom()
		}
	}
}

// WithNames sets which service a request is for, by default, and if it is nil, by the
// host as the package says. If named returns false, the request passes through. It may
// be called concurrently.
func WithNames(named func(*http.Request) (rollcall.Service, bool)) Option {
	return func(t *Transport) {
		if t.named = named; named == nil {
			t.named = byHost
		}
	}
}

// WithKeys picks instances by a key of the request, for balancers that do so; by default,
// and if it is nil, none has a key. It may be called concurrently.
func WithKeys(key func(*http.Request) uint64) Option { return func(t *Transport) { t.key = key } }

// WithWatch adds options to the watches, such as [rollcall.WithClusters].
func WithWatch(options ...rollcall.WatchOption) Option {
	return func(t *Transport) { t.targets.options = append(t.targets.options, options...) }
}

// Transport is the [http.RoundTripper]. It is safe for concurrent use.
type Transport struct {
	base     http.RoundTripper
	balancer rollcall.Balancer
	named    func(*http.Request) (rollcall.Service, bool)
	key      func(*http.Request) uint64 // nil for none
	targets  targets
}

// NewTransport returns a transport. The client stays the caller's, and is closed after
// the transport.
func NewTransport(c *rollcall.Client, options ...Option) *Transport {
	t := &Transport{
		base: http.DefaultTransport, balancer: balance.WeightedRandom(), named: byHost,
		targets: targets{client: c, open: make(map[rollcall.Service]*target)},
	}
	for _, option := range options {
		option(t)
	}
	return t
}

// byHost reads the name of a service from the host.
func byHost(r *http.Request) (rollcall.Service, bool) {
	host := r.URL.Hostname()
	name, suffixed := strings.CutSuffix(host, suffix)
	return rollcall.Service{Name: name}, suffixed || r.URL.Scheme == scheme
}

// RoundTrip sends a request. Beside the errors of sending, it returns those of watching
// the service and [rollcall.ErrNoInstances] or [rollcall.ErrNoHealthyInstances].
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	s, ok := t.named(r)
	if !ok {
		return t.base.RoundTrip(r)
	}
	to, err := t.targets.get(r.Context(), s, t.balancer)
	if err != nil {
		closeBody(r)
		return nil, err
	}
	p := to.picker
	in, err := t.draw(r, p, 0)
	if err != nil {
		closeBody(r)
		return nil, err
	}
	for tried := []*rollcall.Instance{in}; ; tried = append(tried, in) {
		resp, sent, err := t.send(r, p, in)
		if err == nil || sent || len(tried) == attempts || r.Context().Err() != nil {
			return resp, err
		}
		again, ok := rewound(r)
		if !ok {
			return nil, err
		}
		r = again
		if in, p = t.other(r, to, tried); in == nil {
			closeBody(r)
			return nil, err
		}
	}
}

// other picks an instance that was not tried, and returns the picker it is of; nil if
// there is none.
func (t *Transport) other(r *http.Request, to *target, tried []*rollcall.Instance) (*rollcall.Instance, rollcall.Picker) {
	for n := range draws {
		in, err := t.draw(r, to.picker, len(tried)+n)
		switch {
		case err != nil:
			return nil, nil
		case !contains(tried, in):
			return in, to.picker
		}
		to.picker.Done(in, nil)
	}
	var left []*rollcall.Instance
	s := to.watch.Snapshot()
	for in := range s.All() {
		if !contains(tried, in) {
			left = append(left, in)
		}
	}
	p := t.balancer.Build(rollcall.NewSnapshot(s.Info(), left...), nil)
	in, err := t.draw(r, p, 0)
	if err != nil {
		return nil, nil
	}
	return in, p
}

// draw picks an instance, by key another one each time, if there is a key.
func (t *Transport) draw(r *http.Request, p rollcall.Picker, nth int) (*rollcall.Instance, error) {
	if t.key == nil {
		return p.Pick()
	}
	return p.PickKey(t.key(r) + uint64(nth))
}

func contains(list []*rollcall.Instance, in *rollcall.Instance) bool {
	for _, other := range list {
		if other.Addr() == in.Addr() {
			return true
		}
	}
	return false
}

// errNotServed is what a picker is told of a request that failed.
var errNotServed = errors.New("the request was not answered")

// send sends a request to an instance. sent is false if that failed before there was a
// connection.
func (t *Transport) send(r *http.Request, p rollcall.Picker, in *rollcall.Instance) (resp *http.Response, sent bool, err error) {
	var connected atomic.Bool
	ctx := httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { connected.Store(true) },
	})
	out := r.Clone(ctx)
	out.URL.Host = in.Addr()
	if out.Host == "" {
		out.Host = r.URL.Host
	}
	switch {
	case in.Metadata[secureKey] == "true":
		out.URL.Scheme = "https"
	case out.URL.Scheme == scheme:
		out.URL.Scheme = "http"
	}
	resp, err = t.base.RoundTrip(out)
	if err != nil {
		p.Done(in, errNotServed)
		return nil, connected.Load(), err
	}
	resp.Request = r
	resp.Body = watchBody(resp.Body, func() { p.Done(in, nil) })
	return resp, true, nil
}

// rewound returns a request whose body can be read from the beginning again.
func rewound(r *http.Request) (*http.Request, bool) {
	switch {
	case r.Body == nil || r.Body == http.NoBody:
		return r, true
	case r.GetBody == nil:
		return nil, false
	}
	body, err := r.GetBody()
	if err != nil {
		return nil, false
	}
	again := *r
	again.Body = body
	return &again, true
}

// closeBody does what is due to a request that is not sent.
func closeBody(r *http.Request) {
	if r.Body != nil {
		_ = r.Body.Close() // nobody would know what to do about it
	}
}

// CloseIdleConnections is for [http.Client.CloseIdleConnections].
func (t *Transport) CloseIdleConnections() {
	if base, ok := t.base.(interface{ CloseIdleConnections() }); ok {
		base.CloseIdleConnections()
	}
}

// Close ends the watches. Requests to services fail from then on.
func (t *Transport) Close() error { return t.targets.close() }

// Ready watches a service before the first request to it, so that this one need not
// wait.
func (t *Transport) Ready(ctx context.Context, s rollcall.Service) error {
	_, err := t.targets.get(ctx, s, t.balancer)
	return err
}
