package rollcall

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollcall-registry/rollcall/client/internal/wire"
)

// fakeWire is a transport whose server is in memory and does what the test says.
type fakeWire struct {
	mu        sync.Mutex
	events    wire.Events
	running   chan struct{}
	session   *wire.Session
	sessions  int
	published map[wire.Service][]wire.Instance
	lists     map[wire.Service]string // raw
	subs      map[wire.Service]bool
	log       []string
	// fail is asked before each operation.
	fail func(op string, s wire.Service, instances []wire.Instance) error
	// delay is how long each operation takes.
	delay    time.Duration
	fuzzy    bool
	polls    bool
	protocol wire.Protocol
	// remembers: the server lists what earlier sessions have published until a later
	// one publishes it, as Rollcall does after a restart.
	remembers bool
	stubborn  bool // it does so also then
	endless   bool // there is one service more on each page
	memory    map[wire.Service]map[wire.Key]wire.Instance
}

func newFakeWire() *fakeWire {
	return &fakeWire{
		running: make(chan struct{}), published: make(map[wire.Service][]wire.Instance),
		lists: make(map[wire.Service]string), subs: make(map[wire.Service]bool),
		memory: make(map[wire.Service]map[wire.Key]wire.Instance),
	}
}

func (f *fakeWire) Run(ctx context.Context, events wire.Events) error {
	f.mu.Lock()
	f.events = events
	f.mu.Unlock()
	close(f.running)
	<-ctx.Done()
	return ctx.Err()
}

// remember keeps what the session published, if the server remembers. The caller holds mu.
func (f *fakeWire) remember() {
	for s, instances := range f.published {
		for _, i := range instances {
			if f.memory[s] == nil {
				f.memory[s] = make(map[wire.Key]wire.Instance)
			}
			if f.remembers {
				f.memory[s][i.Key()] = i
			}
		}
	}
}

// up begins a session, on a server that has forgotten all.
func (f *fakeWire) up() wire.Session {
	<-f.running
	f.mu.Lock()
	f.sessions++
	protocol := cmp.Or(f.protocol, wire.InMemory)
	s := wire.Session{ID: fmt.Sprint("s", f.sessions), Server: "10.0.0.1:9848", Protocol: protocol, Persistent: true, Fuzzy: f.fuzzy, Polls: f.polls}
	f.session = &s
	f.remember()
	clear(f.published)
	clear(f.subs)
	events := f.events
	f.mu.Unlock()
	events.Connected(s)
	synctest.Wait()
	return s
}

func (f *fakeWire) down(cause error) {
	<-f.running
	f.mu.Lock()
	f.session = nil
	events := f.events
	f.mu.Unlock()
	events.Disconnected(cause)
	synctest.Wait()
}

func (f *fakeWire) set(change func(f *fakeWire)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f)
}

// op begins an operation: it is written down, may fail, and takes its time.
func (f *fakeWire) op(ctx context.Context, name string, s wire.Service, instances []wire.Instance) error {
	f.mu.Lock()
	f.log = append(f.log, name+" "+s.Name)
	up, fail, delay := f.session != nil, f.fail, f.delay
	f.mu.Unlock()
	if !up {
		return &wire.Error{Kind: wire.NotConnected, Err: context.Canceled}
	}
	if delay > 0 {
		select {
		case <-time.After(delay):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	if fail != nil {
		return fail(name, s, instances)
	}
	return nil
}

func (f *fakeWire) Publish(ctx context.Context, s wire.Service, instances []wire.Instance) error {
	if err := f.op(ctx, "publish", s, instances); err != nil {
		return err
	}
	f.set(func(f *fakeWire) {
		f.published[s] = slices.Clone(instances)
		for _, i := range instances {
			if !f.stubborn {
				delete(f.memory[s], i.Key())
			}
		}
		if f.remembers {
			f.lists[s] = f.state(s)
		}
	})
	return nil
}

// state returns what a server that remembers lists. The caller holds mu.
func (f *fakeWire) state(s wire.Service) string {
	var hosts []string
	for _, i := range slices.AppendSeq(slices.Clone(f.published[s]), maps.Values(f.memory[s])) {
		hosts = append(hosts, fmt.Sprintf("%s:%d", i.IP, i.Port))
	}
	return rawList(0, hosts...)
}

// listed returns the ports that a server that remembers lists of a service.
func (f *fakeWire) listed(s wire.Service) []int {
	f.mu.Lock()
	defer f.mu.Unlock()
	var ports []int
	for _, i := range slices.AppendSeq(slices.Clone(f.published[s]), maps.Values(f.memory[s])) {
		ports = append(ports, int(i.Port))
	}
	slices.Sort(ports)
	return ports
}

func (f *fakeWire) list(s wire.Service, asked bool) wire.List {
	f.mu.Lock()
	defer f.mu.Unlock()
	raw, ok := f.lists[s]
	if !ok {
		raw = `{"hosts":[]}`
	}
	l := wire.List{Service: s, Raw: []byte(raw), Asked: asked}
	if f.session != nil {
		l.Session = f.session.ID
	}
	return l
}

func (f *fakeWire) Subscribe(ctx context.Context, s wire.Service) (wire.List, error) {
	if err := f.op(ctx, "subscribe", s, nil); err != nil {
		return wire.List{}, err
	}
	f.set(func(f *fakeWire) { f.subs[s] = true })
	return f.list(s, true), nil
}

func (f *fakeWire) Unsubscribe(ctx context.Context, s wire.Service) error {
	err := f.op(ctx, "unsubscribe", s, nil)
	f.set(func(f *fakeWire) { delete(f.subs, s) })
	return err
}

func (f *fakeWire) Query(ctx context.Context, s wire.Service) (wire.List, error) {
	if err := f.op(ctx, "query", s, nil); err != nil {
		return wire.List{}, err
	}
	return f.list(s, true), nil
}

func (f *fakeWire) RegisterPersistent(ctx context.Context, s wire.Service, i wire.Instance) error {
	return f.op(ctx, "register", s, []wire.Instance{i})
}

func (f *fakeWire) DeregisterPersistent(ctx context.Context, s wire.Service, i wire.Instance) error {
	return f.op(ctx, "deregister", s, []wire.Instance{i})
}

func (f *fakeWire) Services(ctx context.Context, ns, group string, page, size int) ([]string, int, error) {
	if err := f.op(ctx, "services", wire.Service{Namespace: ns, Group: group}, nil); err != nil {
		return nil, 0, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.endless {
		return []string{fmt.Sprint("service-", page)}, 1 << 30, nil
	}
	var names []string
	for s := range f.lists {
		if s.Namespace == ns && s.Group == group {
			names = append(names, s.Name)
		}
	}
	slices.Sort(names)
	from := min((page-1)*size, len(names))
	return names[from:min(from+size, len(names))], len(names), nil
}

func (f *fakeWire) WatchServices(ctx context.Context, p wire.Pattern, known []wire.Service) error {
	return f.op(ctx, fmt.Sprint("fuzzy+", len(known)), wire.Service(p), nil)
}

func (f *fakeWire) UnwatchServices(ctx context.Context, p wire.Pattern) error {
	return f.op(ctx, "fuzzy-", wire.Service(p), nil)
}

// say sets the list of a service; push sends it too.
func (f *fakeWire) say(s wire.Service, refTime int64, hosts ...string) {
	f.set(func(f *fakeWire) { f.lists[s] = rawList(refTime, hosts...) })
}

func (f *fakeWire) push(s wire.Service, refTime int64, hosts ...string) {
	f.say(s, refTime, hosts...)
	l := f.list(s, false)
	f.mu.Lock()
	events := f.events
	f.mu.Unlock()
	events.Pushed(l)
}

// rawList writes a list of hosts, each of which is ip:port and members of JSON.
func rawList(refTime int64, hosts ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `{"lastRefTime":%d,"hosts":[`, refTime)
	for n, h := range hosts {
		if n > 0 {
			b.WriteByte(',')
		}
		address, more, _ := strings.Cut(h, " ")
		ip, port, _ := strings.Cut(address, ":")
		fmt.Fprintf(&b, `{"ip":%q,"port":%s%s}`, ip, port, more)
	}
	b.WriteString(`]}`)
	return b.String()
}

func (f *fakeWire) ops(prefix string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, op := range f.log {
		if strings.HasPrefix(op, prefix) {
			n++
		}
	}
	return n
}

// ports returns the ports that are published of a service.
func (f *fakeWire) ports(s wire.Service) []int {
	f.mu.Lock()
	defer f.mu.Unlock()
	var ports []int
	for _, i := range f.published[s] {
		ports = append(ports, int(i.Port))
	}
	slices.Sort(ports)
	return ports
}

// counter is metrics that count drops.
type counter struct {
	noMetrics
	mu    sync.Mutex
	drops map[string]int
}

func (c *counter) Dropped(reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.drops == nil {
		c.drops = make(map[string]int)
	}
	c.drops[reason]++
}

func (c *counter) all() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.drops)
}

// inBubble runs f with a client over a fake transport. The client is closed at the end,
// and all its goroutines must have ended then.
func inBubble(t *testing.T, f func(t *testing.T, c *Client, w *fakeWire), options ...Option) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newFakeWire()
		c, err := New(append([]Option{WithTransport(func() wire.Transport { return w }), WithLogger(slog.New(slog.NewTextHandler(t.Output(), nil)))}, options...)...)
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}()
		synctest.Wait()
		f(t, c, w)
	})
}

var (
	orders     = Service{Name: "orders"}
	wireOrders = wire.Service{Namespace: "public", Group: "DEFAULT_GROUP", Name: "orders"}
)

// addresses returns what a snapshot shows.
func addresses(s *Snapshot) string {
	var all []string
	for in := range s.All() {
		all = append(all, in.Addr())
	}
	return strings.Join(all, " ")
}
