package httpapitest

import (
	"context"
	"log/slog"
	"net/netip"
	"time"

	"github.com/rollcall-registry/rollcall/internal/httpapi/lookup"
	"github.com/rollcall-registry/rollcall/internal/naming"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// Core returns a core whose durable log applies at once and keeps nothing, with its
// store.
func Core(clock naming.Clock) (*naming.Core, *registry.Store) {
	store := registry.NewStore(registry.DefaultConfig(), naming.Sinks{})
	log := instantLog{naming.NewMachine(store, clock)}
	return naming.New(naming.DefaultConfig(), store, log, clock, slog.New(slog.DiscardHandler)), store
}

// instantLog applies what it is given, in the form in which a real log would have
// kept it.
type instantLog struct{ machine *naming.Machine }

// Propose implements [naming.Log].
func (l instantLog) Propose(_ context.Context, c registry.Command) (registry.Result, error) {
	data, err := registry.EncodeCommand(c)
	if err != nil {
		return registry.Result{}, err
	}
	applied := l.machine.Apply(data, 0).(naming.Applied)
	return applied.Result, applied.Err
}

// Running is the real clock, whose lease clock began at a time.
type Running time.Time

// Now implements [naming.Clock].
func (c Running) Now() registry.Instant {
	now := time.Now()
	return registry.Instant{Wall: now.UnixMilli(), Lease: now.Sub(time.Time(c))}
}

// Stopped is a clock that stands still, so that revisions are 1700000000000,
// 1700000000001 and so on.
type Stopped struct{}

// Now implements [naming.Clock].
func (Stopped) Now() registry.Instant {
	return registry.Instant{Wall: 1700000000000, Lease: time.Second}
}

// OwnAddress is a [lookup.Judge] that admits subscribers which want packets where
// they ask from; those that want them elsewhere are listed.
func OwnAddress(r lookup.PacketRequest) lookup.PacketVerdict {
	if r.Port > 65535 || !r.Eligible || !r.Switches.PushEnabled {
		return lookup.PacketVerdict{}
	}
	addr := r.Peer
	if r.ClientIP != "" {
		var err error
		if addr, err = netip.ParseAddr(r.ClientIP); err != nil {
			return lookup.PacketVerdict{}
		}
	}
	v := lookup.PacketVerdict{Subscribe: true, Target: netip.AddrPortFrom(addr, uint16(r.Port))}
	if addr != r.Peer {
		v.Refused = "the address is not its own"
	}
	return v
}
