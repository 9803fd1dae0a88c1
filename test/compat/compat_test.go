package compat

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var (
	sdks   = flag.String("sdk", "", `drivers to run, by name and separated by commas, or "all"`)
	binary = flag.String("rollcall", "", "binary to drive; built from this checkout when empty")
)

// TestSDKs runs each scenario with each SDK, and then all SDKs with one another.
// The scenarios run side by side, as many as -parallel allows, for they mostly wait.
func TestSDKs(t *testing.T) {
	all := chosen(t)
	bin := rollcall(t)
	dir := t.TempDir() // outlives the tests of each SDK
	var benches []*bench
	t.Run("each", func(t *testing.T) {
		for _, d := range all {
			t.Run(d.name, func(t *testing.T) {
				if tool := d.missing(); tool != "" {
					t.Skipf("%s needs %s, which is not installed", d.name, tool)
				}
				b := &bench{driver: d, command: d.prepare(t, folder(t, dir, d.name)), bin: bin}
				benches = append(benches, b)
				t.Parallel() // goes on when all SDKs are prepared
				b.play(t)
			})
		}
	})
	t.Run("across", func(t *testing.T) {
		if len(benches) < 2 {
			t.Skip("there is only one SDK")
		}
		across(t, benches)
	})
}

// folder makes an empty folder.
func folder(t *testing.T, parent, name string) string {
	t.Helper()
	path := filepath.Join(parent, name)
	if err := os.Mkdir(path, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// play runs all scenarios with one SDK.
func (b *bench) play(t *testing.T) {
	for _, s := range scenarios() {
		t.Run(s.name, func(t *testing.T) {
			if s.needs != nil && !s.needs(b.driver) {
				t.Skipf("%s %s", b.driver.name, s.without)
			}
			t.Parallel()
			s.run(t, b)
		})
	}
}

// A scenario is one thing that every SDK must live through.
type scenario struct {
	name string
	run  func(*testing.T, *bench)
	// needs says whether a driver can play it, nil means all can; without says
	// what the others lack.
	needs   func(*driver) bool
	without string
}

func scenarios() []scenario {
	return []scenario{
		{name: "bare", run: bare},
		{name: "life", run: life},
		{name: "update", run: update, needs: func(d *driver) bool { return d.updates }, without: "has no call to update an instance"},
		{name: "beats", run: beats},
		{name: "changes", run: changes},
		{name: "large", run: large},
		{name: "weights", run: weights},
		{name: "odd", run: odd},
		{name: "silence", run: silence, needs: func(d *driver) bool { return !d.grpc }, without: "does not beat"},
		{name: "paused", run: paused, needs: speaksGRPC, without: noConnection},
		{name: "killed", run: killed, needs: speaksGRPC, without: noConnection},
		{name: "restart", run: restart},
		{name: "amnesia", run: amnesia},
		{name: "several", run: several},
		{name: "batch", run: batch, needs: func(d *driver) bool { return d.batches }, without: "has no batch registration"},
		{name: "persistent", run: persistent, needs: func(d *driver) bool { return d.persists }, without: "has no persistent instances"},
		{name: "cut", run: cut, needs: speaksGRPC, without: noConnection},
		{name: "refused", run: refused, needs: speaksGRPC, without: noConnection},
		{name: "half-open", run: halfOpen, needs: speaksGRPC, without: noConnection},
		{name: "partition", run: partition, needs: speaksGRPC, without: noConnection},
		{name: "slow", run: slow, needs: speaksGRPC, without: noConnection},
		{name: "config", run: config, needs: func(d *driver) bool { return d.configures }, without: "has no configuration client"},
	}
}

func speaksGRPC(d *driver) bool { return d.grpc }

const noConnection = "does not speak gRPC"

// A bench is what a scenario works with.
type bench struct {
	driver  *driver
	command []string
	bin     string
}

// client starts the driver's program against a server.
func (b *bench) client(t *testing.T, s *server, namespace string) *client {
	t.Helper()
	return b.clientAt(t, s.addr, namespace)
}

// clientAt starts the driver's program against an address.
func (b *bench) clientAt(t *testing.T, addr, namespace string) *client {
	t.Helper()
	return startClient(t, b.driver.name, b.command, addr, namespace)
}

// chosen returns the drivers that -sdk names.
func chosen(t *testing.T) []*driver {
	t.Helper()
	if *sdks == "" {
		t.Skip("no SDK is asked for: run with -sdk all, or `make compat`")
	}
	all := drivers()
	if *sdks == "all" {
		return all
	}
	var some []*driver
	for name := range strings.SplitSeq(*sdks, ",") {
		i := slices.IndexFunc(all, func(d *driver) bool { return d.name == name })
		if i < 0 {
			t.Fatalf("-sdk: there is no driver %q", name)
		}
		some = append(some, all[i])
	}
	return some
}

// rollcall returns the binary to drive.
func rollcall(t *testing.T) string {
	t.Helper()
	if *binary != "" {
		return *binary
	}
	bin := filepath.Join(t.TempDir(), "rollcall")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", bin, "./cmd/rollcall")
	cmd.Dir = filepath.Join("..", "..")
	output(t, cmd)
	return bin
}
