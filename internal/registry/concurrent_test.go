package registry

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// atomicClock is a lease clock that many read and one moves.
type atomicClock struct{ lease atomic.Int64 }

func (c *atomicClock) now() Instant {
	lease := time.Duration(c.lease.Load())
	return Instant{Wall: wall0 + lease.Milliseconds(), Lease: lease}
}

func (c *atomicClock) meta() Meta {
	return Meta{At: c.now(), Cause: Cause{Kind: CauseRequest, API: "test"}}
}

// countingSink counts what comes and goes.
type countingSink struct{ registered, removed atomic.Int64 }

func (s *countingSink) Emit(e *Event) {
	switch e.Kind {
	case InstanceRegistered:
		s.registered.Add(1)
	case InstanceRemoved:
		s.removed.Add(1)
	default: // not counted
	}
}

// TestConcurrent lets many do everything at once on a few services, while time
// passes and readers read, and then holds the store to its invariants.
func TestConcurrent(t *testing.T) {
	const workers, steps, seconds = 8, 1500, 120
	sink := &countingSink{}
	s := NewStore(DefaultConfig(), sink)
	clock := &atomicClock{}
	var working, watching sync.WaitGroup
	done := make(chan struct{})
	for n := range workers {
		working.Go(func() {
			w := &worker{store: s, clock: clock, rng: rand.New(rand.NewPCG(1, uint64(n))), id: n}
			for range steps {
				if err := w.step(); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	watching.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
				s.Expire(clock.now())
				s.ExpireSubscribers(clock.now(), 10*time.Second)
				clock.lease.Add(int64(tick))
			}
		}
	})
	watching.Go(func() { readWhile(t, s, done) })
	working.Wait()
	close(done)
	watching.Wait()

	checkStore(t, s)
	n := s.Counts()
	if got := sink.registered.Load() - sink.removed.Load(); got != n.Ephemeral+n.Persistent {
		t.Errorf("by the events %d instances are left, by the counts %+v", got, n)
	}
	for range seconds { // at the end everybody is silent, and only durable owners stay
		clock.lease.Add(int64(time.Second))
		s.Expire(clock.now())
	}
	for n := range workers {
		for k := range 2 {
			_, _ = s.Apply(&CloseClient{Meta: clock.meta(), Client: clientOf(n, k)})
		}
	}
	checkStore(t, s)
	if n := s.Counts(); n.Ephemeral != 0 {
		t.Errorf("left: %+v", n)
	}
}

func clientOf(worker, n int) ClientID { return ClientID(fmt.Sprintf("c%d-%d", worker, n)) }

// worker is one of many clients, with connections of its own and services shared
// with all.
type worker struct {
	store *Store
	clock *atomicClock
	rng   *rand.Rand
	id    int
}

// step does one thing. Only refusals that a race can cause are no error.
func (w *worker) step() error {
	m := w.clock.meta()
	key := named(fmt.Sprint("s", w.rng.IntN(3)))
	where := at("10.0.0.1", int32(w.rng.IntN(12)))
	client := clientOf(w.id, w.rng.IntN(2))
	owner := []Owner{httpOwner, httpOwner, durableOwner, connection(client)}[w.rng.IntN(4)]
	inst := instanceAt(where)
	inst.Weight = float64(w.rng.IntN(3))
	var c Command
	switch w.rng.IntN(16) {
	case 0, 1, 2, 3:
		c = &Register{Meta: m, Service: key, Owner: owner, Instance: inst}
	case 4, 5, 6, 7, 8:
		w.store.Beat(&Beat{Meta: m, Service: key, Instance: where})
		return nil
	case 9, 10:
		c = &Deregister{Meta: m, Service: key, Owner: owner, Instance: where}
	case 11:
		w.store.OpenClient(client)
		return nil
	case 12:
		c = &CloseClient{Meta: m, Client: client}
	case 13:
		sub := grpcSubscriber(client)
		sub.Service = key
		c = &Subscribe{Meta: m, Subscriber: sub}
	case 14:
		c = &SetOverride{Meta: m, Service: key, Entries: []TargetOverride{{Target: where, Override: Override{Weight: new(7.0)}}}}
	case 15:
		if w.rng.IntN(4) > 0 {
			c = &SetHealth{Meta: m, Service: key, Instance: where, Healthy: w.rng.IntN(2) == 0, All: true}
		} else {
			c = &DeleteService{Meta: m, Service: key}
		}
	}
	_, err := w.store.Apply(c)
	var refusal *Error
	if errors.As(err, &refusal) && (refusal.Code == ClientClosed || refusal.Code == ServiceNotFound) {
		return nil
	}
	return err
}

// readWhile reads everything over and over: views are whole, and their revisions
// only grow.
func readWhile(t *testing.T, s *Store, done <-chan struct{}) {
	last := map[ServiceKey]int64{}
	for {
		select {
		case <-done:
			return
		default:
		}
		keys, _ := s.Services(DefaultNamespace, "", 0, -1)
		for _, key := range keys {
			v := s.View(key)
			if v == nil {
				continue
			}
			if v.Revision < last[key] {
				t.Errorf("%s: revision %d after %d", key, v.Revision, last[key])
			}
			last[key] = v.Revision
			sel := Select(v, Query{HealthyOnly: true})
			for _, i := range sel.Instances {
				if v.Find(i.Key()) != i {
					t.Errorf("%s: %v is selected and not in the view", key, i.Key())
				}
			}
			s.Standings(key, Instant{})
		}
		s.Ephemeral()
		s.Durable()
		s.FindSubscribers(func(ServiceKey) bool { return true })
		s.ClientHoldings(clientOf(0, 0))
		s.HighestRevision()
	}
}

// A connection that is closed while it registers keeps nothing.
func TestCloseRacesWithRegister(t *testing.T) {
	for range 200 {
		s := NewStore(DefaultConfig(), discard{})
		s.OpenClient("c1")
		var both sync.WaitGroup
		for n := range 2 {
			both.Go(func() {
				for port := range int32(10) {
					_, _ = s.Apply(&Register{Service: orders(), Owner: connection("c1"), Instance: instanceAt(at("10.0.0.1", port+10*int32(n)))})
				}
			})
		}
		both.Go(func() { _, _ = s.Apply(&CloseClient{Client: "c1"}) })
		both.Wait()
		if n := s.Counts(); n.Ephemeral != 0 {
			t.Fatalf("left: %+v", n)
		}
		checkStore(t, s)
	}
}

// Beats renew while time passes: nobody who beats is lost.
func TestBeatsRaceWithExpiry(t *testing.T) {
	const instances = 40
	s := NewStore(DefaultConfig(), discard{})
	clock := &atomicClock{}
	for port := range int32(instances) {
		_, _ = s.Apply(&Register{Meta: clock.meta(), Service: orders(), Instance: instanceAt(at("10.0.0.1", port))})
	}
	for range 300 {
		clock.lease.Add(int64(14 * time.Second))
		var round sync.WaitGroup
		for n := range int32(2) {
			round.Go(func() {
				for port := n; port < instances; port += 2 {
					if !s.Beat(&Beat{Meta: clock.meta(), Service: orders(), Instance: at("10.0.0.1", port)}).Known {
						t.Errorf("instance %d is gone", port)
					}
				}
			})
		}
		round.Go(func() { s.Expire(clock.now()) })
		round.Wait()
	}
	if n := s.Counts(); n.Ephemeral != instances {
		t.Errorf("left: %+v", n)
	}
	checkStore(t, s)
}
