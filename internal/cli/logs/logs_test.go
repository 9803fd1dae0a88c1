package logs

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		log := New(&out, "json", slog.LevelInfo)
		derived := log.With("component", "push")
		for range limitLines {
			log.Info("push lost")
			derived.Info("push lost") // the same message: it shares the limit
		}
		log.Warn("push lost")  // another level
		log.Info("push again") // another message
		if got := strings.Count(out.String(), "\n"); got != limitLines+2 {
			t.Fatalf("%d lines, want %d", got, limitLines+2)
		}

		time.Sleep(limitWindow)
		out.Reset()
		derived.Info("push lost")
		log.Info("push lost")
		var first, second struct {
			Suppressed int
			Component  string
		}
		lines := json.NewDecoder(&out)
		if err := lines.Decode(&first); err != nil {
			t.Fatal(err)
		}
		if err := lines.Decode(&second); err != nil {
			t.Fatal(err)
		}
		if first.Suppressed != limitLines || first.Component != "push" || second.Suppressed != 0 {
			t.Errorf("got %+v then %+v, want suppressed %d then 0", first, second, limitLines)
		}
	})
}

func TestLimitIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, ok := Limit(slog.DiscardHandler).(*limiter)
		if !ok {
			t.Fatal("Limit returned another handler")
		}
		pass := func(text string) bool {
			_, passed := h.counts.take(message{slog.LevelInfo, text}, time.Now())
			return passed
		}
		for i := range limitMessages {
			pass(fmt.Sprint("old ", i))
		}
		time.Sleep(limitWindow)
		for i := range 10 {
			pass(fmt.Sprint("new ", i))
		}
		if n := len(h.counts.byMessage); n != 10 {
			t.Errorf("%d messages are kept after the old ones ended, want 10", n)
		}
		for i := range 5 * limitMessages {
			if !pass(fmt.Sprint("burst ", i)) {
				t.Fatal("a message was held back by others")
			}
			if n := len(h.counts.byMessage); n > limitMessages {
				t.Fatalf("%d messages are kept, want at most %d", n, limitMessages)
			}
		}
	})
}

func TestFormats(t *testing.T) {
	for format, want := range map[string]string{"text": "level=WARN msg=hello k=v", "json": `"level":"WARN","msg":"hello","k":"v"`} {
		var out bytes.Buffer
		log := New(&out, format, slog.LevelWarn)
		log.Info("quiet")
		log.Warn("hello", "k", "v")
		if got := out.String(); !strings.Contains(got, want) || strings.Contains(got, "quiet") {
			t.Errorf("%s: got %q, want a line with %q", format, got, want)
		}
	}
}

func TestParseLevel(t *testing.T) {
	for word, want := range map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError} {
		if got, err := ParseLevel(word); err != nil || got != want {
			t.Errorf("%s: got %v, %v", word, got, err)
		}
	}
	if _, err := ParseLevel("loud"); err == nil || !strings.Contains(err.Error(), "log-level") {
		t.Errorf("got %v, want a fault of log-level", err)
	}
}

func TestConcurrentUse(t *testing.T) {
	log := New(io.Discard, "text", slog.LevelInfo)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 1000 {
				log.InfoContext(context.Background(), "same")
			}
		})
	}
	wg.Wait()
}

func BenchmarkLimit(b *testing.B) {
	h := Limit(slog.DiscardHandler)
	r := slog.NewRecord(time.Now(), slog.LevelInfo, "push lost", 0)
	b.ReportAllocs()
	for b.Loop() {
		_ = h.Handle(b.Context(), r)
	}
}
