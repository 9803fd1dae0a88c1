package quiet

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestRepetitions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		log := slog.New(New(slog.NewTextHandler(&out, nil))).With("component", "x").WithGroup("g")
		for range 100 {
			log.Warn("publish", "service", "a", "err", errors.New("refused"))
		}
		log.Warn("publish", "service", "b", "err", errors.New("refused"))
		log.Error("publish", "service", "a", "err", errors.New("refused"))
		log.Debug("not at all")
		if n := strings.Count(out.String(), "\n"); n != 3 {
			t.Errorf("%d lines, want 3:\n%s", n, &out)
		}
		time.Sleep(pause)
		out.Reset()
		log.Warn("publish", "service", "a", "err", errors.New("refused"))
		if !strings.Contains(out.String(), "repeated=99") || !strings.Contains(out.String(), "component=x") {
			t.Errorf("says %s", &out)
		}
	})
}

func TestMemoryIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		h := New(slog.NewTextHandler(&out, nil))
		log := slog.New(h)
		for n := range 3 * most {
			log.Info("publish", "service", n)
		}
		if n := strings.Count(out.String(), "\n"); n != 3*most || len(h.shared.said) > most {
			t.Errorf("%d lines, %d remembered", n, len(h.shared.said))
		}
		time.Sleep(pause)
		log.Info("another")
		if len(h.shared.said) != 1 {
			t.Errorf("%d remembered", len(h.shared.said))
		}
	})
}
