package workload

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rollcall-registry/rollcall/internal/bench/fleet"
	"github.com/rollcall-registry/rollcall/internal/bench/target"
)

// restart restarts the server while clients live on and others look services up.
type restart struct {
	*Env
	fleet   *fleet.Fleet
	clients []*client
	watch   watch // of subscribers
	lookups lookups
	stop    context.CancelFunc
	living  sync.WaitGroup
	pid     int           // of the server before, 0 if it is not known
	ran     time.Duration // the command
	failed  error         // of the restart
}

// errNotRestarted says that nothing came of the command.
var errNotRestarted = errors.New("the command came to its end and the server was not restarted: no look-up failed meanwhile, and its process is the same")

// lookups are those of clients without a subscription, and what they saw.
type lookups struct {
	on           atomic.Bool   // whether what is missing counts
	whole        []atomic.Bool // of each service: it was seen whole since the command
	empty, short atomic.Int64  // answers without any instance, and without some
	failed       atomic.Int64
	answered     atomic.Int64 // by the recorder's clock: the last one
	gap          maximum      // the longest time from one to the next, in nanoseconds
}

const (
	// lookers is how many sessions look services up, each lookEvery.
	lookers   = 4
	lookEvery = 10 * time.Millisecond
	// restartTime bounds the command, and again the time until all is well: beats
	// that failed come back after 5 s, and a server may keep its peace for 30.
	restartTime = time.Minute
)

func (r *restart) Prepare(ctx context.Context) (err error) {
	if r.pid, err = r.Target.Process(); err != nil {
		return err
	}
	r.fleet = r.Env.fleet("restart", r.Config.Services, r.Config.Instances, 1)
	r.watch.whole = r.fleet.Size
	r.lookups.whole = make([]atomic.Bool, r.fleet.Services)
	r.clients = r.crowd(r.fleet, &r.watch)
	if err := parallel(ctx, len(r.clients), func(_ context.Context, n int) error { return r.clients[n].join(ctx) }); err != nil {
		return err
	}
	ctx, r.stop = context.WithCancel(ctx)
	for _, c := range r.clients {
		r.living.Go(func() { c.live(ctx) })
	}
	for n := range lookers {
		session, err := r.Target.Dial(ctx, r.Config.Protocol)
		if err != nil {
			return err
		}
		r.living.Go(func() { r.look(ctx, session, n) })
	}
	return r.awaitWhole(ctx)
}

// look looks up one service after the other until ctx ends.
func (r *restart) look(ctx context.Context, session target.Session, n int) {
	defer session.Close()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for ; ; n++ {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		service := r.fleet.Scattered(n)
		have, err := session.Count(service)
		r.lookups.saw(service.N, have, r.fleet.Size, err, r.Rec.Now())
	}
}

// saw takes an answer down.
func (l *lookups) saw(service, have, size int, err error, now int64) {
	counts := l.on.Load()
	if err != nil {
		if counts {
			l.failed.Add(1)
		}
		return
	}
	if before := l.answered.Swap(now); counts && before != 0 {
		l.gap.take(now - before)
	}
	l.whole[service].Store(have == size)
	if counts && have == 0 {
		l.empty.Add(1)
	} else if counts && have < size {
		l.short.Add(1)
	}
}

// awaitWhole waits until every service was seen whole and all clients are registered
// and subscribed.
func (r *restart) awaitWhole(ctx context.Context) error {
	for n := range r.lookups.whole {
		r.lookups.whole[n].Store(false)
	}
	ctx, cancel := context.WithTimeout(ctx, restartTime)
	defer cancel()
	for {
		services, clients := 0, 0
		for n := range r.lookups.whole {
			if !r.lookups.whole[n].Load() {
				services++
			}
		}
		for _, c := range r.clients {
			if !c.up.Load() {
				clients++
			}
		}
		if services+clients == 0 {
			return nil
		}
		if sleep(ctx, lookEvery) != nil {
			return fmt.Errorf("after %v %d of %d services are not whole and %d of %d clients not back",
				restartTime, services, r.fleet.Services, clients, len(r.clients))
		}
	}
}

// Step restarts the server. The unit ends when all is as it was before.
func (r *restart) Step(ctx context.Context, _, _ int) error {
	r.watch.on.Store(true)
	r.lookups.on.Store(true)
	begun := time.Now()
	if r.failed = runShell(ctx, r.Config.Command); r.failed != nil {
		return r.failed
	}
	r.ran = time.Since(begun)
	r.failed = r.awaitWhole(ctx)
	return r.failed
}

// runShell runs a command for as long as restartTime.
func runShell(ctx context.Context, command string) error {
	running, cancel := context.WithTimeout(ctx, restartTime)
	defer cancel()
	cmd := exec.CommandContext(running, "sh", "-c", command)
	alone(cmd)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	// A server that the command leaves behind may keep the pipes open.
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	switch {
	case running.Err() != nil && ctx.Err() == nil:
		return fmt.Errorf("restart command: it did not return within %v: %.200q", restartTime, out.Bytes())
	case err != nil && !errors.Is(err, exec.ErrWaitDelay):
		return fmt.Errorf("restart command: %w: %.200q", err, out.Bytes())
	}
	return nil
}

// happened returns an error if nobody noticed a restart: look-ups, of which there are
// hundreds a second on connections that are kept, would have failed, or the process be
// another.
func (r *restart) happened() error {
	if r.lookups.failed.Load() > 0 {
		return nil
	}
	if pid, err := r.Target.Process(); err != nil || pid != r.pid {
		return nil //nolint:nilerr // a process that has gone is what was asked for
	}
	return errNotRestarted
}

// Verify watches for a while longer, for what goes wrong late.
func (r *restart) Verify(ctx context.Context) (Checked, error) {
	if r.failed != nil {
		return Checked{}, r.failed
	}
	if err := r.happened(); err != nil {
		return Checked{}, err
	}
	if err := sleep(ctx, r.Patience/2); err != nil {
		return Checked{}, err
	}
	checked, err := r.verifyWhole(ctx, r.fleet)
	checked.Subscribers = len(r.clients)
	return checked, err
}

func (r *restart) Figures() []Figure {
	return []Figure{
		{"the command ran", r.ran.Seconds(), "s"},
		{"longest time without an answered look-up", time.Duration(r.lookups.gap.load()).Seconds(), "s"},
		{"look-ups that failed", float64(r.lookups.failed.Load()), ""},
		{"look-ups answered with an empty list", float64(r.lookups.empty.Load()), ""},
		{"look-ups answered with some missing", float64(r.lookups.short.Load()), ""},
		{"empty lists told to subscribers", float64(r.watch.empty.Load()), ""},
		{"false removals told to subscribers", float64(r.watch.removed.Load()), ""},
		{"instances falsely told to be unhealthy", float64(r.watch.sick.Load()), ""},
	}
}

func (r *restart) Close(ctx context.Context) {
	if r.stop != nil {
		r.stop()
	}
	r.living.Wait()
	r.dismiss(ctx, r.clients)
}
