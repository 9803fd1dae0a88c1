package grpcmode

import (
	"context"
	"time"

	"github.com/rollcall-registry/rollcall/api/grpcv2"
	"github.com/rollcall-registry/rollcall/client/internal/wire"
)

// How long a server may list what a smaller set has removed. Those of 2.x and 3.x make
// the list anew 500 ms after a change.
const (
	outdated = 1500 * time.Millisecond
	lookEach = 250 * time.Millisecond
)

// shrinking is what a server does with a set that is smaller than the one before.
type shrinking uint32

const (
	unseen  shrinking = iota // not known yet
	removes                  // what is not in the set is gone
	keeps                    // what is not in the set stays, as on r-nacos 0.8.8
)

// shrink makes sure that instances are gone which were published and are not in the set
// that has just been: the list tells. If they are not, they are deregistered and the set
// is published again, as a deregistration may remove all that the connection has. What is
// listed after that is of another client.
func (s *session) shrink(ctx context.Context, service wire.Service, left []held, publish func() error) error {
	if len(left) == 0 || shrinking(s.shrinks.Load()) == removes {
		return nil
	}
	listed, err := s.remain(ctx, service, left)
	if err != nil || !listed {
		return err
	}
	for _, h := range left {
		if err := s.empty(ctx, service, h); err != nil {
			return err
		}
	}
	if err := publish(); err != nil {
		return err
	}
	if listed, known, err := s.lists(ctx, service, left); err != nil || !known || len(listed) > 0 {
		return err
	}
	s.shrinks.Store(uint32(keeps))
	return nil
}

// remain reports whether the server still lists one of some instances when its list must
// be up to date. One that will not tell may.
func (s *session) remain(ctx context.Context, service wire.Service, left []held) (bool, error) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for waited := time.Duration(0); ; waited += lookEach {
		select {
		case <-timer.C:
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
		listed, known, err := s.lists(ctx, service, left)
		switch {
		case err != nil || !known:
			return true, err
		case len(listed) == 0:
			if waited > 0 { // it was listed, and is not any more
				s.shrinks.CompareAndSwap(uint32(unseen), uint32(removes))
			}
			return false, nil
		case waited >= outdated || shrinking(s.shrinks.Load()) == keeps:
			return true, nil
		}
		timer.Reset(lookEach)
	}
}

// lists returns which of some instances the server lists; known is false if it will not
// tell.
func (s *session) lists(ctx context.Context, service wire.Service, some []held) (listed []held, known bool, err error) {
	list, err := s.query(ctx, service)
	switch {
	case err != nil && wire.Final(err):
		return nil, false, nil
	case err != nil:
		return nil, false, err
	}
	keys := make(map[wire.Key]held, len(some))
	for _, h := range some {
		keys[h.instance.Key()] = h
	}
	err = grpcv2.ReadServiceInfo(list.Raw, new(grpcv2.ServiceInfo), func(host *grpcv2.Host) {
		if h, ok := keys[keyOf(host)]; ok {
			listed = append(listed, h)
		}
	})
	if err != nil {
		return nil, false, &wire.Error{Kind: wire.BadAnswer, Server: s.info.Server, Err: err, Attempts: 1}
	}
	return listed, true, nil
}

// emptied makes sure that instances are gone whose place was emptied by naming another
// one of it: servers on which sets only grow remove that one alone.
func (s *session) emptied(ctx context.Context, service wire.Service, left []held) error {
	if len(left) == 0 || shrinking(s.shrinks.Load()) == removes {
		return nil
	}
	listed, known, err := s.lists(ctx, service, left)
	if err != nil {
		return err
	}
	if !known {
		listed = left
	}
	for _, h := range listed {
		if err := s.empty(ctx, service, h); err != nil {
			return err
		}
	}
	return nil
}

// keyOf returns the key of a host that servers list.
func keyOf(h *grpcv2.Host) wire.Key {
	key := wire.Key{IP: h.IP, Port: uint16(h.Port), Cluster: h.Cluster}
	if key.Cluster == "" {
		key.Cluster = "DEFAULT" // of those who name none
	}
	return key
}
