package health

import (
	"bytes"
	"context"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// machine is a machine's clock that a test turns.
type machine struct{ wall, mono atomic.Int64 }

func (m *machine) read() (int64, time.Duration) {
	return m.wall.Load(), time.Duration(m.mono.Load())
}

func (m *machine) pass(d time.Duration) {
	m.mono.Add(int64(d))
	m.wall.Add(d.Milliseconds())
}

// run lets d pass with the clock's ticks in time.
func (m *machine) run(c *Clock, d time.Duration) {
	for ; d >= clockTick; d -= clockTick {
		m.pass(clockTick)
		c.tick()
	}
	m.pass(d)
}

func testClock(t *testing.T) (*Clock, *machine, *bytes.Buffer) {
	t.Helper()
	m, log := &machine{}, &bytes.Buffer{}
	m.wall.Store(1_700_000_000_000)
	return newClock(DefaultConfig(), slog.New(slog.NewTextHandler(log, nil)), m.read), m, log
}

func wantLease(t *testing.T, c *Clock, want time.Duration) {
	t.Helper()
	if got := c.Now().Lease; got != want {
		t.Errorf("lease clock shows %v, want %v", got, want)
	}
}

func TestLeaseClockFollowsTime(t *testing.T) {
	c, m, log := testClock(t)
	m.run(c, 10*time.Second+100*time.Millisecond)
	wantLease(t, c, 10*time.Second+100*time.Millisecond)
	if got := c.Now().Wall; got != 1_700_000_010_100 {
		t.Errorf("wall clock shows %d", got)
	}
	if c.Held() || log.Len() > 0 {
		t.Errorf("held %v, logged %q without a pause", c.Held(), log)
	}
}

func TestPauseCountsForASecondAndGrantsGrace(t *testing.T) {
	c, m, log := testClock(t)
	var told time.Duration
	c.OnPause = func(d time.Duration) { told = d }
	m.run(c, time.Minute)
	m.pass(45 * time.Second)
	wantLease(t, c, time.Minute+time.Second) // before the clock itself wakes
	c.tick()
	wantLease(t, c, time.Minute+time.Second)
	if !c.Held() {
		t.Error("no grace after a pause")
	}
	m.run(c, 5*time.Second)
	wantLease(t, c, time.Minute+time.Second)
	m.run(c, 3*time.Second)
	wantLease(t, c, time.Minute+4*time.Second)
	if c.Held() {
		t.Error("grace does not end")
	}
	want := Pauses{Count: 1, Total: 45 * time.Second, Latest: 45 * time.Second}
	if got := c.Pauses(); got != want || told != want.Latest {
		t.Errorf("pauses %+v, told %v; want %+v", got, told, want)
	}
	if strings.Count(log.String(), "stood still") != 1 {
		t.Errorf("log: %s", log)
	}
}

func TestPauseInTheGraceStartsItAnew(t *testing.T) {
	c, m, _ := testClock(t)
	m.run(c, time.Minute)
	m.pass(10 * time.Second)
	c.tick()
	m.run(c, 2*time.Second)
	m.pass(20 * time.Second) // 3 s of it grace, then a second counts
	c.tick()
	wantLease(t, c, time.Minute+2*time.Second)
	m.run(c, 5*time.Second)
	wantLease(t, c, time.Minute+2*time.Second)
	m.run(c, time.Second)
	wantLease(t, c, time.Minute+3*time.Second)
}

func TestLateTickWithinASecondIsNoPause(t *testing.T) {
	c, m, _ := testClock(t)
	m.pass(maxGap)
	c.tick()
	m.run(c, time.Second)
	wantLease(t, c, 2*time.Second)
	if c.Pauses().Count != 0 {
		t.Error("counted as a pause")
	}
}

func TestWallClockStepsDoNotMatter(t *testing.T) {
	c, m, _ := testClock(t)
	for _, step := range []time.Duration{time.Hour, -24 * time.Hour} {
		before := c.Now()
		m.wall.Add(step.Milliseconds())
		m.run(c, time.Second)
		now := c.Now()
		if now.Lease-before.Lease != time.Second || now.Wall-before.Wall != (step+time.Second).Milliseconds() {
			t.Errorf("step of %v: from %+v to %+v", step, before, now)
		}
	}
}

func TestLeaseClockNeverRunsBackwards(t *testing.T) {
	c, m, _ := testClock(t)
	random := rand.New(rand.NewPCG(1, 2))
	done := make(chan struct{})
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			var last time.Duration
			for {
				select {
				case <-done:
					return
				default:
				}
				now := c.Now().Lease
				if now < last {
					t.Errorf("lease clock went from %v to %v", last, now)
					return
				}
				last = now
			}
		})
	}
	for range 20_000 {
		d := time.Duration(random.Int64N(int64(400 * time.Millisecond)))
		if random.IntN(50) == 0 {
			d *= 40
		}
		before := c.Now().Lease
		m.pass(d)
		if random.IntN(4) > 0 {
			c.tick()
		}
		now := c.Now().Lease
		if _, mono := m.read(); now < before || now > mono {
			t.Fatalf("after %v of %v the lease clock went from %v to %v", d, mono, before, now)
		}
	}
	close(done)
	readers.Wait()
}

func TestClockRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewClock(DefaultConfig(), slog.New(slog.DiscardHandler))
		time.Sleep(time.Minute) // a slow start
		wantLease(t, c, time.Second)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- c.Run(ctx) }()
		time.Sleep(time.Hour)
		wantLease(t, c, time.Hour+time.Second)
		if c.Pauses().Count != 0 {
			t.Error("the start counts as a pause")
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		time.Sleep(time.Hour)
		wantLease(t, c, time.Hour+2*time.Second)
	})
}

func BenchmarkClockNow(b *testing.B) {
	c := NewClock(DefaultConfig(), slog.New(slog.DiscardHandler))
	b.ReportAllocs()
	for b.Loop() {
		_ = c.Now()
	}
}
