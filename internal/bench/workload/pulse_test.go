package workload

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"
)

// What is unhealthy is held against the server, unless its beats came so late that the
// server was right.
func TestPulse(t *testing.T) {
	bad := errors.New("is unhealthy")
	for _, tt := range []struct {
		name   string
		beats  []time.Duration // of one of two; the other beats all the time
		until  time.Duration
		behind bool
	}{
		{"in time", []time.Duration{0, 5 * time.Second, 10 * time.Second}, 15 * time.Second, false},
		{"late in between", []time.Duration{0, 5 * time.Second, 21 * time.Second}, 22 * time.Second, true},
		{"late at the end", []time.Duration{0, 5 * time.Second}, 21 * time.Second, true},
		{"nearly late", []time.Duration{0, 13 * time.Second}, 14 * time.Second, false},
		{"never known", nil, time.Minute, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var now time.Duration
			p := (&Env{}).newPulse(2, usualTimeout)
			p.now = func() int64 { return int64(now) }
			for now = 0; now <= tt.until; now += time.Second {
				p.beaten(1)
				for _, at := range tt.beats {
					if at == now {
						p.beaten(0)
					}
				}
			}
			now = tt.until
			if err := p.judge(nil); err != nil {
				t.Errorf("nothing was wrong: got %v", err)
			}
			err := p.judge(bad)
			if errors.Is(err, ErrBehind) != tt.behind || !errors.Is(err, bad) {
				t.Errorf("got %v", err)
			}
			if again := p.judge(err); tt.behind && again.Error() != err.Error() {
				t.Errorf("judged twice: %v", again)
			}
			if tt.behind && !strings.Contains(err.Error(), "came 16s after the one before, and after 15s") {
				t.Errorf("got %v", err)
			}
		})
	}
	var none *pulse
	none.beaten(7)
	none.away(7)
	if err := none.judge(bad); !errors.Is(err, bad) || errors.Is(err, ErrBehind) {
		t.Errorf("without a pulse: got %v", err)
	}
}

// Who left and came again was not silent meanwhile.
func TestPulseOfWhoLeft(t *testing.T) {
	bad := errors.New("is unhealthy")
	var now time.Duration
	p := (&Env{}).newPulse(1, usualTimeout)
	p.now = func() int64 { return int64(now) }
	p.beaten(0)
	p.away(0)
	now = time.Minute
	p.beaten(0)
	if err := p.judge(bad); errors.Is(err, ErrBehind) {
		t.Errorf("after a minute of absence: got %v", err)
	}
	p.away(0)
	now = 2 * time.Minute
	if err := p.judge(bad); errors.Is(err, ErrBehind) {
		t.Errorf("while it is away: got %v", err)
	}
}

func TestMaximum(t *testing.T) {
	var m maximum
	var taking sync.WaitGroup
	for n := range 8 {
		taking.Go(func() {
			for v := range 1000 {
				m.take(int64(v*8 + n))
			}
		})
	}
	taking.Wait()
	if got := m.load(); got != 7999 {
		t.Errorf("got %d, want 7999", got)
	}
}
