package registry

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// busyWorld has something of everything.
func busyWorld(t *testing.T) *world {
	w := newWorld(t)
	w.OpenClient("c1")
	w.OpenClient("c2")
	selector, err := NewSelector(SelectorLabel, "CONSUMER.label.a=PROVIDER.label.a")
	if err != nil {
		t.Fatal(err)
	}
	w.must(&SetSwitch{Meta: w.meta(), Entry: "clientBeatInterval", Value: "7000"})
	w.must(&SetSwitch{Meta: w.meta(), Entry: "overriddenServerStatus", Value: "UP"})
	w.must(&CreateNamespace{Meta: w.meta(), Namespace: Namespace{ID: "n1", Name: "Namespace 1"}})
	w.must(&CreateService{Meta: w.meta(), Service: orders(), Info: ServiceInfo{
		Kind: KindEphemeral, ProtectThreshold: 0.3, Selector: selector, Metadata: `{"m":"<&>"}`,
		Legacy: &LegacyInfo{Owners: []string{"alice"}, Token: "t"},
	}})
	w.must(&SetCluster{Meta: w.meta(), Service: orders(), Cluster: Cluster{
		Name: "c-9", Checker: HealthCheck{Type: CheckHTTP, Path: "/x", ExpectedCode: 200}, UseInstancePort: true, DefaultPort: 80,
	}})
	w.register(httpOwner, first, times("", "20000", ""), unhealthy)
	w.register(connection("c1"), first, weight(2), disabled)
	w.register(durableOwner, first, weight(3), unhealthy)
	w.register(connection("c2"), at("[2001:DB8::1]", 0), metadata(KeyIDGenerator, "snowflake"))
	w.register(httpOwner, at("10.0.0.3", 1), metadata(KeyIDGenerator, "snowflake"), func(i *Instance) { i.Marked, i.HideID, i.App = true, true, "app" })
	w.register(durableOwner, at("10.0.0.4", 1))
	w.registerIn(named("implicit"), durableOwner, at("10.0.0.5", 1))
	w.registerIn(named("implicit"), httpOwner, at("10.0.0.6", 1))
	w.registerIn(ServiceKey{"n1", "g", "only-ephemeral"}, httpOwner, first)
	w.must(&CreateService{Meta: w.meta(), Service: named("empty")})
	w.must(&SetOverride{Meta: w.meta(), Service: orders(), Entries: []TargetOverride{
		{Target: first, Override: Override{Weight: new(9.0), Metadata: new(Metadata(`{"o":"1"}`))}},
		{Target: at("10.9.9.9", 1), Override: Override{Enabled: new(false), App: new("a")}},
	}})
	return w
}

// state prints what readers and explainers see of a store, but revisions, ages
// and subscribers.
func (w *world) state() string {
	var b strings.Builder
	fmt.Fprintf(&b, "switches %s\nnamespaces %v\n", marshal(w.t, w.Switches()), w.Namespaces())
	for _, ns := range w.ServiceNamespaces() {
		keys, _ := w.Services(ns, "", 0, -1)
		for _, key := range keys {
			v := w.View(key)
			fmt.Fprintf(&b, "service %s %s %s\n", key, marshal(w.t, v.Info), marshal(w.t, v.Clusters))
			for _, st := range w.Standings(key, w.now) {
				fmt.Fprintf(&b, "  %s %s beats %v owners %v override %s\n",
					st.Instance.ID(v.Grouped), marshal(w.t, st.Instance), st.Instance.BeatTimes(), st.Owners, marshal(w.t, st.Override))
			}
		}
	}
	fmt.Fprintf(&b, "counts %+v\n", w.Counts())
	return b.String()
}

func written(t *testing.T, write func(b *bytes.Buffer) error) string {
	t.Helper()
	var b bytes.Buffer
	if err := write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func snapshots(t *testing.T, s *Store) (durable, ephemeral string) {
	return written(t, func(b *bytes.Buffer) error { return s.Durable()(b) }),
		written(t, func(b *bytes.Buffer) error { return s.Ephemeral()(b) })
}

func read(t *testing.T, text string) *Snapshot {
	t.Helper()
	snap, err := ReadSnapshot(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return snap
}

func TestSnapshotRoundTrip(t *testing.T) {
	w := busyWorld(t)
	durable, ephemeral := snapshots(t, w.Store)

	back := newWorld(t)
	back.now = w.now
	back.now.Wall -= 1e9 // the clock was set back meanwhile
	back.Install(read(t, durable), back.meta())
	if got, _ := snapshots(t, back.Store); withoutRevisions(got) != withoutRevisions(durable) {
		t.Errorf("the durable part came back as\n%s\nwant\n%s", withoutRevisions(got), withoutRevisions(durable))
	}
	snap := read(t, ephemeral)
	if got := snap.Clients(); !slices.Equal(got, []ClientID{"c1", "c2"}) {
		t.Errorf("connections %v", got)
	}
	for _, id := range snap.Clients() {
		back.OpenClient(id)
	}
	back.Merge(snap, back.meta())
	durableAgain, ephemeralAgain := snapshots(t, back.Store)
	if withoutRevisions(durableAgain) != withoutRevisions(durable) || ephemeralAgain != ephemeral {
		t.Errorf("came back as\n%s%s\nwant\n%s%s", durableAgain, ephemeralAgain, durable, ephemeral)
	}
	// The one difference: the durable owner was there first after the restart.
	want := strings.Replace(w.state(), "owners [{{durable } false} {{connection c1} true} {{http } false}]",
		"owners [{{connection c1} true} {{http } false} {{durable } false}]", 1)
	if got, want := withoutFirst(back.state()), withoutFirst(want); got != want {
		t.Errorf("the state came back as\n%s\nwant\n%s", got, want)
	}
	for _, key := range []ServiceKey{orders(), named("implicit")} {
		if was, is := w.View(key).Revision, back.View(key).Revision; is <= was {
			t.Errorf("%s: revision %d after %d", key, is, was)
		}
	}
}

// withoutRevisions cuts the revisions off a snapshot: they grow when it is loaded.
func withoutRevisions(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		before, after, found := strings.Cut(line, `"revision":`)
		if found {
			line = before + strings.TrimLeft(after, "0123456789")
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "")
}

// withoutFirst drops the instance that the durable owner no longer heads.
func withoutFirst(state string) string {
	var lines []string
	for line := range strings.Lines(state) {
		if !strings.HasPrefix(line, "  10.0.0.1#8080#DEFAULT#DEFAULT_GROUP@@orders") && !strings.HasPrefix(line, "counts") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}

// What is written later is the state at the time of the call.
func TestSnapshotIsOfItsTime(t *testing.T) {
	w := busyWorld(t)
	durable, ephemeral := snapshots(t, w.Store)
	writeDurable, writeEphemeral := w.Durable(), w.Ephemeral()
	w.register(httpOwner, first, weight(8))
	w.must(&DeleteService{Meta: w.meta(), Service: orders()})
	w.must(&SetSwitch{Meta: w.meta(), Entry: "clientBeatInterval", Value: "1"})
	got := written(t, func(b *bytes.Buffer) error { return writeDurable(b) }) +
		written(t, func(b *bytes.Buffer) error { return writeEphemeral(b) })
	if got != durable+ephemeral {
		t.Errorf("got\n%s\nwant\n%s", got, durable+ephemeral)
	}
}

// A remembered HTTP instance has a fresh lease, and the health that it had.
func TestRemembered(t *testing.T) {
	w := newWorld(t)
	w.register(httpOwner, first)
	w.pass(20 * time.Second)
	_, ephemeral := snapshots(t, w.Store)
	back := newWorld(t)
	back.Merge(read(t, ephemeral), back.meta())
	if i := back.find(first); i == nil || i.Healthy {
		t.Fatalf("came back as %+v", i)
	}
	back.rec.take()
	back.pass(29 * time.Second)
	back.events()
	back.beat(first)
	back.events("healthy orders 10.0.0.1:8080/DEFAULT")
}

// Serials survive a restart, and are never given to two.
func TestSerialsAreRemembered(t *testing.T) {
	snowflake := metadata(KeyIDGenerator, "snowflake")
	w := newWorld(t)
	for port := range int32(4) {
		w.register(httpOwner, at("10.0.0.1", port+1), snowflake)
	}
	w.deregister(httpOwner, at("10.0.0.1", 1))
	w.register(httpOwner, at("10.0.0.1", 3), metadata("a", "1")) // keeps its number without asking for one
	_, ephemeral := snapshots(t, w.Store)
	ids := func(w *world) (list []string) {
		for _, i := range w.View(orders()).Instances {
			list = append(list, i.ID("g@@s"))
		}
		return list
	}
	back := newWorld(t)
	back.Merge(read(t, ephemeral), back.meta())
	if got, want := ids(back), ids(w); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	early := newWorld(t)
	early.register(httpOwner, at("10.0.0.0", 1), snowflake) // before the memory is back
	early.register(httpOwner, at("10.0.0.0", 2), snowflake)
	early.Merge(read(t, ephemeral), early.meta())
	got := ids(early)
	slices.Sort(got)
	if len(slices.Compact(got)) != 5 {
		t.Errorf("got %v, want five different ones", got)
	}
}

// Installing a snapshot takes away what the durable log has made, and nothing else.
func TestInstallReplacesTheDurableState(t *testing.T) {
	w := busyWorld(t)
	empty, _ := snapshots(t, newWorld(t).Store)
	w.Install(read(t, empty), w.meta())
	durable, ephemeral := snapshots(t, w.Store)
	if durable != empty {
		t.Errorf("left:\n%s", durable)
	}
	_, before := snapshots(t, busyWorld(t).Store)
	before = withoutLines(before, `{"unhealthy"`) // persistent ones, which are gone
	if ephemeral != before {
		t.Errorf("ephemeral instances are now\n%s\nwant\n%s", ephemeral, before)
	}
	i := w.find(first)
	if i.Weight != 2 || i.Metadata != "" {
		t.Errorf("the override is still in force: %+v", i)
	}
	if info := w.View(orders()).Info; info.Set || info.ProtectThreshold != 0 {
		t.Errorf("settings %+v", info)
	}
	if c := w.View(orders()).Cluster("c-9"); *c != *NewCluster("c-9") {
		t.Errorf("cluster %+v", c)
	}
	if w.View(named("empty")) != nil || w.View(named("implicit")) == nil {
		t.Error("the empty service should be gone, the one with an ephemeral instance not")
	}
	if n := w.Counts(); n.Persistent != 0 || n.Ephemeral != 5 {
		t.Errorf("counts %+v", n)
	}
}

func TestReadSnapshotRefuses(t *testing.T) {
	for name, text := range map[string]string{
		"no JSON":                   "zzz",
		"half an entry":             `{"namespace":{"id":"a"`,
		"an entry of another kind":  `{"plan":{}}`,
		"an empty entry":            `{}`,
		"null":                      `null`,
		"a service without info":    `{"service":{"ns":"n","group":"g","service":"s"}}`,
		"a null cluster":            `{"service":{"ns":"n","group":"g","service":"s","info":{},"clusters":[null]}}`,
		"an owner without instance": `{"instance":{"ns":"n","group":"g","service":"s"}}`,
	} {
		if _, err := ReadSnapshot(strings.NewReader(`{"namespace":{"id":"a","name":"b"}}` + "\n" + text)); err == nil || !strings.Contains(err.Error(), "entry 2") {
			t.Errorf("%s: got %v, want an error that names entry 2", name, err)
		}
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, fmt.Errorf("disk full") }

func TestSnapshotWriteError(t *testing.T) {
	if err := busyWorld(t).Durable()(brokenWriter{}); err == nil || err.Error() != "write snapshot: disk full" {
		t.Errorf("got %v", err)
	}
}

// FuzzSnapshot reads and installs what may be a snapshot, and writes it again.
func FuzzSnapshot(f *testing.F) {
	w := busyWorld(&testing.T{})
	for _, write := range []func() string{
		func() string { var b bytes.Buffer; _ = w.Durable()(&b); return b.String() },
		func() string { var b bytes.Buffer; _ = w.Ephemeral()(&b); return b.String() },
	} {
		f.Add(write())
		for line := range strings.Lines(write()) {
			f.Add(line)
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		snap, err := ReadSnapshot(strings.NewReader(text))
		if err != nil {
			return
		}
		w := newWorld(t)
		for _, id := range snap.Clients() {
			w.OpenClient(id)
		}
		w.Install(snap, w.meta())
		checkStore(t, w.Store)
		durable, ephemeral := snapshots(t, w.Store)
		back := newWorld(t)
		for _, id := range snap.Clients() {
			back.OpenClient(id)
		}
		back.Install(read(t, durable), back.meta())
		back.Merge(read(t, ephemeral), back.meta())
		again, _ := snapshots(t, back.Store)
		if withoutRevisions(again) != withoutRevisions(durable) {
			t.Errorf("%s\ncame back as\n%s", durable, again)
		}
		w.pass(time.Minute)
		w.pass(time.Minute)
		checkStore(t, w.Store)
	})
}

// withoutLines drops the lines of text that begin with prefix.
func withoutLines(text, prefix string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, prefix) {
			b.WriteString(line)
		}
	}
	return b.String()
}
