package rollcallprom_test

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	rollcall "github.com/rollcall-registry/rollcall/client"
	"github.com/rollcall-registry/rollcall/client/clienttest"
	"github.com/rollcall-registry/rollcall/client/rollcallprom"
)

// values returns the numbers of a registry by name and labels, of histograms the count.
func values(t *testing.T, r *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetValue())
			}
			all[strings.TrimPrefix(f.GetName(), "rollcall_client_")+"{"+strings.Join(labels, ",")+"}"] = number(m)
		}
	}
	return all
}

func number(m *dto.Metric) float64 {
	return m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
}

func TestMetrics(t *testing.T) {
	registry, r := prometheus.NewRegistry(), clienttest.New()
	for range 2 { // two clients, which count together
		m, err := rollcallprom.New(registry)
		if err != nil {
			t.Fatal(err)
		}
		c := r.Client(t, rollcall.WithMetrics(m))
		if _, err := c.Watch(t.Context(), rollcall.Service{Name: "orders"}); err != nil {
			t.Fatal(err)
		}
		r.Fail(rollcall.ErrForbidden)
		if _, err := c.Lookup(t.Context(), rollcall.Service{Name: "stock"}); err == nil {
			t.Fatal("a look-up succeeded")
		}
		r.Fail(nil)
		m.Dropped("push_stale")
	}
	got := values(t, registry)
	for name, want := range map[string]float64{
		"operation_seconds{watch,ok}":         2,
		"operation_seconds{lookup,forbidden}": 2,
		"update_seconds{}":                    2,
		"dropped_total{push_stale}":           2,
		"connects_total{grpc}":                2,
		"connected{}":                         2,
		"disconnects_total{}":                 0,
	} {
		if got[name] != want {
			t.Errorf("%s is %v, want %v", name, got[name], want)
		}
	}
}

func TestSessionsAreCountedOut(t *testing.T) {
	registry, r := prometheus.NewRegistry(), clienttest.New()
	m, err := rollcallprom.New(registry)
	if err != nil {
		t.Fatal(err)
	}
	c := r.Client(t, rollcall.WithMetrics(m))
	if err := c.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if got := values(t, registry); got["connected{}"] != 0 || got["disconnects_total{}"] != 1 {
		t.Errorf("got %v", got)
	}
}

func TestNameIsTaken(t *testing.T) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(prometheus.NewCounter(prometheus.CounterOpts{Name: "rollcall_client_connected", Help: "Something else."}))
	if _, err := rollcallprom.New(registry); err == nil {
		t.Error("two metrics share a name")
	}
}
