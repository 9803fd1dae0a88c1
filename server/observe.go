package server

import (
	"time"

	"github.com/rollcall-registry/rollcall/internal/grpcapi"
	"github.com/rollcall-registry/rollcall/internal/metrics"
	"github.com/rollcall-registry/rollcall/internal/registry"
	"github.com/rollcall-registry/rollcall/internal/store"
)

// eventCounter counts the events of the registry.
type eventCounter struct{ metrics *metrics.Metrics }

// Emit implements [registry.Sink].
func (c eventCounter) Emit(e *registry.Event) {
	c.metrics.Event(string(e.Kind), string(e.Cause.Kind))
}

// pushObserver counts what the pusher hands to its senders.
type pushObserver struct{ metrics *metrics.Metrics }

// Pushed implements push.Observer.
func (o pushObserver) Pushed(changes int, waited time.Duration, empty bool) {
	o.metrics.Merged(changes, waited, empty)
}

// udpObserver counts the fate of UDP packets.
type udpObserver struct{ metrics *metrics.Metrics }

const protocolUDP = string(registry.ProtocolUDP)

// Sent implements udppush.Observer.
func (o udpObserver) Sent(sinceChange time.Duration) { o.metrics.PushSent(protocolUDP, sinceChange) }

// Settled implements udppush.Observer.
func (o udpObserver) Settled(outcome string, sinceChange time.Duration) {
	o.metrics.Push(protocolUDP, outcome)
	if outcome == "acked" {
		o.metrics.PushAcked(protocolUDP, sinceChange)
	}
}

// Ignored implements udppush.Observer.
func (o udpObserver) Ignored(reason string) { o.metrics.Ignored(reason) }

// grpcObserver counts gRPC calls and the fate of gRPC pushes.
type grpcObserver struct{ metrics *metrics.Metrics }

const protocolGRPC = string(registry.ProtocolGRPC)

// Answered implements grpcapi.Observer.
func (o grpcObserver) Answered(requestType string, code int, took time.Duration) {
	o.metrics.Request("grpc/"+requestType, code, took)
}

// Sent implements grpcapi.Observer.
func (o grpcObserver) Sent(sinceChange time.Duration) { o.metrics.PushSent(protocolGRPC, sinceChange) }

// Settled implements grpcapi.Observer.
func (o grpcObserver) Settled(outcome string, sinceChange time.Duration) {
	o.metrics.Push(protocolGRPC, outcome)
	if outcome == grpcapi.Acked {
		o.metrics.PushAcked(protocolGRPC, sinceChange)
	}
}

// expose adds the figures that the parts keep themselves.
func (p *parts) expose(dir *store.Dir) {
	m := p.metrics
	counts := p.store.Counts
	m.Gauge("services", "Services.", func() float64 { return float64(counts().Services) })
	m.Gauge("subscribers", "Subscriptions.", func() float64 { return float64(counts().Subscribers) })
	kind := func(v string) metrics.Label { return metrics.Label{Name: "kind", Value: v} }
	m.Gauge("instances", "Instances.", func() float64 { return float64(counts().Ephemeral) }, kind("ephemeral"))
	m.Gauge("instances", "Instances.", func() float64 { return float64(counts().Persistent) }, kind("persistent"))
	m.Gauge("healthy_instances", "Instances that are healthy.", func() float64 { return float64(counts().Healthy) })
	m.Gauge("cache_bytes", "Memory of encoded instance lists.", func() float64 { return float64(p.encoder.Used()) })
	m.Gauge("push_pending", "Services with changes that wait to be pushed.", func() float64 { return float64(p.pusher.Pending()) })
	m.Gauge("udp_unacked", "UDP packets that wait for their acknowledgement.", func() float64 { return float64(p.udp.Unacked()) })
	m.Counter("udp_refused_total", "UDP subscriptions to addresses that are not the client's own.",
		func() float64 { return float64(p.udp.Admission().Refusals()) })
	m.Counter("pauses_total", "Times that the server itself stood still for more than a second.",
		func() float64 { return float64(p.clock.Pauses().Count) })
	m.Gauge("disk_free_bytes", "Free space where the data directory is; 0 when it cannot be read.", func() float64 {
		space, err := dir.Space()
		if err != nil {
			return 0
		}
		return float64(space.Free)
	})
	p.exposeConnections()
	p.exposeStorage()
	p.exposeLegacy()
	p.exposeTLS()
}

// exposeTLS adds the figures of TLS, where it is spoken.
func (p *parts) exposeTLS() {
	if p.tls == nil {
		return
	}
	const name, help = "tls_handshakes_total", "Connections by how their TLS handshake ended; none: the client spoke clear text, which tls.mode may refuse."
	outcome := func(v string) metrics.Label { return metrics.Label{Name: "outcome", Value: v} }
	p.metrics.Counter(name, help, func() float64 { done, _, _ := p.tls.Counts(); return float64(done) }, outcome("done"))
	p.metrics.Counter(name, help, func() float64 { _, failed, _ := p.tls.Counts(); return float64(failed) }, outcome("failed"))
	p.metrics.Counter(name, help, func() float64 { _, _, clearText := p.tls.Counts(); return float64(clearText) }, outcome("none"))
	p.metrics.Gauge("tls_certificate_end_seconds", "When the certificate ends, since the epoch.",
		func() float64 { return float64(p.certs.NotAfter().Unix()) })
}

func (p *parts) exposeStorage() {
	m := p.metrics
	m.Gauge("history_disk_bytes", "Size of the history files.", func() float64 { return float64(p.ledger.Stats().DiskBytes) })
	m.Gauge("history_unwritten", "Entries of the history that wait for the disk.", func() float64 { return float64(p.ledger.Stats().Unwritten) })
	m.Counter("history_lost_total", "Entries of the history that the disk could not keep.", func() float64 { return float64(p.ledger.Stats().Lost) })
	m.Counter("history_write_errors_total", "Failed writes of the history.", func() float64 { return float64(p.ledger.Stats().WriteErrors) })
	if p.pushes != nil {
		m.Gauge("push_history_disk_bytes", "Size of the files of the history of pushes.", func() float64 { return float64(p.pushes.Stats().DiskBytes) })
		m.Counter("push_history_lost_total", "Entries of the history of pushes that the disk could not keep.", func() float64 { return float64(p.pushes.Stats().Lost) })
	}
	m.Gauge("durable_log_bytes", "Size of the durable log file.", func() float64 { return float64(p.log.Stats().LogBytes) })
	m.Gauge("durable_log_entries", "Entries in the durable log.", func() float64 { return float64(p.log.Stats().LogEntries) })
	m.Gauge("durable_snapshot_bytes", "Size of the newest snapshot of durable data.", func() float64 { return float64(p.log.Stats().SnapshotBytes) })
	m.Counter("durable_writes_total", "Writes to the durable log.", func() float64 { return float64(p.log.Stats().Writes) })
	m.Gauge("durable_healthy", "1 while the disk takes writes of durable data.", func() float64 {
		if p.log.Health() != nil {
			return 0
		}
		return 1
	})
	m.Gauge("ephemeral_snapshot_seconds", "When the ephemeral instances were last written to disk, since the epoch; 0 before the first time.",
		func() float64 { return float64(p.keeper.SavedAt()) / 1000 })
}

// exposeLegacy adds the figures of Nacos' own dashboards.
func (p *parts) exposeLegacy() {
	m := p.metrics
	counts := p.store.Counts
	m.Legacy("serviceCount", func() float64 { return float64(counts().Services) })
	m.Legacy("ipCount", func() float64 { return float64(counts().Ephemeral + counts().Persistent) })
	m.Legacy("subscriberCount", func() float64 { return float64(counts().Subscribers) })
	m.Legacy("tcpHealthCheck", func() float64 { return float64(p.checker.Checks(registry.CheckTCP)) })
	m.Legacy("httpHealthCheck", func() float64 { return float64(p.checker.Checks(registry.CheckHTTP)) })
	m.Legacy("mysqlHealthCheck", func() float64 { return float64(p.checker.Checks(registry.CheckMySQL)) })
	m.Legacy("leaderStatus", func() float64 {
		if p.log.Stats().Leader {
			return 1
		}
		return 0
	})
	m.Legacy("totalPush", func() float64 { return float64(p.udp.State(0).Total) })
	m.Legacy("failedPush", func() float64 { st := p.udp.State(0); return float64(st.Total - st.Succeed) })
	m.Legacy("pushPendingTaskCount", func() float64 { return float64(p.pusher.Pending()) })
}
