package metrics

import "github.com/prometheus/client_golang/prometheus"

// Sample is one value of a gauge, with the values of its labels in their order.
type Sample struct {
	Labels []string
	Value  float64
}

// Gauges adds a figure whose labels are known only when the metrics are read. read
// returns no two samples with the same labels, and few of them: it is for the caller
// to bound their variety.
func (m *Metrics) Gauges(name, help string, labels []string, read func() []Sample) {
	m.registry.MustRegister(&gauges{
		desc: prometheus.NewDesc(prometheus.BuildFQName(namespace, "", name), help, labels, nil), read: read,
	})
}

// gauges collects samples.
type gauges struct {
	desc *prometheus.Desc
	read func() []Sample
}

// Describe implements prometheus.Collector.
func (g *gauges) Describe(descs chan<- *prometheus.Desc) { descs <- g.desc }

// Collect implements prometheus.Collector.
func (g *gauges) Collect(metrics chan<- prometheus.Metric) {
	for _, s := range g.read() {
		metrics <- prometheus.MustNewConstMetric(g.desc, prometheus.GaugeValue, s.Value, s.Labels...)
	}
}
