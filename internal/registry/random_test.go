package registry

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestModel gives random commands to a store and to the model, and compares them
// after each. A failure is shrunk, printed as commands, and kept in testdata/rapid,
// from where it is tried again; -rapid.checks=10000 looks longer.
func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := newPair(t, rapid.Bool().Draw(t, "removal"))
		// A slice of rapid is a few elements long, so this makes some hundred, and
		// can still be shrunk to any number.
		few := rapid.SliceOfN(rapid.Custom(drawStep), 1, 40)
		steps := slices.Concat(slices.Concat(rapid.SliceOfN(rapid.SliceOfN(few, 1, 10), 1, 10).Draw(t, "steps")...)...)
		for n, s := range steps {
			p.step(s)
			if diff := p.differ(); diff != "" {
				t.Fatalf("after step %d of these:\n%s\n%s", n+1, printSteps(steps[:n+1]), diff)
			}
			checkStore(t, p.store)
		}
	})
}

// step is one random command, as numbers that choose among few values, so that
// commands meet.
type step struct {
	Do                             string
	Service, IP, Port, Cluster, By int
	Metadata, Weight               int
	Healthy, Enabled, Marked, Flag bool
	Kind                           Kind
	Pass                           time.Duration
}

func printSteps(steps []step) string {
	var b strings.Builder
	for _, s := range steps {
		fmt.Fprintf(&b, "%+v\n", s)
	}
	return b.String()
}

func drawStep(t *rapid.T) step {
	below := func(n int, label string) int { return rapid.IntRange(0, n-1).Draw(t, label) }
	s := step{
		Do: rapid.SampledFrom([]string{
			"pass", "pass", "pass", "register", "register", "register", "register", "register", "beat", "beat",
			"deregister", "health", "override", "drop-override", "open", "close", "subscribe", "unsubscribe",
			"expire-subscribers", "create", "update", "delete", "cluster", "check", "restart",
		}).Draw(t, "do"),
		Service: below(3, "service"), IP: below(3, "ip"), Port: below(3, "port"), Cluster: below(5, "cluster") / 4, By: below(6, "by"),
		Metadata: below(len(metadataChoices()), "metadata"), Weight: below(3, "weight"),
		Healthy: below(4, "healthy") > 0, Enabled: below(4, "enabled") > 0, Marked: below(8, "marked") == 7, Flag: below(2, "flag") == 1,
		Kind: Kind(max(below(6, "kind")-3, 0)),
		Pass: rapid.SampledFrom([]time.Duration{
			time.Millisecond, 249 * time.Millisecond, 251 * time.Millisecond, time.Second, 2 * time.Second, 5 * time.Second, 15 * time.Second,
			15001 * time.Millisecond, 30001 * time.Millisecond, time.Minute, 64 * time.Second, 20 * time.Minute,
		}).Draw(t, "pass"),
	}
	return s
}

// metadataChoices are the metadata of the test and what they ask for.
func metadataChoices() []struct {
	m               Metadata
	timeout, remove time.Duration
} {
	return []struct {
		m               Metadata
		timeout, remove time.Duration
	}{
		{"", 15 * time.Second, 30 * time.Second},
		{`{"a":"1"}`, 15 * time.Second, 30 * time.Second},
		{`{"preserved.instance.id.generator":"snowflake"}`, 15 * time.Second, 30 * time.Second},
		{`{"preserved.heart.beat.timeout":"1000","preserved.ip.delete.timeout":"2000"}`, time.Second, 2 * time.Second},
		{`{"preserved.heart.beat.timeout":"9000","preserved.ip.delete.timeout":"3000"}`, 9 * time.Second, 3 * time.Second},
		{`{"preserved.heart.beat.timeout":"30","preserved.ip.delete.timeout":"120"}`, 30 * time.Millisecond, 120 * time.Millisecond},
		{`{"preserved.heart.beat.timeout":"1000"}`, time.Second, 30 * time.Second},
		{`{"preserved.heart.beat.timeout":"100000","preserved.ip.delete.timeout":"999999999999999"}`, 100 * time.Second, 365 * 24 * time.Hour},
	}
}

func (s step) service() ServiceKey {
	return []ServiceKey{{DefaultNamespace, "a", "s"}, {DefaultNamespace, "a-b", "s"}, {"n2", "a", "s"}}[s.Service]
}

func (s step) key() InstanceKey {
	return InstanceKey{
		IP:   []string{"10.0.0.1", "2001:db8::1", "[2001:DB8:0::1]"}[s.IP],
		Port: []int32{-1, 0, 1}[s.Port], Cluster: []string{DefaultCluster, "c1"}[s.Cluster],
	}
}

func (s step) client() ClientID { return []ClientID{"c1", "c2"}[s.By%2] }

func (s step) owner() Owner {
	switch s.By {
	case 0, 1:
		return connection(s.client())
	case 2:
		return durableOwner
	default:
		return httpOwner
	}
}

func (s step) instance() Instance {
	k := s.key()
	return Instance{
		IP: k.IP, Port: k.Port, Cluster: k.Cluster, Metadata: metadataChoices()[s.Metadata].m, Weight: float64(s.Weight),
		Healthy: s.Healthy, Enabled: s.Enabled, Marked: s.Marked,
	}
}

func (s step) override() Override {
	var o Override
	if s.Flag {
		o.Weight = new(float64(s.Weight + 5))
	}
	if !s.Enabled {
		o.Enabled = new(s.Healthy)
	}
	if s.Metadata > 0 {
		o.Metadata = &metadataChoices()[s.Metadata].m
	}
	if s.Port == 2 {
		o.Extra = new(modelExtra)
	}
	return o
}

func (s step) subscriber() *Subscriber {
	sub := &Subscriber{Service: s.service(), Protocol: ProtocolUDP, SubscriberKey: SubscriberKey{Addr: netip.AddrPortFrom(netip.IPv4Unspecified(), uint16(s.Port+1))}}
	if s.Flag {
		sub.Protocol, sub.Client = ProtocolGRPC, s.client()
	}
	if s.Marked {
		sub.Refused = "not its address"
	}
	return sub
}

// pair is a store and a model that are to stay alike.
type pair struct {
	t     *rapid.T
	store *Store
	model *model
	cfg   Config
	now   Instant
	watch *watcher
}

func newPair(t *rapid.T, removal bool) *pair {
	cfg := DefaultConfig()
	cfg.Brake.MinInstances = 3
	cfg.Expire = removal
	p := &pair{t: t, model: newModel(cfg), cfg: cfg, now: Instant{Wall: wall0}}
	p.watch = &watcher{t: t, revisions: map[ServiceKey]int64{}}
	p.watch.forget()
	p.store = NewStore(cfg, p.watch)
	return p
}

// step makes one step on both sides.
func (p *pair) step(s step) {
	m := Meta{At: p.now, Cause: Cause{Kind: CauseRequest, API: "test", Op: s.Do}}
	now := p.now.Lease
	switch s.Do {
	case "pass":
		p.pass(s)
	case "register":
		c := &Register{Meta: m, Service: s.service(), Owner: s.owner(), Instance: s.instance(), Kind: s.Kind, TakeHealth: s.Flag}
		p.apply(c, func() Code { return p.model.register(c, now) })
	case "deregister":
		c := &Deregister{Meta: m, Service: s.service(), Owner: s.owner(), Instance: s.key()}
		p.apply(c, func() Code { p.model.release(c.Service, c.Instance, c.Owner, now); return 0 })
	case "beat":
		known := p.store.Beat(&Beat{Meta: m, Service: s.service(), Instance: s.key()}).Known
		if want := p.model.beat(s.service(), s.key(), now); known != want {
			p.t.Fatalf("%+v: known %v, want %v", s, known, want)
		}
	case "health":
		c := &SetHealth{Meta: m, Service: s.service(), Instance: s.key(), Healthy: s.Healthy, All: s.Flag, Kind: s.owner().Kind}
		p.apply(c, func() Code { return p.model.setHealth(c) })
	case "open":
		p.store.OpenClient(s.client())
		p.model.open[s.client()] = true
	case "close":
		p.apply(&CloseClient{Meta: m, Client: s.client()}, func() Code { p.model.closeClient(s.client(), now); return 0 })
	case "restart":
		p.restart()
	default:
		p.settingStep(s, m, now)
	}
}

func (p *pair) settingStep(s step, m Meta, now time.Duration) {
	switch s.Do {
	case "override":
		c := &SetOverride{Meta: m, Service: s.service(), Entries: []TargetOverride{{Target: s.key(), Override: s.override()}}}
		p.apply(c, func() Code { p.model.setOverride(c, now); return 0 })
	case "drop-override":
		c := &DropOverride{Meta: m, Service: s.service(), Target: s.key()}
		p.apply(c, func() Code { p.model.dropOverride(c.Service, c.Target); return 0 })
	case "subscribe":
		c := &Subscribe{Meta: m, Subscriber: s.subscriber()}
		p.apply(c, func() Code { return p.model.subscribe(c.Subscriber, now) })
	case "unsubscribe":
		sub := s.subscriber()
		c := &Unsubscribe{Meta: m, Service: sub.Service, Subscriber: sub.SubscriberKey}
		p.apply(c, func() Code { p.model.unsubscribe(c.Service, c.Subscriber); return 0 })
	case "expire-subscribers":
		p.store.ExpireSubscribers(p.now, 10*time.Second)
		p.model.expireSubscribers(now, 10*time.Second)
	case "create":
		c := &CreateService{Meta: m, Service: s.service(), Info: ServiceInfo{Kind: s.Kind, ProtectThreshold: 0.5}, Adopt: s.Flag}
		p.apply(c, func() Code {
			if svc := p.model.services[c.Service]; svc != nil && (svc.kept || !c.Adopt) {
				return ServiceExists
			}
			p.model.setService(c.Service, c.Info)
			return 0
		})
	case "update":
		c := &UpdateService{Meta: m, Service: s.service(), Info: ServiceInfo{Kind: s.Kind, ProtectThreshold: 0.25}}
		p.apply(c, func() Code { p.model.setService(c.Service, c.Info); return 0 })
	case "delete":
		c := &DeleteService{Meta: m, Service: s.service(), IfEmpty: s.Flag}
		p.apply(c, func() Code { return p.model.deleteService(c) })
	case "cluster":
		c := &SetCluster{Meta: m, Service: s.service(), Cluster: *NewCluster(s.key().Cluster)}
		p.apply(c, func() Code { p.model.setCluster(c); return 0 })
	case "check":
		c := &SetSwitch{Meta: m, Entry: "check", Value: fmt.Sprint(s.Healthy)}
		p.apply(c, func() Code { p.model.checks = s.Healthy; return 0 })
	default:
		p.t.Fatalf("no such step: %s", s.Do)
	}
}

func (m *model) setCluster(c *SetCluster) {
	svc := m.services[c.Service]
	if svc == nil {
		svc = m.create(c.Service)
	}
	svc.clusters[c.Cluster.Name], svc.kept = true, true
}

// apply gives a command to the store, durable ones in their encoded form, and
// compares the refusal with what the model says.
func (p *pair) apply(c Command, model func() Code) {
	if durableName(c) != "" {
		data, err := EncodeCommand(c)
		if err == nil {
			c, err = DecodeCommand(data)
		}
		if err != nil {
			p.t.Fatal(err)
		}
	}
	checked := p.store.Check(c)
	_, err := p.store.Apply(c)
	var refusal *Error
	var got Code
	if errors.As(err, &refusal) {
		got = refusal.Code
	}
	if want := model(); got != want {
		p.t.Fatalf("%+v: refused with %d, want %d", c, got, want)
	}
	if checked != nil && !reflect.DeepEqual(checked, err) {
		p.t.Fatalf("%+v: Check says %v, Apply %v", c, checked, err)
	}
}

// pass lets time pass. With Flag the wall clock steps back a little meanwhile,
// and with Marked the server sleeps instead of looking at the clock in between.
func (p *pair) pass(s step) {
	end := p.now.Lease + s.Pass
	if s.Flag {
		p.now.Wall -= 100
	}
	for p.now.Lease < end {
		d := min(end-p.now.Lease, tick)
		if s.Marked || s.Pass > 2*time.Minute {
			d = end - p.now.Lease
		}
		p.now.Lease += d
		p.now.Wall += d.Milliseconds()
		due := p.store.Expire(p.now)
		for i := range due {
			if _, err := p.store.Apply(&due[i]); err != nil {
				p.t.Fatal(err)
			}
		}
		p.model.expire(p.now.Lease)
	}
	if again := p.store.Expire(p.now); len(again) > 0 {
		p.t.Fatalf("due again: %+v", again)
	}
}

// restart puts what the store remembers into a new one.
func (p *pair) restart() {
	var durable, ephemeral bytes.Buffer
	if err := errors.Join(p.store.Durable()(&durable), p.store.Ephemeral()(&ephemeral)); err != nil {
		p.t.Fatal(err)
	}
	floor := p.store.HighestRevision()
	p.now.Lease = 0
	p.now.Wall -= 5000
	p.watch.forget()
	p.store = NewStore(p.cfg, p.watch)
	p.store.RaiseFloor(floor)
	m := Meta{At: p.now, Cause: Cause{Kind: CauseRestart}}
	first, err := ReadSnapshot(&durable)
	if err != nil {
		p.t.Fatal(err)
	}
	second, err := ReadSnapshot(&ephemeral)
	if err != nil {
		p.t.Fatal(err)
	}
	p.store.Install(first, m)
	for _, id := range second.Clients() {
		p.store.OpenClient(id)
	}
	p.store.Merge(second, m)
	p.model.restart()
}

// differ says in what the two sides differ.
func (p *pair) differ() string {
	if got, want := storeState(p.store, p.now), p.model.state(p.now.Lease); got != want {
		return fmt.Sprintf("the store is\n%s\nwant\n%s", got, want)
	}
	for key, overs := range p.model.overrides {
		for k, o := range overs {
			if got, ok := p.store.Override(key, k); !ok || !reflect.DeepEqual(got, o.Override) {
				return fmt.Sprintf("the override of %v is %+v, %v; want %+v", k, got, ok, o.Override)
			}
		}
	}
	stored := 0
	for i := range p.store.shards {
		for _, overs := range p.store.shards[i].overlays {
			stored += len(overs)
		}
	}
	for _, overs := range p.model.overrides {
		stored -= len(overs)
	}
	if stored != 0 {
		return fmt.Sprintf("the store has %d overrides too many", stored)
	}
	return p.watch.differ(p.store)
}

// storeState prints a store by what its readers are given.
func storeState(s *Store, now Instant) string {
	var b strings.Builder
	for _, ns := range s.ServiceNamespaces() {
		keys, _ := s.Services(ns, "", 0, -1)
		for _, key := range keys {
			v := s.View(key)
			var clusters []string
			for _, c := range v.Clusters {
				clusters = append(clusters, c.Name)
			}
			fmt.Fprintf(&b, "service %s kind %d set %v threshold %v clusters %v held %v\n",
				key, v.Info.Kind, v.Info.Set, v.Info.ProtectThreshold, clusters, s.Held(key))
			for _, st := range s.Standings(key, now) {
				b.WriteString(stateLine(st.Instance, st.Owners, st.SinceBeat))
			}
		}
	}
	subs := map[ServiceKey][]string{}
	for _, sub := range s.FindSubscribers(func(ServiceKey) bool { return true }) {
		subs[sub.Service] = append(subs[sub.Service],
			fmt.Sprintf("subscriber %s %s %q %q %v\n", sub.Service, sub.Addr, sub.Client, sub.Refused, sub.LastSeen()))
	}
	for _, key := range sortedKeys(subs) {
		slices.Sort(subs[key])
		b.WriteString(strings.Join(subs[key], ""))
	}
	fmt.Fprintf(&b, "%+v\n", s.Counts())
	return b.String()
}

func stateLine(i *Instance, owners []Holder, sinceBeat time.Duration) string {
	return fmt.Sprintf("  %s weight %v healthy %v enabled %v ephemeral %v marked %v %s owners %v beat %v\n",
		i.ID("s"), i.Weight, i.Healthy, i.Enabled, i.Ephemeral, i.Marked, i.Metadata, owners, sinceBeat)
}

func sortedKeys[V any](m map[ServiceKey]V) []ServiceKey {
	return slices.SortedFunc(maps.Keys(m), func(a, b ServiceKey) int {
		return strings.Compare(a.Namespace+"\x00"+a.Grouped(), b.Namespace+"\x00"+b.Grouped())
	})
}

func sortedStrings(m map[string]bool) []string { return slices.Sorted(maps.Keys(m)) }

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// watcher follows a store by its events alone: what they tell must be enough to
// know every service, and revisions must only grow, over restarts too.
type watcher struct {
	t         *rapid.T
	revisions map[ServiceKey]int64
	services  map[ServiceKey]map[InstanceKey]*Instance
}

func (w *watcher) forget() { w.services = map[ServiceKey]map[InstanceKey]*Instance{} }

func (w *watcher) Emit(e *Event) {
	if e.Cause.Kind == "" || e.At.Wall == 0 {
		w.t.Fatalf("%s has no cause or time", e.Kind)
	}
	if last := w.revisions[e.Service]; e.Revision != 0 {
		flip := e.Kind == InstanceHealthy || e.Kind == InstanceUnhealthy // may share the revision of an update
		if e.Revision < last || e.Revision == last && !flip {
			w.t.Fatalf("%s %s: revision %d after %d", e.Kind, e.Service, e.Revision, last)
		}
		w.revisions[e.Service] = e.Revision
	}
	switch e.Kind {
	case ServiceCreated:
		w.services[e.Service] = map[InstanceKey]*Instance{}
	case ServiceRemoved:
		delete(w.services, e.Service)
	case InstanceRemoved:
		delete(w.services[e.Service], modelKey(e.Instance.Key()))
	case InstanceRegistered, InstanceUpdated, InstanceHealthy, InstanceUnhealthy, OwnerAdded, OwnerRemoved:
		w.services[e.Service][modelKey(e.Instance.Key())] = e.Instance
	case InstanceRenewed, OverrideSet, OverrideDropped: // also of instances that are not there
		if known := w.services[e.Service][modelKey(e.Instance.Key())]; known != nil {
			w.services[e.Service][modelKey(e.Instance.Key())] = e.Instance
		}
	default: // about no instance
	}
}

// differ says in what the store is not as the events told.
func (w *watcher) differ(s *Store) string {
	for key, known := range w.services {
		v := s.View(key)
		if v == nil || len(v.Instances) != len(known) {
			return fmt.Sprintf("by the events %s has %d instances", key, len(known))
		}
		for _, i := range v.Instances {
			if known[modelKey(i.Key())] != i {
				return fmt.Sprintf("the events did not tell of %+v in %s; they said %+v", i, key, known[modelKey(i.Key())])
			}
		}
		if v.Revision != w.revisions[key] {
			return fmt.Sprintf("%s has revision %d, the events said %d", key, v.Revision, w.revisions[key])
		}
	}
	if n := s.Counts().Services; int(n) != len(w.services) {
		return fmt.Sprintf("by the events there are %d services, not %d", len(w.services), n)
	}
	return ""
}
