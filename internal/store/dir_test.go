package store

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func mustOpen(t *testing.T, path string, steps migrations) *Dir {
	t.Helper()
	d, err := open(path, quiet(), steps)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

func put(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), dirMode); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), fileMode); err != nil {
		t.Fatal(err)
	}
}

func content(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestOpenCreatesAPrivateDirectoryWithAnIdentity(t *testing.T) {
	path := filepath.Join(t.TempDir(), "deep", "data")
	d := mustOpen(t, path, nil)
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != dirMode {
		t.Fatalf("mode = %v, %v, want %o", info.Mode(), err, dirMode)
	}
	id := d.ID()
	if len(id) != 32 {
		t.Fatalf("ID = %q, want 32 digits", id)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if again := mustOpen(t, path, nil); again.ID() != id {
		t.Errorf("ID after reopening = %q, want %q", again.ID(), id)
	}
}

func TestOpenRefuses(t *testing.T) {
	tests := []struct {
		name  string
		files map[string]string
		is    error
		says  string
	}{
		{"a newer format", map[string]string{formatName: `{"format":2,"id":"a"}`}, ErrNewer, "format 2 and this version understands up to 1"},
		{"a newer format that looks different", map[string]string{formatName: `{"format":9,"id":"a","shards":[1]}`}, ErrNewer, "format 9"},
		{"a migration to a newer format", map[string]string{formatName: `{"format":1,"id":"a","migrating_to":2}`}, ErrNewer, "format 2"},
		{"a format file that is no JSON", map[string]string{formatName: `{"for`}, nil, "format.json is damaged"},
		{"a format file without a format", map[string]string{formatName: `{}`}, nil, "format.json is damaged"},
		{"a directory of something else", map[string]string{"thesis.doc": ""}, nil, `holds "thesis.doc" but no format.json`},
		{"a directory that lost its format file", map[string]string{"raft/log.db": ""}, nil, `holds "raft" but no format.json`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			path := t.TempDir()
			for name, text := range test.files {
				put(t, filepath.Join(path, name), text)
			}
			d, err := Open(path, quiet())
			if err == nil {
				d.Close()
				t.Fatal("opened")
			}
			if test.is != nil && !errors.Is(err, test.is) {
				t.Errorf("error is not %v: %v", test.is, err)
			}
			if !strings.Contains(err.Error(), test.says) || !strings.Contains(err.Error(), path) {
				t.Errorf("error = %q, want %q and the path", err, test.says)
			}
			if _, checkErr := Check(path); checkErr == nil || checkErr.Error() != err.Error() {
				t.Errorf("Check = %v, want the same as Open: %v", checkErr, err)
			}
		})
	}
}

func TestOpenAcceptsAFreshVolume(t *testing.T) {
	path := t.TempDir()
	if err := os.Mkdir(filepath.Join(path, lostAndFound), 0); err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(path, ".snapshot"), "")
	mustOpen(t, path, nil)
}

func TestOpenLocksTheDirectory(t *testing.T) {
	path := t.TempDir()
	first := mustOpen(t, path, nil)
	_, err := Open(path, quiet())
	if !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), path) {
		t.Fatalf("second Open = %v, want ErrLocked with the path", err)
	}
	report, err := Check(path)
	if err != nil || !report.InUse {
		t.Fatalf("Check = %+v, %v, want InUse", report, err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	mustOpen(t, path, nil)
}

func TestOpenRemovesLeftOverTemporaryFiles(t *testing.T) {
	path := t.TempDir()
	mustOpen(t, path, nil).Close()
	left := filepath.Join(path, "raft", "restore"+tempMark+"123")
	put(t, left, "half")
	put(t, filepath.Join(path, "raft", "kept.tmp"), "whole")
	mustOpen(t, path, nil)
	if _, err := os.Stat(left); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the left-over file is still there: %v", err)
	}
	if got := content(t, filepath.Join(path, "raft", "kept.tmp")); got != "whole" {
		t.Errorf("another file holds %q", got)
	}
}

func TestSub(t *testing.T) {
	d := mustOpen(t, t.TempDir(), nil)
	for range 2 {
		path, err := d.Sub("history")
		if err != nil || path != d.Path("history") {
			t.Fatalf("Sub = %q, %v, want %q", path, err, d.Path("history"))
		}
	}
}

func TestMigrationCopiesFirst(t *testing.T) {
	path := t.TempDir()
	mustOpen(t, path, nil).Close()
	put(t, filepath.Join(path, "raft", "log"), "one")
	rewrite := func(to string) func(string) error {
		return func(dir string) error {
			return WriteFile(filepath.Join(dir, "raft", "log"), func(w io.Writer) error {
				_, err := io.WriteString(w, to)
				return err
			})
		}
	}
	steps := migrations{rewrite("two"), rewrite("three")}
	if report, err := check(path, steps); err != nil || !report.Migrates || report.Format != 1 {
		t.Fatalf("check = %+v, %v, want a migration from 1", report, err)
	}
	id := mustOpen(t, path, steps).ID()

	if got := content(t, filepath.Join(path, "raft", "log")); got != "three" {
		t.Errorf("migrated file holds %q, want three", got)
	}
	have, err := readFormat(path)
	if err != nil || have != (format{Format: 3, ID: id}) {
		t.Errorf("format = %+v, %v, want 3 of %s", have, err, id)
	}
	saved := filepath.Join(path, "before-format-3")
	if got := content(t, filepath.Join(saved, "raft", "log")); got != "one" {
		t.Errorf("the copy holds %q, want one", got)
	}
	if d := mustOpen(t, saved, nil); d.ID() != id {
		t.Errorf("the copy opens as %q, want %q", d.ID(), id)
	}
	if _, err := Open(path, quiet()); !errors.Is(err, ErrLocked) && !errors.Is(err, ErrNewer) {
		t.Errorf("the old version opens the new format: %v", err)
	}
}

func TestMigrationGoesOnAfterAnInterruption(t *testing.T) {
	path := t.TempDir()
	mustOpen(t, path, nil).Close()
	put(t, filepath.Join(path, "log"), "one")
	broken := true
	var ran []string
	steps := migrations{
		func(dir string) error {
			ran = append(ran, "first")
			return os.WriteFile(filepath.Join(dir, "log"), []byte("two"), fileMode)
		},
		func(dir string) error {
			ran = append(ran, "second")
			if broken {
				return errors.New("the power went")
			}
			return nil
		},
	}
	_, err := open(path, quiet(), steps)
	if err == nil || !strings.Contains(err.Error(), "the power went") || !strings.Contains(err.Error(), "before-format-3") {
		t.Fatalf("open = %v, want the cause and where the copy is", err)
	}
	broken = false
	mustOpen(t, path, steps)
	if got := strings.Join(ran, " "); got != "first second second" {
		t.Errorf("steps ran: %s, want first second second", got)
	}
	if got := content(t, filepath.Join(path, "before-format-3", "log")); got != "one" {
		t.Errorf("the copy holds %q, want one: it was made again from half-migrated data", got)
	}
}

func TestMigrationReplacesAnEarlierCopy(t *testing.T) {
	path := t.TempDir()
	mustOpen(t, path, nil).Close()
	put(t, filepath.Join(path, "log"), "now")
	put(t, filepath.Join(path, "before-format-2", "log"), "long ago")
	put(t, filepath.Join(path, "before-format-2.partial", "log"), "half")
	mustOpen(t, path, migrations{func(string) error { return nil }})
	if got := content(t, filepath.Join(path, "before-format-2", "log")); got != "now" {
		t.Errorf("the copy holds %q, want now", got)
	}
}

func TestCheckChangesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data")
	if report, err := Check(path); err != nil || report != (Report{}) {
		t.Fatalf("Check of an absent directory = %+v, %v", report, err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("Check made it: %v", err)
	}
	mustOpen(t, path, nil).Close()
	if report, err := Check(path); err != nil || report != (Report{Exists: true, Format: 1}) {
		t.Fatalf("Check = %+v, %v", report, err)
	}
	file := filepath.Join(t.TempDir(), "file")
	put(t, file, "")
	for path, says := range map[string]string{file: "is a file", filepath.Join(file, "below"): "not a directory"} {
		if _, err := Check(path); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("Check(%s) = %v, want %q", path, err, says)
		}
	}
}

func TestWriteFileReplacesAllOrNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mark")
	for _, text := range []string{"one", strings.Repeat("two", 100_000)} {
		err := WriteFile(path, func(w io.Writer) error {
			_, err := io.WriteString(w, text)
			return err
		})
		if err != nil || content(t, path) != text {
			t.Fatalf("WriteFile = %v", err)
		}
	}
	old := content(t, path)
	boom := errors.New("boom")
	err := WriteFile(path, func(w io.Writer) error {
		_, err := w.Write(bytes.Repeat([]byte("x"), 1<<20))
		return errors.Join(err, boom)
	})
	if !errors.Is(err, boom) || !strings.Contains(err.Error(), path) {
		t.Errorf("WriteFile = %v, want the cause and the path", err)
	}
	if content(t, path) != old {
		t.Error("the old content is gone")
	}
	if entries, _ := os.ReadDir(filepath.Dir(path)); len(entries) != 1 {
		t.Errorf("%d files left, want 1: %v", len(entries), entries)
	}
}
