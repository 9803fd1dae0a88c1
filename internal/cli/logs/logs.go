// Package logs makes the logger of the process: text or JSON lines of
// [log/slog], with a limit per message so that one fault that repeats a
// thousand times a second neither fills the disk nor hides the others.
package logs

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"
)

// Config says how the log looks.
type Config struct {
	// Level is the least level that is written: debug, info, warn or error.
	Level string `config:"log-level" help:"Least level that is logged." enum:"debug,info,warn,error" reload:"true"`
	// Format is text or json.
	Format string `config:"log-format" help:"Form of the log lines on standard error." enum:"text,json"`
}

// DefaultConfig is what an operator at a terminal wants.
func DefaultConfig() Config {
	return Config{Level: "info", Format: "text"}
}

// ParseLevel returns the level that one of the words of Config.Level names.
func ParseLevel(word string) (slog.Level, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(word)); err != nil {
		return 0, fmt.Errorf("log-level: %q is no level; write debug, info, warn or error", word)
	}
	return level, nil
}

// New returns a logger that writes to w the lines of at least the given level,
// which may change while it is used. Each message is limited as by [Limit].
func New(w io.Writer, format string, level slog.Leveler) *slog.Logger {
	return slog.New(Limit(handler(w, format, level)))
}

// Unlimited returns a logger to w for the few lines that must always appear.
func Unlimited(w io.Writer, format string) *slog.Logger {
	return slog.New(handler(w, format, slog.LevelDebug))
}

func handler(w io.Writer, format string, level slog.Leveler) slog.Handler {
	opts := &slog.HandlerOptions{Level: level}
	if format == "json" {
		return slog.NewJSONHandler(w, opts)
	}
	return slog.NewTextHandler(w, opts)
}

const (
	// limitWindow and limitLines bound how often one message is written: enough
	// to see each of a few dozen services fail, few enough to read.
	limitWindow = 10 * time.Second
	limitLines  = 50
	// limitMessages bounds the memory of the limiter. Our own messages are
	// constants, some hundred; those of libraries may not be.
	limitMessages = 1024
)

// Limit returns a handler that passes at most 50 records of one level and
// message in 10 seconds on to next. The first record after a pause says in the
// attribute "suppressed" how many were left out before it.
func Limit(next slog.Handler) slog.Handler {
	return &limiter{next: next, counts: &counts{byMessage: make(map[message]*count)}}
}

type limiter struct {
	next   slog.Handler
	counts *counts // shared with the handlers that WithAttrs and WithGroup derive
}

func (l *limiter) Enabled(ctx context.Context, level slog.Level) bool {
	return l.next.Enabled(ctx, level)
}

func (l *limiter) Handle(ctx context.Context, r slog.Record) error {
	suppressed, pass := l.counts.take(message{r.Level, r.Message}, r.Time)
	if !pass {
		return nil
	}
	if suppressed > 0 {
		r = r.Clone()
		r.AddAttrs(slog.Int("suppressed", suppressed))
	}
	return l.next.Handle(ctx, r)
}

func (l *limiter) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &limiter{next: l.next.WithAttrs(attrs), counts: l.counts}
}

func (l *limiter) WithGroup(name string) slog.Handler {
	return &limiter{next: l.next.WithGroup(name), counts: l.counts}
}

type message struct {
	level slog.Level
	text  string
}

type count struct {
	start      time.Time // of the window
	passed     int
	suppressed int
}

type counts struct {
	mu        sync.Mutex
	byMessage map[message]*count
}

// take reports whether a record of m at now may pass, and how many records of
// m did not pass since the last one that did.
func (c *counts) take(m message, now time.Time) (suppressed int, pass bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.byMessage[m]
	if n == nil {
		c.makeRoom(now)
		n = &count{start: now}
		c.byMessage[m] = n
	}
	if now.Sub(n.start) >= limitWindow {
		n.start, n.passed = now, 0
	}
	if n.passed >= limitLines {
		n.suppressed++
		return 0, false
	}
	n.passed++
	suppressed, n.suppressed = n.suppressed, 0
	return suppressed, true
}

// makeRoom forgets the messages whose window is over when there are too many,
// and all of them if that does not help.
func (c *counts) makeRoom(now time.Time) {
	if len(c.byMessage) < limitMessages {
		return
	}
	for m, n := range c.byMessage {
		if now.Sub(n.start) >= limitWindow {
			delete(c.byMessage, m)
		}
	}
	if len(c.byMessage) >= limitMessages {
		clear(c.byMessage)
	}
}
