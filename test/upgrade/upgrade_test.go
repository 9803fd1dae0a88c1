package upgrade

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"sync"
	"testing"

	"github.com/rollcall-registry/rollcall/internal/consensus"
	"github.com/rollcall-registry/rollcall/internal/naming"
	"github.com/rollcall-registry/rollcall/internal/registry"
	"github.com/rollcall-registry/rollcall/internal/store"
)

var update = flag.Bool("update", false, "write the directory of the current format anew")

// at is when everything in these directories happened: 2026-01-02 03:04:05 UTC.
var at = registry.Instant{Wall: 1767323045000}

type fixedClock struct{}

func (fixedClock) Now() registry.Instant { return at }

type noSink struct{}

func (noSink) Emit(*registry.Event) {}

// durable is the part of a server that keeps durable data.
type durable struct {
	*consensus.Log
	store *registry.Store
	stop  func() // again: nothing
}

// open opens the data directory at path as a server does.
func open(t *testing.T, path string) *durable {
	t.Helper()
	logger := slog.New(slog.DiscardHandler)
	dir, err := store.Open(path, logger)
	if err != nil {
		t.Fatal(err)
	}
	state := registry.NewStore(registry.DefaultConfig(), noSink{})
	log, err := consensus.New(consensus.DefaultConfig(dir.Path("raft"), dir.ID()), naming.NewMachine(state, fixedClock{}), logger)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- log.Run(ctx) }()
	select {
	case <-log.Ready():
	case err := <-ended:
		t.Fatal(err)
	}
	d := &durable{Log: log, store: state, stop: sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if err := dir.Close(); err != nil {
			t.Error(err)
		}
	})}
	t.Cleanup(d.stop)
	return d
}

func (d *durable) export(t *testing.T) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := d.store.Durable()(&out); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func (d *durable) apply(t *testing.T, cmds ...registry.Command) {
	t.Helper()
	for _, cmd := range cmds {
		data, err := registry.EncodeCommand(cmd)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := d.Propose(t.Context(), data)
		if err != nil {
			t.Fatal(err)
		}
		if err := answer.(naming.Applied).Err; err != nil {
			t.Fatalf("%s: %v", data, err)
		}
	}
}

func TestEveryFormatOpens(t *testing.T) {
	if *update {
		write(t)
	}
	dirs, err := filepath.Glob("testdata/format-*[0-9]")
	if err != nil || len(dirs) == 0 {
		t.Fatalf("no directories: %v", err)
	}
	for _, dir := range dirs {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			want, err := os.ReadFile(dir + ".ndjson")
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(t.TempDir(), "data")
			if err := os.CopyFS(path, os.DirFS(dir)); err != nil {
				t.Fatal(err)
			}
			for _, when := range []string{"at first", "after a change and a restart"} {
				d := open(t, path)
				if got := d.export(t); !slices.EqualFunc(lines(t, got), lines(t, want), holds) {
					t.Errorf("%s: the state is\n%s\nwant\n%s", when, got, want)
				}
				// It goes on: a change there and back.
				extra := register("g1", "extra", "192.0.2.99", nil)
				d.apply(t, extra, &registry.Deregister{
					Meta: meta(), Service: extra.Service, Owner: extra.Owner,
					Instance: registry.InstanceKey{Cluster: extra.Instance.Cluster, IP: extra.Instance.IP, Port: extra.Instance.Port},
				}, &registry.DeleteService{Meta: meta(), Service: extra.Service})
				d.stop()
			}
		})
	}
}

// lines decodes an export.
func lines(t *testing.T, export []byte) (all []any) {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(export))
	for decoder.More() {
		var line any
		if err := decoder.Decode(&line); err != nil {
			t.Fatal(err)
		}
		all = append(all, line)
	}
	return all
}

// holds tells whether got has all that want has. A later version may know more
// of each thing than the one that wrote it.
func holds(got, want any) bool {
	wanted, ok := want.(map[string]any)
	if !ok {
		return reflect.DeepEqual(got, want)
	}
	object, ok := got.(map[string]any)
	for key, value := range wanted {
		ok = ok && holds(object[key], value)
	}
	return ok
}

func meta() registry.Meta {
	return registry.Meta{At: at, Cause: registry.Cause{Kind: registry.CauseRequest, API: "http-v1", Op: "register"}}
}

// register returns the registration of a persistent instance.
func register(group, service, ip string, metadata map[string]string) *registry.Register {
	return &registry.Register{
		Meta:    meta(),
		Service: registry.ServiceKey{Namespace: "public", Group: group, Name: service},
		Owner:   registry.Owner{Kind: registry.OwnerDurable},
		Instance: registry.Instance{
			IP: ip, Port: 8080, Cluster: "DEFAULT", Weight: 1.5, Healthy: true, Enabled: true,
			Metadata: registry.NewMetadata(metadata),
		},
	}
}

// write makes the directory of the current format: part of its state in a
// snapshot, part in the log.
func write(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data")
	d := open(t, path)
	description := "for the upgrade test"
	d.apply(t,
		&registry.CreateNamespace{Meta: meta(), Namespace: registry.Namespace{ID: "staging", Name: "Staging", Description: &description}},
		&registry.CreateService{
			Meta: meta(), Service: registry.ServiceKey{Namespace: "staging", Group: "g.3", Name: "empty"},
			Info: registry.ServiceInfo{ProtectThreshold: 0.5, Metadata: registry.NewMetadata(map[string]string{"team": "a"})},
		},
		register("g1", "orders", "192.0.2.1", nil),
		register("g2", "orders", "2001:db8::2", map[string]string{"zone": "b", "名": "值"}),
	)
	if err := d.Compact(); err != nil {
		t.Fatal(err)
	}
	off, weight := false, 0.0
	orders := register("g1", "orders", "192.0.2.3", nil)
	d.apply(t,
		orders,
		&registry.SetOverride{Meta: meta(), Service: orders.Service, Entries: []registry.TargetOverride{{
			Target:   registry.InstanceKey{Cluster: "DEFAULT", IP: "192.0.2.3", Port: 8080},
			Override: registry.Override{Enabled: &off, Weight: &weight},
		}}},
		&registry.SetSwitch{Meta: meta(), Entry: "pushEnabled", Value: "false"},
	)
	format := filepath.Join("testdata", fmt.Sprint("format-", currentFormat(t, path)))
	export := regexp.MustCompile(`,?"revision":\d+`).ReplaceAll(d.export(t), nil) // it rises with each start
	if err := os.WriteFile(format+".ndjson", export, 0o644); err != nil {
		t.Fatal(err)
	}
	d.stop()
	for _, err := range []error{os.RemoveAll(format), os.Remove(filepath.Join(path, "lock")), os.CopyFS(format, os.DirFS(path))} {
		if err != nil {
			t.Fatal(err)
		}
	}
}

func currentFormat(t *testing.T, path string) int {
	t.Helper()
	report, err := store.Check(path)
	if err != nil {
		t.Fatal(err)
	}
	return report.Format
}
