package cli

import (
	"context"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// stage is a supervision whose server stops a given time after it is told to.
type stage struct {
	supervision
	signals       chan os.Signal
	ready         chan struct{}
	readies       int
	reloads       int
	stoppedCause  error
	stopTakes     time.Duration
	endsByItself  error
	endsAfter     time.Duration
	serverEnded   chan struct{}
	serverRunning chan struct{}
}

func newStage() *stage {
	s := &stage{
		signals: make(chan os.Signal, 8), ready: make(chan struct{}),
		serverEnded: make(chan struct{}), serverRunning: make(chan struct{}),
	}
	s.supervision = supervision{
		run: s.serve, ready: s.ready, signals: s.signals,
		onReady: func() { s.readies++ }, reload: func() { s.reloads++ },
	}
	return s
}

func (s *stage) serve(ctx context.Context) error {
	defer close(s.serverEnded)
	close(s.serverRunning)
	if s.endsByItself != nil {
		time.Sleep(s.endsAfter)
		return s.endsByItself
	}
	<-ctx.Done()
	s.stoppedCause = context.Cause(ctx)
	time.Sleep(s.stopTakes)
	return nil
}

func TestSupervision(t *testing.T) {
	for _, tt := range []struct {
		name  string
		set   func(*stage)
		act   func(*stage)
		err   string // empty: none
		after time.Duration
	}{
		{
			name: "SIGTERM stops", set: func(s *stage) { s.stopTakes = 5 * time.Second },
			act: func(s *stage) { s.signals <- syscall.SIGTERM }, after: 5 * time.Second,
		},
		{name: "SIGINT stops", act: func(s *stage) { s.signals <- syscall.SIGINT }},
		{
			name: "a second signal ends at once", set: func(s *stage) { s.stopTakes = 10 * time.Second },
			act: func(s *stage) {
				s.signals <- syscall.SIGTERM
				time.Sleep(time.Second)
				s.signals <- syscall.SIGINT
			},
			err: "second signal", after: time.Second,
		},
		{
			name: "a server that does not stop is left", set: func(s *stage) { s.stopTakes = time.Hour },
			act: func(s *stage) { s.signals <- syscall.SIGTERM }, err: "did not stop within 19s", after: stopGrace,
		},
		{
			name: "SIGHUP while stopping is nothing", set: func(s *stage) { s.stopTakes = 2 * time.Second },
			act: func(s *stage) {
				s.signals <- syscall.SIGTERM
				s.signals <- syscall.SIGHUP
			},
			after: 2 * time.Second,
		},
		{
			name: "a server that cannot start", set: func(s *stage) { s.endsByItself, s.endsAfter = errors.New("port in use"), time.Millisecond },
			act: func(*stage) {}, err: "port in use", after: time.Millisecond,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStage()
				if tt.set != nil {
					tt.set(s)
				}
				start := time.Now()
				go tt.act(s)
				err := s.wait(t.Context())
				if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
					t.Errorf("got %v, want an error with %q", err, tt.err)
				}
				if took := time.Since(start); took != tt.after {
					t.Errorf("it took %v, want %v", took, tt.after)
				}
				<-s.serverEnded // a bubble must not leave goroutines behind
				if s.reloads != 0 {
					t.Errorf("%d reloads", s.reloads)
				}
			})
		})
	}
}

func TestSupervisionReadyAndReload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage()
		done := make(chan error, 1)
		go func() { done <- s.wait(t.Context()) }()
		<-s.serverRunning
		s.signals <- syscall.SIGHUP
		close(s.ready)
		synctest.Wait()
		s.signals <- syscall.SIGHUP
		synctest.Wait()
		s.signals <- syscall.SIGTERM
		if err := <-done; err != nil {
			t.Error(err)
		}
		<-s.serverEnded
		if s.readies != 1 || s.reloads != 2 {
			t.Errorf("ready %d times and %d reloads, want 1 and 2", s.readies, s.reloads)
		}
		if s.stoppedCause == nil || !strings.Contains(s.stoppedCause.Error(), "terminated") {
			t.Errorf("the cause of the stop is %v, want the signal", s.stoppedCause)
		}
	})
}
