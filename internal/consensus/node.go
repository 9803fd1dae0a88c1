package consensus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/rollcall-registry/rollcall/internal/store"
)

const (
	// heartbeat is the silence after which a follower stands for election, and
	// the time after which a lone voter tries again when its disk failed.
	heartbeat = time.Second
	// lease is how long a leader trusts itself without a majority.
	lease = 500 * time.Millisecond
	// maxBatch bounds the entries of one write to the disk.
	maxBatch = 256
	// snapshotCheck is how often the library looks whether a snapshot is due;
	// it adds up to as much again. What is written meanwhile is replayed.
	snapshotCheck = time.Second
	// keptSnapshots is how many snapshots stay. The older one and the entries
	// since stand in for a newest one that is damaged.
	keptSnapshots = 2
	// lookEvery is how often a start looks whether the disk takes its writes.
	lookEvery = 50 * time.Millisecond
	// shutdownTime bounds the wait for the library to stop. It stops in
	// milliseconds unless the disk hangs.
	shutdownTime = 10 * time.Second
)

// node is the library at work on open files.
type node struct {
	raft  *raft.Raft
	logs  *logStore
	snaps *snapshotStore
	disk  *diskHealth
	sole  bool // the only voter
}

// openNode checks and opens the files and starts the library.
func openNode(cfg Config, fsm *machine, disk *diskHealth, logger *slog.Logger) (_ *node, err error) {
	found, err := inspect(cfg.Dir)
	if err != nil {
		return nil, err
	}
	if err := store.MakeDir(cfg.Dir); err != nil {
		return nil, err
	}
	if err := found.settle(cfg, logger); err != nil {
		return nil, err
	}
	hlog := newHCLog(logger)
	n := &node{disk: disk}
	if n.snaps, err = openSnapshots(cfg.Dir, hlog); err != nil {
		return nil, err
	}
	fsm.snaps = n.snaps
	if n.logs, err = openLogStore(cfg, disk); err != nil {
		return nil, err
	}
	n.logs.recent.Store(&found.log.recent)
	if err := n.start(cfg, fsm, hlog); err != nil {
		return nil, errors.Join(err, n.logs.close())
	}
	if err := found.mark(cfg, logger); err != nil {
		return nil, errors.Join(err, n.close())
	}
	return n, nil
}

// start gives a new directory its first configuration, one voter, and starts
// the library, which restores the state machine from the newest snapshot.
func (n *node) start(cfg Config, fsm *machine, hlog hclog.Logger) error {
	transport := cfg.Transport
	if transport == nil {
		_, transport = raft.NewInmemTransport(raft.ServerAddress(cfg.Address))
	}
	conf := raftConfig(cfg, hlog)
	if err := n.bootstrap(cfg, conf, transport); err != nil {
		return err
	}
	var err error
	if n.raft, err = raft.NewRaft(conf, fsm, n.logs, n.logs, n.snaps, transport); err != nil {
		return fmt.Errorf("load %s: %w", cfg.Dir, errors.Join(fsm.restoreErr, err))
	}
	n.logs.serving.Store(true)
	if err := n.join(cfg); err != nil {
		return errors.Join(err, n.raft.Shutdown().Error())
	}
	return nil
}

func raftConfig(cfg Config, hlog hclog.Logger) *raft.Config {
	conf := raft.DefaultConfig()
	conf.LocalID = raft.ServerID(cfg.ID)
	conf.Logger = hlog
	conf.HeartbeatTimeout = heartbeat
	conf.ElectionTimeout = heartbeat
	conf.LeaderLeaseTimeout = lease
	conf.MaxAppendEntries = maxBatch
	conf.SnapshotInterval = snapshotCheck
	conf.SnapshotThreshold = cfg.SnapshotEvery
	// Two snapshots' worth, so that the older snapshot can stand in.
	conf.TrailingLogs = 2 * cfg.SnapshotEvery
	conf.NoLegacyTelemetry = true
	return conf
}

// bootstrap makes this member the one voter of a new directory.
func (n *node) bootstrap(cfg Config, conf *raft.Config, transport raft.Transport) error {
	servers := raft.Configuration{Servers: []raft.Server{{
		Suffrage: raft.Voter,
		ID:       raft.ServerID(cfg.ID),
		Address:  raft.ServerAddress(cfg.Address),
	}}}
	err := raft.BootstrapCluster(conf, n.logs, n.logs, n.snaps, transport, servers)
	if errors.Is(err, raft.ErrCantBootstrap) {
		return nil // not new
	}
	return store.Explain("create", cfg.Dir, err)
}

// join looks at who else keeps this log.
func (n *node) join(cfg Config) error {
	future := n.raft.GetConfiguration()
	if err := future.Error(); err != nil {
		return err
	}
	var voters []raft.ServerID
	member := false
	for _, s := range future.Configuration().Servers {
		member = member || s.ID == raft.ServerID(cfg.ID)
		if s.Suffrage == raft.Voter {
			voters = append(voters, s.ID)
		}
	}
	if !member {
		return fmt.Errorf("%s belongs to the member %v, not to %s: the data directory's %s was lost or exchanged",
			cfg.Dir, voters, cfg.ID, "format.json")
	}
	n.sole = len(voters) == 1 && voters[0] == raft.ServerID(cfg.ID)
	if !n.sole && cfg.Transport == nil {
		return fmt.Errorf("%s belongs to a cluster of %d voters and cannot be used stand-alone", cfg.Dir, len(voters))
	}
	return nil
}

// replay hands the entries after the newest snapshot to the state machine, for
// a lone voter: what is on its disk is committed. The library would apply them
// as well, but as a leader only, and to become one it must write: a full disk
// would keep a server from serving what it knows.
func (n *node) replay(fsm *machine) error {
	for index := n.raft.AppliedIndex() + 1; index <= n.raft.LastIndex(); index++ {
		var entry raft.Log
		if err := n.logs.GetLog(index, &entry); err != nil {
			return fmt.Errorf("read entry %d of %s: %w", index, n.logs.path, err)
		}
		if entry.Type == raft.LogCommand {
			fsm.replay(&entry)
		}
	}
	return nil
}

// lead waits until this member leads and the library has applied every entry
// of the log, and returns nil then. It gives up when ctx ends, with its error;
// and when the disk takes no writes, with that error, if patient is false.
func (n *node) lead(ctx context.Context, patient bool) error {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	var applied <-chan error
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case leads := <-n.raft.LeaderCh():
			if leads {
				applied = n.barrier()
			}
		case err := <-applied:
			if err == nil {
				n.logs.recent.Store(nil)
				return nil
			}
			applied = nil // until it leads again
		case <-look.C:
			if err := n.disk.get(); err != nil && !patient {
				return err
			}
		}
	}
}

// barrier returns where to learn that all entries up to now are applied, or
// that this member has ceased to lead. On a hung disk that takes for ever.
func (n *node) barrier() <-chan error {
	done := make(chan error, 1)
	go func() { done <- n.raft.Barrier(0).Error() }() // ends with the library
	return done
}

// campaign makes a lone voter stand for election now, instead of after the
// silence of a heartbeat: the library looks at its timer at once when the
// heartbeat is made shorter, and has no other call for it.
func (n *node) campaign() error {
	conf := n.raft.ReloadableConfig()
	conf.HeartbeatTimeout -= time.Millisecond
	return n.raft.ReloadConfig(conf)
}

// close stops the library and closes the files.
func (n *node) close() error {
	future := n.raft.Shutdown()
	n.disk.stop() // after Shutdown: see logStore.persist
	done := make(chan error, 1)
	go func() { done <- future.Error() }() // ends with the library
	select {
	case err := <-done:
		return errors.Join(err, n.logs.close())
	case <-time.After(shutdownTime):
		return fmt.Errorf("the disk of %s did not answer for %v; the log is left as it is", filepath.Dir(n.logs.path), shutdownTime)
	}
}
