package registry

import (
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Config sets what the core needs to know.
type Config struct {
	// OverrideMemory is how long an operator's override outlives an instance
	// that disconnected or expired, for the one who comes back.
	OverrideMemory time.Duration `config:"expiry.override-memory" help:"How long an operator's override of an instance outlives the instance, for the one who comes back."`
	// EmptyServiceMemory is how long a service that nobody created by hand stays
	// after its last instance went.
	EmptyServiceMemory time.Duration `config:"expiry.empty-service-memory" help:"How long a service that nobody created by hand stays after its last instance went."`
	// Expire removes instances whose beats stopped; without it they only become
	// unhealthy.
	Expire bool `config:"expiry.remove" help:"Remove instances whose beats stopped; when off they only become unhealthy."`
	// Brake limits mass expiry; see [Brake].
	Brake Brake
}

// Validate reports all faults at once.
func (c Config) Validate() error {
	var errs []error
	if c.OverrideMemory < 0 {
		errs = append(errs, fmt.Errorf("expiry.override-memory: %v is negative", c.OverrideMemory))
	}
	if c.EmptyServiceMemory < time.Second {
		errs = append(errs, fmt.Errorf("expiry.empty-service-memory: %v is below 1s", c.EmptyServiceMemory))
	}
	if c.Brake.MinInstances < 1 {
		errs = append(errs, fmt.Errorf("expiry.brake-min-instances: %d is below 1", c.Brake.MinInstances))
	}
	if !(c.Brake.MinShare > 0 && c.Brake.MinShare <= 1) {
		errs = append(errs, fmt.Errorf("expiry.brake-min-share: %v is not above 0 and at most 1", c.Brake.MinShare))
	}
	return errors.Join(errs...)
}

// DefaultConfig returns the settings of a server that was told nothing.
func DefaultConfig() Config {
	return Config{
		OverrideMemory:     60 * time.Second,
		EmptyServiceMemory: 60 * time.Second,
		Brake:              DefaultBrake(),
		Expire:             true,
	}
}

// shardCount is a power of two well above the cores of the machines we expect,
// so that two busy services seldom meet on one lock.
const shardCount = 64

// Store is the state of the registry. Create it with [NewStore].
type Store struct {
	cfg    Config
	sink   Sink
	seed   maphash.Seed
	shards [shardCount]shard

	names      directory
	namespaces namespaces
	switches   atomic.Pointer[Switches]
	switching  sync.Mutex // held while a switch is set
	clients    clients
	agents     agents
	counts     counts
	// blank are the settings, by kind, of a service that came into being with its
	// first instance, cluster those of a DEFAULT cluster that nobody configured:
	// almost every service shares them.
	blank   [KindPersistent + 1]*ServiceInfo
	cluster *Cluster
	// floor is at least the revision of every service that was removed and every
	// revision known from before a restart, so that none is ever given twice.
	floor atomic.Int64
}

// shard holds the services whose hash is its own. Its lock is taken before no
// other lock but those of the directory and of a client, and never together
// with another shard's.
type shard struct {
	mu       sync.RWMutex
	services map[ServiceKey]*service
	subs     map[ServiceKey]subscriptions
	overlays map[ServiceKey]map[InstanceKey]*overlay // nil while there are none
	wheel    wheel
	// emptied holds the services that became empty and are to be cleaned, each
	// once; none of them before cleanAt on the lease clock.
	emptied  []*service
	cleanAt  time.Duration
	held     []*service // services whose brake holds
	interner interner
	event    Event // the one being emitted, so that emitting allocates nothing

	mostServices, mostSubs int // see remove
}

// service is one service with its instances. It is guarded by its shard's lock,
// but for view.
type service struct {
	key      ServiceKey
	grouped  string
	info     *ServiceInfo
	clusters []*Cluster // sorted by name
	records  []*record  // sorted by [record.compare]
	revision int64
	// kept: somebody made or configured it, so it stays when it is empty.
	kept      bool
	queued    bool                 // in the shard's list of emptied services
	emptiedAt time.Duration        // when it last became empty
	brake     *brakeState          // nil before anybody was to be removed
	view      atomic.Pointer[View] // nil when it must be built anew
}

// NewStore returns an empty store whose events go to sink.
func NewStore(cfg Config, sink Sink) *Store {
	s := &Store{
		cfg: cfg, sink: sink, seed: maphash.MakeSeed(),
		cluster: NewCluster(DefaultCluster),
	}
	for kind := range s.blank {
		s.blank[kind] = blankInfo(Kind(kind))
	}
	for i := range s.shards {
		s.shards[i].services = map[ServiceKey]*service{}
		s.shards[i].subs = map[ServiceKey]subscriptions{}
		s.shards[i].interner.seed = s.seed
	}
	s.switches.Store(DefaultSwitches())
	return s
}

func (s *Store) shard(key ServiceKey) *shard {
	return &s.shards[maphash.Comparable(s.seed, key)%shardCount]
}

// Meta is what every command carries: when and why.
type Meta struct {
	At    Instant `json:"at"`
	Cause Cause   `json:"cause"`
}

// Command is one change of state. The implementations are the exported command
// types of this package.
type Command interface {
	apply(s *Store) (Result, error)
}

// Result is what a command did, for callers that answer with it.
type Result struct {
	// Touched are the instances after a [SetOverride], in the order of its
	// entries and without those that are not there.
	Touched []*Instance
	// Released are the instances that a [Publish] took the connection's part from.
	Released []*Instance
}

// Apply makes a change. A refusal is an *[Error] and leaves the state as it was.
func (s *Store) Apply(c Command) (Result, error) { return c.apply(s) }

// conditional is a command whose refusal may depend on ephemeral instances.
type conditional interface {
	Command
	target() ServiceKey
	// refusal says why the command cannot be applied; svc may be nil. The caller
	// holds the shard's lock.
	refusal(svc *service) error
}

// Check returns the refusal with which [Store.Apply] would answer now, if the
// ephemeral instances of the service may be its reason; otherwise nil. Whoever
// puts commands into a durable log asks first: a command that is refused there
// comes again with each replay, and then without those instances. Only a race is
// left for Apply to refuse.
func (s *Store) Check(c Command) error {
	cond, ok := c.(conditional)
	if !ok {
		return nil
	}
	sh := s.shard(cond.target())
	sh.mu.RLock()
	defer sh.mu.RUnlock()
	return cond.refusal(sh.services[cond.target()])
}

// RaiseFloor makes sure that no revision at or below r is given from now on.
func (s *Store) RaiseFloor(r int64) {
	for {
		old := s.floor.Load()
		if r <= old || s.floor.CompareAndSwap(old, r) {
			return
		}
	}
}

// AbsentRevision returns a revision for the absence of a service: no revision that
// a service of that name had is greater, and every one that it will have is. It is
// close to the wall clock where that allows.
func (s *Store) AbsentRevision(now Instant) int64 {
	s.RaiseFloor(now.Wall - 1)
	return s.floor.Load()
}

// emit passes an event of a service to the sink. The caller holds the lock of
// the service's shard.
func (s *Store) emit(sh *shard, e Event) {
	sh.event = e
	s.sink.Emit(&sh.event)
}

// find returns the record of an identity, nil when it is not there. svc may be nil.
func (svc *service) find(key InstanceKey) *record {
	if svc == nil {
		return nil
	}
	if i, ok := svc.index(key); ok {
		return svc.records[i]
	}
	return nil
}

func (svc *service) index(key InstanceKey) (int, bool) {
	return slices.BinarySearchFunc(svc.records, key, (*record).compare)
}

func (svc *service) cluster(name string) *Cluster {
	i, ok := slices.BinarySearchFunc(svc.clusters, name, compareCluster)
	if !ok {
		return nil
	}
	return svc.clusters[i]
}

func compareCluster(c *Cluster, name string) int { return strings.Compare(c.Name, name) }

// useCluster returns the name of a cluster of the service, in memory of its own.
// It makes the cluster when it is not there.
func (s *Store) useCluster(svc *service, name string) string {
	if c := svc.cluster(name); c != nil {
		return c.Name
	}
	c := s.cluster
	if name != c.Name {
		c = NewCluster(strings.Clone(name))
	}
	svc.setCluster(c)
	return c.Name
}

// setCluster adds or replaces a cluster. The slice is copied, because views
// share it.
func (svc *service) setCluster(c *Cluster) {
	i, ok := slices.BinarySearchFunc(svc.clusters, c.Name, compareCluster)
	next := slices.Clone(svc.clusters)
	if ok {
		next[i] = c
	} else {
		next = slices.Insert(next, i, c)
	}
	svc.clusters = next
}

// changed gives the service a new revision and drops its view.
func (svc *service) changed(at Instant) int64 {
	svc.revision = max(at.Wall, svc.revision+1)
	if old := svc.view.Swap(nil); old != nil {
		old.stale.Store(true)
	}
	return svc.revision
}

// newService adds a service. The caller holds the shard's lock and has checked
// that there is none of that name.
func (s *Store) newService(sh *shard, key ServiceKey, info *ServiceInfo, m Meta) *service {
	svc := &service{info: info, revision: s.floor.Load()}
	svc.key, svc.grouped = key.clone(sh.interner.intern(key.Namespace))
	sh.services[svc.key] = svc
	s.names.add(svc)
	s.counts.services.Add(1)
	s.emit(sh, Event{Kind: ServiceCreated, At: m.At, Cause: m.Cause, Service: svc.key, Revision: svc.changed(m.At)})
	return svc
}

// dropService removes a service and what is left in it, owner by owner.
func (s *Store) dropService(sh *shard, svc *service, m Meta) {
	for len(svc.records) > 0 {
		r := svc.records[len(svc.records)-1]
		h := &r.top
		if below := r.below(); len(below) > 0 {
			h = &below[len(below)-1]
		}
		s.release(sh, r, m, h.owner())
	}
	sh.services = remove(sh.services, svc.key, &sh.mostServices)
	s.names.remove(svc)
	s.counts.services.Add(-1)
	rev := svc.changed(m.At)
	s.RaiseFloor(rev)
	s.emit(sh, Event{Kind: ServiceRemoved, At: m.At, Cause: m.Cause, Service: svc.key, Revision: rev})
}

// clone copies the strings, so that a key made of request memory may be kept.
func (k InstanceKey) clone() InstanceKey {
	k.IP, k.Cluster = strings.Clone(k.IP), strings.Clone(k.Cluster)
	return k
}

// interner lets equal strings that are seen close together share memory. It
// forgets freely, so it cannot grow. The caller holds the shard's lock.
type interner struct {
	seed   maphash.Seed
	recent [64]string
}

// internMax is the longest string that the interner remembers, so that all of a
// store's interners hold 4 MiB at most.
const internMax = 1 << 10

// intern returns a string that is equal to s and no part of other memory.
func (in *interner) intern(s string) string {
	if s == "" {
		return ""
	}
	if len(s) > internMax {
		return strings.Clone(s)
	}
	slot := &in.recent[maphash.String(in.seed, s)%uint64(len(in.recent))]
	if *slot != s {
		*slot = strings.Clone(s)
	}
	return *slot
}

// counts are gauges kept by the store, so that reading them costs nothing.
type counts struct {
	services, ephemeral, persistent, healthy, subscribers, overridden atomic.Int64
}

// Counts are totals over the store.
type Counts struct {
	Services, Ephemeral, Persistent, Healthy, Subscribers int64
	// Overridden are the services with an operator's override of an instance, which
	// need not be there.
	Overridden int64
}

// Counts returns the present totals; the parts may be a moment apart.
func (s *Store) Counts() Counts {
	return Counts{
		Services: s.counts.services.Load(), Ephemeral: s.counts.ephemeral.Load(),
		Persistent: s.counts.persistent.Load(), Healthy: s.counts.healthy.Load(),
		Subscribers: s.counts.subscribers.Load(), Overridden: s.counts.overridden.Load(),
	}
}

// count adds the instance to the gauges, or takes it from them.
func (s *Store) count(i *Instance, n int64) {
	if i.Ephemeral {
		s.counts.ephemeral.Add(n)
	} else {
		s.counts.persistent.Add(n)
	}
	if i.Healthy {
		s.counts.healthy.Add(n)
	}
}

// Floor returns a number at least as high as the last revision of every service
// that was removed. New services begin above it.
func (s *Store) Floor() int64 { return s.floor.Load() }

// HighestRevision returns a number at least as high as every revision given so
// far. It looks at every service.
func (s *Store) HighestRevision() int64 {
	highest := s.floor.Load()
	s.eachService(func(svc *service) { highest = max(highest, svc.revision) })
	return highest
}
