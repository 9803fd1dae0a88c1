package registry

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// owners prints who owns an instance, latest first, with - for those who say
// that it is unhealthy.
func (w *world) owners(k InstanceKey) string {
	for _, st := range w.Standings(orders(), w.now) {
		if st.Instance.Key().identity() != k.identity() {
			continue
		}
		var words []string
		for _, h := range st.Owners {
			word := h.Kind.String()
			if h.Client != "" {
				word = string(h.Client)
			}
			if !h.Healthy {
				word += "-"
			}
			words = append(words, word)
		}
		return strings.Join(words, " ")
	}
	return "gone"
}

func TestOwnersAreStacked(t *testing.T) {
	w := newWorld(t)
	w.OpenClient("c1")
	w.OpenClient("c2")
	check := func(step, owners string, weight float64, healthy bool) {
		t.Helper()
		if got := w.owners(first); got != owners {
			t.Errorf("%s: owners %q, want %q", step, got, owners)
		}
		if i := w.find(first); i != nil && (i.Weight != weight || i.Healthy != healthy) {
			t.Errorf("%s: weight %v, healthy %v; want %v, %v", step, i.Weight, i.Healthy, weight, healthy)
		}
		if n := w.View(orders()); owners != "gone" && len(n.Instances) != 1 {
			t.Errorf("%s: %d instances, want one", step, len(n.Instances))
		}
	}
	w.register(httpOwner, first, weight(1))
	check("http", "http", 1, true)
	w.register(connection("c1"), first, weight(2), unhealthy)
	check("c1", "c1- http", 2, true) // any owner's word is enough
	w.register(durableOwner, first, weight(3))
	check("durable", "durable c1- http", 3, true)
	w.register(connection("c2"), first, weight(4))
	check("c2", "c2 durable c1- http", 4, true)
	w.register(httpOwner, first, weight(5))
	check("http again", "http c2 durable c1-", 5, true)

	w.pass(16 * time.Second) // the HTTP owner falls silent
	check("silence", "http- c2 durable c1-", 5, true)
	w.pass(15 * time.Second)
	check("expiry", "c2 durable c1-", 4, true)
	if state := w.beat(first); !state.Known || w.owners(first) != "c2 durable c1-" {
		t.Errorf("a beat for others' instance: %+v, owners %s", state, w.owners(first))
	}
	w.deregister(httpOwner, first) // takes nobody else's away
	check("deregister http", "c2 durable c1-", 4, true)
	w.must(&CloseClient{Meta: w.meta(), Client: "c2"})
	check("close c2", "durable c1-", 3, true)
	w.deregister(durableOwner, first)
	check("deregister durable", "c1-", 2, false)
	w.deregister(connection("c1"), first)
	check("deregister c1", "gone", 0, false)
}

func TestOwnerEvents(t *testing.T) {
	w := newWorld(t)
	w.OpenClient("c1")
	w.register(httpOwner, first)
	w.events("service created orders", "registered orders 10.0.0.1:8080/DEFAULT")
	w.register(httpOwner, first)
	w.events("renewed orders 10.0.0.1:8080/DEFAULT")
	w.register(httpOwner, first, weight(2))
	w.events("updated orders 10.0.0.1:8080/DEFAULT")
	w.register(connection("c1"), first, weight(2))
	w.events("owner added orders 10.0.0.1:8080/DEFAULT")
	w.pass(16 * time.Second) // nobody sees that one of two owners is silent
	w.events()
	w.beat(first)
	w.events()
	w.pass(31 * time.Second)
	w.events("owner removed orders 10.0.0.1:8080/DEFAULT")
	w.must(&CloseClient{Meta: w.meta(), Client: "c1"})
	w.events("removed orders 10.0.0.1:8080/DEFAULT")
}

// What an event carries is enough to repeat it.
func TestEventsOfRegistrations(t *testing.T) {
	w := newWorld(t)
	w.OpenClient("c1")
	over := Override{Weight: new(9.0)}
	w.must(&SetOverride{Meta: w.meta(), Service: orders(), Entries: []TargetOverride{{Target: first, Override: over}}})
	w.rec.take()
	w.register(httpOwner, first, weight(2))
	w.register(connection("c1"), first, weight(3))
	w.register(connection("c1"), first, weight(4), disabled)
	for n, want := range []struct {
		kind EventKind
		base float64
	}{{ServiceCreated, 0}, {InstanceRegistered, 2}, {OwnerAdded, 3}, {InstanceUpdated, 4}} {
		e := w.rec.events[n]
		if e.Kind != want.kind || e.Cause != w.meta().Cause || e.At != w.now {
			t.Errorf("event %d: %+v, want %s", n, e, want.kind)
		}
		if e.Base != nil && (e.Base.Weight != want.base || e.Instance.Weight != 9) {
			t.Errorf("%s: base weight %v, shown %v; want %v, 9", e.Kind, e.Base.Weight, e.Instance.Weight, want.base)
		}
	}
}

// Health is kept by a registration that does not take it: reg-again-health.
func TestHealthOfARegistration(t *testing.T) {
	for _, tt := range []struct {
		first, again, take, want bool
	}{
		{false, true, false, false},
		{true, false, false, true},
		{false, true, true, true},
		{true, false, true, false},
	} {
		w := newWorld(t)
		w.register(httpOwner, first, func(i *Instance) { i.Healthy = tt.first })
		again := instanceAt(first)
		again.Healthy = tt.again
		w.must(&Register{Meta: w.meta(), Service: orders(), Instance: again, TakeHealth: tt.take})
		if got := w.find(first).Healthy; got != tt.want {
			t.Errorf("%+v: healthy %v", tt, got)
		}
		if tt.first != tt.want {
			continue
		}
		w.rec.take()
		w.must(&Register{Meta: w.meta(), Service: orders(), Instance: again, TakeHealth: tt.take})
		w.events("renewed orders 10.0.0.1:8080/DEFAULT")
	}
}

func TestSetHealth(t *testing.T) {
	w := newWorld(t)
	w.refuse(&SetHealth{Meta: w.meta(), Service: orders(), Instance: first}, ServiceNotFound)
	w.register(httpOwner, first)
	w.register(durableOwner, first)
	w.rec.take()
	set := func(k InstanceKey, healthy, all bool, kind OwnerKind) {
		w.must(&SetHealth{Meta: w.meta(), Service: orders(), Instance: k, Healthy: healthy, All: all, Kind: kind})
	}
	set(at("10.9.9.9", 1), false, true, 0) // not there
	w.events()
	set(first, false, false, OwnerDurable)
	w.events("renewed orders 10.0.0.1:8080/DEFAULT") // the other owner says healthy
	set(first, false, true, 0)
	w.events("unhealthy orders 10.0.0.1:8080/DEFAULT")
	set(first, true, false, OwnerHTTP)
	w.events("healthy orders 10.0.0.1:8080/DEFAULT")
	if got := w.owners(first); got != "durable- http" {
		t.Errorf("owners %q", got)
	}
}

func TestOverrides(t *testing.T) {
	w := newWorld(t)
	set := func(o Override) { // naming lays the new over the stored one
		earlier, _ := w.Override(orders(), first)
		w.must(&SetOverride{Meta: w.meta(), Service: orders(), Entries: []TargetOverride{{Target: first, Override: o.Over(earlier)}}})
	}
	check := func(step string, weight float64, enabled bool, app string, m Metadata) {
		t.Helper()
		i := w.find(first)
		if i.Weight != weight || i.Enabled != enabled || i.App != app || i.Metadata != m {
			t.Errorf("%s: %v %v %q %s", step, i.Weight, i.Enabled, i.App, i.Metadata)
		}
	}
	w.register(httpOwner, first, weight(2), metadata("a", "1"), func(i *Instance) { i.App = "x" })
	set(Override{Weight: new(7.0)})
	check("weight alone", 7, true, "x", `{"a":"1"}`)
	set(Override{Metadata: new(NewMetadata(map[string]string{"b": "2", KeyBeatInterval: "3000"})), Enabled: new(false)})
	check("the rest stays", 7, false, "x", `{"b":"2","preserved.heart.beat.interval":"3000"}`)
	if got := w.beat(first).Interval; got != 3*time.Second {
		t.Errorf("interval %v, want the override's", got)
	}
	w.register(httpOwner, first, weight(3), metadata("c", "3"))
	check("registered again", 7, false, "", `{"b":"2","preserved.heart.beat.interval":"3000"}`)
	set(Override{Metadata: new(Metadata("")), App: new("y")})
	check("an empty map is a map", 7, false, "y", "")
	w.rec.take()
	w.must(&DropOverride{Meta: w.meta(), Service: orders(), Target: first})
	w.events("override dropped orders 10.0.0.1:8080/DEFAULT")
	check("dropped", 3, true, "", `{"c":"3"}`)
	w.must(&DropOverride{Meta: w.meta(), Service: orders(), Target: first})
	w.events()
}

// After a restart the durable log brings the override back before its ephemeral
// instance is there.
func TestOverrideExtra(t *testing.T) {
	w := newWorld(t)
	k := at("10.0.0.1", 80)
	laid := func(pairs ...string) *Metadata {
		var i Instance
		metadata(pairs...)(&i)
		return &i.Metadata
	}
	w.register(httpOwner, k, metadata("own", "1", "both", "1"))
	over := Override{}
	for _, tt := range []struct {
		what string
		next Override
		want string
	}{
		{"entries over the client's", Override{Extra: laid("both", "2", "x", "1")}, `{"both":"2","own":"1","x":"1"}`},
		{"other entries instead", Override{Extra: laid("y", "1")}, `{"both":"1","own":"1","y":"1"}`},
		{"a weight keeps them", Override{Weight: new(2.0)}, `{"both":"1","own":"1","y":"1"}`},
		{"a whole map ends them", Override{Metadata: laid("z", "1")}, `{"z":"1"}`},
		{"entries over the whole map", Override{Extra: laid("x", "1")}, `{"x":"1","z":"1"}`},
		{"life times", Override{Extra: laid(KeyBeatTimeout, "60000")}, `{"preserved.heart.beat.timeout":"60000","z":"1"}`},
	} {
		over = tt.next.Over(over)
		w.must(&SetOverride{Meta: w.meta(), Service: orders(), Entries: []TargetOverride{{k, over}}})
		if i := w.find(k); i.Metadata.JSON() != tt.want {
			t.Errorf("%s: metadata %s, want %s", tt.what, i.Metadata.JSON(), tt.want)
		}
	}
	if i := w.find(k); i.BeatTimeout() != time.Minute {
		t.Errorf("beat timeout %v, want that of the entries", i.BeatTimeout())
	}
	w.register(httpOwner, k, metadata("new", "1"))
	w.must(&SetOverride{Meta: w.meta(), Service: orders(), Entries: []TargetOverride{{k, Override{Extra: laid("x", "1")}}}})
	if got := w.find(k).Metadata.JSON(); got != `{"new":"1","x":"1"}` {
		t.Errorf("after a registration: metadata %s, want the new map with the entries", got)
	}
}

func TestOverrideBeforeItsInstance(t *testing.T) {
	w := newWorld(t)
	w.must(&SetOverride{Meta: w.meta(), Service: orders(), Entries: []TargetOverride{
		{Target: at("[2001:DB8::1]", 1), Override: Override{Enabled: new(false), Weight: new(5.0)}},
	}})
	w.events("override set orders 2001:db8::1:1/DEFAULT")
	if w.View(orders()) != nil {
		t.Error("an override makes a service")
	}
	w.register(httpOwner, at("2001:db8::1", 1))
	if i := w.find(at("2001:db8::1", 1)); i.Enabled || i.Weight != 5 {
		t.Errorf("enabled %v, weight %v; want the override", i.Enabled, i.Weight)
	}
	if o, ok := w.Override(orders(), at("2001:DB8::1", 1)); !ok || *o.Weight != 5 {
		t.Errorf("the override of another spelling: %+v, %v", o, ok)
	}
}

func TestOverrideMemory(t *testing.T) {
	w := newWorld(t)
	w.register(httpOwner, first)
	w.must(&SetOverride{Meta: w.meta(), Service: orders(), Entries: []TargetOverride{
		{Target: first, Override: Override{Weight: new(5.0)}},
		{Target: at("10.0.0.2", 1), Override: Override{Weight: new(6.0)}}, // never seen
	}})
	targets := func(due Due) string {
		var list []string
		for _, d := range due {
			list = append(list, d.Target.IP)
		}
		slices.Sort(list)
		return strings.Join(list, " ")
	}
	if got := targets(w.pass(59999 * time.Millisecond)); got != "" { // the first went with this
		t.Errorf("%s are due early", got)
	}
	if w.find(first) != nil {
		t.Fatal("the instance is still there")
	}
	if got := targets(w.pass(time.Millisecond)); got != "10.0.0.2" {
		t.Errorf("due: %q, want the one never seen", got)
	}
	w.register(httpOwner, first) // back in time: the override still holds
	if w.find(first).Weight != 5 {
		t.Error("the override is forgotten")
	}
	w.deregister(httpOwner, first)
	if got := targets(w.pass(59 * time.Second)); got != "10.0.0.2" {
		t.Errorf("due: %q, want the one never seen, again", got)
	}
	due := w.pass(time.Second)
	if got := targets(due); got != "10.0.0.1 10.0.0.2" {
		t.Errorf("due: %q, want both", got)
	}
	for i := range due {
		w.must(&due[i])
	}
	if got := targets(w.pass(time.Hour)); got != "" {
		t.Errorf("%q is due after it was dropped", got)
	}
}

func TestServiceKinds(t *testing.T) {
	register := func(o Owner, kind Kind, port int32) *Register {
		return &Register{Owner: o, Service: orders(), Instance: instanceAt(at("10.0.0.1", port)), Kind: kind}
	}
	for _, tt := range []struct {
		name   string
		before []Command
		kind   Kind
		ok     bool
	}{
		{"v1 after ephemeral", []Command{register(httpOwner, KindEphemeral, 1)}, KindAny, true},
		{"same kind", []Command{register(httpOwner, KindEphemeral, 1)}, KindEphemeral, true},
		{"other kind", []Command{register(httpOwner, KindEphemeral, 1)}, KindPersistent, false},
		{"ephemeral in a persistent one", []Command{register(durableOwner, KindPersistent, 1)}, KindEphemeral, false},
		{"after v1 of either kind", []Command{register(httpOwner, KindAny, 1), register(durableOwner, KindAny, 2)}, KindPersistent, true},
		{"v1 create declares nothing", []Command{&CreateService{Service: orders()}}, KindEphemeral, true},
		{"v2 create declares", []Command{&CreateService{Service: orders(), Info: ServiceInfo{Kind: KindPersistent}}}, KindEphemeral, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			for _, c := range tt.before {
				w.must(c)
			}
			c := register(httpOwner, tt.kind, 9)
			if err := w.Check(c); (err == nil) != tt.ok {
				t.Errorf("Check says %v", err)
			}
			revision := w.View(orders()).Revision
			if tt.ok {
				w.must(c)
			} else if w.refuse(c, KindMismatch); w.View(orders()).Revision != revision {
				t.Error("a refusal changed the service")
			}
		})
	}
}

// A refusal leaves no trace: not even of the kind that was declared.
func TestRefusedRegistrationLeavesNothing(t *testing.T) {
	w := newWorld(t)
	c := &Register{Meta: w.meta(), Service: orders(), Owner: connection("closed"), Instance: instanceAt(first), Kind: KindEphemeral}
	w.refuse(c, ClientClosed)
	w.events()
	if w.View(orders()) != nil || w.Counts() != (Counts{}) {
		t.Error("a refused registration made a service")
	}
	w.register(httpOwner, first)
	w.deregister(httpOwner, first)
	w.refuse(c, ClientClosed)
	if kind := w.View(orders()).Info.Kind; kind != KindAny {
		t.Errorf("the service is now of kind %d", kind)
	}
}

// The numbers are those of the recording reg-snowflake.
func TestSnowflakeSerials(t *testing.T) {
	w := newWorld(t)
	snowflake := metadata(KeyIDGenerator, "snowflake")
	id := func(port int32) string { return w.find(at("1.1.1.1", port)).ID("g@@s") }
	check := func(port int32, want string) {
		t.Helper()
		if got := id(port); got != want {
			t.Errorf("port %d: got %s, want %s", port, got, want)
		}
	}
	w.register(httpOwner, at("1.1.1.1", 1), snowflake)
	w.register(httpOwner, at("1.1.1.1", 2), metadata(KeyIDGenerator, "SNOWFLAKE"))
	w.register(httpOwner, at("1.1.1.1", 3))
	check(1, "0")
	check(2, "1")
	check(3, "1.1.1.1#3#DEFAULT#g@@s")
	w.deregister(httpOwner, at("1.1.1.1", 1))
	w.register(httpOwner, at("1.1.1.1", 4), snowflake)
	check(4, "0") // the smallest unused one
	w.register(httpOwner, at("1.1.1.1", 2), metadata("a", "1"))
	check(2, "1") // kept
	w.register(httpOwner, at("1.1.1.1", 3), snowflake)
	check(3, "1.1.1.1#3#DEFAULT#g@@s") // kept
	w.register(durableOwner, at("1.1.1.1", 2), metadata(KeyIDGenerator, "simple"))
	check(2, "1")
	w.register(httpOwner, at("1.1.1.1", 5), metadata(KeyIDGenerator, "unknown"))
	check(5, "1.1.1.1#5#DEFAULT#g@@s")
}

// Whether or not the registering client changed anything, nothing of its memory
// is kept.
func TestRequestMemoryIsNotKept(t *testing.T) {
	w := newWorld(t)
	w.OpenClient("c1")
	buf := []byte("public DEFAULT_GROUP orders 10.0.0.1 DEFAULT app-1 [2001:db8::1]")
	register := func(o Owner) {
		text := fieldsOf(buf)
		for _, ip := range []string{text[3], text[6]} {
			w.must(&Register{
				Meta: w.meta(), Service: ServiceKey{text[0], text[1], text[2]}, Owner: o,
				Instance: Instance{IP: ip, Port: 1, Cluster: text[4], App: text[5]},
			})
		}
		w.must(&Deregister{Meta: w.meta(), Service: orders(), Instance: InstanceKey{IP: text[0], Cluster: text[1]}}) // not there
		w.must(&Subscribe{Meta: w.meta(), Subscriber: &Subscriber{
			SubscriberKey: SubscriberKey{Agent: text[0], Clusters: text[1]}, Service: ServiceKey{text[0], text[1], text[2]}, App: text[5],
		}})
	}
	register(httpOwner)
	register(httpOwner)
	register(connection("c1"))
	before := w.describe()
	for i := range buf {
		buf[i] = '#'
	}
	if after := w.describe(); after != before {
		t.Errorf("kept request memory:\n%s\nbecame\n%s", before, after)
	}
}

// describe prints all names of orders.
func (w *world) describe() string {
	v := w.View(orders())
	text := fmt.Sprint(v.Key, v.Grouped, w.ClientHoldings("c1"))
	for _, c := range v.Clusters {
		text += c.Name
	}
	for _, i := range v.Instances {
		text += fmt.Sprint(*i)
	}
	for i := range w.rec.events {
		text += eventLine(&w.rec.events[i])
	}
	for _, s := range w.Subscribers(orders()) {
		text += fmt.Sprint(s.SubscriberKey, s.Service, s.App)
	}
	return text
}
