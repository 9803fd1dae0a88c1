package registry

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"
	"unsafe"
)

// wall0 is the wall clock of a world that begins: 2026-11-30T00:00:00Z.
const wall0 = 1795996800000

// recorder keeps the events of a store.
type recorder struct{ events []Event }

func (r *recorder) Emit(e *Event) { r.events = append(r.events, *e) }

// take returns the events since the last call, one line each.
func (r *recorder) take() []string {
	var lines []string
	for i := range r.events {
		lines = append(lines, eventLine(&r.events[i]))
	}
	r.events = nil
	return lines
}

// eventLine prints what matters of an event, without its revision.
func eventLine(e *Event) string {
	var b strings.Builder
	b.WriteString(string(e.Kind))
	if e.Service != (ServiceKey{}) {
		b.WriteString(" " + e.Service.Name)
	}
	if i := e.Instance; i != nil {
		fmt.Fprintf(&b, " %s:%d/%s", i.IP, i.Port, i.Cluster)
	}
	return b.String()
}

// world is a store with a clock that only moves when it is told to.
type world struct {
	*Store
	t   *testing.T
	now Instant
	rec *recorder
}

func newWorld(t *testing.T) *world { return newWorldWith(t, DefaultConfig()) }

func newWorldWith(t *testing.T, cfg Config) *world {
	rec := &recorder{}
	return &world{Store: NewStore(cfg, rec), t: t, now: Instant{Wall: wall0}, rec: rec}
}

func (w *world) meta() Meta {
	return Meta{At: w.now, Cause: Cause{Kind: CauseRequest, API: "test"}}
}

// advance moves both clocks without letting anything expire.
func (w *world) advance(d time.Duration) {
	w.now.Lease += d
	w.now.Wall += d.Milliseconds()
}

// pass moves both clocks and lets time pass, without steps in between.
func (w *world) pass(d time.Duration) Due {
	w.advance(d)
	return w.Expire(w.now)
}

func (w *world) must(c Command) Result {
	w.t.Helper()
	res, err := w.Apply(c)
	if err != nil {
		w.t.Fatalf("%T: %v", c, err)
	}
	return res
}

// refuse applies a command that must be refused with a code.
func (w *world) refuse(c Command, code Code) {
	w.t.Helper()
	_, err := w.Apply(c)
	var refusal *Error
	if !errors.As(err, &refusal) || refusal.Code != code {
		w.t.Fatalf("%T: got error %v, want code %d", c, err, code)
	}
}

// events checks what was emitted since the last look.
func (w *world) events(want ...string) {
	w.t.Helper()
	if got := strings.Join(w.rec.take(), "\n"); got != strings.Join(want, "\n") {
		w.t.Errorf("events:\n%s\nwant:\n%s", got, strings.Join(want, "\n"))
	}
}

// orders is the service of most tests.
func orders() ServiceKey { return named("orders") }

func named(name string) ServiceKey {
	return ServiceKey{Namespace: DefaultNamespace, Group: DefaultGroup, Name: name}
}

func at(ip string, port int32) InstanceKey {
	return InstanceKey{IP: ip, Port: port, Cluster: DefaultCluster}
}

func instanceAt(k InstanceKey) Instance {
	return Instance{IP: k.IP, Port: k.Port, Cluster: k.Cluster, Weight: 1, Healthy: true, Enabled: true}
}

var httpOwner, durableOwner = Owner{Kind: OwnerHTTP}, Owner{Kind: OwnerDurable}

func connection(id ClientID) Owner { return Owner{Kind: OwnerConnection, Client: id} }

// register registers an instance of orders for an owner, after changes.
func (w *world) register(o Owner, k InstanceKey, change ...func(*Instance)) {
	w.t.Helper()
	w.registerIn(orders(), o, k, change...)
}

func (w *world) registerIn(svc ServiceKey, o Owner, k InstanceKey, change ...func(*Instance)) {
	w.t.Helper()
	i := instanceAt(k)
	for _, f := range change {
		f(&i)
	}
	w.must(&Register{Meta: w.meta(), Service: svc, Owner: o, Instance: i})
}

func (w *world) deregister(o Owner, k InstanceKey) {
	w.t.Helper()
	w.must(&Deregister{Meta: w.meta(), Service: orders(), Owner: o, Instance: k})
}

func (w *world) beat(k InstanceKey) BeatState {
	m := w.meta()
	m.Cause.Kind = CauseBeat
	return w.Beat(&Beat{Meta: m, Service: orders(), Instance: k})
}

// find returns an instance of orders as readers see it, nil when it is not there.
func (w *world) find(k InstanceKey) *Instance {
	v := w.View(orders())
	if v == nil {
		return nil
	}
	return v.Find(k)
}

func metadata(pairs ...string) func(*Instance) {
	m := map[string]string{}
	for n := 0; n < len(pairs); n += 2 {
		m[pairs[n]] = pairs[n+1]
	}
	return func(i *Instance) { i.Metadata = NewMetadata(m) }
}

func weight(w float64) func(*Instance) { return func(i *Instance) { i.Weight = w } }

func unhealthy(i *Instance) { i.Healthy = false }

func disabled(i *Instance) { i.Enabled = false }

// times asks for life times in milliseconds; empty ones are left out.
func times(interval, timeout, remove string) func(*Instance) {
	m := map[string]string{KeyBeatInterval: interval, KeyBeatTimeout: timeout, KeyDeleteTimeout: remove}
	for k, v := range m {
		if v == "" {
			delete(m, k)
		}
	}
	return func(i *Instance) { i.Metadata = NewMetadata(m) }
}

func udpSubscriber(addr string) *Subscriber {
	return &Subscriber{
		SubscriberKey: SubscriberKey{Addr: netip.MustParseAddrPort(addr), Agent: "Nacos-Java-Client:v1.4.8"},
		Service:       orders(), Protocol: ProtocolUDP,
	}
}

func grpcSubscriber(id ClientID) *Subscriber {
	return &Subscriber{
		SubscriberKey: SubscriberKey{Client: id, Addr: netip.MustParseAddrPort("10.0.0.9:5000")},
		Service:       orders(), Protocol: ProtocolGRPC,
	}
}

// fieldsOf returns the words of a buffer, as strings in its memory.
func fieldsOf(buf []byte) []string {
	return strings.Fields(unsafe.String(unsafe.SliceData(buf), len(buf)))
}
