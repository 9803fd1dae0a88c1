// Package cli is the rollcall command: `rollcall serve` and the commands of an
// operator who asks a running server. It alone reads flags, the environment,
// files of settings and signals; everything else gets values.
//
// Exit codes:
//
//	0  done; for serve: stopped by a signal with everything flushed
//	1  failed: the server could not start, run or stop in time; a running
//	   server could not be asked or refused; what was asked about is not there
//	2  misuse: an unknown command, a bad flag, or settings that cannot be
//
// A command is one file with one function that returns a *cobra.Command; the
// tree is built anew for each [Run], so that tests run commands without a
// process and in parallel.
package cli

//go:generate go test -run ^TestReferencePage$ . -update

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"github.com/spf13/cobra"
)

// The exit codes of the process.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

// Process is what the operating system gives a process, so that tests can give
// it too.
type Process struct {
	Args    []string // without the name of the program
	Environ []string // NAME=value
	Stdin   io.Reader
	Stdout  io.Writer
	Stderr  io.Writer
	// Signals delivers SIGINT, SIGTERM and SIGHUP. It may be nil.
	Signals <-chan os.Signal
}

// Run executes the command that p.Args name and returns the exit code. It
// reports an error on p.Stderr itself. After Run has returned the process must
// exit: a server that did not stop in time is left behind.
func Run(ctx context.Context, p Process) int {
	p.Stderr = &lockedWriter{w: p.Stderr}
	a := &app{process: p}
	root, err := a.rootCommand()
	if err == nil {
		err = root.ExecuteContext(ctx)
	}
	if err == nil {
		return exitOK
	}
	if errors.Is(err, errSaid) {
		return exitFailed
	}
	var misuse *usageError
	if a.started && !errors.As(err, &misuse) {
		report(p.Stderr, err)
		return exitFailed
	}
	report(p.Stderr, err)
	return exitUsage
}

// report writes one line for a fault, and a list for several. A first line that ends with
// a colon is the heading of the list.
func report(w io.Writer, err error) {
	lines := strings.Split(inOneLine.Replace(strings.TrimSpace(err.Error())), "\n")
	if strings.HasSuffix(lines[0], ":") || len(lines) == 1 {
		fmt.Fprintf(w, "rollcall: %s\n", lines[0])
		lines = lines[1:]
	} else {
		fmt.Fprintf(w, "rollcall: %d faults:\n", len(lines))
	}
	for _, line := range lines {
		fmt.Fprintf(w, "  %s\n", line)
	}
}

// inOneLine has the library's question after an unknown command follow that.
var inOneLine = strings.NewReplacer("\n\nDid you mean this?\n\t", "; did you mean one of these: ", "\n\t", ", ")

// errSaid is the error of a command that has printed all there is to say, and did
// not find what it was asked about.
var errSaid = errors.New("not found")

// usageError marks an error as the caller's misuse.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// app is one run of the command.
type app struct {
	process Process
	started bool // whether a command began: what fails before that is misuse
}

// helpWidth is where help wraps its lines, in columns.
const helpWidth = 110

const (
	serverGroup = "server"
	clientGroup = "client"
)

func (a *app) rootCommand() (*cobra.Command, error) {
	root := &cobra.Command{
		Use:   "rollcall",
		Short: "A service registry that speaks every generation of the Nacos protocol",
		Long: `Rollcall is a service registry that speaks every generation of the Nacos protocol.

Exit codes: 0 done, 1 failed, 2 misuse (a bad flag, command or setting).`,
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRun: func(*cobra.Command, []string) {
			a.started = true
		},
	}
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), ".FlagUsages ", fmt.Sprintf(".FlagUsagesWrapped %d ", helpWidth)))
	root.SetArgs(append([]string{}, a.process.Args...)) // cobra takes those of the process for nil
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return fmt.Errorf("%w; see `%s --help`", err, cmd.CommandPath())
	})
	root.SetIn(a.process.Stdin)
	root.SetOut(a.process.Stdout)
	root.SetErr(a.process.Stderr)
	root.AddGroup(
		&cobra.Group{ID: serverGroup, Title: "Run a server:"},
		&cobra.Group{ID: clientGroup, Title: "Ask a running server:"},
	)
	serve, err := a.serveCommand()
	if err != nil {
		return nil, err
	}
	root.AddCommand(
		serve,
		a.versionCommand(),
		a.readyCommand(),
		a.listCommand(),
		a.servicesCommand(),
		a.instancesCommand(),
		a.watchCommand(),
		a.clientsCommand(),
		a.registerCommand(),
		a.deregisterCommand(),
		a.drainCommand(),
		a.historyCommand(),
		a.whyCommand(),
		a.namespacesCommand(),
		a.switchesCommand(),
		a.backupCommand(),
		a.restoreCommand(),
		a.exportCommand(),
		a.benchCommand(),
	)
	refuseUnknownTopics(root)
	return root, nil
}

// refuseUnknownTopics has help and completion, which the library makes, refuse what they
// know nothing of.
func refuseUnknownTopics(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		switch cmd.Name() {
		case "help":
			cmd.Args = func(_ *cobra.Command, args []string) error {
				_, _, err := root.Find(args)
				return err
			}
		case "completion":
			cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		}
	}
}

// lockedWriter keeps the lines of a logger and of others apart.
type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

// lookupEnv returns the value of a variable of the process; empty if it is absent.
func (a *app) lookupEnv(name string) string {
	for _, entry := range a.process.Environ {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value
		}
	}
	return ""
}
