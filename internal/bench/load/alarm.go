package load

import (
	"context"
	"time"
)

// timerAlarm is an alarm of package time.
type timerAlarm struct {
	ctx   context.Context
	timer *time.Timer
}

func newTimerAlarm(ctx context.Context) (alarm, error) {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return &timerAlarm{ctx, t}, nil
}

func (t *timerAlarm) wait(d time.Duration) error {
	t.timer.Reset(d)
	select {
	case <-t.timer.C:
		return nil
	case <-t.ctx.Done():
		return t.ctx.Err()
	}
}

func (t *timerAlarm) close() { t.timer.Stop() }
