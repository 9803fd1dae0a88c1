package workload

import (
	"context"
	"sync/atomic"

	"github.com/rollcall-registry/rollcall/internal/bench/fleet"
	"github.com/rollcall-registry/rollcall/internal/bench/target"
)

// maxVerified is how many services of a fleet a verification looks at: all, or as
// many spread over all.
const maxVerified = 20_000

// verifiers is how many sessions look.
const verifiers = 8

// verify lists services and has judge compare what is listed.
func (e *Env) verify(ctx context.Context, f *fleet.Fleet, judge func(s fleet.Service, hosts []fleet.Host) error) (Checked, error) {
	if e.Target.Yardstick {
		return Checked{}, nil
	}
	sessions, err := e.dialAll(ctx, min(verifiers, f.Services))
	if err != nil {
		return Checked{}, err
	}
	defer closeAll(sessions)
	var instances, services atomic.Int64
	looked := min(f.Services, maxVerified)
	err = parallel(ctx, len(sessions), func(ctx context.Context, i int) error {
		for n := i; n < looked && ctx.Err() == nil; n += len(sessions) {
			s := f.Service(n)
			if looked < f.Services {
				s = f.Scattered(n)
			}
			hosts, err := sessions[i].List(s)
			if err == nil {
				err = judge(s, hosts)
			}
			if err != nil {
				return err
			}
			services.Add(1)
			instances.Add(int64(len(hosts)))
		}
		return nil
	})
	return Checked{Services: int(services.Load()), Instances: int(instances.Load())}, err
}

// verifyWhole checks that all instances of a fleet are there.
func (e *Env) verifyWhole(ctx context.Context, f *fleet.Fleet) (Checked, error) {
	return e.verify(ctx, f, func(s fleet.Service, hosts []fleet.Host) error {
		return s.Check(hosts, func(host int) (fleet.Instance, bool) { return fleet.Instance{Service: s, Host: host}, true })
	})
}

// ledger keeps how far each worker has come with the instances that it owns, for
// work whose units are instances. It is for the goroutine of each worker; others read
// it when those have ended.
type ledger struct {
	fleet *fleet.Fleet
	done  []int          // of each worker: the units that were tried
	bad   []map[int]bool // of each worker: those that failed
}

func newLedger(f *fleet.Fleet) *ledger {
	return &ledger{fleet: f, done: make([]int, f.Owners), bad: make([]map[int]bool, f.Owners)}
}

// note takes down what became of a unit.
func (l *ledger) note(worker, n int, err error) {
	l.done[worker] = n + 1
	if err != nil {
		if l.bad[worker] == nil {
			l.bad[worker] = map[int]bool{}
		}
		l.bad[worker][n] = true
	}
}

// What is known of an instance.
type fate int

const (
	untouched fate = iota
	changed        // the unit succeeded
	uncertain      // it failed, and may have been done all the same
)

func (l *ledger) fate(i fleet.Instance) fate {
	owner, k := i.Owner()
	switch {
	case k >= l.done[owner]:
		return untouched
	case l.bad[owner][k]:
		return uncertain
	default:
		return changed
	}
}

// certain reports whether the fate of all instances of a service is known.
func (l *ledger) certain(s fleet.Service) bool {
	for host := range s.Fleet.Size {
		if l.fate(fleet.Instance{Service: s, Host: host}) == uncertain {
			return false
		}
	}
	return true
}

// undo calls f for each instance that a worker's units have touched, with the
// worker's session.
func (l *ledger) undo(ctx context.Context, sessions []target.Session, f func(target.Session, fleet.Instance) error) {
	_ = parallel(ctx, len(sessions), func(ctx context.Context, w int) error {
		for k := 0; k < l.done[w] && ctx.Err() == nil; k++ {
			if i, ok := l.fleet.Owned(w, k); ok {
				_ = f(sessions[w], i) // what is left goes by itself
			}
		}
		return nil
	})
}
