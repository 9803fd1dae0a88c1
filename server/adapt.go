package server

import (
	"log/slog"

	"github.com/rollcall-registry/rollcall/internal/health"
	"github.com/rollcall-registry/rollcall/internal/httpapi/lookup"
	v1 "github.com/rollcall-registry/rollcall/internal/httpapi/v1"
	"github.com/rollcall-registry/rollcall/internal/metrics"
	"github.com/rollcall-registry/rollcall/internal/registry"
	"github.com/rollcall-registry/rollcall/internal/udppush"
)

// The types below give the parts the shapes that the front-ends ask for, which
// must not know each other.

// admit asks the UDP sender whether packets may go where a look-up wants them. The
// sender is made after the front-ends because it needs their payload.
func (p *parts) admit(r lookup.PacketRequest) lookup.PacketVerdict {
	return lookup.PacketVerdict(p.udp.Admission().Judge(udppush.Request(r)))
}

// udpCounter reads the counts of the UDP sender.
type udpCounter struct{ parts *parts }

// PushState implements v1.PushCounter.
func (c udpCounter) PushState(maxUnacked int) v1.PushState {
	return v1.PushState(c.parts.udp.State(maxUnacked))
}

// ResetPushState implements v1.PushCounter.
func (c udpCounter) ResetPushState() { c.parts.udp.Reset() }

// probeTimer reads the times of probes.
type probeTimer struct{ checker *health.Checker }

// ProbeTime implements v1.ProbeTimer.
func (t probeTimer) ProbeTime(key registry.ServiceKey, cluster string) v1.ProbeTime {
	rt := t.checker.RT(key, cluster)
	return v1.ProbeTime{Best: rt.BestMillis, Worst: rt.WorstMillis, Normalized: rt.NormalizedMillis}
}

// machine reads how busy the machine is.
type machine struct{ reader *metrics.Machine }

// Load implements v1.Machine.
func (m machine) Load() v1.MachineLoad { return v1.MachineLoad(m.reader.Load()) }

// load returns the same as plain numbers.
func (p *parts) load() (cpu, average, memory float64) {
	l := p.machine.Load()
	return l.CPU, l.Average, l.Memory
}

// rootLevel changes what the whole server logs, whatever logger a caller names:
// Nacos has a log for each of its parts, Rollcall one.
type rootLevel struct{ level *slog.LevelVar }

// SetLevel implements v1.LogLevels.
func (l rootLevel) SetLevel(_ string, level slog.Level) { l.level.Set(level) }
