package recovery

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/rollcall-registry/rollcall/internal/naming"
	"github.com/rollcall-registry/rollcall/internal/registry"
	"github.com/rollcall-registry/rollcall/internal/store"
)

// snapshot is a snapshot file as read.
type snapshot struct {
	head
	instances *registry.Snapshot
}

// read reads the snapshot file; without one it is empty. A damaged one must not keep
// the server from starting, since every client makes good for its part: it is set
// aside, and what remains of it is returned.
func (k *Keeper) read() (*snapshot, error) {
	f, err := os.Open(k.path)
	if errors.Is(err, fs.ErrNotExist) {
		return &snapshot{instances: &registry.Snapshot{}}, nil
	}
	if err != nil {
		return nil, store.Explain("open", k.path, err)
	}
	defer f.Close()
	snap, damage := decode(f)
	var disk *fs.PathError
	switch {
	case damage == nil:
		return snap, nil
	case errors.As(damage, &disk):
		return nil, store.Explain("read", k.path, damage)
	case errors.Is(damage, store.ErrNewer):
		return nil, fmt.Errorf("snapshot of ephemeral instances %s: %w; start the newer version, or move the file away to start without it", k.path, damage)
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, store.Explain("read", k.path, err)
	}
	return salvage(f), k.setAside(damage)
}

func decode(r io.Reader) (*snapshot, error) {
	var snap snapshot
	body, err := store.ReadStream(r, snapshotKind, &snap.head)
	if err != nil {
		return nil, err
	}
	snap.instances, err = naming.ReadSnapshot(body)
	if err != nil {
		return nil, err
	}
	return &snap, nil
}

// salvage returns what can be read of a damaged snapshot: the entries before the
// damage. Its Seq is 0, so that all of the history is repeated, which may tell of what
// comes after the damage; its revisions count, as they must not go back.
func salvage(r io.Reader) *snapshot {
	snap := &snapshot{instances: &registry.Snapshot{}}
	body, err := store.ReadStream(r, snapshotKind, &snap.head)
	if err != nil {
		return &snapshot{instances: &registry.Snapshot{}}
	}
	snap.Seq = 0
	sound, _ := io.ReadAll(body) // up to the damage
	sound = sound[:bytes.LastIndexByte(sound, '\n')+1]
	if instances, err := naming.ReadSnapshot(bytes.NewReader(sound)); err == nil {
		snap.instances = instances
	}
	return snap
}

// setAside gives the damaged file a name under which nobody looks for it, and tells
// the operator of it.
func (k *Keeper) setAside(damage error) error {
	at := time.UnixMilli(k.clock.Now().Wall).UTC()
	aside := k.path + "-damaged-" + at.Format("20060102T150405.000Z")
	if err := os.Rename(k.path, aside); err != nil {
		return store.Explain("rename", k.path, err)
	}
	k.log.Error("the snapshot of ephemeral instances is damaged; what neither its sound part nor the history tells is back with the next beat or connection of its client",
		"err", damage, "moved_to", aside)
	return store.SyncDir(filepath.Dir(k.path))
}
