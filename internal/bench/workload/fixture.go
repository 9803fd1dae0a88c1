package workload

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/rollcall-registry/rollcall/internal/bench/fleet"
	"github.com/rollcall-registry/rollcall/internal/bench/load"
	"github.com/rollcall-registry/rollcall/internal/bench/target"
)

// fixture is a fleet that is registered and kept alive while other things are
// measured.
type fixture struct {
	fleet    *fleet.Fleet
	protocol target.Protocol
	sessions []target.Session
	pulse    *pulse
	stop     context.CancelFunc
	keepers  sync.WaitGroup
}

// beatInterval is how often clients say that they are alive. Source: nacos-client,
// Constants.DEFAULT_HEART_BEAT_INTERVAL and the keep-alive of its gRPC connections.
const beatInterval = 5 * time.Second

// holders is how many sessions a fixture is registered by.
const holders = 16

// hold registers all instances of a fleet and keeps them alive until the fixture is
// closed, at the rate at which real clients would.
func (e *Env) hold(ctx context.Context, f *fleet.Fleet) (*fixture, error) {
	n, beats := holders, e.newPulse(f.Len(), usualTimeout)
	if e.Config.Protocol == target.GRPC {
		beats = nil // the connections are told by their own
	} else {
		n = max(n, f.Len()/eachKeeps)
	}
	sessions, err := e.dialAll(ctx, min(n, f.Services))
	if err != nil {
		return nil, err
	}
	// Clients beat from when they are registered, not from when all are.
	early, err := e.keepAlive(ctx, f.All(), beats)
	if err != nil {
		closeAll(sessions)
		return nil, err
	}
	defer early.close()
	x := &fixture{fleet: f, protocol: e.Config.Protocol, sessions: sessions, pulse: beats}
	held, stop := context.WithCancel(ctx)
	x.stop = stop
	err = parallel(ctx, len(sessions), func(ctx context.Context, i int) error {
		for n := i; n < f.Services && ctx.Err() == nil; n += len(sessions) {
			if err := sessions[i].RegisterService(f.Service(n)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		x.close(ctx)
		return nil, fmt.Errorf("register %d instances: %w", f.Len(), err)
	}
	for i, s := range sessions {
		x.keepers.Go(func() { x.keep(held, i, s) })
	}
	return x, nil
}

// keep keeps the instances of a session alive until ctx ends.
func (x *fixture) keep(ctx context.Context, i int, s target.Session) {
	var mine []fleet.Instance
	for n := i; n < x.fleet.Services; n += len(x.sessions) {
		for host := range x.fleet.Size {
			mine = append(mine, fleet.Instance{Service: x.fleet.Service(n), Host: host})
		}
	}
	if x.protocol == target.GRPC {
		mine = mine[:1] // one for the connection
	}
	beatEach(ctx, s, mine, x.pulse, func(i fleet.Instance) {
		_ = s.Register(i) // the verification finds what is missing
	})
}

// beatEach beats for each instance once in a beat interval until ctx ends, in small
// groups, evenly over the time, and takes the pulse of each. The server does not know
// the instance that unknown is called with.
func beatEach(ctx context.Context, s target.Session, list []fleet.Instance, beats *pulse, unknown func(fleet.Instance)) {
	const group = 8
	tick := time.NewTicker(max(beatInterval*group/time.Duration(max(len(list), group)), time.Millisecond))
	defer tick.Stop()
	for n := 0; ; n += group {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		for k := n; k < n+min(group, len(list)); k++ {
			i := list[k%len(list)]
			switch err := s.Beat(i); {
			case err == nil:
				beats.beaten(i.Index())
			case errors.Is(err, target.ErrUnknown):
				unknown(i)
			}
		}
	}
}

// keeper beats for instances that come and go by other sessions, over HTTP; over gRPC
// their connections do.
type keeper struct {
	stop     context.CancelFunc
	sessions []target.Session
	beats    sync.WaitGroup
}

// eachKeeps is how many instances one session beats for at most: a hundred a second, so
// that answers that take some milliseconds, on a machine that is busy, do not make the
// beats of all late.
const eachKeeps = 500

// keepAlive beats for instances until the keeper is closed. Those that the server
// does not know are left alone.
func (e *Env) keepAlive(ctx context.Context, list []fleet.Instance, beats *pulse) (*keeper, error) {
	if e.Config.Protocol == target.GRPC {
		return nil, nil
	}
	sessions, err := e.dialAll(ctx, (len(list)+eachKeeps-1)/eachKeeps)
	if err != nil {
		return nil, err
	}
	k := &keeper{sessions: sessions}
	ctx, k.stop = context.WithCancel(ctx)
	for n, part := range slices.Collect(slices.Chunk(list, eachKeeps)) {
		k.beats.Go(func() { beatEach(ctx, sessions[n], part, beats, func(fleet.Instance) {}) })
	}
	return k, nil
}

// close is for a nil keeper as well.
func (k *keeper) close() {
	if k == nil {
		return
	}
	k.stop()
	k.beats.Wait()
	closeAll(k.sessions)
}

// close ends the keepers, and deregisters everything if ctx has not ended.
func (x *fixture) close(ctx context.Context) {
	if x == nil {
		return
	}
	ended := ctx.Err() != nil
	x.stop()
	x.keepers.Wait()
	if !ended && x.protocol == target.HTTP { // over gRPC they go with their connection
		withdraw(ctx, x.sessions, x.fleet)
	}
	closeAll(x.sessions)
}

// withdraw deregisters all instances of a fleet, over whatever sessions there are.
func withdraw(ctx context.Context, sessions []target.Session, f *fleet.Fleet) {
	if f == nil {
		return
	}
	_ = parallel(ctx, len(sessions), func(ctx context.Context, i int) error {
		for n := i; n < f.Services && sessions[i] != nil; n += len(sessions) {
			for host := 0; host < f.Size && ctx.Err() == nil; host++ {
				// What is left goes by itself, for want of beats.
				_ = sessions[i].Deregister(fleet.Instance{Service: f.Service(n), Host: host})
			}
		}
		return nil
	})
}

// Hold registers all instances of a fleet and keeps them alive, as clients would,
// until release is called, which deregisters them unless its context has ended.
func Hold(ctx context.Context, t *target.Target, p target.Protocol, f *fleet.Fleet) (release func(context.Context), err error) {
	e := &Env{Target: t, Config: Config{Protocol: p}, Rec: load.NewRecorder()}
	x, err := e.hold(ctx, f)
	if err != nil {
		return nil, err
	}
	return x.close, nil
}
