package recovery

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollcall-registry/rollcall/internal/ledger"
	"github.com/rollcall-registry/rollcall/internal/registry"
	"github.com/rollcall-registry/rollcall/internal/store"
)

// step is one change of a registry, with a word for what it is.
type step struct {
	name string
	do   func(*house)
}

// life is one of each change that the memory must keep.
func life() []step {
	described := func(text string) func(*registry.Instance) {
		return func(i *registry.Instance) { i.Metadata = registry.Metadata(text) }
	}
	return []step{
		{"register", func(h *house) { h.register(overHTTP, 1) }},
		{"register what will go", func(h *house) { h.register(overHTTP, 2) }},
		{"register over gRPC", func(h *house) { h.register(connected("c1"), 3, described(`{"zone":"a"}`)) }},
		{"a second owner", func(h *house) { h.register(connected("c2"), 1) }},
		{"a third one", func(h *house) { h.register(connected("c1"), 1) }},
		{"deregister", func(h *house) { h.deregister(overHTTP, 2) }},
		{"update", func(h *house) {
			h.register(overHTTP, 1, described(`{"zone":"b"}`), func(i *registry.Instance) { i.Weight = 7; i.Enabled = false })
		}},
		{"the first owner goes", func(h *house) { h.deregister(connected("c1"), 1) }},
		{"come back", func(h *house) { h.register(overHTTP, 2) }},
		{"fall silent", func(h *house) { h.wait(20 * time.Second) }},
		{"close a connection", func(h *house) {
			h.register(connected("c4"), 4)
			h.apply(&registry.CloseClient{Meta: h.meta(), Client: "c4"})
		}},
	}
}

// TestKilledAtAnyMoment takes a snapshot after each step of a life in turn, and
// kills the server at its end: snapshot and history together tell the state,
// whatever part each of them has.
func TestKilledAtAnyMoment(t *testing.T) {
	steps := life()
	for saved := range len(steps) + 1 {
		name := "no snapshot"
		if saved > 0 {
			name = "snapshot after " + steps[saved-1].name
		}
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := open(t, t.TempDir(), day.Wall).run()
				for n, s := range steps {
					s.do(h)
					if n+1 == saved {
						if err := h.save(); err != nil {
							t.Fatal(err)
						}
					}
				}
				after := open(t, h.killed(), day.Wall)
				if got, want := after.state(), h.state(); got != want || want == "" {
					t.Errorf("remembered\n%swant\n%s", got, want)
				}
			})
		})
	}
}

// TestStoppedInOrder needs no history: the last snapshot has everything.
func TestStoppedInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t, t.TempDir(), day.Wall).run()
		for _, s := range life() {
			s.do(h)
		}
		if err := h.stop(); err != nil {
			t.Fatal(err)
		}
		if err := os.RemoveAll(filepath.Join(h.dir, "history")); err != nil {
			t.Fatal(err)
		}
		after := open(t, h.dir, day.Wall)
		if got, want := after.state(), h.state(); got != want {
			t.Errorf("remembered\n%swant\n%s", got, want)
		}
		if !strings.Contains(after.logs.String(), "remembered ephemeral instances") {
			t.Errorf("the log does not tell of it: %s", after.logs)
		}
	})
}

// TestDurableInstancesAreNotRecalled: the durable log brings them back, perhaps
// without one that went after the last record of the history.
func TestDurableInstancesAreNotRecalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t, t.TempDir(), day.Wall).run()
		h.register(registry.Owner{Kind: registry.OwnerDurable}, 1)
		h.register(overHTTP, 2)
		after := open(t, h.killed(), day.Wall)
		if after.has(1) || !after.has(2) {
			t.Errorf("remembered\n%swant the ephemeral one alone", after.state())
		}
	})
}

// TestOverridesAreNotBakedIn: an operator's override is durable and may be dropped;
// below it stays what the owner registered.
func TestOverridesAreNotBakedIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t, t.TempDir(), day.Wall).run()
		off := false
		h.register(overHTTP, 1)
		h.apply(&registry.SetOverride{Meta: h.meta(), Service: orders, Entries: []registry.TargetOverride{
			{Target: instance(1), Override: registry.Override{Enabled: &off}},
		}})
		h.register(overHTTP, 1, func(i *registry.Instance) { i.Weight = 3 })
		const under = "1 healthy=true weight=3 enabled=false"
		if got := h.state(); !strings.HasPrefix(got, under) {
			t.Fatalf("under the override: %s, want %s", got, under)
		}
		after := open(t, h.killed(), day.Wall) // without the durable log, which has the override
		const want = "1 healthy=true weight=3 enabled=true"
		if got := after.state(); !strings.HasPrefix(got, want) {
			t.Errorf("remembered %s, want %s", got, want)
		}
	})
}

// TestFreshLease: clients have their whole time to beat, however long the server
// was away.
func TestFreshLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t, t.TempDir(), day.Wall).run()
		h.register(overHTTP, 1)
		h.wait(14 * time.Second)
		after := open(t, h.killed(), day.Wall+time.Hour.Milliseconds())
		after.wait(15 * time.Second)
		if got := after.state(); !strings.HasPrefix(got, "1 healthy=true") {
			t.Errorf("after its beat timeout: %s", got)
		}
		after.wait(time.Millisecond)
		if got := after.state(); !strings.HasPrefix(got, "1 healthy=false") {
			t.Errorf("beyond its beat timeout: %s", got)
		}
	})
}

// TestRevisionsGoOn although the wall clock went back: clients drop a list that is
// older than theirs.
func TestRevisionsGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t, t.TempDir(), day.Wall).run()
		h.register(overHTTP, 1)
		if err := h.save(); err != nil {
			t.Fatal(err)
		}
		h.register(overHTTP, 2)
		before := h.store.View(orders).Revision
		after := open(t, h.killed(), day.Wall-time.Hour.Milliseconds())
		after.register(overHTTP, 3)
		if got := after.store.View(orders).Revision; got <= before {
			t.Errorf("revision %d after the restart, want more than %d", got, before)
		}
	})
}

// TestReconnectTime: what connections own is listed until they had time to come
// back; then goes what none has claimed.
func TestReconnectTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t, t.TempDir(), day.Wall).run()
		h.register(connected("c1"), 1)
		h.register(connected("c2"), 2)
		h.register(overHTTP, 3)
		if err := h.save(); err != nil {
			t.Fatal(err)
		}
		h.register(connected("c3"), 4) // known from the history alone

		after := open(t, h.killed(), day.Wall).run()
		after.register(connected("c2-again"), 2)
		time.Sleep(after.cfg.ReconnectTime - time.Millisecond)
		for port := range int32(4) {
			if !after.has(port + 1) {
				t.Errorf("%d went before the reconnect time", port+1)
			}
		}
		time.Sleep(2 * time.Millisecond)
		synctest.Wait()
		if after.has(1) || !after.has(2) || !after.has(3) || after.has(4) {
			t.Errorf("after the reconnect time there is\n%swant 2, which came back, and 3, which beats", after.state())
		}
		checkCause(t, after, "restart: not reconnected within 45s")
	})
}

// checkCause looks for the removal of port 1 in the history.
func checkCause(t *testing.T, h *house, want string) {
	t.Helper()
	page, err := h.ledger.Query(t.Context(), ledger.Filter{Kinds: []registry.EventKind{registry.InstanceRemoved}, Limit: 10})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(page.Records, func(r ledger.Record) bool {
		return r.Event.Instance.Port == 1 && r.Event.Cause.String() == want
	}) {
		t.Errorf("no removal of 1 with the cause %q in %+v", want, page.Records)
	}
}

// TestSnapshotsAreTaken each interval, and let the history before them go.
func TestSnapshotsAreTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t, t.TempDir(), day.Wall).run()
		h.register(overHTTP, 1)
		if got := h.SavedAt(); got != 0 {
			t.Errorf("saved at %d before the first interval", got)
		}
		seq := h.ledger.LastSeq()
		time.Sleep(h.cfg.SnapshotInterval)
		synctest.Wait()
		if got := h.SavedAt(); got != day.Wall {
			t.Errorf("saved at %d, want %d", got, day.Wall)
		}
		if got := h.ledger.Stats().RecoveryFloor; got != seq {
			t.Errorf("the history is needed after %d, want after %d", got, seq)
		}
	})
}

// TestSnapshotCannotBeWritten: the server goes on, says so, and the history keeps
// what the snapshot does not have.
func TestSnapshotCannotBeWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t, t.TempDir(), day.Wall).run()
		if err := os.MkdirAll(filepath.Join(h.path, "in the way"), 0o700); err != nil {
			t.Fatal(err)
		}
		h.register(overHTTP, 1)
		time.Sleep(h.cfg.SnapshotInterval)
		synctest.Wait()
		if floor := h.ledger.Stats().RecoveryFloor; floor != 0 || h.SavedAt() != 0 {
			t.Errorf("the history is let go up to %d, saved at %d", floor, h.SavedAt())
		}
		dir := h.killed()
		if err := h.stop(); err == nil || !strings.Contains(err.Error(), h.path) {
			t.Errorf("the end without a snapshot: %v, want one that names %s", err, h.path)
		}
		if !strings.Contains(h.logs.String(), "cannot write the snapshot") {
			t.Errorf("the log does not tell of it: %s", h.logs)
		}
		if err := os.RemoveAll(filepath.Join(dir, "ephemeral")); err != nil {
			t.Fatal(err)
		}
		if after := open(t, dir, day.Wall); !after.has(1) {
			t.Error("the history does not remember it")
		}
	})
}

// TestTornHistory: a kill in the middle of a write costs that record alone.
func TestTornHistory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t, t.TempDir(), day.Wall).run()
		h.register(overHTTP, 1)
		h.register(overHTTP, 2)
		dir := h.killed()
		segments, err := filepath.Glob(filepath.Join(dir, "history", "*"))
		if err != nil || len(segments) == 0 {
			t.Fatalf("segments %v, %v", segments, err)
		}
		newest := slices.Max(segments)
		info, err := os.Stat(newest)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(newest, info.Size()-5); err != nil {
			t.Fatal(err)
		}
		if after := open(t, dir, day.Wall); !after.has(1) || after.has(2) {
			t.Errorf("remembered\n%swant 1", after.state())
		}
	})
}

// TestMissingHistoryIsTold: the registry serves what it knows, and the log says
// that it is not all.
func TestMissingHistoryIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t, t.TempDir(), day.Wall).run()
		h.register(overHTTP, 1)
		h.register(overHTTP, 2)
		h.register(overHTTP, 3)
		dir := h.killed()
		segments, err := filepath.Glob(filepath.Join(dir, "history", "*"))
		if err != nil || len(segments) == 0 {
			t.Fatalf("segments %v, %v", segments, err)
		}
		text, err := os.ReadFile(segments[0])
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.SplitAfter(string(text), "\n")
		at := slices.IndexFunc(lines, func(line string) bool { return strings.Contains(line, `"p":2`) })
		if at < 0 {
			t.Fatalf("no record of 2 in %s", text)
		}
		damaged := strings.Join(slices.Delete(lines, at, at+1), "")
		if err := os.WriteFile(segments[0], []byte(damaged), 0o600); err != nil {
			t.Fatal(err)
		}
		after := open(t, dir, day.Wall)
		if !after.has(1) || after.has(2) || !after.has(3) {
			t.Errorf("remembered\n%swant 1 and 3", after.state())
		}
		if got := after.logs.String(); !strings.Contains(got, "part of the history since the last snapshot is missing") {
			t.Errorf("the log does not tell of it: %s", got)
		}
	})
}

// TestDamagedSnapshot: a file that is not what was written does not keep the server
// from starting: it is set aside, the log says so, and the history tells what it can.
func TestDamagedSnapshot(t *testing.T) {
	home := t.TempDir()
	sound := soundSnapshot(t, home)
	for _, tt := range []struct {
		name  string
		spoil func(file []byte) []byte
		why   string
	}{
		{"empty", func([]byte) []byte { return nil }, "it ends before its end mark"},
		{"cut", func(b []byte) []byte { return b[:len(b)-8] }, "it ends before its end mark"},
		{"cut in half", func(b []byte) []byte { return b[:len(b)/2] }, "it ends before its end mark"},
		{"changed", func(b []byte) []byte { b[len(b)*2/3] ^= 1; return b }, "it is damaged at byte"},
		{"other text", func([]byte) []byte { return []byte("{}\n{}\n{}\n") }, "it does not begin like a file of Rollcall"},
		{"another file", func([]byte) []byte { return stream(t, "backup", 1) }, "not \\\"ephemeral\\\""},
		{"no snapshot in it", func([]byte) []byte { return stream(t, "ephemeral", 1, "x\n") }, "part 1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dir := filepath.Join(t.TempDir(), "copy")
				if err := os.CopyFS(dir, os.DirFS(home)); err != nil {
					t.Fatal(err)
				}
				spoilt := tt.spoil(slices.Clone(sound))
				if err := os.WriteFile(filepath.Join(dir, "ephemeral"), spoilt, 0o600); err != nil {
					t.Fatal(err)
				}
				h := open(t, dir, day.Wall)
				for port := range int32(5) {
					if !h.has(port + 1) {
						t.Errorf("%d is forgotten, which the history tells of", port+1)
					}
				}
				aside := filepath.Join(dir, "ephemeral-damaged-20261130T000000.000Z")
				if got := h.logs.String(); !strings.Contains(got, "level=ERROR") || !strings.Contains(got, aside) || !strings.Contains(got, tt.why) {
					t.Errorf("the log does not tell of it, with %s and %s:\n%s", aside, tt.why, got)
				}
				if left, err := os.ReadFile(aside); err != nil || string(left) != string(spoilt) {
					t.Errorf("the file was changed: %v", err)
				}
				if err := h.save(); err != nil {
					t.Error(err)
				}
				if again := open(t, dir, day.Wall); !again.has(1) || strings.Contains(again.logs.String(), "level=ERROR") {
					t.Errorf("the start after it:\n%s", again.logs)
				}
			})
		})
	}
}

// TestSoundPartOfASnapshot: what comes before the damage is remembered without the
// history, and revisions do not go back.
func TestSoundPartOfASnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		h := open(t, dir, day.Wall)
		const all = 2000
		for port := range int32(all) {
			h.register(overHTTP, port+1)
		}
		if err := h.save(); err != nil {
			t.Fatal(err)
		}
		before := h.store.View(orders).Revision
		path := filepath.Join(dir, "ephemeral")
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(path, info.Size()*2/3); err != nil {
			t.Fatal(err)
		}
		after := open(t, dir, day.Wall-time.Hour.Milliseconds())
		view := after.store.View(orders)
		if view == nil || len(view.Instances) < all/3 || len(view.Instances) >= all {
			t.Fatalf("remembered %d of %d, want about two thirds", len(view.Instances), all)
		}
		if view.Revision <= before {
			t.Errorf("revision %d after %d", view.Revision, before)
		}
	})
}

// TestNewerSnapshot: what a newer version wrote is not damaged, and not touched.
func TestNewerSnapshot(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ephemeral")
	newer := stream(t, "ephemeral", 2)
	if err := os.WriteFile(path, newer, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := (&Keeper{path: path}).Open()
	if !errors.Is(err, store.ErrNewer) || !strings.Contains(err.Error(), path) || strings.Contains(err.Error(), "\n") {
		t.Errorf("got %v", err)
	}
	if left, err := os.ReadFile(path); err != nil || string(left) != string(newer) {
		t.Errorf("the file was changed: %v", err)
	}
}

// stream is a file of a kind, with a body.
func stream(t *testing.T, name string, version uint16, body ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	err := store.WriteStream(&b, store.Kind{Name: name, Version: version}, head{}, func(w io.Writer) error {
		_, err := io.WriteString(w, strings.Join(body, ""))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// soundSnapshot returns the snapshot of a registry with a few instances.
func soundSnapshot(t *testing.T, dir string) []byte {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		h := open(t, dir, day.Wall).run()
		for port := range int32(5) {
			h.register(overHTTP, port+1)
		}
		if err := h.stop(); err != nil {
			t.Fatal(err)
		}
	})
	file, err := os.ReadFile(filepath.Join(dir, "ephemeral"))
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// TestSnapshotForm holds the file to its form: a later version must read it.
func TestSnapshotForm(t *testing.T) {
	dir := t.TempDir()
	f := strings.NewReader(string(soundSnapshot(t, dir)))
	var first json.RawMessage
	body, err := store.ReadStream(f, store.Kind{Name: "ephemeral", Version: 1}, &first)
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"seq":7,"revision":1795996800005}`; string(first) != want {
		t.Errorf("head %s, want %s", first, want)
	}
	text, err := io.ReadAll(body)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"instance":{"ns":"public","group":"DEFAULT_GROUP","service":"orders","owner":{"kind":0},"healthy":true,` +
		`"instance":{"ip":"10.0.0.1","cluster":"DEFAULT","weight":1,"port":1,"healthy":true,"enabled":true,"ephemeral":true}}}`
	if line, _, _ := strings.Cut(string(text), "\n"); line != want {
		t.Errorf("first line\n%s\nwant\n%s", line, want)
	}
}

func TestConfig(t *testing.T) {
	if err := DefaultConfig().Validate(); err != nil {
		t.Errorf("the default: %v", err)
	}
	err := Config{SnapshotInterval: time.Second - 1, ReconnectTime: -1}.Validate()
	want := errors.Join(
		errors.New("recovery.snapshot-interval: 999.999999ms is below 1s"),
		errors.New("recovery.reconnect-time: -1ns is negative"),
	)
	if err == nil || err.Error() != want.Error() {
		t.Errorf("got %v, want %v", err, want)
	}
}
