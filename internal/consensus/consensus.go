package consensus

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

var (
	// ErrNoLeader is returned when no member can take a proposal now: the log
	// is not ready yet, or a majority is out of reach. Nothing was stored.
	ErrNoLeader = errors.New("the registry has no leader for persistent data")
	// ErrUncertain is returned when a proposal was handed over and its outcome
	// is not known: it may or may not take effect, now or after a restart.
	ErrUncertain = errors.New("it is not known whether the change was stored")
	// ErrClosed is returned once Run has ended, or is ending.
	ErrClosed = errors.New("the log of persistent data is closed")
	// ErrTooLarge is returned for a command above [MaxCommand].
	ErrTooLarge = fmt.Errorf("a command holds at most %d bytes", MaxCommand)
)

// MaxCommand is the largest command, in bytes. The library advises to stay
// below 512 KiB, since an entry travels between members in one message.
const MaxCommand = 512 << 10

// maxInFlight bounds the proposals that wait for their commit, and with them
// the memory that a hung disk can pin. Further ones wait for a place.
const maxInFlight = 1024

// FSM is the state machine that the log drives. All methods are called by one
// goroutine at a time. They must not call back into the Log.
type FSM interface {
	// Apply changes the state by one committed command and returns what
	// Propose hands to the proposer. Applied to the same state, a command
	// must give the same state everywhere and at every replay: no clock, no
	// randomness, no I/O. A bad command is an answer, not a panic. index
	// strictly increases; cmd must not be kept or changed.
	Apply(cmd []byte, index uint64) any
	// Snapshot captures the state as it is and returns quickly; Apply waits
	// for it. The returned function writes what was captured. It runs on
	// another goroutine while Apply goes on, at most once, perhaps never.
	Snapshot() (write func(io.Writer) error, err error)
	// Restore reads a state that Snapshot wrote, without changing the present
	// one, and returns the function that puts it in its place. install may
	// never be called: that is how a backup is tried before it is taken.
	Restore(r io.Reader) (install func(), err error)
}

// Transport carries the log between members. It is the library's own type, so
// that a transport for a cluster can be made without importing the library.
type Transport = raft.Transport

// Config says where the log is and who keeps it. See [DefaultConfig].
type Config struct {
	// Dir is the directory of the log. It is created when absent; its parent
	// must exist and be locked by the caller (see package store).
	Dir string
	// ID identifies this member for ever, whatever its address becomes.
	ID string
	// Address is where other members reach this one. Stand-alone it means
	// nothing; empty stands for ID.
	Address string
	// Transport connects the members; the log closes it when it can be closed.
	// Nil keeps a single voter that listens nowhere.
	Transport Transport
	// SnapshotEvery is how many entries are written between two snapshots, at
	// least. It bounds the replay after a restart. Looked at each second.
	SnapshotEvery uint64
	// OnWrite, when not nil, is told how many entries each write to the disk
	// stored and how long it took, the sync included. It must not block.
	OnWrite func(entries int, took time.Duration)
}

// DefaultConfig returns the settings for dir and id. Replaying 8,192 entries
// takes about 30 ms (docs/decisions/0003-durable-store.md).
func DefaultConfig(dir, id string) Config {
	return Config{Dir: dir, ID: id, SnapshotEvery: 8192}
}

// Validate returns all faults of the configuration at once.
func (c Config) Validate() error {
	var faults []error
	if c.Dir == "" {
		faults = append(faults, errors.New("consensus: Dir is empty"))
	}
	if c.ID == "" {
		faults = append(faults, errors.New("consensus: ID is empty"))
	}
	if c.SnapshotEvery == 0 {
		faults = append(faults, errors.New("consensus: SnapshotEvery is 0"))
	}
	return errors.Join(faults...)
}

// Log is the durable log of one member. Make it with [New] and give it life
// with [Log.Run].
type Log struct {
	cfg   Config
	log   *slog.Logger
	fsm   *machine
	disk  *diskHealth
	ready chan struct{} // closed when the state is complete, see Ready
	slots chan struct{} // one token for each proposal in flight

	mu       sync.RWMutex   // guards what follows; calls hold it for reading while they enter
	phase    phase          // moves forward only
	node     *node          // set once, when phase becomes serving
	inFlight sync.WaitGroup // proposals, backups and restores that have entered
}

// phase is where in its life a Log is.
type phase int

const (
	idle     phase = iota // made by New
	starting              // Run loads the state
	serving               // Ready is closed
	closed                // Run is ending, or has ended
)

// New returns a log that will drive fsm. It does no I/O and starts nothing.
func New(cfg Config, fsm FSM, logger *slog.Logger) (*Log, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if cfg.Address == "" {
		cfg.Address = cfg.ID
	}
	return &Log{
		cfg:   cfg,
		log:   logger.With("component", "consensus"),
		fsm:   &machine{fsm: fsm},
		disk:  newDiskHealth(),
		ready: make(chan struct{}),
		slots: make(chan struct{}, maxInFlight),
	}, nil
}

// Ready is closed when the state machine holds everything that was ever
// acknowledged and proposals are taken. A lone voter whose disk takes no writes
// is ready as well: it refuses proposals with the error of the disk until that
// has recovered. It stays open when Run fails earlier.
func (l *Log) Ready() <-chan struct{} { return l.ready }

// Health returns nil, or why the disk takes no writes at the moment: the error of
// the last one, or that the present one hangs. Reads of the state machine are
// good all the same.
func (l *Log) Health() error { return l.disk.get() }

// Run loads the newest snapshot and the entries after it into the state
// machine, takes proposals until ctx ends, waits for those under way, and
// closes the files. It returns nil after an orderly end, and one sentence for
// an operator when the directory cannot be used. It runs once; a second call
// returns [ErrClosed].
func (l *Log) Run(ctx context.Context) error {
	if !l.advance(idle, starting, nil) {
		return ErrClosed
	}
	defer l.close()
	n, err := openNode(l.cfg, l.fsm, l.disk, l.log)
	if err != nil {
		return err
	}
	if err = l.serve(ctx, n); ctx.Err() != nil {
		err = nil // an end before the beginning is orderly, too
	}
	return errors.Join(err, n.close())
}

// serve completes the state, takes proposals until ctx ends and waits for those
// under way.
func (l *Log) serve(ctx context.Context, n *node) error {
	if n.sole {
		if err := errors.Join(n.replay(l.fsm), n.campaign()); err != nil {
			return err
		}
	}
	refused := n.lead(ctx, !n.sole)
	if ctx.Err() != nil || !l.advance(starting, serving, n) {
		return ctx.Err()
	}
	if refused != nil {
		l.log.Error("the disk takes no writes: persistent data can be read and not changed until it does", "err", refused)
	}
	close(l.ready)
	if refused != nil && n.lead(ctx, true) == nil {
		l.log.Info("the disk takes writes: persistent data can be changed again")
	}
	<-ctx.Done()
	l.close()
	l.drain()
	return nil
}

// advance moves from one phase to the next and tells whether it was in the
// first one.
func (l *Log) advance(from, to phase, n *node) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.phase != from {
		return false
	}
	l.phase, l.node = to, n
	return true
}

// close refuses further calls.
func (l *Log) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.phase = closed
}

// drainTime bounds the wait for the calls under way when Run ends. A commit
// takes milliseconds; only a hung disk or a stuck reader of a backup is slower.
const drainTime = 5 * time.Second

// drain waits for the calls that have entered.
func (l *Log) drain() {
	done := make(chan struct{})
	go func() { // ends with the last call; they end when the library shuts down
		l.inFlight.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(drainTime):
		l.log.Warn("closing with unfinished proposals", "after", drainTime)
	}
}

// enter returns the node for one call, which ends with leave.
func (l *Log) enter() (n *node, leave func(), err error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	switch l.phase {
	case serving:
		l.inFlight.Add(1)
		return l.node, l.inFlight.Done, nil
	case closed:
		return nil, nil, ErrClosed
	default:
		return nil, nil, ErrNoLeader
	}
}
