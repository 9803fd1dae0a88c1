package grpcapi

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"strconv"
	"testing"
	"time"

	"github.com/rollcall-registry/rollcall/api/grpcv2"
	"github.com/rollcall-registry/rollcall/internal/grpcapi/transport"
	"github.com/rollcall-registry/rollcall/internal/naming"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// unobserved is an Observer that is told nothing.
type unobserved struct{}

func (unobserved) Answered(string, int, time.Duration) {}
func (unobserved) Sent(time.Duration)                  {}
func (unobserved) Settled(string, time.Duration)       {}

// asleep is a stream that nobody wakes: the test takes its messages.
type asleep struct{}

func (asleep) Wake() {}

// idler is the transport's end of a connection on which nothing happens by itself.
type idler struct{}

func (idler) Peer() netip.AddrPort   { return netip.MustParseAddrPort("10.0.0.7:50001") }
func (idler) Local() netip.AddrPort  { return netip.MustParseAddrPort("10.9.9.9:8848") }
func (idler) Close(transport.Status) {}

// counted is a connection of an API beside which nothing runs, so that all that is
// allocated is for its calls.
type counted struct {
	t       testing.TB
	api     *API
	store   *registry.Store
	session transport.Session
	frames  transport.Frames
	message transport.Message
	request grpcv2.Payload
}

func newCounted(t testing.TB) *counted {
	clock := bubbleClock{time.Now()}
	store := registry.NewStore(registry.DefaultConfig(), naming.Sinks{})
	log := slog.New(slog.DiscardHandler)
	c := &counted{t: t, store: store, message: transport.Message{Buf: make([]byte, transport.Headroom, 64<<10)}}
	c.api = New(DefaultConfig(), Parts{
		Core:    naming.New(naming.DefaultConfig(), store, quickLog{naming.NewMachine(store, clock)}, clock, log),
		Encoder: naming.NewEncoder(1 << 20), Later: func(*registry.Subscriber, time.Duration, registry.Instant) {},
		Observer: unobserved{}, Log: log,
	})
	c.session = c.api.Accept(idler{})
	c.frames = c.session.Open(asleep{})
	c.say(encoded(grpcv2.ConnectionSetup, namingSetup))
	return c
}

func encoded(requestType, body string) []byte {
	return grpcv2.AppendPayload(nil, &grpcv2.Head{Type: requestType, ClientIP: "10.0.0.7"}, []byte(body))
}

// registration is a request that fills the connection's slot in a service.
func registration(service string, port, version int) []byte {
	return encoded(grpcv2.InstanceType, fmt.Sprintf(`{"namespace":"public","serviceName":%q,"groupName":"g","type":"registerInstance",`+
		`"instance":{"ip":"10.1.1.1","port":%d,"clusterName":"DEFAULT","weight":1.0,"healthy":true,"enabled":true,"ephemeral":true,`+
		`"metadata":{"zone":"a","version":"%d"}}}`, service, port, version))
}

// call makes a unary call, which must succeed.
func (c *counted) call(request []byte) {
	if err := c.request.Unmarshal(request); err != nil {
		c.t.Fatal(err)
	}
	m := &c.message
	*m = transport.Message{Buf: m.Buf[:transport.Headroom]}
	c.session.Answer(context.Background(), &c.request, m)
	if m.Written != nil {
		m.Written()
	}
	if m.Type == grpcv2.ErrorResponse {
		c.t.Fatalf("%s", m.Buf[transport.Headroom:])
	}
}

// say sends a frame.
func (c *counted) say(frame []byte) {
	if err := c.request.Unmarshal(frame); err != nil {
		c.t.Fatal(err)
	}
	c.frames.Received(&c.request)
}

// take takes the message that waits.
func (c *counted) take() {
	m := &c.message
	*m = transport.Message{Buf: m.Buf[:transport.Headroom]}
	if !c.frames.Next(m) {
		c.t.Fatal("no message waits")
	}
}

// fill registers ten instances of orders, by one connection.
func (c *counted) fill() {
	body := `{"namespace":"public","serviceName":"orders","groupName":"g","type":"batchRegisterInstance","instances":[`
	for port := range 10 {
		body += fmt.Sprintf(`{"ip":"10.2.2.2","port":%d,"clusterName":"DEFAULT","weight":1.0,"healthy":true,"enabled":true,"ephemeral":true},`, port+1)
	}
	other := &counted{t: c.t, session: c.api.Accept(idler{}), message: transport.Message{Buf: make([]byte, transport.Headroom)}}
	other.frames = other.session.Open(asleep{})
	other.say(encoded(grpcv2.ConnectionSetup, namingSetup))
	other.call(encoded(grpcv2.BatchInstance, body[:len(body)-1]+"]}"))
}

// hotPath is what clients do all the time.
type hotPath struct {
	name string
	most float64 // allocations of a run
	// prepare returns what is run so many times.
	prepare func(c *counted, runs int) func(run int)
}

// hotPaths are what clients do all the time, with what each may allocate: what is
// kept, and what is said of it here.
func hotPaths() []hotPath {
	query := encoded(grpcv2.ServiceQuery, `{"namespace":"public","serviceName":"orders","groupName":"g","cluster":"","healthyOnly":false,"udpPort":0}`)
	check := encoded(grpcv2.HealthCheck, "{}")
	return []hotPath{
		// The decoder, in this and all others.
		{"health check", 1, func(c *counted, runs int) func(int) {
			return func(int) { c.call(check) }
		}},
		{"query of 10", 1, func(c *counted, runs int) func(int) {
			c.fill()
			return func(int) { c.call(query) }
		}},
		// The change with a new metadata, the view of it, and its two wire forms.
		{"query of 10 after a change", 12, func(c *counted, runs int) func(int) {
			c.fill()
			changes := requests(runs, func(run int) []byte { return registration("orders", 1, run) })
			return func(run int) {
				c.call(changes[run])
				c.call(query)
			}
		}},
		// The instance as decoded, its metadata, the slot, and what the slot held.
		{"register again", 5, func(c *counted, runs int) func(int) {
			again := registration("orders", 1, 1)
			return func(int) { c.call(again) }
		}},
		// An instance that comes and one that goes, and the view of both changes.
		{"register another in its place", 13, func(c *counted, runs int) func(int) {
			others := requests(runs, func(run int) []byte { return registration("orders", run+1, 1) })
			return func(run int) { c.call(others[run]) }
		}},
		// The service, its cluster and its names, now and then room in the maps.
		{"register in a new service", 12.5, func(c *counted, runs int) func(int) {
			news := requests(runs, func(run int) []byte { return registration("service-"+strconv.Itoa(run), 1, 1) })
			return func(run int) { c.call(news[run]) }
		}},
		// The delivery, the receipt, and the decoder of the acknowledgement: all that one
		// more subscriber costs.
		{"push and its acknowledgement", 3, func(c *counted, runs int) func(int) {
			c.fill()
			c.call(encoded(grpcv2.SubscribeService, `{"namespace":"public","serviceName":"orders","groupName":"g","subscribe":true,"clusters":""}`))
			view, subs := c.store.View(orders), c.store.Subscribers(orders)
			first := c.api.requests.Load()
			acks := requests(runs, func(run int) []byte {
				return encoded("NotifySubscriberResponse", fmt.Sprintf(`{"resultCode":200,"errorCode":0,"success":true,"requestId":"%d"}`, first+uint64(run)+1))
			})
			return func(run int) {
				c.api.Push(view, orders, subs, c.api.core.Now())
				c.take()
				c.say(acks[run])
			}
		}},
	}
}

// requests makes one request for each run.
func requests(runs int, request func(run int) []byte) (list [][]byte) {
	for run := range runs {
		list = append(list, request(run))
	}
	return list
}

func BenchmarkHotPath(b *testing.B) {
	for _, p := range hotPaths() {
		b.Run(p.name, func(b *testing.B) {
			operation := p.prepare(newCounted(b), b.N)
			b.ReportAllocs()
			b.ResetTimer()
			for run := range b.N {
				operation(run)
			}
		})
	}
}
