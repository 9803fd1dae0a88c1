package rollcallgrpc

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/balancer/base"
	"google.golang.org/grpc/balancer/endpointsharding"
	"google.golang.org/grpc/balancer/pickfirst"
	"google.golang.org/grpc/connectivity"

	rollcall "github.com/rollcall-registry/rollcall/client"
)

// Policy is the name of the policy that the resolver asks for.
const Policy = "rollcall"

// NewPolicy returns a policy of gRPC that leaves the choice to b. It is used by
// registering it with [balancer.Register], before any connection is made, under the
// name [Policy], or under another one that service configurations name.
func NewPolicy(name string, b rollcall.Balancer) balancer.Builder { return policyBuilder{name, b} }

type keyOfCall struct{}

// WithKey gives calls that are made with the context a key, for policies that pick by
// key; balance.Key makes keys of texts.
func WithKey(ctx context.Context, key uint64) context.Context {
	return context.WithValue(ctx, keyOfCall{}, key)
}

type policyBuilder struct {
	name string
	base rollcall.Balancer
}

func (b policyBuilder) Name() string { return b.name }

func (b policyBuilder) Build(cc balancer.ClientConn, opts balancer.BuildOptions) balancer.Balancer {
	p := &policy{conn: cc, base: b.base, service: new(serviceState)}
	connect := balancer.Get(pickfirst.Name).Build
	p.Balancer = endpointsharding.NewBalancer(upward{cc, p}, opts, connect, endpointsharding.Options{})
	return p
}

// policy is the policy of one connection. It has one child for each instance, which
// keeps the connection to it and tells its state through [upward].
type policy struct {
	balancer.Balancer // the children
	conn              balancer.ClientConn
	base              rollcall.Balancer

	mu      sync.Mutex
	service *serviceState   // never nil
	picker  rollcall.Picker // the last one; nil before the first
}

// UpdateClientConnState takes a state of the resolver.
func (p *policy) UpdateClientConnState(s balancer.ClientConnState) error {
	service, ok := s.ResolverState.Attributes.Value(serviceKey{}).(*serviceState)
	if !ok {
		service = new(serviceState)
	}
	p.mu.Lock()
	p.service = service
	p.mu.Unlock()
	return p.Balancer.UpdateClientConnState(balancer.ClientConnState{
		ResolverState: pickfirst.EnableHealthListener(s.ResolverState),
	})
}

// upward is the connection as the children see it.
type upward struct {
	balancer.ClientConn
	policy *policy
}

// UpdateState takes the states of the children, and picks among those that are
// connected. While none is, calls wait for one or learn why not, as the children say.
func (u upward) UpdateState(s balancer.State) {
	p := u.policy
	p.mu.Lock()
	defer p.mu.Unlock()
	children := endpointsharding.ChildStatesFromPicker(s.Picker)
	switch {
	case len(children) == 0 && p.service.err != nil:
		s.Picker = base.NewErrPicker(p.service.err)
	case s.ConnectivityState == connectivity.Ready:
		s.Picker = p.build(children)
	}
	p.conn.UpdateState(s)
}

// build returns a picker of the children that are connected.
func (p *policy) build(children []endpointsharding.ChildState) balancer.Picker {
	c := &callPicker{children: make(map[*rollcall.Instance]balancer.Picker, len(children))}
	ready := make([]*rollcall.Instance, 0, len(children))
	for _, child := range children {
		in := InstanceOf(child.Endpoint)
		if in == nil || child.State.ConnectivityState != connectivity.Ready {
			continue
		}
		ready = append(ready, in)
		c.children[in] = child.State.Picker
	}
	slices.SortFunc(ready, func(a, b *rollcall.Instance) int {
		return cmp.Or(strings.Compare(a.IP, b.IP), cmp.Compare(a.Port, b.Port), strings.Compare(a.Cluster, b.Cluster))
	})
	info := p.service.info
	info.Protected = true // the resolver has chosen who may be picked
	p.picker = p.base.Build(rollcall.NewSnapshot(info, ready...), p.picker)
	c.picker = p.picker
	return c
}

// callPicker picks the connection for each call.
type callPicker struct {
	picker   rollcall.Picker
	children map[*rollcall.Instance]balancer.Picker
}

func (p *callPicker) Pick(info balancer.PickInfo) (balancer.PickResult, error) {
	in, err := p.pick(info.Ctx)
	if err != nil {
		return balancer.PickResult{}, err
	}
	result, err := p.children[in].Pick(info)
	if err != nil {
		p.picker.Done(in, err)
		return result, err
	}
	done := result.Done
	result.Done = func(info balancer.DoneInfo) {
		p.picker.Done(in, info.Err)
		if done != nil {
			done(info)
		}
	}
	return result, nil
}

func (p *callPicker) pick(ctx context.Context) (*rollcall.Instance, error) {
	if key, ok := ctx.Value(keyOfCall{}).(uint64); ok {
		return p.picker.PickKey(key)
	}
	return p.picker.Pick()
}
