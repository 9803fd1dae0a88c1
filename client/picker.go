package rollcall

import (
	"sync"
	"sync/atomic"
)

// Picker picks one instance of a snapshot. It neither blocks nor allocates and is
// safe for concurrent use.
type Picker interface {
	// Pick returns an instance for one request. The error is ErrNoInstances or
	// ErrNoHealthyInstances.
	Pick() (*Instance, error)
	// PickKey is Pick for requests with a key: pickers that hash return the same
	// instance for the same key as long as it is there; others ignore the key.
	PickKey(key uint64) (*Instance, error)
	// Done says that the request for which the instance was picked has ended, with
	// err if it failed to be served. Pickers that count requests in flight need
	// it; callers always call it, once for each pick.
	Done(in *Instance, err error)
}

// Balancer makes pickers. It is used with [Watch.Picker].
type Balancer interface {
	// Build returns a picker for a snapshot. previous is the picker that it
	// replaces, made by the same Balancer and still in use while Build runs, or
	// nil; from it a picker may take over what it knows of the instances.
	Build(s *Snapshot, previous Picker) Picker
}

// livePicker builds a picker for each snapshot of a watch.
type livePicker struct {
	watch    *Watch
	balancer Balancer
	building sync.Mutex
	built    atomic.Pointer[builtPicker]
}

type builtPicker struct {
	from   *Snapshot
	picker Picker
}

func (p *livePicker) present() Picker {
	b := p.built.Load()
	if s := p.watch.Snapshot(); b.from != s && p.building.TryLock() {
		defer p.building.Unlock()
		b = p.built.Load() // one who was here just before may have built it
		if s = p.watch.Snapshot(); b.from != s {
			b = &builtPicker{s, p.balancer.Build(s, b.picker)}
			p.built.Store(b)
		}
	}
	return b.picker
}

func (p *livePicker) Pick() (*Instance, error) { return p.present().Pick() }

func (p *livePicker) PickKey(key uint64) (*Instance, error) { return p.present().PickKey(key) }

func (p *livePicker) Done(in *Instance, err error) { p.built.Load().picker.Done(in, err) }
