package consensus

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
)

// damageable returns the configuration of a closed log with two snapshots and
// entries before, between and after them, and how many commands it holds.
func damageable(t *testing.T) (Config, uint64) {
	t.Helper()
	cfg := testConfig(t)
	r := start(t, cfg)
	for part := range 3 {
		for i := range 20 {
			r.propose(t, fmt.Sprintf("command %d of part %d", i, part))
		}
		if part < 2 {
			if err := r.Compact(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	return cfg, 60
}

// copyOf returns cfg for a copy of its directory.
func copyOf(t *testing.T, cfg Config) Config {
	t.Helper()
	home := t.TempDir()
	if err := os.CopyFS(home, os.DirFS(filepath.Dir(cfg.Dir))); err != nil {
		t.Fatal(err)
	}
	cfg.Dir = filepath.Join(home, filepath.Base(cfg.Dir))
	return cfg
}

// snapshotsOf returns the paths of the snapshots, newest first.
func snapshotsOf(t *testing.T, cfg Config) []string {
	t.Helper()
	names, err := listSnapshots(filepath.Join(cfg.Dir, snapshotsName))
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, name := range names {
		paths = append(paths, filepath.Join(cfg.Dir, snapshotsName, name.id))
	}
	return paths
}

func edit(t *testing.T, path string, change func([]byte) []byte) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, change(b), 0o600); err != nil {
		t.Fatal(err)
	}
}

func makeDir(t *testing.T, path string) {
	t.Helper()
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
}

// flip returns an edit that changes the byte at position at.
func flip(at int) func([]byte) []byte {
	return func(b []byte) []byte {
		b[at] ^= 0x5A
		return b
	}
}

// oldMark puts the mark of a completed start where it was at first.
func oldMark(t *testing.T, cfg Config) {
	t.Helper()
	if err := os.Rename(markOf(cfg.Dir), filepath.Join(cfg.Dir, oldMarkName)); err != nil {
		t.Fatal(err)
	}
}

func TestDamage(t *testing.T) {
	sound, all := damageable(t)
	log := func(cfg Config) string { return filepath.Join(cfg.Dir, logName) }
	tests := []struct {
		name   string
		damage func(t *testing.T, cfg Config)
		says   string // the error; "": it starts and holds everything
	}{
		{"none", func(*testing.T, Config) {}, ""},
		{"the log's last 7 bytes are cut", func(t *testing.T, cfg Config) {
			edit(t, log(cfg), func(b []byte) []byte { return b[:len(b)-7] })
		}, ""},
		{"half of the log is cut", func(t *testing.T, cfg Config) {
			edit(t, log(cfg), func(b []byte) []byte { return b[:8192+100] })
		}, "log.db is damaged"},
		{"the log is cut to its headers", func(t *testing.T, cfg Config) {
			edit(t, log(cfg), func(b []byte) []byte { return b[:8192] })
		}, "log.db is damaged"},
		{"the log is empty", func(t *testing.T, cfg Config) {
			edit(t, log(cfg), func([]byte) []byte { return nil })
		}, "log.db is missing or empty"},
		{"the log is gone", func(_ *testing.T, cfg Config) { os.Remove(log(cfg)) }, "log.db is missing or empty"},
		{"the log is empty and there is no snapshot", func(t *testing.T, cfg Config) {
			edit(t, log(cfg), func([]byte) []byte { return nil })
			os.RemoveAll(filepath.Join(cfg.Dir, snapshotsName))
		}, "log.db is missing or empty"},
		{"the log and the snapshots are gone", func(_ *testing.T, cfg Config) {
			os.Remove(log(cfg))
			os.RemoveAll(filepath.Join(cfg.Dir, snapshotsName))
		}, "log.db is missing or empty"},
		{"all files are gone", func(t *testing.T, cfg Config) {
			os.RemoveAll(cfg.Dir)
			makeDir(t, cfg.Dir)
		}, "log.db is missing or empty"},
		{"the directory is gone", func(_ *testing.T, cfg Config) { os.RemoveAll(cfg.Dir) }, "raft is missing"},
		{"the mark of a completed start is gone", func(_ *testing.T, cfg Config) { os.Remove(markOf(cfg.Dir)) }, ""},
		{"an older version made the mark", oldMark, ""},
		{"an older version made the mark and the log is gone", func(t *testing.T, cfg Config) {
			oldMark(t, cfg)
			os.Remove(log(cfg))
			os.RemoveAll(filepath.Join(cfg.Dir, snapshotsName))
		}, "log.db is missing or empty"},
		{"the log is something else", func(t *testing.T, cfg Config) {
			edit(t, log(cfg), func(b []byte) []byte { return bytes.Repeat([]byte("text "), len(b)/5) })
		}, "log.db is damaged"},
		{"the first header is damaged", func(t *testing.T, cfg Config) { edit(t, log(cfg), flip(16+20)) }, "log.db is damaged"},
		{"the second header is damaged", func(t *testing.T, cfg Config) { edit(t, log(cfg), flip(os.Getpagesize()+16+20)) }, "log.db is damaged"},
		{"a command in the log is damaged", func(t *testing.T, cfg Config) {
			edit(t, log(cfg), func(b []byte) []byte {
				return bytes.ReplaceAll(b, []byte("command 7 of part 2"), []byte("command 8 of part 2"))
			})
		}, "checksum of entry"},
		{"an entry is missing", func(t *testing.T, cfg Config) {
			removeEntry(t, log(cfg), func(last uint64) uint64 { return last - 5 })
		}, "is missing"},
		{"the newest snapshot's state is damaged", func(t *testing.T, cfg Config) {
			edit(t, filepath.Join(snapshotsOf(t, cfg)[0], "state.bin"), flip(50))
		}, ""},
		{"the newest snapshot's description is cut", func(t *testing.T, cfg Config) {
			edit(t, filepath.Join(snapshotsOf(t, cfg)[0], "meta.json"), func(b []byte) []byte { return b[:10] })
		}, ""},
		{"the newest snapshot's description is of another", func(t *testing.T, cfg Config) {
			edit(t, filepath.Join(snapshotsOf(t, cfg)[0], "meta.json"), func(b []byte) []byte {
				return bytes.Replace(b, []byte(`"Index":`), []byte(`"Index":1`), 1)
			})
		}, ""},
		{"the newest snapshot is gone", func(t *testing.T, cfg Config) { os.RemoveAll(snapshotsOf(t, cfg)[0]) }, ""},
		{"no snapshot can be read", func(t *testing.T, cfg Config) {
			for _, path := range snapshotsOf(t, cfg) {
				edit(t, filepath.Join(path, "state.bin"), flip(50))
			}
		}, "no snapshot can be read"},
		{"a foreign file among the snapshots", func(t *testing.T, cfg Config) {
			makeDir(t, filepath.Join(cfg.Dir, snapshotsName, "old"))
		}, `"old", which is no snapshot`},
		{"unfinished snapshots", func(t *testing.T, cfg Config) {
			makeDir(t, filepath.Join(cfg.Dir, snapshotsName, "2-9-9.tmp"))
		}, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			cfg := copyOf(t, sound)
			test.damage(t, cfg)
			checked := Check(cfg.Dir)
			r, err := tryStart(t, cfg, newCounts())
			if (checked == nil) != (err == nil) {
				t.Errorf("Check = %v and Run = %v", checked, err)
			}
			if test.says != "" {
				if err == nil {
					t.Fatalf("it starts, with %d commands of %d", r.state.total(), all)
				}
				if !strings.Contains(err.Error(), test.says) || !strings.Contains(err.Error(), cfg.Dir) {
					t.Errorf("error = %q, want %q and the path", err, test.says)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := r.state.total(); got != all {
				t.Errorf("%d commands, want %d", got, all)
			}
			if err := r.Compact(); err != nil {
				t.Errorf("Compact: %v", err)
			}
			if err := r.stop(); err != nil {
				t.Error(err)
			}
			if left := snapshotsOf(t, cfg); len(left) != keptSnapshots {
				t.Errorf("snapshots left: %v, want %d sound ones", left, keptSnapshots)
			}
		})
	}
}

// removeEntry deletes one entry from the log at path, as no crash could.
func removeEntry(t *testing.T, path string, which func(last uint64) uint64) {
	t.Helper()
	bolt, err := raftboltdb.New(raftboltdb.Options{Path: path, BoltOptions: boltOptions()})
	if err != nil {
		t.Fatal(err)
	}
	defer bolt.Close()
	last, err := bolt.LastIndex()
	if err != nil {
		t.Fatal(err)
	}
	if err := bolt.DeleteRange(which(last), which(last)); err != nil {
		t.Fatal(err)
	}
}

// TestNoFlippedByteOfTheLogIsSkippedOver flips bytes all over the log file. The
// log must hold everything, or refuse to start.
func TestNoFlippedByteOfTheLogIsSkippedOver(t *testing.T) {
	sound, all := damageable(t)
	raw, err := os.ReadFile(filepath.Join(sound.Dir, logName))
	if err != nil {
		t.Fatal(err)
	}
	refused, started := 0, 0
	for at := 0; at < len(raw); at += 251 {
		if page := raw[at&^4095:][:4096]; !slices.ContainsFunc(page, func(b byte) bool { return b != 0 }) {
			continue // never used
		}
		cfg := copyOf(t, sound)
		edit(t, filepath.Join(cfg.Dir, logName), flip(at))
		r, err := tryStart(t, cfg, newCounts())
		if err != nil {
			refused++
			continue
		}
		started++
		if got := r.state.total(); got != all {
			t.Errorf("byte %d flipped: %d commands, want %d", at, got, all)
		}
		if err := r.stop(); err != nil {
			t.Error(err)
		}
	}
	t.Logf("refused %d, started whole %d", refused, started)
	if refused == 0 || started == 0 {
		t.Errorf("refused %d, started %d: the test tests nothing", refused, started)
	}
}

// TestAFirstStartMayBeCutShort leaves what a crash leaves at any point of the
// first start: the next one must begin anew.
func TestAFirstStartMayBeCutShort(t *testing.T) {
	bolt := func(t *testing.T, cfg Config) *raftboltdb.BoltStore {
		s, err := raftboltdb.New(raftboltdb.Options{Path: filepath.Join(cfg.Dir, logName), BoltOptions: boltOptions()})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}
	for name, leave := range map[string]func(t *testing.T, cfg Config){
		"an empty file": func(t *testing.T, cfg Config) {
			edit(t, filepath.Join(cfg.Dir, logName), func([]byte) []byte { return nil })
		},
		"an empty log": func(t *testing.T, cfg Config) { bolt(t, cfg).Close() },
		"a term": func(t *testing.T, cfg Config) {
			s := bolt(t, cfg)
			if err := s.SetUint64([]byte(termKey), 1); err != nil {
				t.Fatal(err)
			}
			s.Close()
		},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := testConfig(t)
			makeDir(t, cfg.Dir)
			if err := os.WriteFile(filepath.Join(cfg.Dir, logName), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			leave(t, cfg)
			if err := Check(cfg.Dir); err != nil {
				t.Errorf("Check: %v", err)
			}
			start(t, cfg).propose(t, "a")
		})
	}
}

// TestTheLibrariesKeepTheirNames holds the names in a new directory to those
// that inspect looks for.
func TestTheLibrariesKeepTheirNames(t *testing.T) {
	sound, _ := damageable(t)
	found, err := inspect(sound.Dir)
	if err != nil {
		t.Fatal(err)
	}
	if found.newest.index == 0 || found.log.first != 1 || found.log.last <= found.newest.index ||
		found.log.term < 1 || len(found.log.recent.entries) == 0 {
		t.Errorf("findings = %+v", found)
	}
	var entry raft.Log
	last := found.log.recent.entries[len(found.log.recent.entries)-1]
	if !found.log.recent.get(last.Index, &entry) || found.log.recent.get(last.Index+1, &entry) ||
		found.log.recent.get(found.newest.index, &entry) {
		t.Error("the recent entries are not those after the snapshot")
	}
}
