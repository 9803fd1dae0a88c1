package lifecycle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"runtime/debug"
	"time"

	rollcall "github.com/rollcall-registry/rollcall/client"
)

// Server is what is run. An [http.Server] is one. If it is an [io.Closer] too, Close is
// called when Shutdown has failed, to cut off what still runs.
type Server interface {
	// Serve accepts connections until Shutdown, or until it fails. Its error after
	// Shutdown is nil or [http.ErrServerClosed].
	Serve(l net.Listener) error
	// Shutdown ends Serve, waits until requests have ended, and returns at the latest
	// when ctx ends.
	Shutdown(ctx context.Context) error
}

// The defaults.
const (
	// defaultDrain is enough for clients that are pushed to. Those that poll may take
	// up to 10 s.
	defaultDrain = 3 * time.Second
	defaultGrace = 30 * time.Second
	// deregisterTime is how long the registry may take, so that one that is away does
	// not hold up the end.
	deregisterTime = 5 * time.Second
	// readyPause is how often a server that is not ready is asked again.
	readyPause = 100 * time.Millisecond
)

// Option changes how a server is run.
type Option func(*runner)

// WithInstance sets the instance that is registered, by default
// rollcall.NewInstance("", 0). An empty IP stands for that of the listener, or if that
// listens at all addresses, for the one from which the registry is reached. Port 0
// stands for the listener's.
func WithInstance(in rollcall.Instance) Option { return func(r *runner) { r.instance = in } }

// WithRegister adds options to the registration.
func WithRegister(options ...rollcall.RegisterOption) Option {
	return func(r *runner) { r.options = append(r.options, options...) }
}

// WithReady has the instance registered only once ready returns nil. It is called each
// 100 ms until then, and its context ends when the server is to end. If it panics, the
// server ends, and Run returns that as an error.
func WithReady(ready func(ctx context.Context) error) Option {
	return func(r *runner) {
		if ready == nil {
			r.fault("WithReady(nil): give a function")
		}
		r.ready = ready
	}
}

// WithDrain sets for how long the server goes on serving with weight 0, by default 3 s,
// and what is called, if not nil, when that begins: it may have the server's own
// health checks fail. With 0 the instance is deregistered at once.
func WithDrain(wait time.Duration, begins func()) Option {
	return func(r *runner) {
		if wait < 0 {
			r.fault("WithDrain(%v): give 0 or more", wait)
		}
		r.drain = wait
		if begins != nil {
			r.draining = begins
		}
	}
}

// WithGrace sets how long requests may still run after that, by default 30 s; with 0
// they are cut off.
func WithGrace(d time.Duration) Option {
	return func(r *runner) {
		if d < 0 {
			r.fault("WithGrace(%v): give 0 or more", d)
		}
		r.grace = d
	}
}

// runner is one run of a server.
type runner struct {
	client   *rollcall.Client
	service  rollcall.Service
	server   Server
	instance rollcall.Instance
	options  []rollcall.RegisterOption
	ready    func(context.Context) error
	draining func()
	drain    time.Duration
	grace    time.Duration
	faults   []error // in the options
}

func (r *runner) fault(format string, args ...any) {
	r.faults = append(r.faults, fmt.Errorf("%w: %s", rollcall.ErrInvalidArgument, fmt.Sprintf(format, args...)))
}

// Run serves until ctx ends, or the server does, and returns when all is over. The
// error is nil after a smooth end, and [rollcall.ErrInvalidArgument], with all faults,
// if an argument or an option is wrong: then nothing is served. Run closes the listener;
// the client stays the caller's, to be closed afterwards.
func Run(ctx context.Context, c *rollcall.Client, s rollcall.Service, l net.Listener, server Server, options ...Option) error {
	r := &runner{
		client: c, service: s, server: server, instance: rollcall.NewInstance("", 0),
		ready:    func(context.Context) error { return nil },
		draining: func() {},
		drain:    defaultDrain, grace: defaultGrace,
	}
	for n, option := range options {
		if option == nil {
			r.fault("option %d of Run is nil; leave it out", n+1)
			continue
		}
		option(r)
	}
	r.check(l)
	if r.faults != nil {
		if l != nil {
			r.faults = append(r.faults, l.Close())
		}
		return errors.Join(r.faults...)
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var early error // of Serve
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		early = server.Serve(l)
		stop()
	}()
	err := r.whileServing(ctx, l.Addr(), ended)
	stopped := r.shutdown(ended)
	return errors.Join(err, stopped, serveError(early))
}

// serveError leaves out what says that a server was shut down.
func serveError(err error) error {
	if err == nil || errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("serve: %w", err)
}

// shutdown ends the server and waits until Serve has returned.
func (r *runner) shutdown(ended <-chan struct{}) error {
	ctx, cancel := context.WithTimeout(context.Background(), r.grace)
	defer cancel()
	err := r.server.Shutdown(ctx)
	if closer, ok := r.server.(io.Closer); ok && err != nil {
		err = errors.Join(err, closer.Close())
	}
	<-ended
	if err != nil {
		return fmt.Errorf("shut down the server: %w", err)
	}
	return nil
}

// whileServing registers the instance and takes it back when ctx ends. ended is closed
// when the server has ended.
func (r *runner) whileServing(ctx context.Context, addr net.Addr, ended <-chan struct{}) error {
	if ready, err := r.waitReady(ctx); !ready {
		return err
	}
	in, err := r.complete(ctx, addr)
	if err != nil {
		return err
	}
	reg, err := r.client.Register(ctx, r.service, in, append(r.options, rollcall.WithAsync())...)
	if err != nil {
		return err
	}
	<-ctx.Done()
	return r.leave(reg, ended)
}

// leave drains and deregisters. A server that has ended has nothing to drain.
func (r *runner) leave(reg *rollcall.Registration, ended <-chan struct{}) error {
	draining, cancel := context.WithTimeout(context.Background(), r.drain+deregisterTime)
	defer cancel()
	select {
	case <-ended:
		return reg.Deregister(draining)
	default:
	}
	r.draining()
	done := make(chan error, 1)
	go func() { done <- reg.Drain(draining, r.drain) }()
	select {
	case err := <-done:
		return err
	case <-ended: // while it drained
		cancel()
		if <-done == nil {
			return nil // it was just through
		}
		ctx, cancel := context.WithTimeout(context.Background(), deregisterTime)
		defer cancel()
		return reg.Deregister(ctx)
	}
}

// waitReady waits until the server is ready, and returns false if ctx ends before, or, with
// an error, if the function that says so panics.
func (r *runner) waitReady(ctx context.Context) (ready bool, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			ready, err = false, fmt.Errorf("the function of WithReady panicked: %v\n%s", cause, debug.Stack())
		}
	}()
	tick := time.NewTicker(readyPause)
	defer tick.Stop()
	for r.ready(ctx) != nil {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return false, nil
		}
	}
	return ctx.Err() == nil, nil
}

// check finds what is missing, and what could not be registered, whatever the address will
// be where it is not given.
func (r *runner) check(l net.Listener) {
	if l == nil {
		r.fault("the listener of Run is nil")
	}
	if r.server == nil {
		r.fault("the server of Run is nil")
	}
	if r.client == nil {
		r.fault("the client of Run is nil")
		return
	}
	in := r.instance
	in.IP, in.Port = cmp.Or(in.IP, "127.0.0.1"), cmp.Or(in.Port, 1)
	if err := r.client.CheckRegister(r.service, in, r.options...); err != nil {
		r.faults = append(r.faults, err)
	}
}

// complete fills in the address of the instance.
func (r *runner) complete(ctx context.Context, addr net.Addr) (rollcall.Instance, error) {
	in := r.instance
	at, err := netip.ParseAddrPort(addr.String())
	if err != nil && (in.IP == "" || in.Port == 0) {
		return in, fmt.Errorf("the instance needs an address, which %s is not; see WithInstance", addr)
	}
	in.Port = cmp.Or(in.Port, at.Port())
	switch {
	case in.IP != "":
	case !at.Addr().IsUnspecified():
		in.IP = at.Addr().Unmap().String()
	default:
		if in.IP, err = r.client.LocalIP(ctx); err != nil {
			return in, err
		}
	}
	return in, nil
}
