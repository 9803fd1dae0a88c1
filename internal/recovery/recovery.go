// Package recovery remembers ephemeral instances across a restart: a snapshot
// from time to time, and the history after it. A server that comes back shows
// what it showed before, until clients have had time to beat or reconnect, and
// never answers from a half-filled registry.
package recovery

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/rollcall-registry/rollcall/internal/ledger"
	"github.com/rollcall-registry/rollcall/internal/naming"
	"github.com/rollcall-registry/rollcall/internal/registry"
	"github.com/rollcall-registry/rollcall/internal/store"
)

// Config says how often a snapshot is taken, and how long connections are
// waited for.
type Config struct {
	SnapshotInterval time.Duration `config:"recovery.snapshot-interval" help:"How often the ephemeral instances are written to disk; between two snapshots the history remembers them."`
	ReconnectTime    time.Duration `config:"recovery.reconnect-time" help:"How long after a start the instances of gRPC clients wait for their clients to reconnect."`
}

// DefaultConfig takes a snapshot each minute and waits 45 s, longer than the
// slowest SDK needs to register again (Python: about 30 s).
func DefaultConfig() Config {
	return Config{SnapshotInterval: time.Minute, ReconnectTime: 45 * time.Second}
}

// Validate reports all faults at once.
func (c Config) Validate() error {
	var errs []error
	if c.SnapshotInterval < time.Second {
		errs = append(errs, fmt.Errorf("recovery.snapshot-interval: %v is below 1s", c.SnapshotInterval))
	}
	if c.ReconnectTime < 0 {
		errs = append(errs, fmt.Errorf("recovery.reconnect-time: %v is negative", c.ReconnectTime))
	}
	return errors.Join(errs...)
}

var snapshotKind = store.Kind{Name: "ephemeral", Version: 1}

// head is the first frame of a snapshot.
type head struct {
	// Seq is the last record of the history whose effect is in the snapshot.
	Seq uint64 `json:"seq"`
	// Revision is at least every revision that was ever given.
	Revision int64 `json:"revision"`
}

// Keeper keeps the memory of ephemeral instances in one file and the history. Its
// life is New, [Keeper.Open], [Memory.Recall], [Keeper.Run] until the end.
type Keeper struct {
	cfg     Config
	path    string
	store   *registry.Store
	ledger  *ledger.Ledger
	clock   naming.Clock
	log     *slog.Logger
	clients []registry.ClientID // remembered connections that have not come back
	written atomic.Int64        // wall milliseconds of the latest snapshot
}

// New returns a keeper whose snapshot is the file at path.
func New(cfg Config, path string, st *registry.Store, l *ledger.Ledger, clock naming.Clock, log *slog.Logger) *Keeper {
	return &Keeper{cfg: cfg, path: path, store: st, ledger: l, clock: clock, log: log.With("component", "recovery")}
}

// Open reads the snapshot and opens the history at its end. A damaged snapshot is set
// aside, and what can be read of it counts; only one of a newer version, or one that
// cannot be read at all, is an error. Call it before anything is emitted.
func (k *Keeper) Open() (*Memory, error) {
	snap, err := k.read()
	if err != nil {
		return nil, err
	}
	if err := k.ledger.Open(snap.Seq); err != nil {
		return nil, err
	}
	k.store.RaiseFloor(snap.Revision)
	return &Memory{keeper: k, snap: snap}, nil
}

// Memory is what is remembered from before the start.
type Memory struct {
	keeper *Keeper
	snap   *snapshot
}

// Recall puts the remembered instances into the store, after the durable state
// is there. HTTP clients get a fresh lease, connections the reconnect time.
func (m *Memory) Recall(ctx context.Context) error {
	k := m.keeper
	at := registry.Meta{At: k.clock.Now(), Cause: registry.Cause{Kind: registry.CauseRestart}}
	r := replayer{store: k.store, meta: at, clients: map[registry.ClientID]bool{}}
	for _, id := range m.snap.instances.Clients() {
		r.open(id)
	}
	k.store.ReviveDurable(at)
	k.store.Merge(m.snap.instances, at)
	sum, err := k.ledger.Replay(ctx, m.snap.Seq, r.apply)
	if err != nil {
		return fmt.Errorf("recall ephemeral instances: %w", err)
	}
	k.store.RaiseFloor(sum.MaxRevision)
	for id := range r.clients {
		k.clients = append(k.clients, id)
	}
	counts := k.store.Counts()
	if sum.Lost+sum.Missing > 0 || sum.Damaged > 0 {
		k.log.Warn("part of the history since the last snapshot is missing; clients that registered then are back with their next beat or connection",
			"lost", sum.Lost, "missing", sum.Missing, "damaged", sum.Damaged)
	}
	if counts.Ephemeral > 0 {
		k.log.Info("remembered ephemeral instances", "instances", counts.Ephemeral, "connections", len(k.clients))
	}
	m.snap = nil
	return nil
}

// Run takes a snapshot every interval, when the history asks for one, and a
// last one when ctx ends; it ends what remembered connections held when they did
// not come back in time.
func (k *Keeper) Run(ctx context.Context) error {
	ticker := time.NewTicker(k.cfg.SnapshotInterval)
	defer ticker.Stop()
	reconnect := time.NewTimer(k.cfg.ReconnectTime)
	defer reconnect.Stop()
	for {
		select {
		case <-ctx.Done():
			return k.save()
		case <-reconnect.C:
			k.dropClients()
			continue
		case <-ticker.C:
		case <-k.ledger.SnapshotWanted():
		}
		if err := k.save(); err != nil {
			k.log.Error("cannot write the snapshot of ephemeral instances; the history still remembers them", "err", err)
		}
	}
}

// dropClients ends what remembered connections held and nobody claimed.
func (k *Keeper) dropClients() {
	cause := registry.Cause{Kind: registry.CauseRestart, Detail: "not reconnected within " + k.cfg.ReconnectTime.String()}
	for _, id := range k.clients {
		// Closing refuses nothing.
		_, _ = k.store.Apply(&registry.CloseClient{Meta: registry.Meta{At: k.clock.Now(), Cause: cause}, Client: id})
	}
	k.clients = nil
}

// SavedAt returns when the latest snapshot of this run was written, in
// milliseconds since the epoch; 0 before the first.
func (k *Keeper) SavedAt() int64 { return k.written.Load() }

// save writes a snapshot and returns when it is safe on disk; a failure leaves the
// one before it in place. The history before it is then no longer needed for
// recovery.
func (k *Keeper) save() error {
	// The sequence is read first: what happens meanwhile may be in the snapshot,
	// and is replayed over it in any case.
	at := k.clock.Now()
	h := head{Seq: k.ledger.LastSeq(), Revision: max(at.Wall, k.store.HighestRevision())}
	instances := k.store.Ephemeral()
	err := store.WriteFile(k.path, func(w io.Writer) error {
		return store.WriteStream(w, snapshotKind, h, instances)
	})
	if err != nil {
		return err
	}
	k.written.Store(at.Wall)
	k.ledger.SetRecoveryFloor(h.Seq)
	return nil
}
