package recovery

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/rollcall-registry/rollcall/internal/ledger"
	"github.com/rollcall-registry/rollcall/internal/naming"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// handClock moves only when it is told to.
type handClock struct{ now registry.Instant }

func (c *handClock) Now() registry.Instant { return c.now }

// house is a registry with its memory, over one directory: what a server has of
// them. Tests run it within a bubble.
type house struct {
	*Keeper
	t     *testing.T
	dir   string
	clock *handClock
	logs  *strings.Builder // read it when nothing runs
	stop  func() error     // ends what run began, in the order of a server
}

var day = registry.Instant{Wall: 1795996800000} // 2026-11-30T00:00:00Z

// open makes the house from what is in dir. Its clock begins at wall, and its
// lease clock at 0. durable stands for what the durable log brings back first.
func open(t *testing.T, dir string, wall int64, durable ...func(*house)) *house {
	t.Helper()
	h := &house{t: t, dir: dir, clock: &handClock{registry.Instant{Wall: wall}}, logs: &strings.Builder{}}
	log := slog.New(slog.NewTextHandler(h.logs, nil))
	history, err := ledger.New(ledger.DefaultConfig(filepath.Join(dir, "history")), log)
	if err != nil {
		t.Fatal(err)
	}
	gate := &naming.Gate{Sink: history}
	h.Keeper = New(DefaultConfig(), filepath.Join(dir, "ephemeral"), registry.NewStore(registry.DefaultConfig(), gate), history, h.clock, log)
	memory, err := h.Open()
	if err != nil {
		t.Fatal(err)
	}
	for _, bring := range durable {
		bring(h)
	}
	if err := memory.Recall(t.Context()); err != nil {
		t.Fatal(err)
	}
	gate.Open()
	return h
}

// run starts the history and the keeper.
func (h *house) run() *house {
	h.t.Helper()
	endHistory := start(h.ledger.Run)
	endKeeper := start(h.Run)
	h.stop = sync.OnceValue(func() error {
		err := endKeeper()
		return errors.Join(err, endHistory())
	})
	h.t.Cleanup(func() { _ = h.stop() })
	return h
}

// start runs a part and returns what ends it.
func start(run func(context.Context) error) (end func() error) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	return func() error {
		cancel()
		return <-done
	}
}

// killed returns a directory with what a kill -9 of this moment leaves, once the
// history that waits has had its time to be written.
func (h *house) killed() string {
	h.t.Helper()
	time.Sleep(time.Second)
	synctest.Wait()
	dir := filepath.Join(h.t.TempDir(), "copy")
	if err := os.CopyFS(dir, os.DirFS(h.dir)); err != nil {
		h.t.Fatal(err)
	}
	return dir
}

var orders = registry.ServiceKey{Namespace: registry.DefaultNamespace, Group: registry.DefaultGroup, Name: "orders"}

// overHTTP and connected are owners of instances.
var overHTTP = registry.Owner{Kind: registry.OwnerHTTP}

func connected(id registry.ClientID) registry.Owner {
	return registry.Owner{Kind: registry.OwnerConnection, Client: id}
}

func (h *house) apply(c registry.Command) {
	h.t.Helper()
	if _, err := h.store.Apply(c); err != nil {
		h.t.Fatal(err)
	}
}

func (h *house) meta() registry.Meta {
	return registry.Meta{At: h.clock.Now(), Cause: registry.Cause{Kind: registry.CauseRequest, API: "test"}}
}

func (h *house) register(owner registry.Owner, port int32, change ...func(*registry.Instance)) {
	h.t.Helper()
	if owner.Client != "" {
		h.store.OpenClient(owner.Client)
	}
	i := registry.Instance{IP: "10.0.0.1", Port: port, Cluster: "DEFAULT", Weight: 1, Healthy: true, Enabled: true, Ephemeral: true}
	for _, f := range change {
		f(&i)
	}
	h.apply(&registry.Register{Meta: h.meta(), Service: orders, Owner: owner, Instance: i})
}

func (h *house) deregister(owner registry.Owner, port int32) {
	h.t.Helper()
	h.apply(&registry.Deregister{Meta: h.meta(), Service: orders, Owner: owner, Instance: instance(port)})
}

func instance(port int32) registry.InstanceKey {
	return registry.InstanceKey{IP: "10.0.0.1", Port: port, Cluster: "DEFAULT"}
}

// wait lets the lease clock and the expiry of instances go on.
func (h *house) wait(d time.Duration) {
	h.clock.now.Lease += d
	h.clock.now.Wall += d.Milliseconds()
	h.store.Expire(h.clock.Now())
}

// state describes what readers see, and who keeps it alive: each instance in a
// line, its latest owner first.
func (h *house) state() string {
	view := h.store.View(orders)
	if view == nil {
		return ""
	}
	owners := map[registry.InstanceKey]string{}
	h.store.EachHolding(func(o registry.Holding) {
		owners[o.Instance.Key()] += fmt.Sprintf(" %v(%s)", o.Owner.Kind, o.Owner.Client)
	})
	var b strings.Builder
	for _, i := range view.Instances {
		fmt.Fprintf(&b, "%d healthy=%v weight=%v enabled=%v metadata=%s%s\n",
			i.Port, i.Healthy, i.Weight, i.Enabled, i.Metadata, owners[i.Key()])
	}
	return b.String()
}

func (h *house) has(port int32) bool {
	view := h.store.View(orders)
	return view != nil && view.Find(instance(port)) != nil
}
