// Rollcall is a service registry that speaks every generation of the Nacos
// protocol. This is its one binary: the server and the operator's commands.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/rollcall-registry/rollcall/internal/cli"
)

func main() {
	// Room for a few: a signal that finds the channel full is lost, and the
	// second SIGTERM must not be.
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	os.Exit(cli.Run(context.Background(), cli.Process{
		Args:    os.Args[1:],
		Environ: os.Environ(),
		Stdin:   os.Stdin,
		Stdout:  os.Stdout,
		Stderr:  os.Stderr,
		Signals: signals,
	}))
}
