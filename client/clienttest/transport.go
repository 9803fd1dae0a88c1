package clienttest

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"sync"

	rollcall "github.com/rollcall-registry/rollcall/client"
	"github.com/rollcall-registry/rollcall/client/internal/wire"
)

// serverName is what clients show as their server.
const serverName = "in-memory"

// errDown is why clients are not connected after [Registry.Stop].
var errDown = errors.New("the registry is stopped")

// transport is the way of one client to the registry.
type transport struct {
	registry *Registry

	mu      sync.Mutex // below Registry.mu
	session *session   // nil while there is none
}

// session is a connection. Its fields are guarded by Registry.mu.
type session struct {
	registry *Registry
	id       string
	events   wire.Events
	watched  map[wire.Service]bool
	patterns map[wire.Pattern]bool
}

// Run keeps the client connected while the registry works, which connects it itself.
func (t *transport) Run(ctx context.Context, events wire.Events) error {
	r := t.registry
	r.mu.Lock()
	r.running[t] = events
	t.connect(events)
	r.mu.Unlock()
	<-ctx.Done()
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.running, t)
	t.mu.Lock()
	s := t.session
	t.session = nil
	t.mu.Unlock()
	if s != nil {
		r.end(s)
	}
	return context.Cause(ctx)
}

// connect begins a session, unless there is one, or tells the client that there is none
// because the registry is stopped. The caller holds Registry.mu.
func (t *transport) connect(events wire.Events) {
	r := t.registry
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.session != nil && r.sessions[t.session]:
		return
	case r.down:
		t.session = nil
		events.Disconnected(&wire.Error{Kind: wire.NotConnected, Server: serverName, Err: errDown})
		return
	}
	r.opened++
	t.session = &session{
		registry: r, id: strconv.Itoa(r.opened), events: events,
		watched: make(map[wire.Service]bool), patterns: make(map[wire.Pattern]bool),
	}
	r.sessions[t.session] = true
	events.Connected(wire.Session{ID: t.session.id, Server: serverName, Protocol: wire.InMemory, Persistent: true, Fuzzy: true})
}

// do runs an operation with the registry locked, if it can be reached.
func (t *transport) do(ctx context.Context, f func(r *Registry, s *session) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	r := t.registry
	r.mu.Lock()
	defer r.mu.Unlock()
	t.mu.Lock()
	s := t.session
	t.mu.Unlock()
	switch {
	case s == nil || !r.sessions[s]:
		return &wire.Error{Kind: wire.NotConnected, Server: serverName, Err: errDown}
	case r.failure != nil:
		return &wire.Error{Kind: kindOf(r.failure), Server: serverName, Message: r.failure.Error(), Attempts: 1}
	}
	return f(r, s)
}

// kinds are what the errors of package rollcall are called below it.
var kinds = map[error]wire.Kind{
	rollcall.ErrNotConnected:    wire.NotConnected,
	rollcall.ErrServerNotReady:  wire.NotReady,
	rollcall.ErrInvalidArgument: wire.Invalid,
	rollcall.ErrUnauthorized:    wire.Unauthorized,
	rollcall.ErrForbidden:       wire.Forbidden,
	rollcall.ErrNotFound:        wire.NotFound,
	rollcall.ErrConflict:        wire.Conflict,
	rollcall.ErrOverloaded:      wire.Overloaded,
	rollcall.ErrUnsupported:     wire.Unsupported,
}

func kindOf(err error) wire.Kind {
	for meaning, kind := range kinds {
		if errors.Is(err, meaning) {
			return kind
		}
	}
	return wire.Unknown
}

func (t *transport) Publish(ctx context.Context, name wire.Service, instances []wire.Instance) error {
	return t.do(ctx, func(r *Registry, s *session) error {
		set := make(map[wire.Key]wire.Instance, len(instances))
		for _, in := range instances {
			set[in.Key()] = in
		}
		r.change(name, func(v *service) { v.owned[s] = set })
		return nil
	})
}

func (t *transport) Subscribe(ctx context.Context, name wire.Service) (list wire.List, err error) {
	err = t.do(ctx, func(_ *Registry, s *session) error {
		s.watched[name] = true
		list, err = s.list(name, true)
		return err
	})
	return list, err
}

func (t *transport) Unsubscribe(ctx context.Context, name wire.Service) error {
	return t.do(ctx, func(_ *Registry, s *session) error {
		delete(s.watched, name)
		return nil
	})
}

func (t *transport) Query(ctx context.Context, name wire.Service) (list wire.List, err error) {
	err = t.do(ctx, func(_ *Registry, s *session) error {
		list, err = s.list(name, true)
		return err
	})
	return list, err
}

func (t *transport) RegisterPersistent(ctx context.Context, name wire.Service, in wire.Instance) error {
	return t.do(ctx, func(r *Registry, _ *session) error {
		r.change(name, func(v *service) { v.stays[in.Key()] = in })
		return nil
	})
}

func (t *transport) DeregisterPersistent(ctx context.Context, name wire.Service, in wire.Instance) error {
	return t.do(ctx, func(r *Registry, _ *session) error {
		r.change(name, func(v *service) { delete(v.stays, in.Key()) })
		return nil
	})
}

func (t *transport) Services(ctx context.Context, namespace, group string, page, size int) (names []string, total int, err error) {
	err = t.do(ctx, func(r *Registry, _ *session) error {
		for name := range r.services {
			if name.Namespace == namespace && name.Group == group {
				names = append(names, name.Name)
			}
		}
		return nil
	})
	slices.Sort(names)
	total = len(names)
	from := min(max(page-1, 0)*size, total)
	return names[from:min(from+size, total)], total, err
}

func (t *transport) WatchServices(ctx context.Context, p wire.Pattern, known []wire.Service) error {
	return t.do(ctx, func(r *Registry, s *session) error {
		s.patterns[p] = true
		change := wire.ServicesChange{Pattern: p, Session: s.id, Complete: true}
		there := slices.Collect(maps.Keys(r.services))
		for _, name := range there {
			if p.Matches(name) && !slices.Contains(known, name) {
				change.Added = append(change.Added, name)
			}
		}
		for _, name := range known {
			if !slices.Contains(there, name) {
				change.Removed = append(change.Removed, name)
			}
		}
		s.events.ServicesChanged(change)
		return nil
	})
}

func (t *transport) UnwatchServices(ctx context.Context, p wire.Pattern) error {
	return t.do(ctx, func(_ *Registry, s *session) error {
		delete(s.patterns, p)
		return nil
	})
}

// The following are called with Registry.mu held.

// tell tells the client of a change of a service.
func (s *session) tell(name wire.Service, had, has bool) {
	if s.watched[name] {
		if list, err := s.list(name, false); err == nil {
			s.events.Pushed(list)
		}
	}
	if had == has {
		return
	}
	for p := range s.patterns {
		if !p.Matches(name) {
			continue
		}
		change := wire.ServicesChange{Pattern: p, Session: s.id}
		if has {
			change.Added = []wire.Service{name}
		} else {
			change.Removed = []wire.Service{name}
		}
		s.events.ServicesChanged(change)
	}
}

func (s *session) list(name wire.Service, asked bool) (wire.List, error) {
	raw, err := s.registry.list(name)
	if err != nil {
		return wire.List{}, &wire.Error{Kind: wire.BadAnswer, Server: serverName, Err: err}
	}
	return wire.List{Service: name, Session: s.id, Server: serverName, Asked: asked, Raw: raw}, nil
}
