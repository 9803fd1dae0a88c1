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
	"sync"
	"testing"
	"time"
)

// counts is a state machine that counts how often it has seen each command.
type counts struct {
	mu      sync.Mutex
	seen    map[string]uint64
	last    uint64 // index of the last command
	refuse  error  // returned by Restore when set
	renders int    // snapshots captured
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
	c.renders++
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
	ctx, cancel := context.WithCancel(context.Background())
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
	cfg := testConfig(t)
	for round := range 3 {
		r := start(t, cfg)
		if got, want := r.state.count("a"), uint64(round); got != want {
			t.Fatalf("round %d: %d of %q before proposing, want %d", round, got, "a", want)
		}
		answer, err := r.Propose(t.Context(), []byte("a"))
		if err != nil || answer != uint64(round+1) {
			t.Fatalf("Propose = %v, %v, want %d", answer, err, round+1)
		}
		if err := r.stop(); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Propose(t.Context(), []byte("a")); !errors.Is(err, ErrClosed) {
			t.Fatalf("Propose after the end: %v, want ErrClosed", err)
		}
	}
	if err := Check(cfg.Dir); err != nil {
		t.Fatal(err)
	}
}
