package grpcmode

import (
	"context"
	"fmt"

	"github.com/rollcall-registry/rollcall/api/grpcv2"
	"github.com/rollcall-registry/rollcall/client/internal/wire"
)

// maxExtras bounds the connections beside the main one, and with them the instances of
// one service on a server without batches.
const maxExtras = 64

// spread publishes each instance of a service from a connection of its own, on servers
// that know no batches: there a second instance from one connection would take the place
// of the first. Instances keep their places; a new one takes one that is left before
// that is emptied. The connections stay until the session ends.
func (s *session) spread(ctx context.Context, service wire.Service, p *publication, instances []wire.Instance) error {
	wanted := make(map[wire.Key]bool, len(instances))
	for _, i := range instances {
		wanted[i.Key()] = true
	}
	taken := make(map[int]bool, len(instances))
	for key, h := range p.held {
		if wanted[key] {
			taken[h.place] = true
		}
	}
	failed := make(map[wire.Key]error)
	place := 0
	for _, i := range instances {
		h, known := p.held[i.Key()]
		if known && h.sure && h.instance.Alike(&i) {
			continue
		}
		if !known {
			for taken[place] {
				place++
			}
			taken[place] = true
			h.place = place
			p.drop(place)
		}
		p.held[i.Key()] = held{instance: i, place: h.place}
		err := s.fill(ctx, service, h.place, &i)
		if ended := s.main.over(); ended != nil {
			return broken(s.info.Server, ended)
		}
		if err != nil {
			failed[i.Key()] = err
			continue
		}
		p.held[i.Key()] = held{instance: i, place: h.place, sure: true}
	}
	for key, h := range p.held {
		if wanted[key] {
			continue
		}
		if err := s.empty(ctx, service, h); err != nil {
			return err
		}
		delete(p.held, key)
	}
	if len(failed) > 0 {
		return &wire.PartError{Failed: failed}
	}
	return nil
}

// drop forgets what was in a place.
func (p *publication) drop(place int) {
	for key, h := range p.held {
		if h.place == place {
			delete(p.held, key)
		}
	}
}

// fill registers an instance in a place.
func (s *session) fill(ctx context.Context, service wire.Service, place int, i *wire.Instance) error {
	c, err := s.place(ctx, place)
	if err != nil {
		return err
	}
	return c.change(ctx, service, grpcv2.InstanceType, grpcv2.Register, i)
}

// place returns a connection, which is made if there is none: 0 is the main one.
func (s *session) place(ctx context.Context, n int) (*conn, error) {
	switch {
	case n == 0:
		return s.main, nil
	case n > maxExtras:
		return nil, &wire.Error{
			Kind: wire.Overloaded, Server: s.info.Server,
			Err: fmt.Errorf("more than %d instances of a service on a server without batches", maxExtras+1),
		}
	}
	ctx, cancel := s.main.during(ctx)
	defer cancel()
	select {
	case s.adding <- struct{}{}:
		defer func() { <-s.adding }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	for {
		s.mu.Lock()
		if len(s.extras) >= n {
			defer s.mu.Unlock()
			return s.extras[n-1], nil
		}
		s.mu.Unlock()
		c, _, err := s.transport.dial(ctx, s.server, handler{
			request: s.request,
			dropped: s.transport.events.Dropped,
			lost:    s.main.fail, // the instance is gone; the engine publishes all anew
		})
		if err != nil {
			return nil, err
		}
		if !s.add(c) {
			c.close()
			return nil, broken(s.info.Server, s.main.over())
		}
	}
}

// add adds an extra connection. It returns false if the session has ended.
func (s *session) add(c *conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.main.over() != nil {
		return false
	}
	s.extras = append(s.extras, c)
	return true
}
