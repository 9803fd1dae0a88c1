package sdk

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestModulesOfAUser makes a module that imports the SDK, tidies it, and checks what
// its go.mod then requires and what its build needs: the standard library, gRPC,
// protobuf and what these need.
func TestModulesOfAUser(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs the go command")
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	const module = "github.com/rollcall-registry/rollcall"
	tests := map[string][]string{
		"client": {
			module, "golang.org/x/net", "golang.org/x/sys", "golang.org/x/text",
			"google.golang.org/genproto/googleapis/rpc", "google.golang.org/grpc", "google.golang.org/protobuf",
		},
	}
	for path, want := range tests {
		t.Run(path, func(t *testing.T) {
			dir := t.TempDir()
			write := func(name, text string) {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			write("main.go", fmt.Sprintf("package main\n\nimport _ %q\n\nfunc main() {}\n", module+"/"+path))
			write("go.mod", fmt.Sprintf("module example.com/user\n\ngo 1.26\n\nrequire %[1]s v0.0.0\n\nreplace %[1]s => %[2]s\n", module, root))
			if out, err := command(dir, "go", "mod", "tidy"); err != nil {
				t.Skipf("the modules cannot be had here, as without a network: %v\n%s", err, out)
			}
			required, err := command(dir, "go", "list", "-m", "-f", "{{if not .Main}}{{.Path}}{{end}}", "all")
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%d modules in the build list", len(strings.Fields(required)))
			sums, err := os.ReadFile(filepath.Join(dir, "go.sum"))
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%d lines of go.sum", strings.Count(string(sums), "\n"))
			tidied, err := os.ReadFile(filepath.Join(dir, "go.mod"))
			if err != nil {
				t.Fatal(err)
			}
			if got := requirements(string(tidied)); !slices.Equal(got, want) {
				t.Errorf("go.mod requires %v, want %v", got, want)
			}
			built, err := command(dir, "go", "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}}{{end}}{{end}}", "./...")
			if err != nil {
				t.Fatal(err)
			}
			got := strings.Fields(built)
			slices.Sort(got)
			if got = slices.Compact(got); !slices.Equal(got, want) {
				t.Errorf("the build needs %v, want %v", got, want)
			}
		})
	}
}

// command runs a command and returns what it prints.
func command(dir string, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off")
	out, err := cmd.Output()
	if e, ok := errors.AsType[*exec.ExitError](err); ok {
		out = append(out, e.Stderr...)
	}
	return string(out), err
}

// requirements returns the modules that a go.mod requires, sorted.
func requirements(text string) []string {
	var modules []string
	in := false
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		switch {
		case len(fields) == 0:
		case fields[0] == "require" && fields[1] == "(":
			in = true
		case fields[0] == ")":
			in = false
		case fields[0] == "require":
			modules = append(modules, fields[1])
		case in:
			modules = append(modules, fields[0])
		}
	}
	slices.Sort(modules)
	return modules
}
