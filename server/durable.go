package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/rollcall-registry/rollcall/api/opsv1"
	"github.com/rollcall-registry/rollcall/internal/consensus"
	"github.com/rollcall-registry/rollcall/internal/naming"
	"github.com/rollcall-registry/rollcall/internal/registry"
	"github.com/rollcall-registry/rollcall/internal/store"
)

// proposeTimeout bounds the wait for the disk. A commit takes milliseconds.
const proposeTimeout = 10 * time.Second

// durableLog sends the commands of the registry through the durable log. It is
// naming's Log and the operator API's Durable.
type durableLog struct {
	log   *consensus.Log
	store *registry.Store
	slog  *slog.Logger
}

// Propose implements naming.Log.
func (d *durableLog) Propose(ctx context.Context, c registry.Command) (registry.Result, error) {
	data, err := registry.EncodeCommand(c)
	if err != nil {
		return registry.Result{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, proposeTimeout)
	defer cancel()
	answer, err := d.log.Propose(ctx, data)
	if err != nil {
		return registry.Result{}, d.unavailable(err)
	}
	applied, ok := answer.(naming.Applied)
	if !ok {
		return registry.Result{}, fmt.Errorf("the durable log answered a %T", answer)
	}
	return applied.Result, applied.Err
}

// unavailable tells a caller what he may know of a failed proposal. The rest is in
// the log.
func (d *durableLog) unavailable(err error) error {
	var disk *store.DiskError
	var why string
	switch {
	case errors.As(err, &disk):
		why = "the server's disk takes no writes"
	case errors.Is(err, consensus.ErrNoLeader):
		why = "the server is not ready to store it, try again"
	case errors.Is(err, consensus.ErrClosed):
		why = "the server is stopping"
	case errors.Is(err, consensus.ErrUncertain), errors.Is(err, context.DeadlineExceeded):
		why = "storing it takes too long; it may or may not take effect"
	default:
		return err
	}
	d.slog.Error("a durable change was not stored", "err", err)
	return registry.Refuse(registry.Unavailable, "", "", "persistent data cannot be changed now: %s", why)
}

// Backup writes a checked copy of the durable state.
func (d *durableLog) Backup(w io.Writer) (opsv1.BackupInfo, error) {
	info, err := d.log.Backup(w)
	return wireBackup(info), err
}

// Restore replaces the durable state by a backup; sound tells whether that is one.
func (d *durableLog) Restore(r io.Reader) (made opsv1.BackupInfo, sound bool, err error) {
	info, err := d.log.Restore(r)
	return wireBackup(info), !errors.Is(err, consensus.ErrBadBackup), err
}

func wireBackup(i consensus.BackupInfo) opsv1.BackupInfo {
	return opsv1.BackupInfo{Index: i.Index, ID: i.ID, Time: i.Time.UnixMilli()}
}

// Export writes the durable state, one JSON object a line.
func (d *durableLog) Export(w io.Writer) error { return d.store.Durable()(w) }
