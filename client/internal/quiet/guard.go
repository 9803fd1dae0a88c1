package quiet

import (
	"context"
	"fmt"
	"log/slog"
)

// Guard returns a handler that outlives panics of next, which is of the user: what it
// panics about is not said.
func Guard(next slog.Handler) slog.Handler { return guard{next} }

type guard struct{ next slog.Handler }

// Enabled is of slog.Handler; a level that next panics about is not.
func (g guard) Enabled(ctx context.Context, l slog.Level) (enabled bool) {
	defer func() {
		if recover() != nil {
			enabled = false
		}
	}()
	return g.next.Enabled(ctx, l)
}

// Handle is of slog.Handler. A panic becomes its error.
func (g guard) Handle(ctx context.Context, r slog.Record) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the handler panicked: %v", p)
		}
	}()
	return g.next.Handle(ctx, r)
}

// WithAttrs is of slog.Handler; a panic leaves the attributes out.
func (g guard) WithAttrs(attrs []slog.Attr) slog.Handler {
	return g.derive(func() slog.Handler { return g.next.WithAttrs(attrs) })
}

// WithGroup is of slog.Handler; a panic leaves the group out.
func (g guard) WithGroup(name string) slog.Handler {
	return g.derive(func() slog.Handler { return g.next.WithGroup(name) })
}

func (g guard) derive(f func() slog.Handler) (derived slog.Handler) {
	defer func() {
		if recover() != nil {
			derived = g
		}
	}()
	return guard{f()}
}
