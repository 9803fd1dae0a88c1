//go:build !linux

package load

import "context"

func systemAlarm(ctx context.Context) (alarm, error) { return newTimerAlarm(ctx) }
