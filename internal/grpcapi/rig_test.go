package grpcapi

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollcall-registry/rollcall/api/grpcv2"
	"github.com/rollcall-registry/rollcall/internal/grpcapi/transport"
	"github.com/rollcall-registry/rollcall/internal/naming"
	"github.com/rollcall-registry/rollcall/internal/push"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// quickLog applies durable commands at once, in their durable form.
type quickLog struct{ machine *naming.Machine }

func (l quickLog) Propose(_ context.Context, c registry.Command) (registry.Result, error) {
	data, err := registry.EncodeCommand(c)
	if err != nil {
		return registry.Result{}, err
	}
	done := l.machine.Apply(data, 0).(naming.Applied)
	return done.Result, done.Err
}

// bubbleClock is the time of a synctest bubble.
type bubbleClock struct{ start time.Time }

func (c bubbleClock) Now() registry.Instant {
	now := time.Now()
	return registry.Instant{Wall: now.UnixMilli(), Lease: now.Sub(c.start)}
}

// history keeps the events of a store, and those of pushes.
type history struct {
	mu     sync.Mutex
	events []registry.Event
}

func (h *history) Emit(e *registry.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events = append(h.events, *e)
}

// count returns how many events of a kind there were, and the last of them.
func (h *history) count(kind registry.EventKind) (n int, last registry.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, e := range h.events {
		if e.Kind == kind {
			n, last = n+1, e
		}
	}
	return n, last
}

// counter counts what an Observer is told.
type counter struct {
	mu       sync.Mutex
	answered map[string]int // by type and code
	settled  map[string]int
	sent     int
}

func (c *counter) Answered(requestType string, code int, _ time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answered[fmt.Sprint(requestType, " ", code)]++
}

func (c *counter) Sent(time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sent++
}

func (c *counter) Settled(outcome string, _ time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.settled[outcome]++
}

func (c *counter) outcomes() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.TrimPrefix(fmt.Sprint(c.settled), "map")
}

// balance returns how many pushes were sent that have not ended.
func (c *counter) balance() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.sent + c.settled[TooLarge] // which were not sent
	for _, ended := range c.settled {
		n -= ended
	}
	return n
}

type noPushes struct{}

func (noPushes) Pushed(int, time.Duration, bool) {}

// rig is an API over a real core and pusher, with a transport in the test's hand.
type rig struct {
	*API
	t        testing.TB
	store    *registry.Store
	history  *history
	observed *counter
	notReady error
	peers    uint16
}

// newRig makes a rig that runs until the end of the bubble's test.
func newRig(t testing.TB) *rig {
	r := &rig{
		t: t, history: &history{},
		observed: &counter{answered: map[string]int{}, settled: map[string]int{}},
	}
	clock := bubbleClock{time.Now().Add(-time.Hour)}
	gate := &naming.Gate{}
	r.store = registry.NewStore(registry.DefaultConfig(), gate)
	log := slog.New(slog.DiscardHandler)
	core := naming.New(naming.DefaultConfig(), r.store, quickLog{naming.NewMachine(r.store, clock)}, clock, log)
	pusher := push.New(push.DefaultConfig(), r.store, clock, noPushes{}, log)
	r.API = New(DefaultConfig(), Parts{
		Core: core, Encoder: naming.NewEncoder(1 << 20), Later: pusher.Schedule, Observer: r.observed, History: r.history,
		Ready: func() error { return r.notReady }, Log: log,
	})
	pusher.Deliver(registry.ProtocolGRPC, r.API)
	gate.Sink = naming.Sinks{pusher, r.API, r.history}
	gate.Open()
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = r.Run(ctx) })
	running.Go(func() { _ = pusher.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	return r
}

// bubble runs a test with a rig in fake time.
func bubble(t *testing.T, test func(*testing.T, *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, newRig(t)) })
}

// connection is the test's end of one connection.
type connection struct {
	r       *rig
	session transport.Session
	peer    netip.AddrPort
	mu      sync.Mutex
	closed  *transport.Status // by the server
	// unwritten holds back answers: their Written is called by write.
	holdBack  bool
	unwritten []func()
}

func (c *connection) Peer() netip.AddrPort  { return c.peer }
func (c *connection) Local() netip.AddrPort { return netip.MustParseAddrPort("10.9.9.9:8848") }

func (c *connection) Close(s transport.Status) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed == nil {
		c.closed = &s
	}
}

// status returns the status with which the server closed the connection; nil when
// it did not.
func (c *connection) status() *transport.Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

func (r *rig) connect() *connection {
	r.peers++
	c := &connection{r: r, peer: netip.AddrPortFrom(netip.MustParseAddr("10.0.0.7"), 50000+r.peers)}
	c.session = r.Accept(c)
	return c
}

// id is the connection's ID.
func (c *connection) id() registry.ClientID { return c.session.(*client).id }

// answer is the answer to a call.
type answer struct {
	kind string
	body map[string]any
	text string
}

// code returns the error code.
func (a answer) code() int {
	n, _ := a.body["errorCode"].(float64)
	return int(n)
}

func (a answer) String() string { return a.kind + " " + a.text }

// call makes a unary call.
func (c *connection) call(requestType, body string) answer {
	c.r.t.Helper()
	return c.callContext(context.Background(), requestType, body)
}

func (c *connection) callContext(ctx context.Context, requestType, body string) answer {
	c.r.t.Helper()
	var p grpcv2.Payload
	data := grpcv2.AppendPayload(nil, &grpcv2.Head{Type: requestType, ClientIP: "10.0.0.7"}, []byte(body))
	if err := p.Unmarshal(data); err != nil {
		c.r.t.Fatal(err)
	}
	m := transport.Message{Buf: make([]byte, transport.Headroom)}
	c.session.Answer(ctx, &p, &m)
	clear(data) // the request is valid until here
	a := read(c.r.t, &m)
	c.mu.Lock()
	defer c.mu.Unlock()
	if m.Written != nil && c.holdBack {
		c.unwritten = append(c.unwritten, m.Written)
	} else if m.Written != nil {
		c.mu.Unlock()
		m.Written()
		c.mu.Lock()
	}
	return a
}

// write lets the answers be written that were held back.
func (c *connection) write() {
	c.mu.Lock()
	written := c.unwritten
	c.unwritten, c.holdBack = nil, false
	c.mu.Unlock()
	for _, f := range written {
		f()
	}
}

func read(t testing.TB, m *transport.Message) answer {
	t.Helper()
	a := answer{kind: m.Type, text: string(m.Buf[transport.Headroom:]) + string(m.Tail)}
	if err := json.Unmarshal([]byte(a.text), &a.body); err != nil {
		t.Fatalf("%s: %q: %v", m.Type, a.text, err)
	}
	return a
}

// stream is the test's end of a stream: it takes what the server sends unless it
// is stuck.
type stream struct {
	c      *connection
	frames transport.Frames

	mu      sync.Mutex
	pulling bool
	again   bool
	stuck   bool
	ended   bool
	got     []answer
}

func (c *connection) open() *stream {
	s := &stream{c: c}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.frames = c.session.Open(s)
	return s
}

func (s *stream) Wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.ended:
	case s.pulling || s.stuck:
		s.again = true
	default:
		s.pulling = true
		go s.pull()
	}
}

func (s *stream) pull() {
	for {
		m := transport.Message{Buf: make([]byte, transport.Headroom)}
		more := s.frames.Next(&m)
		s.mu.Lock()
		if more {
			if m.ClientIP != "10.9.9.9" {
				s.c.r.t.Errorf("%s has the address %q of the server", m.Type, m.ClientIP)
			}
			s.got = append(s.got, read(s.c.r.t, &m))
		}
		if s.ended || s.stuck || !more && !s.again {
			s.pulling = false
			s.mu.Unlock()
			return
		}
		s.again = false
		s.mu.Unlock()
	}
}

// stick has the stream take nothing more, or go on.
func (s *stream) stick(stuck bool) {
	s.mu.Lock()
	s.stuck = stuck
	s.mu.Unlock()
	if !stuck {
		s.Wake()
	}
}

// end ends the client's half of the stream.
func (s *stream) end() {
	s.mu.Lock()
	s.ended = true
	s.mu.Unlock()
	s.frames.Ended()
}

// say sends a frame.
func (s *stream) say(messageType, body string) {
	s.c.r.t.Helper()
	var p grpcv2.Payload
	data := grpcv2.AppendPayload(nil, &grpcv2.Head{Type: messageType, ClientIP: "192.168.0.7"}, []byte(body))
	if err := p.Unmarshal(data); err != nil {
		s.c.r.t.Fatal(err)
	}
	s.frames.Received(&p)
	clear(data) // the frame is valid until here
}

// ack acknowledges a request of the server.
func (s *stream) ack(a answer) { s.ackAs(a, 200) }

func (s *stream) ackAs(a answer, result int) {
	s.c.r.t.Helper()
	s.say(strings.TrimSuffix(a.kind, "Request")+"Response", fmt.Sprintf(`{"resultCode":%d,"requestId":%q}`, result, a.body["requestId"]))
}

// take returns what has come since the last time.
func (s *stream) take() []answer {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	got := s.got
	s.got = nil
	return got
}

// one returns the only frame that has come, which must be of a type.
func (s *stream) one(messageType string) answer {
	s.c.r.t.Helper()
	got := s.take()
	if len(got) != 1 || got[0].kind != messageType {
		s.c.r.t.Fatalf("got %v, want one %s", got, messageType)
	}
	return got[0]
}

// none checks that nothing has come.
func (s *stream) none(when string) {
	s.c.r.t.Helper()
	if got := s.take(); len(got) > 0 {
		s.c.r.t.Fatalf("%s: got %v", when, got)
	}
}

const namingSetup = `{"clientVersion":"Nacos-Go-Client:v2.3.5","labels":{"source":"sdk","module":"naming","AppName":"shop"}}`

// join connects a client of naming and registers it.
func (r *rig) join() (*connection, *stream) {
	c := r.connect()
	s := c.open()
	s.say(grpcv2.ConnectionSetup, namingSetup)
	return c, s
}

// register registers an instance of the service orders on a port.
func (c *connection) register(port int) answer {
	c.r.t.Helper()
	return c.instance(grpcv2.Register, fmt.Sprintf(`{"ip":"10.1.1.1","port":%d,"clusterName":"DEFAULT"}`, port))
}

func (c *connection) instance(requestType, instance string) answer {
	c.r.t.Helper()
	return c.call(grpcv2.InstanceType, `{"namespace":"public","serviceName":"orders","groupName":"g","type":"`+requestType+`","instance":`+instance+`}`)
}

func (c *connection) subscribe(yes bool, clusters string) answer {
	c.r.t.Helper()
	return c.call(grpcv2.SubscribeService, fmt.Sprintf(`{"namespace":"public","serviceName":"orders","groupName":"g","subscribe":%v,"clusters":%q}`, yes, clusters))
}

var orders = registry.ServiceKey{Namespace: "public", Group: "g", Name: "orders"}

// ports returns the ports of the hosts in a message about a service.
func (a answer) ports() string {
	info, _ := a.body["serviceInfo"].(map[string]any)
	hosts, _ := info["hosts"].([]any)
	var list []string
	for _, h := range hosts {
		list = append(list, fmt.Sprint(h.(map[string]any)["port"]))
	}
	return strings.Join(list, " ")
}

// listed returns the ports of the instances of orders.
func (r *rig) listed() string {
	var list []string
	if view := r.store.View(orders); view != nil {
		for _, i := range view.Instances {
			list = append(list, fmt.Sprint(i.Port))
		}
	}
	return strings.Join(list, " ")
}
