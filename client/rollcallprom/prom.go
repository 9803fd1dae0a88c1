// Package rollcallprom counts for Prometheus what a client of package rollcall does.
//
//	metrics, err := rollcallprom.New(prometheus.DefaultRegisterer)
//	…
//	client, err := rollcall.New(rollcall.WithServers(…), rollcall.WithMetrics(metrics))
//
// Several clients of one program may share it. What it has:
//
//	rollcall_client_operation_seconds{op,result}   a histogram: how long operations took
//	rollcall_client_update_seconds                 a histogram: from having received a change to having shown it
//	rollcall_client_dropped_total{reason}          messages that were ignored
//	rollcall_client_connects_total{protocol}       sessions that began
//	rollcall_client_disconnects_total              and ended
//	rollcall_client_connected                      those that are open
//
// The result is ok, or one of a dozen words such as timeout, forbidden and not_ready. All
// methods are safe for concurrent use.
package rollcallprom

import (
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	rollcall "github.com/rollcall-registry/rollcall/client"
	"github.com/rollcall-registry/rollcall/client/internal/outcome"
)

// Metrics implements [rollcall.Metrics].
type Metrics struct {
	operations  *prometheus.HistogramVec
	updates     prometheus.Histogram
	dropped     *prometheus.CounterVec
	connects    *prometheus.CounterVec
	disconnects prometheus.Counter
	connected   prometheus.Gauge
}

// New registers the metrics. If those of another New are registered there already, they
// are used together.
func New(registerer prometheus.Registerer) (*Metrics, error) {
	name := func(n string) string { return prometheus.BuildFQName("rollcall", "client", n) }
	m := new(Metrics)
	err := errors.Join(
		register(registerer, &m.operations, prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: name("operation_seconds"), Help: "How long operations took.", Buckets: prometheus.ExponentialBuckets(0.001, 2.5, 10),
		}, []string{"op", "result"})),
		register(registerer, &m.updates, prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: name("update_seconds"), Help: "Time from having received a change to having shown it.", Buckets: prometheus.ExponentialBuckets(0.00001, 4, 10),
		})),
		register(registerer, &m.dropped, prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: name("dropped_total"), Help: "Messages that were ignored.",
		}, []string{"reason"})),
		register(registerer, &m.connects, prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: name("connects_total"), Help: "Sessions that began.",
		}, []string{"protocol"})),
		register(registerer, &m.disconnects, prometheus.NewCounter(prometheus.CounterOpts{
			Name: name("disconnects_total"), Help: "Sessions that ended.",
		})),
		register(registerer, &m.connected, prometheus.NewGauge(prometheus.GaugeOpts{
			Name: name("connected"), Help: "Sessions that are open.",
		})),
	)
	if err != nil {
		return nil, err
	}
	return m, nil
}

// register registers a collector, or takes the equal one that is registered already.
func register[C prometheus.Collector](r prometheus.Registerer, into *C, c C) error {
	*into = c
	err := r.Register(c)
	if err == nil {
		return nil
	}
	if already, ok := errors.AsType[prometheus.AlreadyRegisteredError](err); ok {
		if there, ok := already.ExistingCollector.(C); ok {
			*into = there
			return nil
		}
	}
	return fmt.Errorf("register metrics: %w", err)
}

// CallDone is of [rollcall.Metrics], as the others are.
func (m *Metrics) CallDone(op string, took time.Duration, err error) {
	m.operations.WithLabelValues(op, outcome.Word(err)).Observe(took.Seconds())
}

// Published observes how long a change took.
func (m *Metrics) Published(_ rollcall.Service, _ int, took time.Duration) {
	m.updates.Observe(took.Seconds())
}

// Dropped counts a message.
func (m *Metrics) Dropped(reason string) { m.dropped.WithLabelValues(reason).Inc() }

// Connected counts a session.
func (m *Metrics) Connected(_ string, p rollcall.Protocol) {
	m.connects.WithLabelValues(p.String()).Inc()
	m.connected.Inc()
}

// Disconnected counts its end.
func (m *Metrics) Disconnected(error) {
	m.disconnects.Inc()
	m.connected.Dec()
}
