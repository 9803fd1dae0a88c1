package registry

import (
	"slices"
	"sync"
	"testing"
)

func (w *world) publish(client ClientID, keys ...InstanceKey) []InstanceKey {
	w.t.Helper()
	c := &Publish{Meta: w.meta(), Service: orders(), Client: client, Kind: KindEphemeral}
	for _, k := range keys {
		c.Instances = append(c.Instances, Instance{IP: k.IP, Port: k.Port, Cluster: k.Cluster, Weight: 1, Healthy: true, Enabled: true})
	}
	res, err := w.Apply(c)
	if err != nil {
		w.t.Fatal(err)
	}
	var released []InstanceKey
	for _, i := range res.Released {
		released = append(released, i.Key())
	}
	slices.SortFunc(released, InstanceKey.compare)
	return released
}

func port(n int32) InstanceKey {
	return InstanceKey{IP: "10.0.0.1", Port: n, Cluster: DefaultCluster}
}

func TestPublishReplacesTheSlot(t *testing.T) {
	w := newWorld(t)
	w.OpenClient("c1")
	w.OpenClient("c2")
	listed := func() (keys []InstanceKey) {
		if v := w.View(orders()); v != nil {
			for _, i := range v.Instances {
				keys = append(keys, i.Key())
			}
		}
		return keys
	}
	for _, step := range []struct {
		name     string
		client   ClientID
		publish  []InstanceKey
		released []InstanceKey
		listed   []InstanceKey
	}{
		{"nothing yet", "c1", nil, nil, nil},
		{"one", "c1", []InstanceKey{port(1)}, nil, []InstanceKey{port(1)}},
		{"another port", "c1", []InstanceKey{port(2)}, []InstanceKey{port(1)}, []InstanceKey{port(2)}},
		{"the same again", "c1", []InstanceKey{port(2)}, nil, []InstanceKey{port(2)}},
		{"a batch, one twice", "c1", []InstanceKey{port(2), port(3), port(4), port(3)}, nil, []InstanceKey{port(2), port(3), port(4)}},
		{"another client's", "c2", []InstanceKey{port(4), port(5)}, nil, []InstanceKey{port(2), port(3), port(4), port(5)}},
		{"a smaller batch", "c1", []InstanceKey{port(3), port(4)}, []InstanceKey{port(2)}, []InstanceKey{port(3), port(4), port(5)}},
		{"shared ones stay", "c1", nil, []InstanceKey{port(3), port(4)}, []InstanceKey{port(4), port(5)}},
		{"the last", "c2", nil, []InstanceKey{port(4), port(5)}, nil},
	} {
		if got := w.publish(step.client, step.publish...); !slices.Equal(got, step.released) {
			t.Errorf("%s: released %v, want %v", step.name, got, step.released)
		}
		if got := listed(); !slices.Equal(got, step.listed) {
			t.Errorf("%s: listed %v, want %v", step.name, got, step.listed)
		}
		want := slices.Compact(slices.SortedFunc(slices.Values(step.publish), InstanceKey.compare))
		if got := w.ClientHoldings(step.client)[orders()]; !slices.Equal(got, want) {
			t.Errorf("%s: the connection holds %v, want %v", step.name, got, want)
		}
	}
}

// lookingSink looks whether anybody can see the service between two events of a
// command.
type lookingSink struct {
	store *Store
	saw   []bool
}

func (s *lookingSink) Emit(*Event) {
	free := s.store.shard(orders()).mu.TryRLock()
	if free {
		s.store.shard(orders()).mu.RUnlock()
	}
	s.saw = append(s.saw, free)
}

func TestPublishIsOneStep(t *testing.T) {
	w := newWorld(t)
	w.OpenClient("c1")
	w.publish("c1", port(1))
	looking := &lookingSink{store: w.Store}
	w.sink = looking
	w.publish("c1", port(2))
	if !slices.Equal(looking.saw, []bool{false, false}) {
		t.Errorf("the service could be seen in between: %v", looking.saw)
	}
	if got := len(w.View(orders()).Instances); got != 1 {
		t.Errorf("%d instances", got)
	}
}

func TestPublishIsRefused(t *testing.T) {
	w := newWorld(t)
	one := []Instance{{IP: "10.0.0.1", Port: 1, Cluster: DefaultCluster}}
	w.refuse(&Publish{Meta: w.meta(), Service: orders(), Client: "c1", Instances: one, Kind: KindEphemeral}, ClientClosed)
	w.OpenClient("c1")
	w.must(&CreateService{Meta: w.meta(), Service: orders(), Info: ServiceInfo{Kind: KindPersistent}})
	w.refuse(&Publish{Meta: w.meta(), Service: orders(), Client: "c1", Instances: one, Kind: KindEphemeral}, KindMismatch)
	if _, err := w.Apply(&Publish{Meta: w.meta(), Service: orders(), Client: "c1", Kind: KindEphemeral}); err != nil {
		t.Errorf("leaving a persistent service: %v", err)
	}
}

// Two commands of one connection at once leave what one of them lists.
func TestPublishTakesTurns(t *testing.T) {
	w := newWorld(t)
	w.OpenClient("c1")
	list := func(from int32) (instances []Instance) {
		for port := from; port < from+700; port++ {
			instances = append(instances, Instance{IP: "10.0.0.1", Port: port, Cluster: DefaultCluster})
		}
		return instances
	}
	var wg sync.WaitGroup
	for _, from := range []int32{1, 351} {
		wg.Go(func() {
			for range 20 {
				if _, err := w.Apply(&Publish{Meta: w.meta(), Service: orders(), Client: "c1", Instances: list(from), Kind: KindEphemeral}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if v := w.View(orders()); len(v.Instances) != 700 {
		t.Errorf("%d instances, want the 700 of one command", len(v.Instances))
	}
}

func TestOwnAndComputedIDs(t *testing.T) {
	for want, i := range map[string]Instance{
		"10.0.0.1#1#DEFAULT#g@@s": {},
		"10.0.0.1#1#null#g@@s":    {Unclustered: NullCluster},
		"10.0.0.1#1##g@@s":        {Unclustered: BlankCluster},
		"mine":                    {Rare: &Rare{ID: "mine"}},
	} {
		i.IP, i.Port, i.Cluster = "10.0.0.1", 1, DefaultCluster
		if got := i.ID("g@@s"); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	w := newWorld(t)
	w.OpenClient("c1")
	own := Instance{IP: "10.0.0.1", Port: 1, Cluster: DefaultCluster, Rare: &Rare{ID: "mine"}}
	own.Metadata = NewMetadata(map[string]string{KeyBeatTimeout: "20000"})
	w.must(&Publish{Meta: w.meta(), Service: orders(), Client: "c1", Instances: []Instance{own}})
	got := w.find(port(1))
	if got.OwnID() != "mine" || got.BeatTimeout().Seconds() != 20 {
		t.Errorf("ID %q, beat timeout %v", got.OwnID(), got.BeatTimeout())
	}
	changed := NewMetadata(map[string]string{"a": "b"})
	w.must(&SetOverride{Meta: w.meta(), Service: orders(), Entries: []TargetOverride{{Target: port(1), Override: Override{Metadata: &changed}}}})
	if got := w.find(port(1)); got.OwnID() != "mine" || got.BeatTimeout() != DefaultBeatTimeout {
		t.Errorf("with an override: ID %q, beat timeout %v", got.OwnID(), got.BeatTimeout())
	}
	own.Rare = nil
	w.must(&Publish{Meta: w.meta(), Service: orders(), Client: "c1", Instances: []Instance{own}})
	if got := w.find(port(1)); got.OwnID() != "" {
		t.Errorf("ID %q after a registration without one", got.OwnID())
	}
}
