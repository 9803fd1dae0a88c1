package consensus

import (
	"bytes"
	"context"
	"log/slog"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
)

func TestStandAloneRefusesTheLogOfOthers(t *testing.T) {
	cfg := testConfig(t)
	r := start(t, cfg)
	r.propose(t, "a")
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	other := cfg
	other.ID = "member-2"
	if _, err := tryStart(t, other, newCounts()); err == nil || !strings.Contains(err.Error(), "member-1") {
		t.Errorf("another member's log: %v, want whose it is", err)
	}

	r = start(t, cfg)
	r.node.raft.AddVoter("member-2", "nowhere", 0, time.Second) // never commits
	for len(r.node.raft.GetConfiguration().Configuration().Servers) < 2 {
		runtime.Gosched() // the library gives no signal
	}
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := tryStart(t, cfg, newCounts()); err == nil || !strings.Contains(err.Error(), "cluster of 2 voters") {
		t.Errorf("a cluster's log: %v, want that it is one", err)
	}
}

// TestTransportIsAnOption runs a member over a transport that was handed in.
func TestTransportIsAnOption(t *testing.T) {
	cfg := testConfig(t)
	address, transport := raft.NewInmemTransport("one")
	cfg.Address, cfg.Transport = string(address), transport
	r := start(t, cfg)
	r.propose(t, "a")
	if got := r.Stats(); !got.Leader || got.Term == 0 || !got.Healthy || got.Applied == 0 {
		t.Errorf("Stats = %+v", got)
	}
}

func TestOnWriteIsToldOfEachWrite(t *testing.T) {
	cfg := testConfig(t)
	var entries, writes atomic.Int64
	cfg.OnWrite = func(n int, took time.Duration) {
		entries.Add(int64(n))
		writes.Add(1)
		if took <= 0 {
			t.Errorf("a write took %v", took)
		}
	}
	r := start(t, cfg)
	proposeMany(t, r, 0, 1000)
	s := r.Stats()
	if uint64(writes.Load()) != s.Writes || uint64(entries.Load()) != s.Last || s.WriteTime <= 0 {
		t.Errorf("told of %d entries in %d writes, stats %+v", entries.Load(), writes.Load(), s)
	}
}

func TestRunEndsWhenToldBeforeReady(t *testing.T) {
	log, err := New(testConfig(t), newCounts(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := log.Run(ctx); err != nil {
		t.Errorf("Run = %v, want nil", err)
	}
}

func TestLibraryLogs(t *testing.T) {
	var out bytes.Buffer
	log := newHCLog(slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelInfo})))
	log.Info("entering leader state")
	log.Warn("heartbeat timeout reached, starting election")
	for range 3 {
		log.Error("failed to take snapshot", "last-index", 7, "servers", hclog.Fmt("%d of %d", 1, 2))
	}
	log.Named("x").With("id", "y").Warn("found temporary snapshot")
	got := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(got) != 2 || !strings.Contains(got[0], `level=ERROR msg="failed to take snapshot" last_index=7 servers="1 of 2"`) ||
		!strings.Contains(got[1], `level=WARN msg="found temporary snapshot" id=y`) {
		t.Errorf("logged:\n%s", out.String())
	}
}

// TestAStartIsQuiet runs a log twice and expects nothing at info.
func TestAStartIsQuiet(t *testing.T) {
	var out bytes.Buffer
	cfg := testConfig(t)
	for range 2 {
		log, err := New(cfg, newCounts(), slog.New(slog.NewTextHandler(&out, nil)))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- log.Run(ctx) }()
		<-log.Ready()
		cancel()
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
	}
	if out.Len() > 0 {
		t.Errorf("logged:\n%s", out.String())
	}
}
