package ledger

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"time"
)

// upkeep does what no write brings about: age goes on, and a directory can be
// emptied under a running server.
func (w *writer) upkeep() {
	w.prune(time.Now())
	if w.active == nil || w.file == nil {
		return
	}
	if _, err := os.Stat(w.active.path); errors.Is(err, fs.ErrNotExist) {
		w.log.Error("history file is gone, a new one is begun", "file", w.active.path)
		w.abandonFile()
	}
}

// prune deletes the oldest segments while there are too many bytes or they are
// too old. It stops at the first one that recovery needs.
func (w *writer) prune(now time.Time) {
	for {
		victim, pinned := w.expired(now)
		if pinned {
			signal(w.wanted)
			w.complainOfSize(victim)
			return
		}
		if victim == nil {
			return
		}
		if err := os.Remove(victim.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			w.log.Error("old history cannot be deleted", "file", victim.path, "err", err)
			return
		}
		w.forget(victim)
	}
}

// expired returns the oldest segment if it is to go, and whether recovery still
// needs it. The newest one always stays.
func (w *writer) expired(now time.Time) (victim *segment, pinned bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.segments) < 2 {
		return nil, false
	}
	var total int64
	for _, s := range w.segments {
		total += s.size
	}
	oldest := w.segments[0]
	if total <= w.cfg.TotalBytes && now.Sub(oldest.touched) <= w.cfg.MaxAge {
		return nil, false
	}
	return oldest, oldest.last > w.floor
}

func (w *writer) complainOfSize(s *segment) {
	if time.Since(w.complainedOf) < complaintInterval {
		return
	}
	w.complainedOf = time.Now()
	w.log.Warn("old history is kept for recovery until there is a snapshot", "file", s.path)
}

// forget takes s from the list.
func (l *Ledger) forget(s *segment) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.segments = slices.DeleteFunc(l.segments, func(o *segment) bool { return o == s })
}
