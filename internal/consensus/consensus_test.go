package consensus

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// counts is a state machine that counts how often it has seen each command.
type counts struct {
	mu     sync.Mutex
	seen   map[string]uint64
	last   uint64 // index of the last command
	refuse error  // returned by Restore when set
}

func newCounts() *counts { return &counts{seen: map[string]uint64{}} }

func (c *counts) Apply(cmd []byte, index uint64) any {
	c.mu.Lock()
	defer c.mu.Unlock()
	if index <= c.last {
		panic(fmt.Sprintf("index %d after %d", index, c.last))
	}
	c.last = index
	c.seen[string(cmd)]++
	return c.seen[string(cmd)]
}

func (c *counts) Snapshot() (func(io.Writer) error, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	seen, last := maps.Clone(c.seen), c.last
	return func(w io.Writer) error {
		b := binary.AppendUvarint(nil, last)
		b = binary.AppendUvarint(b, uint64(len(seen)))
		for key, n := range seen {
			b = binary.AppendUvarint(b, n)
			b = binary.AppendUvarint(b, uint64(len(key)))
			b = append(b, key...)
			if len(b) > 32<<10 {
				if _, err := w.Write(b); err != nil {
					return err
				}
				b = b[:0]
			}
		}
		_, err := w.Write(b)
		return err
	}, nil
}

func (c *counts) Restore(r io.Reader) (func(), error) {
	if c.refuse != nil {
		return nil, c.refuse
	}
	in := bufio.NewReader(r)
	last, err := binary.ReadUvarint(in)
	if err != nil {
		return nil, err
	}
	size, err := binary.ReadUvarint(in)
	if err != nil {
		return nil, err
	}
	seen := map[string]uint64{}
	for range size {
		n, err := binary.ReadUvarint(in)
		if err != nil {
			return nil, err
		}
		length, err := binary.ReadUvarint(in)
		if err != nil {
			return nil, err
		}
		key := make([]byte, length)
		if _, err := io.ReadFull(in, key); err != nil {
			return nil, err
		}
		seen[string(key)] = n
	}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.seen, c.last = seen, last
	}, nil
}

func (c *counts) count(cmd string) uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.seen[cmd]
}

func (c *counts) total() (n uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, seen := range c.seen {
		n += seen
	}
	return n
}

// running is a log that serves, with its state machine.
type running struct {
	*Log
	state *counts
	stop  func() error // ends Run and returns its error; again: nil
}

// start runs a log in dir until the test ends or stop is called.
func start(tb testing.TB, cfg Config) *running {
	tb.Helper()
	r, err := tryStart(tb, cfg, newCounts())
	if err != nil {
		tb.Fatalf("start: %v", err)
	}
	tb.Cleanup(func() {
		if err := r.stop(); err != nil {
			tb.Errorf("stop: %v", err)
		}
	})
	return r
}

func tryStart(tb testing.TB, cfg Config, state *counts) (*running, error) {
	tb.Helper()
	log, err := New(cfg, state, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(tb.Context())
	ended := make(chan error, 1)
	go func() { ended <- log.Run(ctx) }()
	stop := sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
	select {
	case <-log.Ready():
		return &running{Log: log, state: state, stop: stop}, nil
	case err := <-ended:
		cancel()
		return nil, err
	case <-time.After(10 * time.Second):
		return nil, errors.Join(errors.New("not ready after 10 s"), stop())
	}
}

// restart stops r, checks its files and runs it again with a new state machine.
func restart(tb testing.TB, r *running) *running {
	tb.Helper()
	if err := r.stop(); err != nil {
		tb.Fatal(err)
	}
	if err := Check(r.cfg.Dir); err != nil {
		tb.Fatal(err)
	}
	return start(tb, r.cfg)
}

func testConfig(tb testing.TB) Config {
	return DefaultConfig(filepath.Join(tb.TempDir(), "raft"), "member-1")
}

func (r *running) propose(tb testing.TB, cmd string) {
	tb.Helper()
	if _, err := r.Propose(tb.Context(), []byte(cmd)); err != nil {
		tb.Fatalf("Propose(%q): %v", cmd, err)
	}
}

func TestProposalsSurviveARestart(t *testing.T) {
	r := start(t, testConfig(t))
	for round := range uint64(4) {
		if got := r.state.count("a"); got != round {
			t.Fatalf("round %d: %d before proposing", round, got)
		}
		answer, err := r.Propose(t.Context(), []byte("a"))
		if err != nil || answer != round+1 {
			t.Fatalf("Propose = %v, %v, want %d", answer, err, round+1)
		}
		if round == 2 {
			if err := r.Compact(); err != nil {
				t.Fatal(err)
			}
		}
		r = restart(t, r)
	}
}

func TestProposeRefuses(t *testing.T) {
	log, err := New(testConfig(t), newCounts(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := log.Propose(t.Context(), []byte("a")); !errors.Is(err, ErrNoLeader) {
		t.Errorf("Propose before Run = %v, want ErrNoLeader", err)
	}
	r := start(t, testConfig(t))
	if _, err := r.Propose(t.Context(), make([]byte, MaxCommand+1)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("Propose of too much = %v, want ErrTooLarge", err)
	}
	if _, err := r.Propose(t.Context(), make([]byte, MaxCommand)); err != nil {
		t.Errorf("Propose of the most = %v", err)
	}
	if err := r.Run(t.Context()); !errors.Is(err, ErrClosed) {
		t.Errorf("a second Run = %v, want ErrClosed", err)
	}
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Propose(t.Context(), []byte("a")); !errors.Is(err, ErrClosed) {
		t.Errorf("Propose after the end = %v, want ErrClosed", err)
	}
	if _, err := r.Backup(io.Discard); !errors.Is(err, ErrClosed) {
		t.Errorf("Backup after the end = %v, want ErrClosed", err)
	}
	_, err = New(Config{}, newCounts(), slog.New(slog.DiscardHandler))
	if err == nil || len(strings.Split(err.Error(), "\n")) != 3 {
		t.Errorf("New of an empty configuration = %v, want three faults", err)
	}
}

func TestProposeHeedsItsContext(t *testing.T) {
	r := start(t, testConfig(t))
	r.state.mu.Lock() // Apply waits
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := r.Propose(ctx, []byte("a"))
		ended <- err
	}()
	for r.Stats().Last < 4 { // configuration, first entry of the term, barrier, ours
		runtime.Gosched()
	}
	cancel()
	if err := <-ended; !errors.Is(err, ErrUncertain) || !errors.Is(err, context.Canceled) {
		t.Errorf("Propose = %v, want ErrUncertain and Canceled", err)
	}
	r.state.mu.Unlock()
	r.propose(t, "b")
	if got := r.state.count("a"); got != 1 {
		t.Errorf("the abandoned command was applied %d times, want 1", got)
	}
}

// TestStopWhileProposing ends Run under load: what was acknowledged is there,
// what was refused for sure is not.
func TestStopWhileProposing(t *testing.T) {
	r := start(t, testConfig(t))
	outcomes := make([]map[string]error, 16)
	var group sync.WaitGroup
	for caller := range outcomes {
		outcomes[caller] = map[string]error{}
		group.Go(func() {
			for i := 0; ; i++ {
				cmd := fmt.Sprintf("%d-%d", caller, i)
				_, err := r.Propose(t.Context(), []byte(cmd))
				if outcomes[caller][cmd] = err; err != nil {
					return
				}
			}
		})
	}
	for r.Stats().Applied < 500 {
		runtime.Gosched()
	}
	next := restart(t, r)
	group.Wait()
	for _, outcome := range outcomes {
		for cmd, err := range outcome {
			got := next.state.count(cmd)
			if err == nil && got != 1 || err != nil && !errors.Is(err, ErrUncertain) && got != 0 {
				t.Errorf("%s: answered %v and is there %d times", cmd, err, got)
			}
		}
	}
}

// TestTheLogDoesNotGrowWithoutBound writes the same keys again and again.
func TestTheLogDoesNotGrowWithoutBound(t *testing.T) {
	cfg := testConfig(t)
	cfg.SnapshotEvery = 100
	r := start(t, cfg)
	var sizes []int64
	for range 20 {
		proposeMany(t, r, 0, 300)
		if err := r.Compact(); err != nil { // as the clock would
			t.Fatal(err)
		}
		sizes = append(sizes, r.Stats().LogBytes)
	}
	s := r.Stats()
	if s.LogEntries > 2*cfg.SnapshotEvery || s.SnapshotIndex < 6000 || s.SnapshotBytes == 0 || s.SnapshotTime.IsZero() {
		t.Errorf("stats = %+v, want at most %d entries", s, 2*cfg.SnapshotEvery)
	}
	if last := sizes[len(sizes)-1]; last > sizes[2] {
		t.Errorf("the file grew: %v", sizes)
	}
	if got := restart(t, r).state.total(); got != 6000 {
		t.Errorf("%d after a restart, want 6000", got)
	}
}

// TestSnapshotsComeByThemselves waits for the one that is due.
func TestSnapshotsComeByThemselves(t *testing.T) {
	cfg := testConfig(t)
	cfg.SnapshotEvery = 50
	r := start(t, cfg)
	proposeMany(t, r, 0, 200)
	deadline := time.Now().Add(10 * time.Second)
	for r.Stats().SnapshotIndex < 100 {
		if time.Now().After(deadline) {
			t.Fatalf("no snapshot: %+v", r.Stats())
		}
		runtime.Gosched()
	}
}
