package rollcallotel_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"

	rollcall "github.com/rollcall-registry/rollcall/client"
	"github.com/rollcall-registry/rollcall/client/clienttest"
	"github.com/rollcall-registry/rollcall/client/rollcallotel"
)

// meter adds up what is recorded, of histograms how often.
type meter struct {
	noop.Meter
	mu     sync.Mutex
	values map[string]int64
	broken string // the instrument that cannot be made
}

func (m *meter) add(name string, n int64, set attribute.Set) {
	var labels []string
	for iter := set.Iter(); iter.Next(); {
		labels = append(labels, iter.Attribute().Value.String())
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.values[strings.TrimPrefix(name, "rollcall.client.")+"{"+strings.Join(labels, ",")+"}"] += n
}

func (m *meter) fault(name string) error {
	if name == m.broken {
		return errors.New("no " + name)
	}
	return nil
}

type counter struct {
	noop.Int64Counter
	meter *meter
	name  string
}

func (c counter) Add(_ context.Context, n int64, o ...metric.AddOption) {
	c.meter.add(c.name, n, metric.NewAddConfig(o).Attributes())
}

func (m *meter) Int64Counter(name string, _ ...metric.Int64CounterOption) (metric.Int64Counter, error) {
	return counter{meter: m, name: name}, m.fault(name)
}

type upDown struct {
	noop.Int64UpDownCounter
	counter counter
}

func (u upDown) Add(ctx context.Context, n int64, o ...metric.AddOption) { u.counter.Add(ctx, n, o...) }

func (m *meter) Int64UpDownCounter(name string, _ ...metric.Int64UpDownCounterOption) (metric.Int64UpDownCounter, error) {
	return upDown{counter: counter{meter: m, name: name}}, m.fault(name)
}

type histogram struct {
	noop.Float64Histogram
	meter *meter
	name  string
}

func (h histogram) Record(_ context.Context, _ float64, o ...metric.RecordOption) {
	h.meter.add(h.name, 1, metric.NewRecordConfig(o).Attributes())
}

func (m *meter) Float64Histogram(name string, _ ...metric.Float64HistogramOption) (metric.Float64Histogram, error) {
	return histogram{meter: m, name: name}, m.fault(name)
}

func TestMetrics(t *testing.T) {
	recorded, r := &meter{values: map[string]int64{}}, clienttest.New()
	m, err := rollcallotel.New(recorded)
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
	m.Dropped("push_stale")
	check := func(name string, want int64) {
		t.Helper()
		recorded.mu.Lock()
		defer recorded.mu.Unlock()
		if got := recorded.values[name]; got != want {
			t.Errorf("%s is %d, want %d", name, got, want)
		}
	}
	check("operation.duration{watch,ok}", 1)
	check("operation.duration{lookup,forbidden}", 1)
	check("update.duration{}", 1)
	check("dropped{push_stale}", 1)
	check("connects{grpc}", 1)
	check("connected{}", 1)
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	check("connected{}", 0)
}

func TestFaults(t *testing.T) {
	if _, err := rollcallotel.New(&meter{broken: "rollcall.client.connected"}); err == nil {
		t.Error("an instrument is missing")
	}
}
