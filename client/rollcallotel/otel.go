// Package rollcallotel counts for OpenTelemetry what a client of package rollcall does.
//
//	metrics, err := rollcallotel.New(otel.Meter("orders"))
//	…
//	client, err := rollcall.New(rollcall.WithServers(…), rollcall.WithMetrics(metrics))
//
// It needs the interfaces of OpenTelemetry only; the program chooses the SDK. What it
// has:
//
//	rollcall.client.operation.duration   a histogram in s, with op and result
//	rollcall.client.update.duration      a histogram in s: from having received a change to having shown it
//	rollcall.client.dropped              a counter of messages that were ignored, with reason
//	rollcall.client.connects             a counter of sessions, with protocol
//	rollcall.client.connected            sessions that are open
//
// The result is ok, or one of a dozen words such as timeout, forbidden and not_ready. All
// methods are safe for concurrent use.
package rollcallotel

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	rollcall "github.com/rollcall-registry/rollcall/client"
	"github.com/rollcall-registry/rollcall/client/internal/outcome"
)

// Metrics implements [rollcall.Metrics].
type Metrics struct {
	operations metric.Float64Histogram
	updates    metric.Float64Histogram
	dropped    metric.Int64Counter
	connects   metric.Int64Counter
	connected  metric.Int64UpDownCounter
}

// New makes the instruments.
func New(m metric.Meter) (*Metrics, error) {
	var errs [5]error
	var out Metrics
	out.operations, errs[0] = m.Float64Histogram("rollcall.client.operation.duration", metric.WithUnit("s"),
		metric.WithDescription("How long operations took."))
	out.updates, errs[1] = m.Float64Histogram("rollcall.client.update.duration", metric.WithUnit("s"),
		metric.WithDescription("Time from having received a change to having shown it."))
	out.dropped, errs[2] = m.Int64Counter("rollcall.client.dropped", metric.WithDescription("Messages that were ignored."))
	out.connects, errs[3] = m.Int64Counter("rollcall.client.connects", metric.WithDescription("Sessions that began."))
	out.connected, errs[4] = m.Int64UpDownCounter("rollcall.client.connected", metric.WithDescription("Sessions that are open."))
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	return &out, nil
}

// CallDone is of [rollcall.Metrics], as the others are.
func (m *Metrics) CallDone(op string, took time.Duration, err error) {
	m.operations.Record(context.Background(), took.Seconds(),
		metric.WithAttributes(attribute.String("op", op), attribute.String("result", outcome.Word(err))))
}

// Published records how long a change took.
func (m *Metrics) Published(_ rollcall.Service, _ int, took time.Duration) {
	m.updates.Record(context.Background(), took.Seconds())
}

// Dropped counts a message.
func (m *Metrics) Dropped(reason string) {
	m.dropped.Add(context.Background(), 1, metric.WithAttributes(attribute.String("reason", reason)))
}

// Connected counts a session.
func (m *Metrics) Connected(_ string, p rollcall.Protocol) {
	m.connects.Add(context.Background(), 1, metric.WithAttributes(attribute.String("protocol", p.String())))
	m.connected.Add(context.Background(), 1)
}

// Disconnected counts its end.
func (m *Metrics) Disconnected(error) { m.connected.Add(context.Background(), -1) }
