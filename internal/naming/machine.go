package naming

import (
	"io"

	"github.com/rollcall-registry/rollcall/internal/registry"
)

// Machine applies the durable log to a store: it is the state machine that
// package consensus drives.
type Machine struct {
	store *registry.Store
	clock Clock
}

// NewMachine returns the state machine over store.
func NewMachine(store *registry.Store, clock Clock) *Machine {
	return &Machine{store: store, clock: clock}
}

// Applied is what applying one command returned.
type Applied struct {
	Result registry.Result
	Err    error
}

// Apply applies one encoded command and returns an [Applied]. The lease clock of
// the server that runs now replaces that of the command, since leases do not
// outlive a restart.
func (m *Machine) Apply(data []byte, _ uint64) any {
	cmd, err := registry.DecodeCommand(data)
	if err != nil {
		return Applied{Err: err}
	}
	registry.Restamp(cmd, m.clock.Now())
	res, err := m.store.Apply(cmd)
	return Applied{Result: res, Err: err}
}

// Snapshot returns a writer of the durable state as it is now.
func (m *Machine) Snapshot() (func(io.Writer) error, error) { return m.store.Durable(), nil }

// Restore reads a snapshot and returns what puts it in the place of the durable
// state; ephemeral instances stay. The events of that, which nobody is told of
// while a server starts, name a restore as their cause.
func (m *Machine) Restore(r io.Reader) (install func(), err error) {
	snap, err := ReadSnapshot(r)
	if err != nil {
		return nil, err
	}
	return func() {
		m.store.Install(snap, registry.Meta{
			At: m.clock.Now(), Cause: registry.Cause{Kind: registry.CauseRestore},
		})
	}, nil
}
