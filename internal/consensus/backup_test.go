package consensus

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/rollcall-registry/rollcall/internal/store"
)

func TestBackupMovesAState(t *testing.T) {
	source := start(t, testConfig(t))
	proposeMany(t, source, 0, 2000)
	applied := source.Stats().Applied
	if err := source.Compact(); err != nil {
		t.Fatal(err)
	}
	source = restart(t, source) // the state comes from the snapshot alone
	var backup bytes.Buffer
	made, err := source.Backup(&backup)
	if err != nil {
		t.Fatal(err)
	}
	if made.Index < applied || made.Term == 0 || made.ID != "member-1" || made.Time.IsZero() {
		t.Errorf("Backup = %+v", made)
	}

	cfg := testConfig(t)
	cfg.ID = "member-2"
	target := start(t, cfg)
	target.propose(t, "replaced")
	taken, err := target.Restore(&backup)
	if err != nil || taken != made {
		t.Fatalf("Restore = %+v, %v, want %+v", taken, err, made)
	}
	check := func(r *running, more uint64) {
		t.Helper()
		if got := r.state.total(); got != 2000+more || r.state.count("replaced") != 0 {
			t.Errorf("%d commands, %d of before, want %d and none", got, r.state.count("replaced"), 2000+more)
		}
	}
	check(target, 0)
	target.propose(t, "after") // the state machine panics if the index goes back
	check(target, 1)
	for round := range 2 {
		target = restart(t, target)
		check(target, uint64(round)+1)
		target.propose(t, fmt.Sprint("round ", round))
	}
	if entries, err := os.ReadDir(cfg.Dir); err != nil || len(entries) != 2 {
		t.Errorf("the directory holds %v, %v, want the log and the snapshots", entries, err)
	}
}

// TestBackupIsOnline takes backups under load: each must restore to a state
// that holds all that was acknowledged before and nothing twice.
func TestBackupIsOnline(t *testing.T) {
	source := start(t, testConfig(t))
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	for caller := range 4 {
		group.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				if _, err := source.Propose(t.Context(), fmt.Appendf(nil, "%d-%d", caller, i)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	target := start(t, testConfig(t))
	for range 5 {
		source.propose(t, "before")
		before := source.state.count("before")
		var backup bytes.Buffer
		if _, err := source.Backup(&backup); err != nil {
			t.Fatal(err)
		}
		if _, err := target.Restore(&backup); err != nil {
			t.Fatal(err)
		}
		if got := target.state.count("before"); got != before {
			t.Errorf("%d acknowledged before the backup, %d in it", before, got)
		}
		for caller := range 4 {
			gap := false
			for i := range 100_000 {
				n := target.state.count(fmt.Sprintf("%d-%d", caller, i))
				if n > 1 || n == 1 && gap {
					t.Fatalf("caller %d, command %d: %d times, after a gap: %v", caller, i, n, gap)
				}
				if n == 0 {
					if gap {
						break
					}
					gap = true
				}
			}
		}
	}
	cancel()
	group.Wait()
}

func TestRestoreRefusesAndChangesNothing(t *testing.T) {
	source := start(t, testConfig(t))
	source.propose(t, "theirs")
	var buf bytes.Buffer
	if _, err := source.Backup(&buf); err != nil {
		t.Fatal(err)
	}
	good := buf.Bytes()
	stream := func(kind store.Kind, head any, body string) []byte {
		var buf bytes.Buffer
		err := store.WriteStream(&buf, kind, head, func(w io.Writer) error {
			_, err := io.WriteString(w, body)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return buf.Bytes()
	}
	tests := []struct {
		name string
		raw  []byte
		says string
	}{
		{"empty", nil, "this is no sound backup"},
		{"cut", good[:len(good)-5], "ends before its end mark"},
		{"changed", flip(len(good) - 20)(bytes.Clone(good)), "damaged at byte"},
		{"foreign", []byte("-- PostgreSQL database dump\n"), "does not begin like a file of Rollcall"},
		{"another file of ours", stream(store.Kind{Name: "ephemeral", Version: 1}, 1, ""), `it holds "ephemeral"`},
		{"newer", stream(store.Kind{Name: "backup", Version: 2}, BackupInfo{}, ""), "understands up to 1"},
		{"a state that is not understood", stream(backupKind, BackupInfo{}, "\x01"), "not understood"},
	}
	target := start(t, testConfig(t))
	target.propose(t, "ours")
	before := target.Stats()
	for _, test := range tests {
		_, err := target.Restore(bytes.NewReader(test.raw))
		if !errors.Is(err, ErrBadBackup) || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: Restore = %v, want ErrBadBackup and %q", test.name, err, test.says)
		}
	}
	if after := target.Stats(); after.Applied != before.Applied || after.Writes != before.Writes || target.state.count("ours") != 1 {
		t.Errorf("stats = %+v, want %+v and ours once", after, before)
	}
	target.state.refuse = errors.New("too new")
	if _, err := target.Restore(bytes.NewReader(good)); err == nil || target.state.count("ours") != 1 {
		t.Errorf("Restore = %v, ours %d times", err, target.state.count("ours"))
	}
	target.state.refuse = nil
	if _, err := target.Restore(bytes.NewReader(good)); err != nil || target.state.count("theirs") != 1 {
		t.Errorf("Restore of the good one = %v, theirs %d times", err, target.state.count("theirs"))
	}
}

// failingWriter takes so many bytes and then fails.
type failingWriter int

func (w *failingWriter) Write(p []byte) (int, error) {
	if *w -= failingWriter(len(p)); *w < 0 {
		return 0, errors.New("connection reset")
	}
	return len(p), nil
}

func TestBackupTellsThatItIsIncomplete(t *testing.T) {
	r := start(t, testConfig(t))
	proposeMany(t, r, 0, 1000)
	for _, room := range []failingWriter{0, 10, 30, 100_000} {
		if _, err := r.Backup(&room); err == nil || !strings.Contains(err.Error(), "connection reset") {
			t.Errorf("Backup = %v, want the writer's error", err)
		}
	}
}

// FuzzReadBackup feeds foreign bytes to the decoder of backups.
func FuzzReadBackup(f *testing.F) {
	for _, body := range []string{"", "some state"} {
		var buf bytes.Buffer
		err := store.WriteStream(&buf, backupKind, BackupInfo{Index: 7, ID: "member-1"}, func(w io.Writer) error {
			_, err := io.WriteString(w, body)
			return err
		})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(buf.Bytes())
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var state bytes.Buffer
		_, size, err := readBackup(bytes.NewReader(raw), &state)
		if err == nil && size != int64(state.Len()) {
			t.Fatalf("size %d of %d bytes", size, state.Len())
		}
	})
}
