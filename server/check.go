package server

import (
	"fmt"
	"log/slog"
	"path/filepath"

	"github.com/rollcall-registry/rollcall/internal/certs"
	"github.com/rollcall-registry/rollcall/internal/consensus"
	"github.com/rollcall-registry/rollcall/internal/store"
)

// Check tells whether a server with cfg could use its data directory, without
// changing anything, and says what it found in half a sentence. The durable log
// of a directory that a server holds is not read.
func Check(cfg Config) (string, error) {
	if err := cfg.Validate(); err != nil {
		return "", err
	}
	if cfg.TLS.Enabled() {
		if _, err := certs.Load(cfg.TLS.Files, slog.New(slog.DiscardHandler)); err != nil {
			return "", err
		}
	}
	report, err := store.Check(cfg.DataDir)
	switch {
	case err != nil:
		return "", err
	case !report.Exists:
		return fmt.Sprintf("the data directory %s does not exist and can be made", cfg.DataDir), nil
	case report.InUse:
		return fmt.Sprintf("the data directory %s is in use by a running server", cfg.DataDir), nil
	}
	if err := consensus.Check(filepath.Join(cfg.DataDir, "raft")); err != nil {
		return "", err
	}
	space, err := store.SpaceOf(cfg.DataDir)
	if err != nil {
		return "", err
	}
	if report.Migrates {
		return fmt.Sprintf("the data directory %s has format %d and will be migrated, after a copy", cfg.DataDir, report.Format) + warnOf(space), nil
	}
	return fmt.Sprintf("the data directory %s can be used", cfg.DataDir) + warnOf(space), nil
}

// warnOf returns what to add when the disk has little room left, or "".
func warnOf(space store.Space) string {
	if space.Free >= diskFloor {
		return ""
	}
	return fmt.Sprintf(", but only %d bytes are free on its disk: persistent changes will be refused when it is full", space.Free)
}
