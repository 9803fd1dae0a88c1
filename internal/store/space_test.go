package store

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestSpace(t *testing.T) {
	d := mustOpen(t, t.TempDir(), nil)
	s, err := d.Space()
	if err != nil || s.Total == 0 || s.Free > s.Total {
		t.Fatalf("Space = %+v, %v", s, err)
	}
	if _, err := SpaceOf(d.Path("absent")); err == nil {
		t.Error("space of an absent path")
	}
}

func TestLowSpaceIsLoggedOnChange(t *testing.T) {
	var log bytes.Buffer
	d := &Dir{path: "/data", log: slog.New(slog.NewTextHandler(&log, nil))}
	low := false
	var states []bool
	for _, free := range []uint64{200, 99, 50, 110, 124, 125, 200} {
		low = d.judge(Space{Free: free}, 100, low)
		states = append(states, low)
	}
	want := []bool{false, true, true, true, true, false, false}
	for i := range want {
		if states[i] != want[i] {
			t.Fatalf("low = %v, want %v", states, want)
		}
	}
	if lines := strings.Count(log.String(), "\n"); lines != 2 {
		t.Errorf("%d log lines, want 2:\n%s", lines, log.String())
	}
}

func TestWatchSpaceMeasuresAtOnceAndThenEachInterval(t *testing.T) {
	path := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		d := &Dir{path: path, log: quiet()}
		ctx, cancel := context.WithCancel(t.Context())
		calls := 0
		done := make(chan struct{})
		go func() {
			defer close(done)
			d.WatchSpace(ctx, time.Minute, 1, func(s Space, low bool) {
				calls++
				if low || s.Total == 0 {
					t.Errorf("notified of %+v, low %v", s, low)
				}
			})
		}()
		time.Sleep(2*time.Minute + time.Second)
		cancel()
		<-done
		if calls != 3 {
			t.Errorf("%d measurements in two minutes, want 3", calls)
		}
	})
}
