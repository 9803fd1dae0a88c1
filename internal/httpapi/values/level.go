package values

import (
	"log/slog"
	"strings"
)

// ParseLevel returns the level of slog that a level of Nacos' log means.
func ParseLevel(word string) (slog.Level, bool) {
	switch strings.ToUpper(strings.TrimSpace(word)) {
	case "ALL", "TRACE", "DEBUG":
		return slog.LevelDebug, true
	case "INFO":
		return slog.LevelInfo, true
	case "WARN":
		return slog.LevelWarn, true
	case "ERROR":
		return slog.LevelError, true
	case "OFF":
		return slog.LevelError + 1, true
	default:
		return 0, false
	}
}
