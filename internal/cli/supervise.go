package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// stopGrace is how long a server may take to stop after SIGTERM. The promise is
// 20 s from signal to exit; the rest is for the exit itself.
const stopGrace = 19 * time.Second

// sameSignal is how long after the first a second signal counts as the same: some
// supervisors signal the process and its group, which is the process twice.
const sameSignal = 250 * time.Millisecond

// supervision runs one server and passes the signals of the process on to it.
type supervision struct {
	// run is the server. It returns when ctx has ended and everything is flushed,
	// or with an error when it cannot start or go on.
	run func(ctx context.Context) error
	// ready is closed once the server answers; onReady is called then.
	ready   <-chan struct{}
	onReady func()
	// reload is called for each SIGHUP while the server runs.
	reload  func()
	signals <-chan os.Signal
}

// wait runs the server until it ends and returns its error. SIGTERM and SIGINT
// stop it; when a second one comes, or the server takes longer than stopGrace,
// wait returns an error while the server is still running.
func (s *supervision) wait(parent context.Context) error {
	ctx, stop := context.WithCancelCause(parent)
	defer stop(nil)
	ended := make(chan error, 1) // of one value: the sender never waits
	go func() { ended <- s.run(ctx) }()

	ready := s.ready
	var overdue <-chan time.Time
	var asked time.Time // to stop
	for {
		select {
		case err := <-ended:
			return err
		case <-ready:
			ready = nil
			s.onReady()
		case <-overdue:
			return fmt.Errorf("the server did not stop within %v; something may not have been flushed", stopGrace)
		case sig := <-s.signals:
			switch {
			case sig == syscall.SIGHUP && overdue == nil:
				s.reload()
			case sig == syscall.SIGHUP: // nothing to reload any more
			case overdue != nil && time.Since(asked) < sameSignal:
			case overdue != nil:
				return errors.New("a second signal ended the server before everything was flushed")
			default:
				stop(fmt.Errorf("signal %v", sig))
				overdue, asked = time.After(stopGrace), time.Now()
			}
		}
	}
}
