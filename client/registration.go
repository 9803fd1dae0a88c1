package rollcall

import (
	"context"
	"time"
)

// RegisterOption changes a registration.
type RegisterOption interface{ applyRegister(*registerConfig) }

type registerConfig struct {
	async                       bool
	interval, timeout, deletion time.Duration
}

// AsyncOption is for registrations and watches alike.
type AsyncOption struct{}

// WithAsync makes Register and Watch return at once; what they are for goes on in
// the background until it succeeds.
func WithAsync() AsyncOption { return AsyncOption{} }

func (AsyncOption) applyRegister(c *registerConfig) { c.async = true }

type registerFunc func(*registerConfig)

func (f registerFunc) applyRegister(c *registerConfig) { f(c) }

// WithHeartbeat sets how often beats are sent over HTTP, and after which silence the
// server holds the instance for unhealthy and removes it; by default 5, 15 and 30 s.
// They become metadata of the instance.
func WithHeartbeat(interval, timeout, deletion time.Duration) RegisterOption {
	return registerFunc(func(c *registerConfig) { c.interval, c.timeout, c.deletion = interval, timeout, deletion })
}

// Phase is how far a registration is.
type Phase uint8

// The phases.
const (
	// Pending: it has not been tried, or is being tried.
	Pending Phase = iota
	// Registered: a server has it as it is wanted.
	Registered
	// Retrying: it was tried and failed, and is tried again.
	Retrying
	// Removed: it was deregistered, or the client was closed.
	Removed
)

func (p Phase) String() string {
	return [...]string{"pending", "registered", "retrying", "removed"}[min(p, Removed)]
}

// RegState is the state of a registration.
type RegState struct {
	Phase Phase
	Err   error // while Retrying
}

// Registration is an instance that the client keeps registered.
type Registration struct{}

// Register registers an instance and keeps it registered, whatever servers and
// networks do, until it is deregistered or the client is closed. It returns when a
// server has the instance. If it fails, because ctx ended or because the server
// refused, the instance is not registered; see [WithAsync] to be more patient than
// the caller.
//
// Registering an address and port of the same service and cluster again replaces
// what was registered before, and ends its Registration.
func (c *Client) Register(ctx context.Context, s Service, in Instance, options ...RegisterOption) (*Registration, error) {
	return nil, ErrUnsupported
}

// Service returns the service, with the defaults of the client filled in.
func (r *Registration) Service() Service { return Service{} }

// Instance returns the instance as it is wanted now.
func (r *Registration) Instance() Instance { return Instance{} }

// State returns how far it is. It does not block.
func (r *Registration) State() RegState { return RegState{} }

// Update changes the instance with f, which must not change its address, port,
// cluster or kind, and waits until a server has it so or ctx ends. The change stays
// wanted when ctx ends. Updates that come faster than the server answers are merged.
func (r *Registration) Update(ctx context.Context, f func(*Instance)) error { return ErrUnsupported }

// Drain sets the weight to 0, so that nobody picks the instance, waits for clients to
// hear of it, and deregisters.
func (r *Registration) Drain(ctx context.Context, wait time.Duration) error { return ErrUnsupported }

// Deregister removes the instance and waits until the server has done so or ctx ends.
// In the latter case the client goes on trying until it is closed. Deregistering
// again does nothing.
func (r *Registration) Deregister(ctx context.Context) error { return ErrUnsupported }
