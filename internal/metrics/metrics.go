// Package metrics holds the figures of one server in a registry of its own and
// writes them in Prometheus' text form. It knows the metrics client and nothing
// of Rollcall; the parts of the server hand their figures in. Everything is safe
// for concurrent use.
package metrics

import (
	"io"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/common/expfmt"
)

const namespace = "rollcall"

// Metrics are the figures of one server.
type Metrics struct {
	registry *prometheus.Registry

	took     *prometheus.HistogramVec
	answered *prometheus.CounterVec
	requests *memo[requestKey, request]

	events *prometheus.CounterVec
	kinds  *memo[eventKey, prometheus.Counter]

	pushes      *prometheus.CounterVec
	outcomes    *memo[outcomeKey, prometheus.Counter]
	sent        *prometheus.CounterVec
	pushLatency *prometheus.HistogramVec
	sendLatency *prometheus.HistogramVec
	protocols   *memo[string, protocol]
	logWrite    prometheus.Histogram

	changes prometheus.Counter
	merged  prometheus.Histogram
	empty   prometheus.Counter
	ignored *prometheus.CounterVec
}

// latencyBuckets reach from 50 µs, what a cached look-up takes, to 10 s.
func latencyBuckets() []float64 {
	return []float64{.00005, .0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}
}

// New returns empty figures, with those of the Go runtime and the process.
func New() *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		took: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: namespace, Name: "request_duration_seconds", Buckets: latencyBuckets(),
			Help: "Time from a complete request to its answer, by route.",
		}, []string{"route"}),
		answered: counters("requests_total", "Requests answered, by route and status.", "route", "code"),
		events:   counters("events_total", "Changes of the registry, by kind and class of cause.", "kind", "cause"),
		pushes:   counters("pushes_total", "Pushes to subscribers, by protocol and outcome.", "protocol", "outcome"),
		sent:     counters("pushes_sent_total", "Pushes that were handed to the network, by protocol.", "protocol"),
		pushLatency: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: namespace, Name: "push_ack_seconds", Buckets: latencyBuckets(),
			Help: "Time from a change to the acknowledgement of its push, by protocol.",
		}, []string{"protocol"}),
		sendLatency: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: namespace, Name: "push_send_seconds", Buckets: latencyBuckets(),
			Help: "Time from a change to the sending of its push, by protocol.",
		}, []string{"protocol"}),
		logWrite: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: namespace, Name: "durable_write_seconds", Buckets: latencyBuckets(),
			Help: "Time of one write to the durable log, the sync included.",
		}),
		changes: prometheus.NewCounter(prometheus.CounterOpts{
			Namespace: namespace, Name: "pushed_changes_total", Help: "Changes of services that were pushed, merged ones counted each.",
		}),
		merged: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: namespace, Name: "push_wait_seconds", Buckets: latencyBuckets(),
			Help: "Time that the first of the merged changes waited before it was handed out.",
		}),
		empty: prometheus.NewCounter(prometheus.CounterOpts{
			Namespace: namespace, Name: "empty_pushes_total", Help: "Pushes of services without an instance.",
		}),
		ignored: counters("udp_ignored_total", "Datagrams that acknowledged nothing, by reason.", "reason"),
	}
	m.requests = newMemo(func(k requestKey) request {
		return request{took: m.took.WithLabelValues(k.route), answered: m.answered.WithLabelValues(k.route, strconv.Itoa(k.code))}
	})
	m.kinds = newMemo(func(k eventKey) prometheus.Counter { return m.events.WithLabelValues(k.kind, k.cause) })
	m.outcomes = newMemo(func(k outcomeKey) prometheus.Counter { return m.pushes.WithLabelValues(k.protocol, k.outcome) })
	m.protocols = newMemo(func(name string) protocol {
		return protocol{
			sent: m.sent.WithLabelValues(name), sendLatency: m.sendLatency.WithLabelValues(name),
			pushLatency: m.pushLatency.WithLabelValues(name),
		}
	})
	m.registry.MustRegister(
		m.took, m.answered, m.events, m.pushes, m.sent, m.pushLatency, m.sendLatency, m.logWrite,
		m.changes, m.merged, m.empty, m.ignored,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	return m
}

func counters(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}, labels)
}

type requestKey struct {
	route string
	code  int
}

type request struct {
	took     prometheus.Observer
	answered prometheus.Counter
}

// Request counts one answered request. route is a label of small variety.
func (m *Metrics) Request(route string, code int, took time.Duration) {
	r := m.requests.of(requestKey{route, code})
	r.took.Observe(took.Seconds())
	r.answered.Inc()
}

type eventKey struct{ kind, cause string }

// Event counts one change.
func (m *Metrics) Event(kind, cause string) {
	m.kinds.of(eventKey{kind, cause}).Inc()
}

type outcomeKey struct{ protocol, outcome string }

// protocol is what is counted of the pushes by one protocol.
type protocol struct {
	sent                     prometheus.Counter
	sendLatency, pushLatency prometheus.Observer
}

// Push counts one push by its outcome, such as "acked" or "failed".
func (m *Metrics) Push(protocol, outcome string) { m.outcomes.of(outcomeKey{protocol, outcome}).Inc() }

// PushAcked notes the time from a change to the acknowledgement of its push; 0, for
// a push that told of none, is not noted.
func (m *Metrics) PushAcked(protocol string, took time.Duration) {
	if took > 0 {
		m.protocols.of(protocol).pushLatency.Observe(took.Seconds())
	}
}

// PushSent counts a push that was sent, and notes the time since the change that it
// tells of; 0 when it tells of none.
func (m *Metrics) PushSent(protocol string, sinceChange time.Duration) {
	p := m.protocols.of(protocol)
	p.sent.Inc()
	if sinceChange > 0 {
		p.sendLatency.Observe(sinceChange.Seconds())
	}
}

// DurableWrite notes one write to the durable log.
func (m *Metrics) DurableWrite(took time.Duration) { m.logWrite.Observe(took.Seconds()) }

// Merged notes one push that was handed to the senders: how many changes it
// merged, how long the first waited, and whether the service has no instance.
func (m *Metrics) Merged(changes int, waited time.Duration, empty bool) {
	m.changes.Add(float64(changes))
	m.merged.Observe(waited.Seconds())
	if empty {
		m.empty.Inc()
	}
}

// Ignored counts a datagram that acknowledged nothing.
func (m *Metrics) Ignored(reason string) { m.ignored.WithLabelValues(reason).Inc() }

// Label is a constant label of a gauge or counter.
type Label struct{ Name, Value string }

// Gauge adds a figure that is read when the metrics are.
func (m *Metrics) Gauge(name, help string, read func() float64, labels ...Label) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Namespace: namespace, Name: name, Help: help, ConstLabels: constant(labels),
	}, read))
}

// Counter adds a figure that only grows and is read when the metrics are.
func (m *Metrics) Counter(name, help string, read func() float64, labels ...Label) {
	m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
		Namespace: namespace, Name: name, Help: help, ConstLabels: constant(labels),
	}, read))
}

// Legacy adds a gauge under the name that Nacos gives it, so that existing
// dashboards go on: nacos_monitor{module="naming",name=…}.
func (m *Metrics) Legacy(name string, read func() float64) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "nacos_monitor", Help: "Figures under the names of Nacos.",
		ConstLabels: prometheus.Labels{"module": "naming", "name": name},
	}, read))
}

func constant(labels []Label) prometheus.Labels {
	out := prometheus.Labels{}
	for _, l := range labels {
		out[l.Name] = l.Value
	}
	return out
}

// Write writes all figures in the text form and returns its content type.
func (m *Metrics) Write(w io.Writer) (contentType string, err error) {
	families, err := m.registry.Gather()
	if err != nil {
		return "", err
	}
	format := expfmt.NewFormat(expfmt.TypeTextPlain)
	enc := expfmt.NewEncoder(w, format)
	for _, f := range families {
		if err := enc.Encode(f); err != nil {
			return "", err
		}
	}
	return string(format), nil
}
