package httpmode

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollcall-registry/rollcall/client/internal/wire"
	"github.com/rollcall-registry/rollcall/test/faulttest"
)

const beatLine = "PUT /v1/ns/instance/beat"

func publish(t *testing.T, w *world, instances ...wire.Instance) {
	t.Helper()
	if err := w.Publish(t.Context(), orders, instances); err != nil {
		t.Fatal(err)
	}
}

func times(calls []call) []time.Duration {
	var at []time.Duration
	for _, c := range calls {
		at = append(at, c.at)
	}
	return at
}

func TestBeatsFollowTheServer(t *testing.T) {
	inWorld(t, []string{first}, nil, func(t *testing.T, w *world) {
		f := w.fakes[first]
		publish(t, w, instance(1))
		time.Sleep(11 * time.Second)
		f.set(func(f *fake) { f.interval = 2000 })
		time.Sleep(10 * time.Second)
		beats := f.of(beatLine)
		want := []time.Duration{5 * time.Second, 10 * time.Second, 15 * time.Second, 17 * time.Second, 19 * time.Second, 21 * time.Second}
		if got := times(beats); !slices.Equal(got, want[:len(got)]) || len(got) < 5 {
			t.Errorf("beats at %v, want %v", got, want)
		}
		for n, b := range beats {
			if b.fullBeat != (n == 0) {
				t.Errorf("beat %d: full is %t; the server asked for light ones", n, b.fullBeat)
			}
			if b.form["serviceName"] != "DEFAULT_GROUP@@orders" || b.form["ip"] != "10.1.0.1" || b.form["port"] != "1" || b.form["clusterName"] != "DEFAULT" {
				t.Errorf("a beat of %v", b.form)
			}
		}
	})
}

func TestFullBeats(t *testing.T) {
	inWorld(t, []string{first}, nil, func(t *testing.T, w *world) {
		f := w.fakes[first]
		f.set(func(f *fake) { f.light = false })
		i := instance(1)
		i.Metadata = map[string]string{intervalKey: "1000", "a": "<b>"}
		publish(t, w, i)
		time.Sleep(1500 * time.Millisecond)
		beats := f.of(beatLine)
		if len(beats) != 1 || !beats[0].fullBeat {
			t.Fatalf("beats: %+v", beats)
		}
		want := `{"port":1,"ip":"10.1.0.1","weight":1,"serviceName":"DEFAULT_GROUP@@orders","cluster":"DEFAULT","metadata":{"a":"\u003cb\u003e","preserved.heart.beat.interval":"1000"},"scheduled":false,"period":1000,"stopped":false}`
		if got := beats[0].form["beat"]; got != want {
			t.Errorf("beat %s, want %s", got, want)
		}
	})
}

func TestUnknownToTheServer(t *testing.T) {
	inWorld(t, []string{first}, nil, func(t *testing.T, w *world) {
		f := w.fakes[first]
		publish(t, w, instance(1))
		time.Sleep(6 * time.Second)
		f.set(func(f *fake) { clear(f.instances) }) // as after a restart
		time.Sleep(5 * time.Second)
		if !f.has("10.1.0.1:1") || len(f.of("POST /v1/ns/instance")) != 2 {
			t.Errorf("not registered again: %+v", f.of("POST /v1/ns/instance"))
		}
	})
}

func TestNoBeatBringsBackWhatLeft(t *testing.T) {
	inWorld(t, []string{first}, nil, func(t *testing.T, w *world) {
		f := w.fakes[first]
		f.set(func(f *fake) { f.light = false })
		publish(t, w, instance(1))
		f.set(func(f *fake) {
			f.handle = func(_ http.ResponseWriter, r *http.Request) bool {
				if r.Method == http.MethodPut {
					time.Sleep(2 * time.Second) // then it takes the beat, which registers
				}
				return false
			}
		})
		time.Sleep(6 * time.Second) // a beat is on its way
		publish(t, w)
		time.Sleep(time.Minute)
		if f.has("10.1.0.1:1") {
			t.Error("a beat brought the instance back")
		}
		if n := len(f.of(beatLine)); n != 1 {
			t.Errorf("%d beats, want 1", n)
		}
	})
}

// TestPublishedAgain: an instance comes back whose removal failed, and beats.
func TestPublishedAgain(t *testing.T) {
	inWorld(t, []string{first}, nil, func(t *testing.T, w *world) {
		f := w.fakes[first]
		publish(t, w, instance(1))
		broken := func(method string) {
			f.set(func(f *fake) {
				f.handle = func(rw http.ResponseWriter, r *http.Request) bool {
					if r.Method != method {
						return false
					}
					rw.WriteHeader(http.StatusInternalServerError)
					return true
				}
			})
		}
		broken(http.MethodDelete)
		if err := w.Publish(t.Context(), orders, nil); err == nil {
			t.Fatal("the removal did not fail")
		}
		f.set(func(f *fake) { f.handle = nil; clear(f.instances) })
		publish(t, w, instance(1))
		time.Sleep(11 * time.Second)
		if beats := len(f.of(beatLine)); !f.has("10.1.0.1:1") || beats != 2 {
			t.Errorf("there: %t, after %d beats, want 2", f.has("10.1.0.1:1"), beats)
		}
		// what a server may have taken is withdrawn
		removals := len(f.of("DELETE /v1/ns/instance"))
		broken(http.MethodPost)
		if err := w.Publish(t.Context(), orders, []wire.Instance{instance(1), instance(2)}); err == nil {
			t.Fatal("the registration did not fail")
		}
		publish(t, w, instance(1))
		if n := len(f.of("DELETE /v1/ns/instance")) - removals; n != 1 {
			t.Errorf("%d removals, want 1", n)
		}
	})
}

func TestPublishChangesWhatDiffers(t *testing.T) {
	inWorld(t, []string{first}, nil, func(t *testing.T, w *world) {
		f := w.fakes[first]
		publish(t, w, instance(1), instance(2), instance(3))
		changed := instance(2)
		changed.Weight = 0.5
		publish(t, w, instance(1), changed, instance(4))
		register, leave := f.of("POST /v1/ns/instance"), f.of("DELETE /v1/ns/instance")
		if len(register) != 5 || len(leave) != 1 || leave[0].form["port"] != "3" {
			t.Errorf("%d registrations and %d removals, want 5 and 1: %+v", len(register), len(leave), leave)
		}
		publish(t, w)
		if f.has("10.1.0.1:1") || f.has("10.1.0.1:2") || f.has("10.1.0.1:4") {
			t.Error("something is left")
		}
		if len(w.published) != 0 {
			t.Errorf("still published: %v", w.published)
		}
	})
}

func TestPublishTellsWhatFailed(t *testing.T) {
	inWorld(t, []string{first}, nil, func(t *testing.T, w *world) {
		w.fakes[first].set(func(f *fake) {
			f.handle = func(w http.ResponseWriter, r *http.Request) bool {
				if r.Form.Get("port") != "2" {
					return false
				}
				http.Error(w, "caused: bad weight", http.StatusBadRequest)
				return true
			}
		})
		err := w.Publish(t.Context(), orders, []wire.Instance{instance(1), instance(2)})
		part, ok := errors.AsType[*wire.PartError](err)
		if !ok || len(part.Failed) != 1 || wire.KindOf(part.Failed[instance2()]) != wire.Invalid {
			t.Errorf("got %v", err)
		}
	})
}

func instance2() wire.Key {
	i := instance(2)
	return i.Key()
}

func TestBeatsGoOnElsewhere(t *testing.T) {
	const second = "10.0.0.2:8848"
	inWorld(t, []string{first, second}, nil, func(t *testing.T, w *world) {
		publish(t, w, instance(1))
		home, other := first, second
		if !w.fakes[first].has("10.1.0.1:1") {
			home, other = second, first
		}
		w.net.Set(home, faulttest.Refused)
		time.Sleep(6 * time.Second)
		if !w.fakes[other].has("10.1.0.1:1") {
			t.Error("the other server was not asked")
		}
	})
}

func TestServerThatStartsIsNotDead(t *testing.T) {
	inWorld(t, []string{first}, nil, func(t *testing.T, w *world) {
		f := w.fakes[first]
		publish(t, w, instance(1))
		f.set(func(f *fake) {
			f.status, f.text = 503, "server is STARTING now, please try again later!"
			clear(f.instances)
		})
		_, err := w.Query(t.Context(), orders)
		if wire.KindOf(err) != wire.NotReady {
			t.Errorf("got %v", err)
		}
		time.Sleep(10 * time.Second)
		f.set(func(f *fake) { f.status = 0 })
		time.Sleep(6 * time.Second)
		if !f.has("10.1.0.1:1") {
			t.Error("not registered again")
		}
		if len(w.events.downs) != 0 {
			t.Errorf("said to be disconnected: %v", w.events.downs)
		}
	})
}

// The fault table: a server that is killed and comes back after 5 s and after 60 s.
func TestServerComesBack(t *testing.T) {
	for _, away := range []time.Duration{5 * time.Second, time.Minute} {
		inWorld(t, []string{first}, nil, func(t *testing.T, w *world) {
			f := w.fakes[first]
			publish(t, w, instance(1), instance(2))
			time.Sleep(7 * time.Second)
			w.net.Set(first, faulttest.Refused)
			f.set(func(f *fake) { clear(f.instances) })
			time.Sleep(away)
			w.net.Set(first, faulttest.Healthy)
			back := time.Now()
			for !f.has("10.1.0.1:1") || !f.has("10.1.0.1:2") {
				time.Sleep(100 * time.Millisecond)
				if time.Since(back) > 6*time.Second {
					t.Fatalf("away for %v, not registered after %v", away, time.Since(back))
				}
			}
		})
	}
}

func TestEndDuringABeat(t *testing.T) {
	inWorld(t, []string{first}, nil, func(t *testing.T, w *world) {
		publish(t, w, instance(1))
		w.net.Set(first, faulttest.BlackHole)
		time.Sleep(6 * time.Second) // a beat hangs, and inWorld ends the transport now
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		began := time.Now()
		if err := w.Publish(ctx, orders, nil); err == nil {
			t.Error("withdrawn through a black hole")
		}
		if d := time.Since(began); d > 100*time.Millisecond {
			t.Errorf("took %v with 50 ms to spend", d)
		}
	})
}

// However much a client has at a server that is gone, it knocks about once a second at
// most.
func TestNoStormWhileTheServerIsGone(t *testing.T) {
	inWorld(t, []string{first}, nil, func(t *testing.T, w *world) {
		var many []wire.Instance
		for port := range uint16(200) {
			many = append(many, instance(port+1))
		}
		publish(t, w, many...)
		subscribe(t, w)
		w.net.Set(first, faulttest.Refused)
		time.Sleep(10 * time.Second) // the first beats and polls fail
		before := w.net.Dials(first)
		time.Sleep(time.Minute)
		if n := w.net.Dials(first) - before; n > 60 {
			t.Errorf("%d dials in a minute", n)
		}
		w.fakes[first].set(func(f *fake) { clear(f.instances) })
		w.net.Set(first, faulttest.Healthy)
		time.Sleep(6 * time.Second)
		for _, i := range many {
			if !w.fakes[first].has(fmt.Sprintf("%s:%d", i.IP, i.Port)) {
				t.Fatalf("%d is not back", i.Port)
			}
		}
	})
}
