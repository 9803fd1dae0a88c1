package udppush

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rollcall-registry/rollcall/internal/registry"
)

// diary is a history in memory.
type diary struct {
	mu     sync.Mutex
	events []registry.Event
}

func (d *diary) Emit(e *registry.Event) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.events = append(d.events, *e)
}

// lines returns what was recorded, without times.
func (d *diary) lines() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var out []string
	for _, e := range d.events {
		out = append(out, strings.TrimSpace(fmt.Sprintf("%s %s %s %v %s", e.Kind, e.Service.Name, e.Subscriber.Addr, e.Took, e.Detail)))
	}
	return out
}

func TestPushesAreRecorded(t *testing.T) {
	inMemory(t, func(t *testing.T, r *rig, w *wire) {
		kept := &diary{}
		r.sender.parts.History = kept
		sub := r.subscribe("a", endpoint(1), javaAgent, "")
		defer r.keepPolling(sub)()
		time.Sleep(time.Second)

		r.register("a", 1, 1, "")
		time.Sleep(3 * time.Millisecond)
		w.ack(t, w.sent()[0])
		time.Sleep(time.Second)
		revision := r.store.View(serviceKey("a")).Revision
		if got := sub.Receipt(); got.Revision != revision || got.Took != 3*time.Millisecond || got.At != time.Now().Add(-time.Second).UnixMilli() {
			t.Errorf("the receipt is %+v, want revision %d after 3 ms", got, revision)
		}

		r.register("a", 1, 1, "") // nothing new: pushed, but the revision was acknowledged
		time.Sleep(time.Millisecond)
		w.ack(t, w.sent()[1])
		r.register("a", 2, 1, "") // replaced by the next before it is acknowledged
		time.Sleep(time.Second)
		r.register("a", 3, 1, "") // never acknowledged
		time.Sleep(time.Minute)

		want := []string{
			"acknowledged a " + endpoint(1).String() + " 3ms",
			"push failed a " + endpoint(1).String() + " 20s sent twice and not acknowledged",
		}
		if got := kept.lines(); !slices.Equal(got, want) {
			t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		if got := sub.Receipt(); got.Revision != revision || got.Failed <= revision || got.Problem == "" {
			t.Errorf("the receipt is %+v, want revision %d and a later one failed", got, revision)
		}
	})
}

// A service that is gone has no revision; what is told of that counts as newer
// than all it had.
func TestPushOfARemovedServiceIsRecorded(t *testing.T) {
	inMemory(t, func(t *testing.T, r *rig, w *wire) {
		kept := &diary{}
		r.sender.parts.History = kept
		sub := r.subscribe("a", endpoint(1), javaAgent, "")
		defer r.keepPolling(sub)()
		r.register("a", 1, 1, "")
		time.Sleep(time.Second)
		before := r.store.View(serviceKey("a")).Revision
		r.apply(&registry.DeleteService{Meta: r.meta(), Service: serviceKey("a")})
		time.Sleep(time.Second)
		sent := w.sent()
		w.ack(t, sent[len(sent)-1])
		time.Sleep(time.Second)
		if got := sub.Receipt(); got.Revision <= before || len(kept.lines()) != 1 {
			t.Errorf("receipt %+v with %d events, want a revision above %d and one event", got, len(kept.lines()), before)
		}
	})
}
