package quiet

import (
	"context"
	"log/slog"
	"testing"
)

// broken is a handler that panics in all it does, or only when it writes.
type broken struct{ early bool }

func (b broken) fail() {
	if b.early {
		panic("of the user")
	}
}

func (b broken) Enabled(context.Context, slog.Level) bool { b.fail(); return true }
func (broken) Handle(context.Context, slog.Record) error  { panic("of the user") }
func (b broken) WithAttrs([]slog.Attr) slog.Handler       { b.fail(); return b }
func (b broken) WithGroup(string) slog.Handler            { b.fail(); return b }

func TestBrokenHandlers(t *testing.T) {
	for _, early := range []bool{true, false} {
		log := slog.New(New(Guard(broken{early}))).With("a", 1).WithGroup("g")
		log.Warn("said to nobody", "b", 2)
		if err := Guard(broken{early}).Handle(t.Context(), slog.Record{}); err == nil {
			t.Error("no error")
		}
	}
}
