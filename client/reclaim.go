package rollcall

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/rollcall-registry/rollcall/api/grpcv2"
	"github.com/rollcall-registry/rollcall/client/internal/wire"
)

// strays returns what is to leave and was published on an earlier session: the server may
// remember it of that one, as after a restart. The caller holds mu.
func (p *publication) strays(session string) []*Registration {
	return slices.DeleteFunc(slices.Clone(p.leaving), func(r *Registration) bool { return r.tried == session })
}

// reclaim removes from the server what it remembers of an earlier session. A session can
// take back only what it has published itself: so it publishes the strays beside what is
// wanted, which for the server is that their client has come back, and then no more.
// What the server does not list is left alone.
func (p *publication) reclaim(ctx context.Context, a *attempt) error {
	t := a.link.transport
	listed, err := p.listed(ctx, t)
	if err != nil {
		return err
	}
	set := slices.Clone(a.instances)
	for _, r := range a.strays {
		if listed(r.key) {
			set = append(set, r.want)
		}
	}
	if len(set) > len(a.instances) {
		if err := t.Publish(ctx, p.service, set); err != nil {
			return err
		}
	}
	if err := t.Publish(ctx, p.service, a.instances); err != nil { // also of what an attempt before may have left
		return err
	}
	if a.link.session.Protocol != wire.HTTP {
		return nil
	}
	// Over HTTP nothing takes the place of what a connection has registered.
	if listed, err = p.listed(ctx, t); err != nil {
		return err
	}
	if slices.ContainsFunc(a.strays, func(r *Registration) bool { return listed(r.key) }) {
		return &wire.Error{Kind: wire.Unknown, Server: a.link.session.Server, Err: errRemembered}
	}
	return nil
}

var errRemembered = errors.New("the server still lists the instance as one of a connection of before")

// listed asks the server for the service, and returns whether it lists an instance: any,
// if it will not tell.
func (p *publication) listed(ctx context.Context, t wire.Transport) (func(wire.Key) bool, error) {
	list, err := t.Query(ctx, p.service)
	if err != nil && wire.Final(err) {
		return func(wire.Key) bool { return true }, nil
	}
	if err != nil {
		return nil, err
	}
	var info grpcv2.ServiceInfo
	found, err := readInstances(list.Raw, &info, listed{})
	if err != nil {
		return nil, &wire.Error{Kind: wire.BadAnswer, Server: list.Server, Err: err}
	}
	keys := make(map[wire.Key]bool, len(found.instances))
	for _, i := range found.instances {
		keys[wire.Key{IP: i.IP, Port: i.Port, Cluster: i.Cluster}] = true
	}
	return func(key wire.Key) bool { return keys[key] }, nil
}

// reclaimed takes the result of that and returns when to try again.
func (p *publication) reclaimed(a *attempt, err error) time.Duration {
	c := p.client
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		p.gone(a.strays)
		p.failures = 0
		return 0
	}
	for _, r := range a.strays {
		r.failed(err)
	}
	c.logger.Warn("deregister", "namespace", p.service.Namespace, "group", p.service.Group, "service", p.service.Name, "err", err)
	p.failures++
	if wire.Final(err) {
		return refusedPause
	}
	return c.cfg.backoff.Delay(p.failures)
}
