// Package quiet keeps a log short: what is said again and again is said once in a while,
// with how often it would have been.
package quiet

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// The bounds of what is remembered.
const (
	// pause is how long the same is not said again.
	pause = 10 * time.Second
	// most is how many different things are remembered; beyond it all is said.
	most = 256
)

// Handler passes on what is not a repetition. Records are the same if level, message and
// the attributes service, server and err are. It is safe for concurrent use, as are the handlers
// that are derived from it, which share what is remembered.
type Handler struct {
	next   slog.Handler
	shared *memory
}

// memory is what was said.
type memory struct {
	mu   sync.Mutex
	said map[string]*saying
}

// saying is one thing that was said.
type saying struct {
	at      time.Time
	skipped int
}

// New returns a handler before next.
func New(next slog.Handler) *Handler {
	return &Handler{next, &memory{said: make(map[string]*saying)}}
}

// Enabled is of slog.Handler.
func (h *Handler) Enabled(ctx context.Context, l slog.Level) bool { return h.next.Enabled(ctx, l) }

// WithAttrs is of slog.Handler.
func (h *Handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &Handler{h.next.WithAttrs(attrs), h.shared}
}

// WithGroup is of slog.Handler.
func (h *Handler) WithGroup(name string) slog.Handler {
	return &Handler{h.next.WithGroup(name), h.shared}
}

// Handle passes the record on, or counts it.
func (h *Handler) Handle(ctx context.Context, r slog.Record) error {
	skipped, say := h.shared.hear(key(&r), r.Time)
	if !say {
		return nil
	}
	if skipped > 0 {
		r = r.Clone()
		r.AddAttrs(slog.Int("repeated", skipped))
	}
	return h.next.Handle(ctx, r)
}

// key is what makes records the same.
func key(r *slog.Record) string {
	var b strings.Builder
	b.WriteString(r.Level.String())
	b.WriteString(r.Message)
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "service" || a.Key == "err" || a.Key == "server" {
			b.WriteByte(0)
			b.WriteString(a.Value.String())
		}
		return true
	})
	return b.String()
}

// hear decides whether something is to be said now, and how often it was not since.
func (m *memory) hear(what string, at time.Time) (skipped int, say bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s := m.said[what]; s != nil && at.Sub(s.at) < pause {
		s.skipped++
		return 0, false
	} else if s != nil {
		skipped = s.skipped
	}
	if len(m.said) >= most {
		m.forget(at)
	}
	if len(m.said) < most {
		m.said[what] = &saying{at: at}
	}
	return skipped, true
}

// forget forgets what was said long ago.
func (m *memory) forget(at time.Time) {
	for what, s := range m.said {
		if at.Sub(s.at) >= pause {
			delete(m.said, what)
		}
	}
}
