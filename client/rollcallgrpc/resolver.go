package rollcallgrpc

import (
	"context"
	"errors"
	"net"
	"net/url"
	"sync"
	"time"

	"google.golang.org/grpc/attributes"
	"google.golang.org/grpc/resolver"

	rollcall "github.com/rollcall-registry/rollcall/client"
	"github.com/rollcall-registry/rollcall/client/balance"
)

// Option changes a resolver.
type Option func(*builder)

// PortFromMetadata takes the port from this entry of an instance's metadata, if it is
// there: what registers an HTTP port may serve gRPC on another one. Applications with
// Spring usually call it gRPC_port.
func PortFromMetadata(key string) Option { return func(b *builder) { b.port = key } }

// AllowUnhealthy uses unhealthy instances when none is healthy.
func AllowUnhealthy() Option {
	return func(b *builder) { b.eligible = append(b.eligible, balance.AllowUnhealthy()) }
}

// WithFilters narrows which instances are used, besides what the target says.
func WithFilters(filters ...rollcall.FilterOption) Option {
	return func(b *builder) { b.filters = append(b.filters, filters...) }
}

// NewResolver returns a resolver for grpc.WithResolvers. It watches each target as long
// as its connection lives. The client stays the caller's, to be closed after the
// connections.
func NewResolver(c *rollcall.Client, options ...Option) resolver.Builder {
	b := &builder{client: c}
	for _, option := range options {
		option(b)
	}
	return b
}

type builder struct {
	client   *rollcall.Client
	port     string // the key of metadata; "" for none
	eligible []balance.Option
	filters  []rollcall.FilterOption
}

func (b *builder) Scheme() string { return Scheme }

// OverrideAuthority has requests say the name of the service as their host.
func (b *builder) OverrideAuthority(t resolver.Target) string {
	s, _, err := parse(&t.URL)
	if err != nil {
		return t.Endpoint()
	}
	return url.PathEscape(s.Name)
}

// Build starts to watch a target. It does not wait for the answer.
func (b *builder) Build(t resolver.Target, cc resolver.ClientConn, opts resolver.BuildOptions) (resolver.Resolver, error) {
	s, filters, err := parse(&t.URL)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	r := &watcher{builder: b, cc: cc, service: s, stop: stop, again: make(chan struct{}, 1)}
	for _, f := range append(filters, b.filters...) {
		r.options = append(r.options, f)
	}
	if !opts.DisableServiceConfig {
		r.config = `{"loadBalancingConfig":[{"` + Policy + `":{}},{"round_robin":{}}]}`
	}
	r.running.Go(func() { r.run(ctx) })
	return r, nil
}

// watcher is the resolver of one connection.
type watcher struct {
	*builder
	cc      resolver.ClientConn
	service rollcall.Service
	options []rollcall.WatchOption
	config  string // as JSON; "" for none
	stop    context.CancelFunc
	running sync.WaitGroup
	again   chan struct{} // capacity 1: gRPC wants to try again
}

const (
	// patience is how long calls wait for the first list before they learn why there
	// is none. Calls that wait for a connection go on waiting.
	patience = 3 * time.Second
	// pause is how long to wait after a refusal, unless gRPC asks sooner.
	pause = 5 * time.Second
)

// run watches until ctx ends. Only before there is a watch can there be errors: after
// that, the state that was known last is better than none.
func (r *watcher) run(ctx context.Context) {
	for ctx.Err() == nil {
		waiting, cancel := context.WithTimeout(ctx, patience)
		w, err := r.client.Watch(waiting, r.service, r.options...)
		cancel()
		if err == nil {
			r.follow(ctx, w)
			return
		}
		if ctx.Err() != nil {
			return
		}
		r.cc.ReportError(err)
		if !errors.Is(err, context.DeadlineExceeded) {
			r.rest(ctx)
		}
	}
}

// rest waits before the next attempt.
func (r *watcher) rest(ctx context.Context) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.again:
	case <-ctx.Done():
	}
}

// follow hands over each change until ctx or the watch ends.
func (r *watcher) follow(ctx context.Context, w *rollcall.Watch) {
	defer w.Close()
	for u, err := range w.All(ctx) {
		if err != nil {
			return
		}
		_ = r.cc.UpdateState(r.state(u.Snapshot)) // asking again would bring the same
	}
}

// ResolveNow has a refused watch tried at once. What is watched needs no asking.
func (r *watcher) ResolveNow(resolver.ResolveNowOptions) {
	select {
	case r.again <- struct{}{}:
	default: // it will
	}
}

// Close ends the watch and waits for that.
func (r *watcher) Close() {
	r.stop()
	r.running.Wait()
}

// state is a snapshot as gRPC takes it: those who may be picked.
func (r *watcher) state(s *rollcall.Snapshot) resolver.State {
	instances, err := balance.Eligible(s, r.eligible...)
	state := resolver.State{
		Endpoints:  make([]resolver.Endpoint, 0, len(instances)),
		Attributes: attributes.New(serviceKey{}, &serviceState{s.Info(), err}),
	}
	for _, in := range instances {
		address := resolver.Address{Addr: r.address(in)}
		state.Addresses = append(state.Addresses, address) // for policies that know no endpoints
		state.Endpoints = append(state.Endpoints, resolver.Endpoint{
			Addresses:  []resolver.Address{address},
			Attributes: attributes.New(instanceKey{}, (*instance)(in)),
		})
	}
	if r.config != "" {
		state.ServiceConfig = r.cc.ParseServiceConfig(r.config)
	}
	return state
}

func (r *watcher) address(in *rollcall.Instance) string {
	if port := in.Metadata[r.port]; r.port != "" && port != "" {
		return net.JoinHostPort(in.IP, port)
	}
	return in.Addr()
}

// serviceKey is where a state has its *serviceState.
type serviceKey struct{}

// serviceState is what the policy wants to know of a service.
type serviceState struct {
	info rollcall.SnapshotInfo
	err  error // why there is nothing to pick
}

// instanceKey is where an endpoint has its *instance.
type instanceKey struct{}

// instance can be compared, as gRPC wants it.
type instance rollcall.Instance

// Equal is for package attributes.
func (i *instance) Equal(o any) bool {
	other, ok := o.(*instance)
	return ok && (*rollcall.Instance)(i).Equal((*rollcall.Instance)(other))
}

// InstanceOf returns the instance that an endpoint stands for; nil if it does not come
// from this package. It is for policies other than [NewPolicy]'s.
func InstanceOf(e resolver.Endpoint) *rollcall.Instance {
	in, _ := e.Attributes.Value(instanceKey{}).(*instance)
	return (*rollcall.Instance)(in)
}
