//go:build !race

package v1

import (
	"runtime"
	"testing"
	"time"

	"github.com/rollcall-registry/rollcall/internal/httpapi/httpapitest"
)

// What is asked all the time allocates nothing, or next to nothing. The race
// detector has pools forget at random, so it is left out.
func TestAllocations(t *testing.T) {
	for _, tt := range []struct {
		name, method, target string
		most                 float64
	}{
		{"light beat", "PUT", benchLightBeat, 0},
		{"full beat", "PUT", benchFullBeat(), 0},
		{"list of 1", "GET", listTarget(1, ""), 0},
		{"list of 10", "GET", listTarget(10, ""), 0},
		{"list of 10 in a cluster", "GET", listTarget(10, "DEFAULT"), 1},
		{"list of 10 subscribed", "GET", listTarget(10, "") + "&udpPort=50000", 1},
		{"register again", "POST", "/nacos/v1/ns/instance?" + benchRegistration + "&ip=10.0.0.1", 1}, // the metadata
	} {
		s := newTestAPI(t, httpapitest.Running(time.Now()))
		for _, n := range []int{1, 10} {
			fillService(t, s, n)
		}
		request := []byte(tt.method + " " + tt.target + benchHeaders)
		checkAnswer(t, httpapitest.Replay(s.http, request, 1))
		const requests = 10_000
		before := mallocs()
		httpapitest.Replay(s.http, request, requests)
		// A connection allocates, and so may what runs beside it.
		if n := float64(mallocs()-before) / requests; n > tt.most+0.05 {
			t.Errorf("%s: %.2f allocations a request, want at most %v", tt.name, n, tt.most)
		}
	}
}

func mallocs() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Mallocs
}
