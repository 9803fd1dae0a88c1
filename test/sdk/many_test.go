package sdk

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	rollcall "github.com/rollcall-registry/rollcall/client"
	"github.com/rollcall-registry/rollcall/servertest"
)

// live returns the bytes of the heap that are in use.
func live() uint64 {
	runtime.GC()
	runtime.GC() // what finalizers of the first let go
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// Clients that never reach a server leave neither goroutines nor memory behind.
func TestFailingClientsLeaveNothing(t *testing.T) {
	before := len(settled(t, 0))
	try := func() {
		c, err := rollcall.New(rollcall.WithServers("127.0.0.1:1"))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		if err := c.Ready(ctx); err == nil {
			t.Error("ready without a server")
		}
		if _, err := c.Register(ctx, orders, rollcall.NewInstance("10.0.0.7", 8080)); err == nil {
			t.Error("registered without a server")
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	for range 20 {
		try()
	}
	heap := live()
	for range 200 {
		try()
	}
	if grown := int64(live()) - int64(heap); grown > 1<<20 {
		t.Errorf("200 clients left %d KiB", grown>>10)
	}
	if stacks := settled(t, before); len(stacks) > before {
		t.Errorf("left after the end:\n%s", strings.Join(stacks, "\n\n"))
	}
}

// Clients of several servers and namespaces in one process do not hear of each other.
func TestSeveralClients(t *testing.T) {
	servers := []*servertest.Server{servertest.New(t), servertest.New(t)}
	for n, server := range servers {
		for _, ns := range []string{"a", "b"} {
			c := dial(t, rollcall.WithServers(server.Addr()), rollcall.WithGRPCPortOffset(0), rollcall.WithNamespace(ns))
			in := rollcall.NewInstance("10.0.0.7", uint16(8080+n), rollcall.Tagged("ns", ns))
			if _, err := c.Register(within(t), orders, in); err != nil {
				t.Fatal(err)
			}
		}
	}
	for n, server := range servers {
		c := dial(t, rollcall.WithServers(server.Addr()), rollcall.WithGRPCPortOffset(0))
		for _, ns := range []string{"a", "b", "public"} {
			w, err := c.Watch(within(t), rollcall.Service{Namespace: ns, Name: "orders"})
			if err != nil {
				t.Fatal(err)
			}
			if ns == "public" {
				see(t, w, "nothing", count(0))
				continue
			}
			s := see(t, w, "the one", count(1))
			if in := s.At(0); in.Metadata["ns"] != ns || int(in.Port) != 8080+n {
				t.Errorf("server %d, namespace %s: %+v", n, ns, in)
			}
		}
	}
}

// The SDK and that of Nacos live in one binary, although both speak the protocol of the
// same proto file.
func TestBesideNacosSDK(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds a program")
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	program := `package main

import (
	"fmt"

	"github.com/nacos-group/nacos-sdk-go/v2/clients"
	rollcall "github.com/rollcall-registry/rollcall/client"
)

func main() {
	_ = clients.NewNamingClient
	c, err := rollcall.New(rollcall.WithServers("127.0.0.1:1"))
	if err == nil {
		err = c.Close()
	}
	fmt.Print(err)
}
`
	mod := "module example.com/user\n\ngo 1.26\n\nrequire (\n\tgithub.com/nacos-group/nacos-sdk-go/v2 v2.3.5\n\tgithub.com/rollcall-registry/rollcall v0.0.0\n)\n\nreplace github.com/rollcall-registry/rollcall => " + root + "\n"
	for name, text := range map[string]string{"main.go": program, "go.mod": mod} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := command(dir, "go", "mod", "tidy"); err != nil {
		t.Skipf("the modules cannot be had here, as without a network: %v\n%s", err, out)
	}
	if out, err := command(dir, "go", "run", "."); err != nil || out != "<nil>" {
		t.Errorf("%v\n%s", err, out)
	}
}
