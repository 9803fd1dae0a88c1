package server

import (
	"log/slog"
	"math"

	"github.com/rollcall-registry/rollcall/internal/httpapi/ops"
	"github.com/rollcall-registry/rollcall/internal/ledger"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// pushShare is the part of the size of the history that the one of pushes may
// take besides: a quarter.
const pushShare = 4

// pushHistory is what became of pushes. It is a ledger of its own, because a
// service with a thousand subscribers has a thousand records for each change, and
// these must not drive out who made the changes. A nil one records nothing.
type pushHistory struct{ *ledger.Ledger }

// newPushHistory returns the history of pushes in dir, with settings like those of
// the history. It does no I/O.
func newPushHistory(cfg ledger.Config, dir string, log *slog.Logger) (*pushHistory, error) {
	cfg.Dir = dir
	cfg.TotalBytes = max(cfg.TotalBytes/pushShare, cfg.SegmentBytes)
	l, err := ledger.New(cfg, log.With("history", "pushes"))
	if err != nil {
		return nil, err
	}
	return &pushHistory{l}, nil
}

// open makes it ready for records. Nothing is rebuilt from it, so all of it may
// grow old.
func (h *pushHistory) open() error {
	if h == nil {
		return nil
	}
	if err := h.Open(0); err != nil {
		return err
	}
	h.SetRecoveryFloor(math.MaxUint64)
	return nil
}

// sink returns who is told of pushes, nil when nobody is.
func (h *pushHistory) sink() registry.Sink {
	if h == nil {
		return nil
	}
	return h
}

// reader returns who answers questions about pushes, nil when nobody does.
func (h *pushHistory) reader() ops.History {
	if h == nil {
		return nil
	}
	return h
}
