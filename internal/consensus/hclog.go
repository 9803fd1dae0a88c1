package consensus

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
)

// repeatAfter is how long one message of the library is held back after it was
// logged: when a disk is full it repeats itself each second.
const repeatAfter = time.Minute

// newHCLog returns a logger for the library that writes to logger. The library
// tells its life at info; that is debug here. Its warnings and errors keep
// their level, except those that every start of a lone voter brings.
func newHCLog(logger *slog.Logger) hclog.Logger {
	intercept := hclog.NewInterceptLogger(&hclog.LoggerOptions{Output: io.Discard, Level: hclog.Off})
	intercept.RegisterSink(&hclogSink{logger: logger, last: map[string]time.Time{}})
	return intercept
}

// hclogSink receives what the library logs. It is safe for concurrent use.
type hclogSink struct {
	logger *slog.Logger

	mu   sync.Mutex
	last map[string]time.Time // when a warning was last logged; the library has a few dozen
}

// routine are the library's warnings that say nothing: a lone voter has no
// leader to hear from, and stands for election at every start.
var routine = [...]string{
	"heartbeat timeout reached, starting election",
	"Election timeout reached, restarting election",
}

// Accept implements [hclog.SinkAdapter].
func (s *hclogSink) Accept(_ string, level hclog.Level, msg string, args ...any) {
	to := slogLevel(level, msg)
	ctx := context.Background()
	if !s.logger.Enabled(ctx, to) || to >= slog.LevelWarn && !s.due(msg) {
		return
	}
	record := slog.NewRecord(time.Now(), to, msg, 0)
	for i := 0; i+1 < len(args); i += 2 {
		key := strings.ReplaceAll(fmt.Sprint(args[i]), "-", "_")
		record.AddAttrs(slog.Any(key, plain(args[i+1])))
	}
	_ = s.logger.Handler().Handle(ctx, record) // a log that cannot be written has no place to say so
}

func slogLevel(level hclog.Level, msg string) slog.Level {
	for _, r := range routine {
		if msg == r {
			return slog.LevelDebug
		}
	}
	switch level {
	case hclog.Error:
		return slog.LevelError
	case hclog.Warn:
		return slog.LevelWarn
	default:
		return slog.LevelDebug
	}
}

// due tells whether msg may be logged again, and notes that it is.
func (s *hclogSink) due(msg string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if last, seen := s.last[msg]; seen && now.Sub(last) < repeatAfter {
		return false
	}
	s.last[msg] = now
	return true
}

// plain resolves the library's deferred formatting.
func plain(v any) any {
	f, ok := v.(hclog.Format)
	if !ok || len(f) == 0 {
		return v
	}
	layout, ok := f[0].(string)
	if !ok {
		return fmt.Sprint(f...)
	}
	return fmt.Sprintf(layout, f[1:]...)
}
