package clienttest

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	rollcall "github.com/rollcall-registry/rollcall/client"
	"github.com/rollcall-registry/rollcall/client/internal/wire"
)

// Registry is a registry in memory. It is made with [New] and needs no end.
type Registry struct {
	mu       sync.Mutex // held while clients are told, so that they hear of all in order
	services map[wire.Service]*service
	sessions map[*session]bool
	running  map[*transport]wire.Events // of clients that are not closed
	down     bool
	failure  error // that operations return; nil if they work
	clock    int64 // of lists
	opened   int   // sessions so far
}

// service is what the registry has of a service.
type service struct {
	stays map[wire.Key]wire.Instance              // of the test, and persistent ones
	owned map[*session]map[wire.Key]wire.Instance // of clients, as long as they are connected
}

// New returns an empty registry that works.
func New() *Registry {
	return &Registry{
		services: make(map[wire.Service]*service),
		sessions: make(map[*session]bool),
		running:  make(map[*transport]wire.Events),
	}
}

// Client returns a client of the registry, which is closed when the test ends.
func (r *Registry) Client(tb testing.TB, options ...rollcall.Option) *rollcall.Client {
	tb.Helper()
	c, err := rollcall.New(append(options, r.Option())...)
	if err != nil {
		tb.Fatalf("clienttest: %v", err)
	}
	tb.Cleanup(func() {
		if err := c.Close(); err != nil {
			tb.Errorf("clienttest: %v", err)
		}
	})
	return c
}

// Option makes [rollcall.New] return a client of the registry, each time another one.
func (r *Registry) Option() rollcall.Option {
	return rollcall.WithTransport(func() wire.Transport { return &transport{registry: r} })
}

// Set makes these the instances of a service, besides those that clients registered.
// None takes all away. Empty fields of s stand for the defaults of a client. An instance
// is taken as it is, healthy or not, but it panics at one without an address or a port,
// which no client would show, and at a service without a name.
func (r *Registry) Set(s rollcall.Service, instances ...rollcall.Instance) {
	if s.Name == "" {
		panic("clienttest: Set was given a service without a name")
	}
	for _, in := range instances {
		if in.IP == "" || in.Port == 0 {
			panic("clienttest: Set was given an instance without an address or a port: " + in.Addr())
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.change(full(s), func(v *service) {
		v.stays = make(map[wire.Key]wire.Instance, len(instances))
		for _, in := range instances {
			in.Cluster = cmp.Or(in.Cluster, rollcall.DefaultCluster)
			in.Metadata = maps.Clone(in.Metadata)
			w := wire.Instance(in)
			v.stays[w.Key()] = w
		}
	})
}

// Instances returns all instances of a service, those that clients registered too,
// sorted by address, port and cluster.
func (r *Registry) Instances(s rollcall.Service) []rollcall.Instance {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.instances(full(s))
	out := make([]rollcall.Instance, len(all))
	for i, in := range all {
		out[i] = rollcall.Instance(in)
		out[i].Metadata = maps.Clone(in.Metadata)
	}
	return out
}

// Stop disconnects all clients, as a server that ends, and takes away what they had
// registered. When it returns, their status says so. They connect again with Start.
//
// Stop and Start are not for functions that a client calls, such as those of Metrics.
func (r *Registry) Stop() {
	r.turn(true)
}

// Start has clients connect again. When it returns they have, and register and subscribe
// anew; Ready waits until that is done.
func (r *Registry) Start() {
	r.turn(false)
}

// turn stops or starts the registry.
func (r *Registry) turn(down bool) {
	r.mu.Lock()
	r.down = down
	if down {
		for s := range r.sessions {
			r.end(s)
		}
	}
	for t, events := range r.running {
		t.connect(events)
	}
	told := slices.Collect(maps.Values(r.running))
	r.mu.Unlock()
	for _, events := range told {
		if settling, ok := events.(interface{ Settle() }); ok {
			settling.Settle()
		}
	}
}

// Fail has all operations of clients fail with err until Fail(nil). What an error such
// as [rollcall.ErrForbidden] or [rollcall.ErrOverloaded] means to a client, err means
// too if it is one in the sense of [errors.Is].
func (r *Registry) Fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failure = err
}

// full fills in the defaults.
func full(s rollcall.Service) wire.Service {
	return wire.Service{
		Namespace: cmp.Or(s.Namespace, rollcall.DefaultNamespace),
		Group:     cmp.Or(s.Group, rollcall.DefaultGroup),
		Name:      s.Name,
	}
}

// The following are called with mu held.

// change changes a service and tells who watches.
func (r *Registry) change(s wire.Service, f func(*service)) {
	had := r.services[s] != nil
	v := r.services[s]
	if v == nil {
		v = &service{stays: make(map[wire.Key]wire.Instance), owned: make(map[*session]map[wire.Key]wire.Instance)}
		r.services[s] = v
	}
	f(v)
	maps.DeleteFunc(v.owned, func(_ *session, set map[wire.Key]wire.Instance) bool { return len(set) == 0 })
	has := len(v.stays)+len(v.owned) > 0
	if !has {
		delete(r.services, s)
	}
	r.clock++
	for session := range r.sessions {
		session.tell(s, had, has)
	}
}

// end ends a session and takes away what it owned.
func (r *Registry) end(s *session) {
	delete(r.sessions, s)
	for name, v := range r.services {
		if v.owned[s] != nil {
			r.change(name, func(v *service) { delete(v.owned, s) })
		}
	}
}

// instances returns what is registered, sorted. What a client owns hides what the test
// set.
func (r *Registry) instances(s wire.Service) []wire.Instance {
	all := make(map[wire.Key]wire.Instance)
	if v := r.services[s]; v != nil {
		maps.Copy(all, v.stays)
		for _, set := range v.owned {
			maps.Copy(all, set)
		}
	}
	return slices.SortedFunc(maps.Values(all), func(a, b wire.Instance) int {
		return cmp.Or(strings.Compare(a.IP, b.IP), cmp.Compare(a.Port, b.Port), strings.Compare(a.Cluster, b.Cluster))
	})
}

// list returns a service as a server would tell it.
func (r *Registry) list(s wire.Service) (raw []byte, err error) {
	type host struct {
		ID        string            `json:"instanceId,omitempty"`
		IP        string            `json:"ip"`
		Port      uint16            `json:"port"`
		Weight    float64           `json:"weight"`
		Healthy   bool              `json:"healthy"`
		Enabled   bool              `json:"enabled"`
		Ephemeral bool              `json:"ephemeral"`
		Cluster   string            `json:"clusterName"`
		Metadata  map[string]string `json:"metadata"`
	}
	info := struct {
		Name        string `json:"name"`
		Group       string `json:"groupName"`
		LastRefTime int64  `json:"lastRefTime"`
		Hosts       []host `json:"hosts"`
	}{s.Name, s.Group, r.clock, []host{}}
	for _, in := range r.instances(s) {
		info.Hosts = append(info.Hosts, host(in))
	}
	return json.Marshal(info)
}
