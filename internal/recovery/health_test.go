package recovery

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollcall-registry/rollcall/internal/registry"
)

// The health of persistent instances is soft state: the durable log has it as of
// some earlier time, and it comes back as it was last known.
func TestHealthOfPersistentInstances(t *testing.T) {
	kept := registry.Owner{Kind: registry.OwnerDurable}
	// What the durable log says: 1 and 2 are well, 3 is ill.
	durable := func(h *house) {
		h.register(kept, 1)
		h.register(kept, 2)
		h.register(kept, 3, func(i *registry.Instance) { i.Healthy = false })
	}
	probe := func(h *house, port int32, healthy bool) {
		h.apply(&registry.SetHealth{
			Meta: h.meta(), Service: orders, Instance: instance(port), Healthy: healthy, Kind: registry.OwnerDurable,
		})
	}
	for name, wait := range map[string]time.Duration{
		"from the history":  time.Second,
		"from the snapshot": 2 * DefaultConfig().SnapshotInterval,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := open(t, t.TempDir(), day.Wall).run()
				durable(h)
				probe(h, 1, false)
				probe(h, 3, true)
				time.Sleep(wait)
				again := open(t, h.killed(), day.Wall+1, durable)
				for port, want := range map[int32]bool{1: false, 2: true, 3: true} {
					if got := again.store.View(orders).Find(instance(port)).Healthy; got != want {
						t.Errorf("port %d: got healthy %v, want %v", port, got, want)
					}
				}
				if err := h.stop(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
