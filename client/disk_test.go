package rollcall

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollcall-registry/rollcall/client/internal/disk"
	"github.com/rollcall-registry/rollcall/client/internal/wire"
)

func TestDiskCache(t *testing.T) {
	dir := t.TempDir()
	inBubble(t, func(t *testing.T, c *Client, w *fakeWire) {
		w.say(wireOrders, 1, "a:1")
		w.up()
		mustWatch(t, c)
		time.Sleep(2 * time.Second)
	}, WithDiskCache(dir, 0))
	if _, err := os.Stat(filepath.Join(dir, "naming", "public", "DEFAULT_GROUP%40%40orders")); err != nil {
		t.Fatal(err)
	}
	inBubble(t, func(t *testing.T, c *Client, w *fakeWire) {
		async := mustWatch(t, c, WithAsync())
		if async.Snapshot().Len() != 0 {
			t.Error("the disk is not asked before a server has been")
		}
		w.down(errors.New("refused"))
		watch := mustWatch(t, c)
		if s := watch.Snapshot(); addresses(s) != "a:1" || s.Source() != FromDisk || s.Time().IsZero() {
			t.Errorf("%s, %+v", addresses(s), s.Info())
		}
		began := time.Now()
		if s, err := c.Lookup(within(t, time.Second), orders); err != nil || s.Source() != FromDisk || time.Since(began) > 0 {
			t.Errorf("%v, %v, after %v", s, err, time.Since(began))
		}
		w.say(wireOrders, 1, "a:1")
		w.up()
		if s := watch.Snapshot(); s.Source() != FromServer {
			t.Errorf("%+v", s.Info())
		}
		w.down(errors.New("gone"))
		if s := watch.Snapshot(); s.Source() != FromServer {
			t.Errorf("what a server said is worth more than the disk: %+v", s.Info())
		}
	}, WithDiskCache(dir, 0))
}

// A client that is closed looks nothing up, though the disk had it.
func TestDiskCacheOfAClosedClient(t *testing.T) {
	dir := t.TempDir()
	if err := disk.Dir(dir).Store("public", "DEFAULT_GROUP", "orders", []byte(rawList(1, "a:1"))); err != nil {
		t.Fatal(err)
	}
	inBubble(t, func(t *testing.T, c *Client, _ *fakeWire) {
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		if s, err := c.Lookup(t.Context(), orders); !errors.Is(err, ErrClosed) {
			t.Errorf("got %v, %v, want ErrClosed", s, err)
		}
	}, WithDiskCache(dir, 0))
}

// A file that is JSON and no list is none: a service of which nothing is known is not empty.
func TestDiskCacheWithoutHosts(t *testing.T) {
	dir := t.TempDir()
	if err := disk.Dir(dir).Store("public", "DEFAULT_GROUP", "orders", []byte("{}")); err != nil {
		t.Fatal(err)
	}
	inBubble(t, func(t *testing.T, c *Client, w *fakeWire) {
		w.down(errors.New("refused"))
		if watch, err := c.Watch(within(t, time.Second), orders); err == nil {
			t.Errorf("shows %+v", watch.Snapshot().Info())
		}
	}, WithDiskCache(dir, 0))
}

// What changed just before Close is on disk after it.
func TestDiskCacheAtTheEnd(t *testing.T) {
	dir := t.TempDir()
	inBubble(t, func(t *testing.T, c *Client, w *fakeWire) {
		w.say(wireOrders, 1, "a:1")
		w.up()
		mustWatch(t, c)
		time.Sleep(2 * time.Second)
		w.push(wireOrders, 2, "b:1")
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if raw, _, err := disk.Dir(dir).Load("public", "DEFAULT_GROUP", "orders"); err != nil || !strings.Contains(string(raw), `"b"`) {
			t.Errorf("on disk: %s, %v", raw, err)
		}
	}, WithDiskCache(dir, 0))
}

// What is older than it may be is not shown.
func TestDiskCacheOfOldTimes(t *testing.T) {
	dir := t.TempDir()
	if err := disk.Dir(dir).Store("public", "DEFAULT_GROUP", "orders", []byte(rawList(1, "a:1"))); err != nil {
		t.Fatal(err)
	}
	for age, want := range map[time.Duration]string{59 * time.Minute: "a:1", 61 * time.Minute: ""} {
		inBubble(t, func(t *testing.T, c *Client, w *fakeWire) {
			at := time.Now().Add(-age)
			if err := os.Chtimes(filepath.Join(dir, "naming", "public", "DEFAULT_GROUP%40%40orders"), at, at); err != nil {
				t.Fatal(err)
			}
			w.down(errors.New("refused"))
			watch := mustWatch(t, c, WithAsync())
			synctest.Wait()
			if got := addresses(watch.Snapshot()); got != want {
				t.Errorf("shows %q after %v, want %q", got, age, want)
			}
		}, WithDiskCache(dir, time.Hour))
	}
}

func TestDiskTroubles(t *testing.T) {
	for name, prepare := range map[string]func(t *testing.T, dir string){
		"read only": func(t *testing.T, dir string) {
			if err := os.WriteFile(filepath.Join(dir, "naming"), nil, 0o400); err != nil {
				t.Fatal(err)
			}
		},
		"a corrupt file": func(t *testing.T, dir string) {
			path := filepath.Join(dir, "naming", "public", "DEFAULT_GROUP%40%40orders")
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(`{"hosts":[{`), 0o600)); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			prepare(t, dir)
			inBubble(t, func(t *testing.T, c *Client, w *fakeWire) {
				w.down(errors.New("refused"))
				watch := mustWatch(t, c, WithAsync())
				synctest.Wait()
				if watch.Snapshot().Len() != 0 {
					t.Errorf("shows %s", addresses(watch.Snapshot()))
				}
				w.say(wireOrders, 1, "a:1")
				w.up()
				for n := range int64(5) {
					w.push(wireOrders, n+2, fmt.Sprintf("h%d:1", n))
					time.Sleep(2 * time.Second)
				}
				if got := addresses(watch.Snapshot()); got != "h4:1" {
					t.Errorf("shows %s", got)
				}
			}, WithDiskCache(dir, 0))
		})
	}
}

func TestFailoverSwitch(t *testing.T) {
	dir := t.TempDir()
	namespace := filepath.Join(dir, "naming", "public")
	write := func(name, text string) {
		path := filepath.Join(namespace, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	const lever = "failover00-00---000-VIPSRV_FAILOVER_SWITCH-000---00-00"
	write("failover/DEFAULT_GROUP%40%40orders", rawList(1, "failover:1"))
	inBubble(t, func(t *testing.T, c *Client, w *fakeWire) {
		w.say(wireOrders, 1, "live:1")
		other := wire.Service{Namespace: "public", Group: "DEFAULT_GROUP", Name: "other"}
		w.say(other, 1, "other:1")
		w.up()
		watch := mustWatch(t, c)
		unaffected, err := c.Watch(t.Context(), Service{Name: "other"})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(6 * time.Second)
		if got := addresses(watch.Snapshot()); got != "live:1" {
			t.Errorf("before: %s", got)
		}
		write(lever, "1\n")
		time.Sleep(6 * time.Second)
		if s := watch.Snapshot(); addresses(s) != "failover:1" || s.Source() != FromFailover {
			t.Errorf("on: %s", addresses(s))
		}
		if s, err := c.Lookup(t.Context(), orders); err != nil || s.Source() != FromFailover {
			t.Errorf("on: %v, %v", s, err)
		}
		if got := addresses(unaffected.Snapshot()); got != "other:1" {
			t.Errorf("a service without a file: %s", got)
		}
		late := mustWatch(t, c, WithClusters("DEFAULT"))
		if s := late.Snapshot(); s.Source() != FromFailover {
			t.Errorf("a watch that begins while it is on: %+v", s.Info())
		}
		w.push(wireOrders, 2, "live:2")
		if got := addresses(watch.Snapshot()); got != "failover:1" {
			t.Errorf("a push while it is on: %s", got)
		}
		write(lever, "0\n")
		future := time.Now().Add(time.Hour)
		_ = os.Chtimes(filepath.Join(namespace, lever), future, future)
		time.Sleep(6 * time.Second)
		if got := addresses(watch.Snapshot()); got != "live:2" {
			t.Errorf("off: %s", got)
		}
	}, WithFailoverDir(dir))
	if _, err := os.Stat(filepath.Join(namespace, "DEFAULT_GROUP%40%40orders")); !errors.Is(err, fs.ErrNotExist) {
		t.Error("the failover directory is written to")
	}
}

// TestFailoverFromTheBeginning: the switch is obeyed by the first look-up, and by a watch
// that begins while it is on.
func TestFailoverFromTheBeginning(t *testing.T) {
	dir := t.TempDir()
	failover := filepath.Join(dir, "naming", "public", "failover")
	if err := os.MkdirAll(failover, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"00-00---000-VIPSRV_FAILOVER_SWITCH-000---00-00": "1", "DEFAULT_GROUP%40%40orders": rawList(1, "failover:1"),
		"DEFAULT_GROUP%40%40stock": rawList(1, "failover:2"),
	} {
		if err := os.WriteFile(filepath.Join(failover, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	inBubble(t, func(t *testing.T, c *Client, w *fakeWire) {
		if s, err := c.Lookup(t.Context(), orders); err != nil || s.Source() != FromFailover {
			t.Errorf("a look-up: %v, %v", s, err)
		}
		w.up()
		for name, want := range map[string]string{"orders": "failover:1", "stock": "failover:2"} {
			watch, err := c.Watch(t.Context(), Service{Name: name})
			if err != nil {
				t.Fatal(err)
			}
			if s := watch.Snapshot(); addresses(s) != want || s.Source() != FromFailover {
				t.Errorf("%s: %s, %+v", name, addresses(s), s.Info())
			}
		}
	}, WithFailoverDir(dir))
}
