package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/rollcall-registry/rollcall/api/opsv1"
	"github.com/rollcall-registry/rollcall/internal/consensus"
	"github.com/rollcall-registry/rollcall/internal/naming"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// proposeTimeout bounds the wait for the disk. A commit takes milliseconds.
const proposeTimeout = 10 * time.Second

// durableLog sends the commands of the registry through the durable log. It is
// naming's Log and the operator API's Durable.
type durableLog struct {
	log   *consensus.Log
	store *registry.Store
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
		return registry.Result{}, err
	}
	applied, ok := answer.(naming.Applied)
	if !ok {
		return registry.Result{}, fmt.Errorf("the durable log answered a %T", answer)
	}
	return applied.Result, applied.Err
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
