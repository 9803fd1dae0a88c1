package httpmode

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rollcall-registry/rollcall/client/internal/schedule"
	"github.com/rollcall-registry/rollcall/client/internal/servers"
	"github.com/rollcall-registry/rollcall/client/internal/wire"
)

// workers is how many beats, polls and probes run at once. 1,000 watches polled each
// 10 s of a server that answers in 50 ms need 5.
const workers = 16

// Config is what a transport needs.
type Config struct {
	CallerConfig
	Backoff servers.Backoff
	Logger  *slog.Logger
	// UDP is where pushes are received, "off" for nowhere.
	UDP string
	// LocalIP is the address to give as the client's; empty for the one from which
	// a server is reached.
	LocalIP string
}

// Transport is a wire.Transport over HTTP.
type Transport struct {
	cfg     Config
	caller  *caller
	queue   *schedule.Queue
	session wire.Session
	probe   *schedule.Job

	mu       sync.Mutex
	events   wire.Events // nil before Run and after it
	up       bool        // if not, beats and polls sleep
	failures int         // of probes, in a row; other requests fail many at a time
	answered time.Time
	dialect  dialect
	udp      *receiver // nil if there is none

	home atomic.Pointer[home]

	published     map[wire.Service]map[wire.Key]*beat
	subscriptions map[wire.Service]*subscription
}

// New returns a transport. Its life begins with Run.
func New(cfg Config) *Transport {
	t := &Transport{
		cfg: cfg, caller: newCaller(cfg.CallerConfig), queue: schedule.New(workers), dialect: v1{},
		session: wire.Session{
			ID: "http-" + strconv.FormatUint(rand.Uint64(), 36), Protocol: wire.HTTP, Persistent: true, Polls: true,
		},
		published:     make(map[wire.Service]map[wire.Key]*beat),
		subscriptions: make(map[wire.Service]*subscription),
	}
	t.probe = t.queue.Job(schedule.High, t.runProbe)
	return t
}

// Run looks for a server that answers, then keeps what was published alive and what
// was subscribed fresh, until ctx ends.
func (t *Transport) Run(ctx context.Context, events wire.Events) error {
	defer t.caller.close()
	t.mu.Lock()
	t.events = events
	t.mu.Unlock()
	var receiving sync.WaitGroup
	if udp := t.listen(events); udp != nil {
		t.mu.Lock()
		t.udp = udp
		t.mu.Unlock()
		receiving.Go(udp.run)
		defer receiving.Wait()
		defer udp.close()
	}
	t.probe.Wake()
	t.queue.Run(ctx)
	t.mu.Lock()
	t.events, t.up = nil, false
	t.mu.Unlock()
	return context.Cause(ctx)
}

// Release closes the connections that are idle, of a transport whose operations were used
// without Run.
func (t *Transport) Release() { t.caller.close() }

// listen opens the socket for pushes. Without one the client polls, which is told
// and no reason to stop.
func (t *Transport) listen(events wire.Events) *receiver {
	if t.cfg.UDP == "off" {
		return nil
	}
	udp, err := newReceiver(t.cfg.UDP, t, events)
	if err != nil {
		t.cfg.Logger.Warn("no socket for pushes; polling instead", "err", err)
		return nil
	}
	return udp
}

// probeIdle is how long nothing needs to be heard of servers before one is asked
// whether it is there.
const probeIdle = 30 * time.Second

// runProbe asks a server whether it is there, when there is none or when none was
// heard for long.
func (t *Transport) runProbe(ctx context.Context) time.Duration {
	t.mu.Lock()
	quiet := time.Since(t.answered)
	if t.up && quiet < probeIdle {
		t.mu.Unlock()
		return probeIdle - quiet
	}
	t.mu.Unlock()
	d, server, err := t.detect(ctx)
	if ctx.Err() != nil {
		return schedule.Idle
	}
	if err != nil && wire.KindOf(err) != wire.NotConnected && t.isUp() {
		return t.cfg.Backoff.Max // it has troubles, and is not gone
	}
	if err != nil {
		t.lost(err)
		return t.afterFailure()
	}
	t.mu.Lock()
	t.dialect = d
	t.mu.Unlock()
	t.found(server)
	return probeIdle
}

func (t *Transport) isUp() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.up
}

// afterFailure returns when to look for a server again.
func (t *Transport) afterFailure() time.Duration {
	t.mu.Lock()
	t.failures++
	n := t.failures
	t.mu.Unlock()
	return max(t.cfg.Backoff.Delay(n), t.cfg.Backoff.Min/2)
}

// found notes that a server, host:port, answered.
func (t *Transport) found(server string) {
	t.mu.Lock()
	t.answered, t.failures = time.Now(), 0
	events, was := t.events, t.up
	known := was && t.session.Server == server
	t.up = events != nil
	t.session.Server = server
	session := t.session
	t.mu.Unlock()
	if events != nil && !known {
		events.Connected(session)
	}
	if !was {
		t.wake()
	}
}

// wake makes all beats and polls due, after a time without a server.
func (t *Transport) wake() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, beats := range t.published {
		for _, b := range beats {
			b.job.Wake()
		}
	}
	for _, s := range t.subscriptions {
		s.job.Wake()
	}
}

// lost notes that no server answers, and reports whether one did before.
func (t *Transport) lost(err error) (was bool) {
	t.mu.Lock()
	events, was := t.events, t.up
	t.up = false
	t.mu.Unlock()
	if events != nil {
		events.Disconnected(err)
	}
	return was
}

// call sends a request and notes whether servers answer. A server that no longer
// knows the path may have become one of another generation, which the probe finds. What
// else answers that there is no such path is no registry, or not yet.
func (t *Transport) call(ctx context.Context, r *request) (answer, error) {
	a, err := t.caller.do(ctx, r)
	switch {
	case err == nil:
		t.found(a.server.HTTP())
	case ctx.Err() != nil:
	case wire.KindOf(err) == wire.NotConnected:
		if t.lost(err) { // else it is being looked for
			t.probe.Wake()
		}
	case wire.KindOf(err) == wire.Unsupported:
		t.suspect()
	case wire.KindOf(err) == wire.NotFound && !absent(err):
		t.suspect()
		if e, ok := errors.AsType[*wire.Error](err); ok {
			page := *e
			page.Kind = wire.NotReady
			err = &page
		}
	}
	return a, err
}

// suspect has the generation of the servers found out anew.
func (t *Transport) suspect() {
	t.mu.Lock()
	t.answered = time.Time{}
	t.mu.Unlock()
	t.probe.Wake()
}

// connected returns the dialect, or an error if there is no session.
func (t *Transport) connected() (dialect, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.up {
		return nil, &wire.Error{Kind: wire.NotConnected, Err: errors.New("no server answers")}
	}
	return t.dialect, nil
}

// speaks returns the dialect, which it finds out if there is no session.
func (t *Transport) speaks(ctx context.Context) (dialect, error) {
	if d, err := t.connected(); err == nil {
		return d, nil
	}
	d, _, err := t.detect(ctx)
	return d, err
}

// detect finds out which generation a server is of, and which one it is, as host:port.
func (t *Transport) detect(ctx context.Context) (dialect, string, error) {
	server, err := t.ask(ctx, &request{method: http.MethodGet, path: "/v1/ns/operator/metrics", bare: true})
	if err == nil || !silent(err) && wire.KindOf(err) != wire.NotFound && wire.KindOf(err) != wire.Unsupported && wire.KindOf(err) != wire.Unauthorized {
		if err != nil && wire.KindOf(err) != wire.Forbidden {
			return nil, server, unreached(err)
		}
		return v1{}, server, nil
	}
	if silent(err) {
		return nil, server, err
	}
	first := err
	if server, err := t.ask(ctx, &request{method: http.MethodGet, path: "/v1/ns/api/hello", bare: true}); err == nil {
		return legacy{}, server, nil
	}
	nobody := wire.Service{Namespace: "public", Group: ungrouped, Name: "rollcall.probe"}
	for _, d := range []dialect{v1{}, v3{}} {
		server, err := t.ask(ctx, d.list(nobody, udpTarget{}))
		if kind := wire.KindOf(err); err == nil || kind == wire.Forbidden || kind == wire.Unauthorized {
			return d, server, nil
		}
	}
	return nil, server, noInterface(first)
}

// ask sends a request, and returns who answered or refused.
func (t *Transport) ask(ctx context.Context, r *request) (server string, err error) {
	a, err := t.caller.do(ctx, r)
	if err == nil {
		return a.server.HTTP(), nil
	}
	if refusal, ok := errors.AsType[*wire.Error](err); ok {
		server = refusal.Server
	}
	return server, err
}

// noInterface makes of the refusal of what all servers have one that says nothing about
// what was asked for: that there is no such path is not that there is no such instance.
func noInterface(err error) error {
	e, ok := errors.AsType[*wire.Error](err)
	if !ok {
		return err
	}
	refusal := *e
	refusal.Message = strings.TrimSuffix("no known interface: "+e.Message, ": ")
	if e.Kind == wire.NotFound {
		refusal.Kind = wire.NotReady
	}
	return &refusal
}

// unreached makes of a refusal that nothing was asked for, as of clear text by a port that
// speaks TLS, the failure to reach a registry.
func unreached(err error) error {
	e, ok := errors.AsType[*wire.Error](err)
	if !ok || e.Kind != wire.Invalid {
		return err
	}
	refusal := *e
	refusal.Kind = wire.NotConnected
	return &refusal
}

// silent reports whether an error means that no server answered, or not yet.
func silent(err error) bool {
	kind := wire.KindOf(err)
	return kind == wire.NotConnected || kind == wire.NotReady || kind == wire.Overloaded
}

// Query asks for a service once.
func (t *Transport) Query(ctx context.Context, s wire.Service) (wire.List, error) {
	d, err := t.speaks(ctx)
	if err != nil {
		return wire.List{}, err
	}
	list, _, err := t.query(ctx, d, s, udpTarget{})
	return list, err
}

// query asks for a service, and tells which address answered. To know no such service
// is to know that it is empty; to know no such path is to know nothing.
func (t *Transport) query(ctx context.Context, d dialect, s wire.Service, to udpTarget) (wire.List, netip.Addr, error) {
	if err := supports(d, s); err != nil {
		return wire.List{}, netip.Addr{}, err
	}
	list := wire.List{Service: s, Session: t.session.ID, Asked: true}
	a, err := t.call(ctx, d.list(s, to))
	switch {
	case err != nil && wire.KindOf(err) == wire.NotFound:
		list.Raw = []byte(`{"hosts":[]}`)
		return list, netip.Addr{}, nil
	case err != nil:
		return wire.List{}, netip.Addr{}, err
	}
	list.Server = a.server.HTTP()
	if list.Raw, err = d.readList(a.body); err != nil {
		return wire.List{}, netip.Addr{}, &wire.Error{Kind: wire.BadAnswer, Server: list.Server, Err: err}
	}
	return list, a.from, nil
}

// supports returns an error if a dialect has no words for a service.
func supports(d dialect, s wire.Service) error {
	if _, ok := d.(legacy); ok && s.Group != ungrouped {
		return &wire.Error{Kind: wire.Unsupported, Err: fmt.Errorf("the server is of 0.9 and knows no group %s", s.Group)}
	}
	return nil
}

// RegisterPersistent registers an instance that needs no beats.
func (t *Transport) RegisterPersistent(ctx context.Context, s wire.Service, i wire.Instance) error {
	return t.change(ctx, s, func(d dialect) *request { return d.register(s, &i) })
}

// DeregisterPersistent removes such an instance.
func (t *Transport) DeregisterPersistent(ctx context.Context, s wire.Service, i wire.Instance) error {
	return t.change(ctx, s, func(d dialect) *request { return d.deregister(s, &i) })
}

// change sends a request that changes an instance.
func (t *Transport) change(ctx context.Context, s wire.Service, in func(dialect) *request) error {
	d, err := t.speaks(ctx)
	if err == nil {
		err = supports(d, s)
	}
	if err != nil {
		return err
	}
	a, err := t.call(ctx, in(d))
	if err != nil {
		return err
	}
	return t.checkResult(d, a)
}

// checkResult looks into the envelope of 3.x, which can be a failure with status 200.
func (t *Transport) checkResult(d dialect, a answer) error {
	if _, ok := d.(v3); !ok {
		return nil
	}
	var r result
	if err := r.read(a.body); err != nil {
		return &wire.Error{Kind: wire.Unknown, Server: a.server.HTTP(), HTTPStatus: 200, ErrorCode: r.Code, Message: message([]byte(r.Message)), Err: err}
	}
	return nil
}

// Services returns a page of names.
func (t *Transport) Services(ctx context.Context, namespace, group string, page, size int) ([]string, int, error) {
	d, err := t.speaks(ctx)
	if err != nil {
		return nil, 0, err
	}
	a, err := t.call(ctx, d.services(namespace, group, page, size))
	if err != nil {
		return nil, 0, err
	}
	names, total, err := d.readServices(a.body, namespace, group, page, size)
	if err != nil {
		return nil, 0, &wire.Error{Kind: wire.BadAnswer, Server: a.server.HTTP(), Err: err}
	}
	return names, total, nil
}
