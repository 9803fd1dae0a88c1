package workload

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollcall-registry/rollcall/internal/bench/fleet"
)

// Instances that never beat must become unhealthy or go: as soon as a server finds them
// out, be it by the usual timeout, or it has no figures.
func TestControl(t *testing.T) {
	for _, tt := range []struct {
		name  string
		until time.Duration // they are healthy
		gone  bool          // after that
		fails bool
	}{
		{"by their own timeout", 2 * time.Second, false, false},
		{"by the usual timeout", 19 * time.Second, false, false},
		{"taken out", 6 * time.Second, true, false},
		{"never", time.Hour, false, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := &Env{}
				c := &control{env: e, fleet: e.fleet("neglected", 1, controls, 1), registered: time.Now()}
				err := c.await(t.Context(), func(fleet.Service) ([]fleet.Host, error) {
					late := time.Since(c.registered) >= tt.until
					if late && tt.gone {
						return []fleet.Host{{Healthy: true}}, nil
					}
					return []fleet.Host{{Healthy: true}, {Healthy: !late}}, nil
				})
				if (err != nil) != tt.fails {
					t.Errorf("got %v", err)
				}
				if !tt.fails && c.after.Round(controlEvery) != tt.until {
					t.Errorf("found out after %v, not %v", c.after, tt.until)
				}
			})
		})
	}
}
