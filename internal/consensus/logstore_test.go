package consensus

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"github.com/rollcall-registry/rollcall/internal/store"
)

func openTestLog(t *testing.T) *logStore {
	t.Helper()
	cfg := testConfig(t)
	if err := store.MakeDir(cfg.Dir); err != nil {
		t.Fatal(err)
	}
	s, err := openLogStore(cfg, newDiskHealth())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.close() })
	return s
}

// entries returns the entries first to last of a term.
func entries(first, last, term uint64) (all []*raft.Log) {
	for i := first; i <= last; i++ {
		all = append(all, &raft.Log{Index: i, Term: term, Data: fmt.Appendf(nil, "%d of term %d", i, term)})
	}
	return all
}

func TestEntriesAreSealed(t *testing.T) {
	s := openTestLog(t)
	if err := s.StoreLogs(entries(1, 3, 1)); err != nil {
		t.Fatal(err)
	}
	var got raft.Log
	if err := s.GetLog(2, &got); err != nil || string(got.Data) != "2 of term 1" || got.Extensions != nil {
		t.Fatalf("GetLog = %+v, %v", got, err)
	}
	if err := s.GetLog(9, &got); err != raft.ErrLogNotFound { //nolint:errorlint // the library compares it so
		t.Errorf("GetLog of an absent entry = %v", err)
	}
	bad := []raft.Log{
		{Index: 4, Term: 1, Data: []byte("x")}, // no seal
		{Index: 4, Term: 1, Data: []byte("x"), Extensions: seal(&raft.Log{Index: 4, Term: 1, Data: []byte("y")})}, // of other data
		{Index: 4, Term: 2, Data: []byte("x"), Extensions: seal(&raft.Log{Index: 4, Term: 1, Data: []byte("x")})}, // of another term
		{Index: 5, Term: 1, Data: []byte("x"), Extensions: seal(&raft.Log{Index: 5, Term: 1, Data: []byte("x")})}, // in another place
	}
	for _, entry := range bad {
		if err := unseal(4, &entry); err == nil {
			t.Errorf("%+v is accepted as entry 4", entry)
		}
	}
}

// TestARefusedWriteLeavesNothingBehind has a write in the file that was
// answered with an error, as when its last sync fails.
func TestARefusedWriteLeavesNothingBehind(t *testing.T) {
	s := openTestLog(t)
	if err := s.StoreLogs(entries(1, 1000, 1)); err != nil {
		t.Fatal(err)
	}
	s.stale = 11 // entries 11 to 1000 were refused
	if err := s.StoreLogs(entries(11, 12, 2)); err != nil {
		t.Fatal(err)
	}
	if last, err := s.LastIndex(); last != 12 || err != nil {
		t.Fatalf("LastIndex = %d, %v, want 12", last, err)
	}
	for i := uint64(1); i <= 12; i++ {
		var got raft.Log
		if err := s.GetLog(i, &got); err != nil {
			t.Fatalf("entry %d: %v", i, err)
		}
	}
}

// TestCompactionLeavesNoEntryBehind deletes a range across many pages.
func TestCompactionLeavesNoEntryBehind(t *testing.T) {
	s := openTestLog(t)
	if err := s.StoreLogs(entries(1, 5000, 1)); err != nil {
		t.Fatal(err)
	}
	if err := s.DeleteRange(1, 4321); err != nil {
		t.Fatal(err)
	}
	if first, err := s.FirstIndex(); first != 4322 || err != nil {
		t.Errorf("FirstIndex = %d, %v, want 4322", first, err)
	}
}

// TestPersistWaitsOnlyWhileServing checks that a term that cannot be stored is
// an error before the library runs, and a wait while it does.
func TestPersistWaitsOnlyWhileServing(t *testing.T) {
	full := errors.New("full")
	s := &logStore{path: filepath.Join(t.TempDir(), logName), disk: newDiskHealth()}
	if err := s.persist(func() error { return full }); !errors.Is(err, full) {
		t.Errorf("before: %v, want the error", err)
	}
	s.serving.Store(true)
	tries := 0
	err := s.persist(func() error {
		if tries++; tries < 3 {
			return full
		}
		return nil
	})
	if err != nil || tries != 3 {
		t.Errorf("while serving: %v after %d tries", err, tries)
	}
	if err := s.disk.get(); !errors.Is(err, full) {
		t.Errorf("Health = %v, want the error until an entry is stored", err)
	}
	time.AfterFunc(10*time.Millisecond, s.disk.stop)
	if err := s.persist(func() error { return full }); err != nil || !errors.Is(s.disk.get(), full) {
		t.Errorf("at the end: %v, health %v", err, s.disk.get())
	}
}

func TestAHungDiskIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDiskHealth()
		d.begin()
		time.Sleep(hungAfter)
		if err := d.get(); err != nil {
			t.Errorf("after %v: %v", hungAfter, err)
		}
		time.Sleep(2 * time.Second)
		if err := d.get(); err == nil || !strings.Contains(err.Error(), "7s") {
			t.Errorf("after 7 s: %v", err)
		}
		d.set(nil)
		if err := d.get(); err != nil {
			t.Errorf("after the write: %v", err)
		}
	})
}
