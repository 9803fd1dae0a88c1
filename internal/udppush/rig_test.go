package udppush

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"go.uber.org/goleak"

	"github.com/rollcall-registry/rollcall/internal/push"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	javaAgent = "Nacos-Java-Client:v1.4.8"
	goAgent   = "Nacos-Go-Client:v1.1.4"
)

// clock is the time of a test.
type clock struct{ start time.Time }

func (c clock) Now() registry.Instant {
	now := time.Now()
	return registry.Instant{Wall: now.UnixMilli(), Lease: now.Sub(c.start)}
}

// sink lets the store be made before the pusher.
type sink struct{ registry.Sink }

func (s *sink) Emit(e *registry.Event) { s.Sink.Emit(e) }

// counts is an observer that counts.
type counts struct {
	mu       sync.Mutex
	outcomes map[string]int
	ignored  map[string]int
	latency  []time.Duration // from change to packet
}

func newCounts() *counts { return &counts{outcomes: map[string]int{}, ignored: map[string]int{}} }

func (c *counts) Sent(since time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.latency = append(c.latency, since)
}

func (c *counts) Settled(outcome string, _ time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.outcomes[outcome]++
}

func (c *counts) Ignored(reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ignored[reason]++
}

// Pushed implements push.Observer.
func (c *counts) Pushed(int, time.Duration, bool) {}

func (c *counts) outcome(name string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.outcomes[name]
}

func (c *counts) latencies() []time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.latency)
}

func (c *counts) ignoredFor(reason string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ignored[reason]
}

// rig is a registry that pushes over UDP.
type rig struct {
	t      testing.TB
	clock  clock
	store  *registry.Store
	pusher *push.Pusher
	sender *Sender
	counts *counts
	log    *bytes.Buffer // read it when nothing runs any more
}

func newRig(t testing.TB, cfg Config) *rig {
	out := &sink{}
	r := &rig{t: t, clock: clock{time.Now()}, store: registry.NewStore(registry.DefaultConfig(), out), counts: newCounts(), log: &bytes.Buffer{}}
	logger := slog.New(slog.NewTextHandler(r.log, nil))
	r.pusher = push.New(push.DefaultConfig(), r.store, r.clock, r.counts, logger)
	out.Sink = r.pusher
	r.sender = New(cfg, Parts{Store: r.store, Clock: r.clock, Payload: listPayload, Later: r.pusher.Schedule, Observer: r.counts}, logger)
	r.pusher.Deliver(registry.ProtocolUDP, r.sender)
	return r
}

// run runs pusher and sender until the returned function is called.
func (r *rig) run() (stop func()) {
	stopSender := r.start(r.sender.Run)
	stopPusher := r.start(r.pusher.Run)
	return func() {
		r.t.Helper()
		stopPusher()
		stopSender()
	}
}

func (r *rig) start(run func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	return func() {
		r.t.Helper()
		cancel()
		if err := <-done; err != nil {
			r.t.Errorf("Run returned %v, want nil", err)
		}
	}
}

func (r *rig) apply(c registry.Command) {
	r.t.Helper()
	if _, err := r.store.Apply(c); err != nil {
		r.t.Fatalf("%T: %v", c, err)
	}
}

func (r *rig) meta() registry.Meta { return registry.Meta{At: r.clock.Now()} }

func serviceKey(name string) registry.ServiceKey {
	return registry.ServiceKey{Namespace: "public", Group: "DEFAULT_GROUP", Name: name}
}

func (r *rig) register(name string, port int, weight float64, metadata string) {
	r.t.Helper()
	var md registry.Metadata
	if metadata != "" {
		b := registry.NewMetadata(map[string]string{"text": metadata})
		md = b
	}
	r.apply(&registry.Register{Meta: r.meta(), Service: serviceKey(name), Instance: registry.Instance{
		IP: "10.0.0.1", Port: int32(port), Cluster: registry.DefaultCluster, Metadata: md,
		Weight: weight, Healthy: true, Enabled: true, Ephemeral: true,
	}})
}

func (r *rig) subscribe(name string, to netip.AddrPort, agent, clusters string) *registry.Subscriber {
	r.t.Helper()
	key := registry.SubscriberKey{Addr: to, Agent: agent, Clusters: clusters}
	r.apply(&registry.Subscribe{Meta: r.meta(), Subscriber: &registry.Subscriber{
		Service: serviceKey(name), SubscriberKey: key, Protocol: registry.ProtocolUDP,
	}})
	return r.store.Subscriber(serviceKey(name), key)
}

// listPayload is what the v1 API gives, in short.
func listPayload(view *registry.View, key registry.ServiceKey, sub *registry.Subscriber) []byte {
	type host struct {
		IP       string  `json:"ip"`
		Port     int32   `json:"port"`
		Weight   float64 `json:"weight"`
		Metadata string  `json:"metadata"`
	}
	list := struct {
		Name        string `json:"name"`
		Clusters    string `json:"clusters"`
		Hosts       []host `json:"hosts"`
		LastRefTime int64  `json:"lastRefTime"`
	}{Name: key.Grouped(), Clusters: sub.Clusters}
	if view != nil {
		list.LastRefTime = view.Revision
		for _, i := range view.Instances {
			h := host{IP: i.IP, Port: i.Port, Weight: i.Weight}
			for _, v := range i.Metadata.All() {
				h.Metadata += v
			}
			list.Hosts = append(list.Hosts, h)
		}
	}
	data, err := json.Marshal(list)
	if err != nil {
		panic(err)
	}
	return data
}

// received is a datagram that a client got.
type received struct {
	Type        string `json:"type"`
	Data        string `json:"data"`
	LastRefTime int64  `json:"lastRefTime"`

	raw   []byte
	plain []byte
	from  netip.AddrPort
}

// name returns the service that the packet tells of.
func (p *received) name(t testing.TB) string {
	t.Helper()
	var list struct {
		Name string `json:"name"`
	}
	if err := json.Unmarshal([]byte(p.Data), &list); err != nil {
		t.Fatalf("data of packet %d: %v", p.LastRefTime, err)
	}
	return list.Name
}

func readPacket(raw []byte) (received, error) {
	p := received{raw: raw, plain: raw}
	if bytes.HasPrefix(raw, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(bytes.NewReader(raw))
		if err != nil {
			return p, err
		}
		if p.plain, err = io.ReadAll(z); err != nil {
			return p, err
		}
	}
	return p, json.Unmarshal(p.plain, &p)
}

// client is a UDP socket of a client.
type client struct {
	t    testing.TB
	conn *net.UDPConn
}

func newClient(t testing.TB, host string) *client {
	t.Helper()
	conn, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(host), 0)))
	if err != nil {
		t.Skipf("no UDP on %s: %v", host, err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return &client{t, conn}
}

func (c *client) addr() netip.AddrPort {
	return c.conn.LocalAddr().(*net.UDPAddr).AddrPort()
}

// patience is how long a test waits for what must come.
const patience = 10 * time.Second

// next waits for a packet.
func (c *client) next() received {
	c.t.Helper()
	p, err := c.read(patience)
	if err != nil {
		c.t.Fatalf("no packet: %v", err)
	}
	return p
}

func (c *client) read(wait time.Duration) (received, error) {
	if err := c.conn.SetReadDeadline(time.Now().Add(wait)); err != nil {
		return received{}, err
	}
	buf := make([]byte, 1<<16)
	n, from, err := c.conn.ReadFromUDPAddrPort(buf)
	if err != nil {
		return received{}, err
	}
	p, err := readPacket(slices.Clone(buf[:n]))
	p.from = netip.AddrPortFrom(from.Addr().Unmap(), from.Port())
	return p, err
}

func (c *client) send(to netip.AddrPort, text string) {
	c.t.Helper()
	if _, err := c.conn.WriteToUDPAddrPort([]byte(text), to); err != nil {
		c.t.Fatalf("send %q: %v", text, err)
	}
}

func stringAck(number int64) string {
	return fmt.Sprintf(`{"type":"push-ack","lastRefTime":"%d","data":""}`, number)
}

// eventually waits until a condition holds.
func eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !condition() {
		if time.Now().After(deadline) {
			t.Fatalf("it never happened that %s", what)
		}
		<-tick.C
	}
}

// wire is a socket in memory.
type wire struct {
	start  time.Time
	in     chan datagram
	closed chan struct{}

	mu   sync.Mutex
	out  []datagram
	fail func(try int) error // error of the n-th write, when set
	try  int
}

type datagram struct {
	at    time.Duration
	bytes []byte
	addr  netip.AddrPort
}

func newWire() *wire {
	return &wire{start: time.Now(), in: make(chan datagram, 16), closed: make(chan struct{})}
}

func (w *wire) ReadFromUDPAddrPort(b []byte) (int, netip.AddrPort, error) {
	select {
	case d := <-w.in:
		return copy(b, d.bytes), d.addr, nil
	case <-w.closed:
		return 0, netip.AddrPort{}, net.ErrClosed
	}
}

func (w *wire) WriteToUDPAddrPort(b []byte, to netip.AddrPort) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.try++
	if w.fail != nil {
		if err := w.fail(w.try); err != nil {
			return 0, err
		}
	}
	w.out = append(w.out, datagram{time.Since(w.start), slices.Clone(b), to})
	return len(b), nil
}

func (w *wire) Close() error { close(w.closed); return nil }

func (w *wire) sent() []datagram {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.out)
}

func (w *wire) ack(t testing.TB, d datagram) {
	t.Helper()
	p, err := readPacket(d.bytes)
	if err != nil {
		t.Fatal(err)
	}
	w.in <- datagram{bytes: []byte(stringAck(p.LastRefTime)), addr: d.addr}
}

func endpoint(n int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 1, byte(n >> 8), byte(n)}), uint16(1000+n%60000))
}

func name(n int) string { return "svc-" + strconv.Itoa(n) }
