package server

import (
	"github.com/rollcall-registry/rollcall/internal/metrics"
	"github.com/rollcall-registry/rollcall/internal/naming"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// waiting asks the sender of a subscriber whether a push to it is not acknowledged.
func (p *parts) waiting(sub *registry.Subscriber) (since registry.Instant, waiting bool) {
	if sub.Protocol == registry.ProtocolUDP {
		return p.udp.Waiting(sub)
	}
	return p.grpc.Waiting(sub)
}

// exposeConnections adds the figures of connections. Those of gRPC are also counted
// by SDK, as clients name themselves once they are connected.
func (p *parts) exposeConnections() {
	m := p.metrics
	const help = "Open connections, by protocol."
	m.Gauge("connections", help, func() float64 { return float64(p.http.Connections()) }, label("protocol", protocolHTTP))
	m.Gauge("connections", help, func() float64 {
		served, _ := p.conns.Connections()
		return float64(served)
	}, label("protocol", protocolGRPC))
	m.Gauges("grpc_clients", "Connected clients, by SDK and the first two numbers of its version.", []string{"sdk", "version"}, p.clientsBySDK)
	p.exposeRefused(protocolHTTP, p.http.Refused)
	p.exposeRefused(protocolGRPC, p.conns.Refused)
	p.exposeRefusal("unknown", "pending", p.crowded.Load)
}

const protocolHTTP = string(naming.ProtocolHTTP)

func label(name, value string) metrics.Label { return metrics.Label{Name: name, Value: value} }

func (p *parts) clientsBySDK() []metrics.Sample {
	var samples []metrics.Sample
	for _, c := range naming.CountSDKs(p.grpc.Agents()) {
		samples = append(samples, metrics.Sample{Labels: []string{c.Name, c.Series}, Value: float64(c.Clients)})
	}
	return samples
}

// exposeRefused adds how many connections each limit of a protocol refused.
func (p *parts) exposeRefused(protocol string, refused func() (inAll, ofAddress uint64)) {
	p.exposeRefusal(protocol, "limit", func() uint64 { n, _ := refused(); return n })
	p.exposeRefusal(protocol, "address_limit", func() uint64 { _, n := refused(); return n })
}

func (p *parts) exposeRefusal(protocol, reason string, count func() uint64) {
	p.metrics.Counter("connections_refused_total", "Connections that were refused, by protocol and reason.",
		func() float64 { return float64(count()) }, label("protocol", protocol), label("reason", reason))
}
