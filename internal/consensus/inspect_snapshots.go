package consensus

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/rollcall-registry/rollcall/internal/store"
)

// snapshotName is what the library puts into the name of a snapshot.
type snapshotName struct {
	id                  string // the name itself
	term, index, millis uint64
}

func (n snapshotName) String() string { return n.id }

// parseSnapshotName reads a name of the form term-index-milliseconds.
func parseSnapshotName(id string) (n snapshotName, ok bool) {
	n.id = id
	_, err := fmt.Sscanf(id, "%d-%d-%d", &n.term, &n.index, &n.millis)
	return n, err == nil && n.index > 0 && id == fmt.Sprintf("%d-%d-%d", n.term, n.index, n.millis)
}

// newer orders names as the library does, the newest first.
func newer(a, b snapshotName) int {
	return -cmp.Or(cmp.Compare(a.term, b.term), cmp.Compare(a.index, b.index), cmp.Compare(a.millis, b.millis))
}

// inspectSnapshots returns the newest snapshot below dir whose checksum is
// right, and the newer ones whose is not.
func inspectSnapshots(dir string) (newest snapshotName, bad []snapshotName, err error) {
	path := filepath.Join(dir, snapshotsName)
	names, err := listSnapshots(path)
	if err != nil || len(names) == 0 {
		return newest, nil, err
	}
	// This creates a file in path for a moment, to see whether it may.
	files, err := raft.NewFileSnapshotStoreWithLogger(dir, keptSnapshots, hclog.NewNullLogger())
	if err != nil {
		return newest, nil, store.Explain("open", path, err)
	}
	for _, name := range names {
		if sound(files, name) {
			return name, bad, nil
		}
		bad = append(bad, name)
	}
	return newest, bad, nil
}

// listSnapshots returns the names of the finished snapshots, newest first.
func listSnapshots(path string) ([]snapshotName, error) {
	entries, err := os.ReadDir(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, store.Explain("read", path, err)
	}
	var names []snapshotName
	for _, entry := range entries {
		if !entry.IsDir() || strings.HasSuffix(entry.Name(), unfinished) {
			continue
		}
		name, ok := parseSnapshotName(entry.Name())
		if !ok {
			return nil, fmt.Errorf("%s holds %q, which is no snapshot: move it elsewhere", path, entry.Name())
		}
		names = append(names, name)
	}
	slices.SortFunc(names, newer)
	return names, nil
}

// sound tells whether a snapshot can be read and is what its name says. The
// library checks the state by its checksum; its description has none, so it is
// held against the name.
func sound(files *raft.FileSnapshotStore, name snapshotName) bool {
	meta, state, err := files.Open(name.id)
	if err != nil {
		return false
	}
	state.Close()
	return meta.ID == name.id && meta.Term == name.term && meta.Index == name.index
}
