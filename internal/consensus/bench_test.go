package consensus

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
)

func BenchmarkPropose(b *testing.B) {
	for _, callers := range []int{1, 64, 512} {
		b.Run(fmt.Sprint("callers=", callers), func(b *testing.B) {
			r := start(b, testConfig(b))
			var next atomic.Int64
			b.ReportAllocs()
			b.ResetTimer()
			var group sync.WaitGroup
			for range callers {
				group.Go(func() {
					for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
						cmd := make([]byte, 250)
						copy(cmd, fmt.Sprint("instance-", i%100_000))
						if _, err := r.Propose(b.Context(), cmd); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			group.Wait()
			b.StopTimer()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "proposals/s")
			b.ReportMetric(float64(b.N)/float64(r.Stats().Writes), "entries/write")
		})
	}
}

// BenchmarkStart measures New to Ready.
func BenchmarkStart(b *testing.B) {
	b.Run("empty", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			cfg := testConfig(b)
			b.StartTimer()
			r, err := tryStart(b, cfg, newCounts())
			if err != nil {
				b.Fatal(err)
			}
			b.StopTimer()
			if err := r.stop(); err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
		}
	})
	for _, size := range []struct{ snapshot, log int }{{0, 1000}, {100_000, 0}, {100_000, 8192}, {100_000, 100_000}} {
		b.Run(fmt.Sprintf("snapshot=%d/log=%d", size.snapshot, size.log), func(b *testing.B) {
			cfg := testConfig(b)
			fill(b, cfg, size.snapshot, size.log)
			cfg.SnapshotEvery = 1 << 40 // the log stays as it is
			for b.Loop() {
				r, err := tryStart(b, cfg, newCounts())
				if err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				if got := r.state.total(); got != uint64(size.snapshot+size.log) {
					b.Fatalf("%d commands, want %d", got, size.snapshot+size.log)
				}
				if err := r.stop(); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
		})
	}
}

// fill leaves a log with so many commands of 250 bytes in its snapshot, and so
// many after it.
func fill(b *testing.B, cfg Config, snapshot, log int) {
	b.Helper()
	r := start(b, cfg)
	proposeMany(b, r, 0, snapshot)
	if snapshot > 0 {
		if err := r.Compact(); err != nil {
			b.Fatal(err)
		}
	}
	if err := r.stop(); err != nil {
		b.Fatal(err)
	}
	cfg.SnapshotEvery = 1 << 40 // none after this
	r = start(b, cfg)
	proposeMany(b, r, snapshot, log)
	if err := r.stop(); err != nil {
		b.Fatal(err)
	}
}

// proposeMany proposes n different commands of 250 bytes by many callers.
func proposeMany(tb testing.TB, r *running, from, n int) {
	tb.Helper()
	var next atomic.Int64
	var group sync.WaitGroup
	for range 256 {
		group.Go(func() {
			for i := next.Add(1); i <= int64(n); i = next.Add(1) {
				cmd := make([]byte, 250)
				copy(cmd, fmt.Sprint("instance-", int64(from)+i))
				if _, err := r.Propose(tb.Context(), cmd); err != nil {
					tb.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
}

// BenchmarkDisk is what the disk itself takes for one write and sync of 4 KiB,
// of which a commit needs two.
func BenchmarkDisk(b *testing.B) {
	f, err := os.Create(filepath.Join(b.TempDir(), "file"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	page := make([]byte, 4096)
	for b.Loop() {
		if _, err := f.WriteAt(page, 0); err != nil {
			b.Fatal(err)
		}
		if err := f.Sync(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkBackup takes a backup of 100,000 commands of 250 bytes.
func BenchmarkBackup(b *testing.B) {
	r := start(b, testConfig(b))
	proposeMany(b, r, 0, 100_000)
	for b.Loop() {
		if _, err := r.Backup(io.Discard); err != nil {
			b.Fatal(err)
		}
	}
}
