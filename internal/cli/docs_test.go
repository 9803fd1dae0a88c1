package cli

import (
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// TestCommandsAreDescribed: docs/cli.md has each command and each of the settings that
// commands which ask a server share.
func TestCommandsAreDescribed(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile("../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	text := string(content)
	root, err := (&app{}).rootCommand()
	if err != nil {
		t.Fatal(err)
	}
	var ready *cobra.Command
	for _, cmd := range root.Commands() {
		if !strings.Contains(text, "`rollcall "+cmd.Name()) && !strings.Contains(text, "`"+cmd.Name()+" ") && !strings.Contains(text, "`"+cmd.Name()+"`") {
			t.Errorf("docs/cli.md has no rollcall %s", cmd.Name())
		}
		if cmd.Name() == "ready" {
			ready = cmd
		}
	}
	ready.Flags().VisitAll(func(f *pflag.Flag) {
		if !strings.Contains(text, "--"+f.Name) {
			t.Errorf("docs/cli.md has no --%s", f.Name)
		}
	})
	for _, variable := range clientVariables() {
		if !strings.Contains(text, variable) {
			t.Errorf("docs/cli.md has no %s", variable)
		}
	}
}
