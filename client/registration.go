package rollcall

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/rollcall-registry/rollcall/client/internal/schedule"
	"github.com/rollcall-registry/rollcall/client/internal/wire"
)

// RegisterOption changes a registration.
type RegisterOption interface{ applyRegister(*registerConfig) }

type registerConfig struct {
	async    bool
	metadata map[string]string
	faults   []error
}

// AsyncOption is for registrations and watches alike.
type AsyncOption struct{}

// WithAsync makes Register, Watch and WatchServices return at once; what they are for
// goes on in the background until it succeeds.
func WithAsync() AsyncOption { return AsyncOption{} }

func (AsyncOption) applyRegister(c *registerConfig) { c.async = true }

type registerFunc func(*registerConfig)

func (f registerFunc) applyRegister(c *registerConfig) { f(c) }

// WithHeartbeat sets how often beats are sent over HTTP, and after which silence the
// server holds the instance for unhealthy and removes it; by default 5, 15 and 30 s.
// They become metadata of the instance, in whole milliseconds, at least 1, and neither
// of the latter two may be less than the first. The client itself beats no more often than
// each 200 ms, and no less often than each minute.
func WithHeartbeat(interval, timeout, deletion time.Duration) RegisterOption {
	return registerFunc(func(c *registerConfig) {
		if interval < time.Millisecond || timeout < interval || deletion < interval || max(timeout, deletion) > mostDuration {
			c.faults = append(c.faults, invalid(
				"WithHeartbeat(%v, %v, %v): give %v or more for the first, as much or more for the others, and at most %v",
				interval, timeout, deletion, time.Millisecond, mostDuration))
		}
		millis := func(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }
		c.metadata = map[string]string{
			"preserved.heart.beat.interval": millis(interval),
			"preserved.heart.beat.timeout":  millis(timeout),
			"preserved.ip.delete.timeout":   millis(deletion),
		}
	})
}

// Phase is how far a registration is.
type Phase uint8

// The phases.
const (
	// Pending: it has not been tried, or is being tried.
	Pending Phase = iota
	// Registered: a server has it as it is wanted.
	Registered
	// Retrying: it was tried and failed, and is tried again; one [WithAsync] also if the
	// server refused it, each 30 s.
	Retrying
	// Removed: it was deregistered, replaced ([ErrReplaced]) or, if Register waited for it,
	// refused, or the client was closed ([ErrClosed]).
	Removed
)

func (p Phase) String() string {
	return [...]string{"pending", "registered", "retrying", "removed"}[min(p, Removed)]
}

// RegState is the state of a registration.
type RegState struct {
	Phase Phase
	Err   error // while Retrying, or why it is Removed if nobody asked for that
}

// Registration is an instance that the client keeps registered.
type Registration struct {
	client  *Client
	service wire.Service
	key     wire.Key
	async   bool
	stays   bool          // persistent
	job     *schedule.Job // what makes it true: of the publication if ephemeral, else of the instance
	changed broadcast
	state   atomic.Pointer[RegState]

	// guarded by Client.mu
	want        wire.Instance
	version     uint64 // of want, from 1
	versions    uint64 // how many there have been; a number is given once
	good        wire.Instance
	goodVersion uint64 // the last version that a server took; 0 for none
	session     string // on which it did
	tried       string // the last session on which a server may have heard of it; empty for none
	refused     bool   // for good; it is left out for a while
	refusedAt   time.Time
	refusal     refusal // the last one, for those who wait for what was refused
	removed     bool
	gone        bool  // and no server has it
	trouble     error // while it is removed and not gone: what went wrong last
	failures    int   // of a persistent one
}

// Register registers an instance and keeps it registered, whatever servers and
// networks do, until it is deregistered or the client is closed. It returns when a
// server has the instance. If it fails, because ctx ended or because the server
// refused, the instance is not registered; see [WithAsync] to be more patient than
// the caller.
//
// Registering an address and port of the same service and cluster again replaces
// what was registered before, and ends its Registration: who still waits for that one
// gets [ErrReplaced].
func (c *Client) Register(ctx context.Context, s Service, in Instance, options ...RegisterOption) (*Registration, error) {
	r, err := c.newRegistration(s, in, options)
	if err != nil {
		return nil, err
	}
	if err = c.add(r); err == nil && !r.async {
		if err = r.wait(ctx, r.reached(1)); err != nil {
			c.remove(r)
		}
	}
	if err != nil {
		return nil, opError("register", r.Service(), err)
	}
	return r, nil
}

// CheckRegister returns the error that [Client.Register] would return for these arguments
// without asking a server: [ErrInvalidArgument] with all that is wrong, or nil.
func (c *Client) CheckRegister(s Service, in Instance, options ...RegisterOption) error {
	_, err := c.newRegistration(s, in, options)
	return err
}

// newRegistration makes a registration that is not wanted yet.
func (c *Client) newRegistration(s Service, in Instance, options []RegisterOption) (*Registration, error) {
	var cfg registerConfig
	faults := applyEach(options, func(o RegisterOption) { o.applyRegister(&cfg) })
	s, named := c.complete(s)
	want, fit := in.normal()
	if err := errors.Join(append(cfg.faults, faults, named, fit)...); err != nil {
		return nil, opError("register", s, err)
	}
	if len(cfg.metadata) > 0 {
		if want.Metadata == nil {
			want.Metadata = make(map[string]string)
		}
		maps.Copy(want.Metadata, cfg.metadata)
	}
	r := &Registration{client: c, service: s.wire(), key: want.Key(), async: cfg.async, stays: !want.Ephemeral, want: want, version: 1, versions: 1}
	r.state.Store(&RegState{Phase: Removed})
	return r, nil
}

// add makes a registration wanted.
func (c *Client) add(r *Registration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.isClosed() {
		return ErrClosed
	}
	r.set(RegState{Phase: Pending})
	if r.stays {
		c.addPersistent(r)
	} else {
		c.publication(r.service).add(r)
	}
	r.job.Wake()
	return nil
}

// replace ends a registration of the same instance. What a server may have heard of that
// one, it may have heard of this one. The caller holds mu.
func (r *Registration) replace(before *Registration) {
	before.end(ErrReplaced)
	before.gone = true
	r.tried = before.tried
}

// remove makes registrations unwanted, if they are wanted.
func (c *Client) remove(regs ...*Registration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range regs {
		if !r.removed {
			c.leave(r)
		}
	}
}

// leave makes a registration unwanted. The caller holds mu.
func (c *Client) leave(r *Registration) {
	r.removed = true
	r.set(RegState{Phase: Removed})
	defer r.changed.send()
	if r.stays {
		r.job.Wake()
		return
	}
	p := c.publications[r.service]
	if p == nil || p.wanted[r.key] != r {
		r.gone = true // replaced or refused
		return
	}
	p.leave(r)
}

// current reports whether the server that is used has a version.
func (r *Registration) current(version uint64) bool {
	l := r.client.link.Load()
	return r.goodVersion >= version && (r.stays || l != nil && r.session == l.session.ID)
}

// reached returns what wait needs to wait until the server that is used has a version:
// it fails when that will not be.
func (r *Registration) reached(version uint64) func() (bool, error) {
	return func() (bool, error) {
		switch {
		case r.refusal.covers(version):
			return false, r.refusal.err
		case r.current(version):
			return true, nil
		case r.removed:
			return false, cmp.Or(r.state.Load().Err, ErrClosed)
		}
		return false, nil
	}
}

// refusal is that a server refused some versions for good.
type refusal struct {
	after, last uint64 // the versions that follow after, up to last
	err         error
}

func (f *refusal) covers(version uint64) bool { return f.after < version && version <= f.last }

// wait waits until done, which is called with mu held, returns true or an error.
func (r *Registration) wait(ctx context.Context, done func() (bool, error)) error {
	c := r.client
	for {
		changed := r.changed.next()
		c.mu.Lock()
		ok, err := done()
		last, closed := r.reason(), c.isClosed()
		c.mu.Unlock()
		switch {
		case ok || err != nil:
			return err
		case closed:
			return ErrClosed
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return because(ctx, last)
		}
	}
}

// reason returns what keeps the registration from being as it is wanted; nil if nothing
// is known to. The caller holds mu.
func (r *Registration) reason() error {
	if err := cmp.Or(r.state.Load().Err, r.trouble); err != nil || r.client.link.Load() != nil {
		return err
	}
	return *r.client.lastError.Load()
}

// because is the error of an operation whose context ended while it failed for
// another reason, which is told as well.
func because(ctx context.Context, last error) error {
	if last == nil {
		return context.Cause(ctx)
	}
	if e, ok := errors.AsType[*OpError](last); ok {
		last = e.Err
	}
	return &interrupted{context.Cause(ctx), last}
}

// interrupted is a context's error with what happened before it.
type interrupted struct{ ended, last error }

func (e *interrupted) Error() string   { return e.ended.Error() + ", after: " + e.last.Error() }
func (e *interrupted) Unwrap() []error { return []error{e.ended, e.last} }

// The following are called with Client.mu held.

// proven reports whether a server took the registration as it is wanted, some time.
func (r *Registration) proven() bool { return r.goodVersion == r.version }

// has notes that a server has a version.
func (r *Registration) has(version uint64, session string) {
	if r.proven() && version == r.version && r.session == session && r.state.Load().Phase == Registered {
		return // as most of many instances of a service when one more comes
	}
	if version == r.version {
		r.good, r.goodVersion = r.want, version
	}
	r.session = session
	if !r.removed && version == r.version {
		r.set(RegState{Phase: Registered})
	}
	r.changed.send()
}

// failed notes that the registration could not be made true, or could not be taken back.
func (r *Registration) failed(err error) {
	switch {
	case err == nil:
	case r.removed:
		r.trouble = opError("deregister", Service(r.service), err)
	default:
		r.set(RegState{Phase: Retrying, Err: opError("register", Service(r.service), err)})
	}
	r.changed.send()
}

// refuse notes that a server refuses for good what is wanted, which becomes again what a
// server took last, if one did.
func (r *Registration) refuse(err error) {
	r.refusal = refusal{r.goodVersion, r.version, err}
	if r.goodVersion > 0 {
		r.want, r.version = r.good, r.goodVersion
	}
}

// end ends a registration that was replaced, or whose client closes.
func (r *Registration) end(err error) {
	if !r.removed {
		r.removed = true
		r.set(RegState{Phase: Removed, Err: err})
	}
	r.changed.send()
}

// set sets the state that can be seen, counts it, and wakes who looks at the status.
func (r *Registration) set(s RegState) {
	before := r.state.Swap(&s)
	counts := &r.client.counts
	counts.registered.Add(one(s.Phase == Registered) - one(before.Phase == Registered))
	counts.registrations.Add(one(s.Phase != Removed) - one(before.Phase != Removed))
	if s.Phase != before.Phase {
		r.client.changes.send()
	}
}

func one(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// Service returns the service, with the defaults of the client filled in.
func (r *Registration) Service() Service { return Service(r.service) }

// Instance returns the instance as it is wanted now.
func (r *Registration) Instance() Instance {
	r.client.mu.Lock()
	defer r.client.mu.Unlock()
	i := Instance(r.want)
	i.Metadata = maps.Clone(i.Metadata)
	return i
}

// State returns how far it is. It does not block.
func (r *Registration) State() RegState { return *r.state.Load() }

// Update changes the instance with f, which must not change its address, port,
// cluster or kind, and waits until a server has it so or ctx ends. The change stays
// wanted when ctx ends, and is undone when the server refuses it. Updates that come
// faster than the server answers are merged.
func (r *Registration) Update(ctx context.Context, f func(*Instance)) error {
	version, err := r.edit(f)
	if err == nil {
		err = r.wait(ctx, r.reached(version))
	}
	if err != nil {
		return opError("update", r.Service(), err)
	}
	return nil
}

// edit changes what is wanted and returns its version. f runs without a lock, on the
// caller's goroutine, and again if another change was faster.
func (r *Registration) edit(f func(*Instance)) (version uint64, err error) {
	c := r.client
	for {
		c.mu.Lock()
		before, in := r.version, Instance(r.want)
		c.mu.Unlock()
		in.Metadata = maps.Clone(in.Metadata)
		f(&in)
		want, err := in.normal()
		if err != nil {
			return 0, err
		}
		if want.Key() != r.key || want.Ephemeral == r.stays {
			return 0, invalid("an update cannot change address, port, cluster or kind")
		}
		c.mu.Lock()
		switch {
		case c.isClosed(), r.removed:
			c.mu.Unlock()
			return 0, ErrClosed
		case r.version != before:
			c.mu.Unlock()
			continue
		}
		r.versions++
		r.want, r.version, r.refused = want, r.versions, false
		if p := c.publications[r.service]; p != nil && !r.stays {
			p.generation++
		}
		version = r.version
		c.mu.Unlock()
		r.job.Wake()
		return version, nil
	}
}

// Drain sets the weight to 0, so that nobody picks the instance, waits for clients to
// hear of it, and deregisters. If ctx ends during that, the instance is deregistered
// in the background.
func (r *Registration) Drain(ctx context.Context, wait time.Duration) error {
	if err := r.Update(ctx, func(i *Instance) { i.Weight = 0 }); err == nil {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	return r.Deregister(ctx)
}

// Deregister removes the instance and waits until the server has done so or ctx ends. A
// server that has restarted may remember an instance of the connection before: without a
// connection Deregister waits for one, and removes there what is remembered. If ctx or
// the client ends before, the error is [ErrMayRemain] as well; in the former case the
// client goes on trying until it is closed. Deregistering again does nothing, or waits
// again.
func (r *Registration) Deregister(ctx context.Context) error {
	r.client.remove(r)
	if err := r.wait(ctx, func() (bool, error) { return r.gone, nil }); err != nil {
		return opError("deregister", r.Service(), &remaining{err})
	}
	return nil
}
