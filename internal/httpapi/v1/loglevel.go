package v1

import (
	"log/slog"
	"slices"
	"strings"
)

// LogLevels changes what is logged while the server runs.
type LogLevels interface {
	// SetLevel sets the least level that the named logger writes. A name that does
	// not exist changes nothing. It must not block or keep name.
	SetLevel(logger string, level slog.Level)
}

// OneLevel is the [LogLevels] of a process whose loggers share one level: the
// names by which Nacos knows its loggers all mean that one.
type OneLevel struct{ Var *slog.LevelVar }

// SetLevel implements [LogLevels].
func (l OneLevel) SetLevel(logger string, level slog.Level) {
	if slices.Contains([]string{
		// Source: Nacos naming.misc.Loggers and core.utils.Loggers.
		"root", "naming-push", "naming-raft", "naming-distro", "naming-event", "naming-rt", "naming-main",
		"naming-srvlog", "naming-performance", "naming-check", "core-auth", "core", "core-raft", "core-distro", "core-cluster",
	}, strings.ToLower(logger)) {
		l.Var.Set(level)
	}
}
