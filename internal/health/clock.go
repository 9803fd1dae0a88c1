package health

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/rollcall-registry/rollcall/internal/registry"
)

// The clock notes the time every clockTick. A note that comes later than maxGap
// after the one before means that the server did not run in between: it was
// stopped, its machine was suspended, or it got no processor. maxGap is well
// above what a garbage collection or a busy processor costs, and well below the
// shortest timeout that makes sense.
const (
	clockTick = 250 * time.Millisecond
	maxGap    = time.Second
)

// Clock reads the time of a server. Wall time is the machine's. The lease clock
// is the monotonic time since [NewClock], without the spans in which the server
// did not run: of a pause at most a second counts, and after one the clock
// stands still for the grace of the [Config], so that every client can beat
// before its lease goes on. A step of the wall clock does not touch it, and it
// never runs backwards.
//
// It advances only while [Clock.Run] runs, but for at most a second. Now may be
// called by any number of goroutines; it takes no lock and does not allocate.
type Clock struct {
	// OnPause, when set before Run, is called after each pause with its length,
	// on the goroutine of Run. It must not block.
	OnPause func(time.Duration)

	grace time.Duration
	log   *slog.Logger
	// read returns the wall clock in milliseconds since the Unix epoch, and the
	// monotonic time since an arbitrary start.
	read func() (wall int64, mono time.Duration)
	last atomic.Pointer[mark] // written by Run alone

	pauses, paused, latest atomic.Int64 // count, and nanoseconds
}

// mark is what a tick noted. It is immutable.
type mark struct {
	mono  time.Duration // when
	lease time.Duration // the lease clock then
	hold  time.Duration // the lease clock stands still until this monotonic time
}

// NewClock returns a clock whose lease time is 0 now.
func NewClock(cfg Config, logger *slog.Logger) *Clock {
	start := time.Now()
	return newClock(cfg, logger, func() (int64, time.Duration) {
		now := time.Now()
		return now.UnixMilli(), now.Sub(start)
	})
}

func newClock(cfg Config, logger *slog.Logger, read func() (int64, time.Duration)) *Clock {
	c := &Clock{grace: cfg.PauseGrace, log: logger.With("component", "clock"), read: read}
	_, mono := read()
	c.last.Store(&mark{mono: mono})
	return c
}

// Now returns the present time.
func (c *Clock) Now() registry.Instant {
	// The mark is read before the time, so that the time is not before the mark.
	m := c.last.Load()
	wall, mono := c.read()
	return registry.Instant{Wall: wall, Lease: m.leaseAt(mono)}
}

// leaseAt is the one rule of the lease clock.
func (m *mark) leaseAt(mono time.Duration) time.Duration {
	since := mono - max(m.mono, m.hold)
	return m.lease + min(max(since, 0), maxGap)
}

// Run keeps the lease clock going until ctx ends.
func (c *Clock) Run(ctx context.Context) error {
	c.note(false) // what came before is the start of the server and no pause
	ticker := time.NewTicker(clockTick)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			c.tick()
		}
	}
}

// tick notes the time, and reports a pause when the last note is too old.
func (c *Clock) tick() {
	pause := c.note(true)
	if pause <= maxGap {
		return
	}
	c.pauses.Add(1)
	c.paused.Add(int64(pause))
	c.latest.Store(int64(pause))
	c.log.Warn("the server stood still, and no lease runs out for a while", "pause", pause, "grace", c.grace)
	if c.OnPause != nil {
		c.OnPause(pause)
	}
}

// note makes the next mark and returns the time since the one before. With
// judge, too long a time starts the grace.
func (c *Clock) note(judge bool) time.Duration {
	m := c.last.Load()
	_, mono := c.read()
	next := &mark{mono: mono, lease: m.leaseAt(mono), hold: m.hold}
	gap := mono - m.mono
	if judge && gap > maxGap {
		// The most that anybody can have read or still read from m, so that the
		// clock does not seem to run backwards to one who was held up.
		next.lease = m.lease + maxGap
		next.hold = mono + c.grace
	}
	c.last.Store(next)
	return gap
}

// Held reports whether the lease clock stands still because of a pause.
func (c *Clock) Held() bool {
	_, mono := c.read()
	return mono < c.last.Load().hold
}

// Pauses are the times in which the server did not run.
type Pauses struct {
	Count         int64
	Total, Latest time.Duration
}

// Pauses returns what was counted since the start.
func (c *Clock) Pauses() Pauses {
	return Pauses{
		Count: c.pauses.Load(), Total: time.Duration(c.paused.Load()), Latest: time.Duration(c.latest.Load()),
	}
}
