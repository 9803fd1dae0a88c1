package cli

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/spf13/cobra"

	rollcall "github.com/rollcall-registry/rollcall/client"
)

// client asks running servers on behalf of one command. It is for one goroutine.
type client struct {
	servers   []*url.URL // in the order in which they are asked; see [client.prefer]
	http      *http.Client
	trust     *tls.Config
	login     *login
	via       rollcall.Protocol // of the SDK
	timeout   time.Duration     // until an answer begins
	attempt   time.Duration     // the same by way of the SDK
	namespace string            // as given; empty is the public namespace
	json      bool              // whether answers are shown as JSON
	width     int               // of tables, in columns; 0 for no limit
	in        io.Reader
	out       io.Writer
	notes     io.Writer // for people, beside what was asked for
}

const (
	// answerTime is how long an answer may take to begin, unless told otherwise.
	answerTime = 30 * time.Second
	// sdkTime is the same of one by way of the SDK: there are only small ones, and that
	// is how long the SDK waits by itself.
	sdkTime = 3 * time.Second
)

// clientCommand completes cmd, a command that asks a running server: it adds
// the flags that all such commands share, and runs with a context that a signal
// ends.
func (a *app) clientCommand(cmd *cobra.Command, run func(ctx context.Context, c *client, args []string) error) *cobra.Command {
	flags := cmd.Flags()
	addSettingFlags(flags)
	flags.Bool("json", false, "Print JSON for programs.")
	flags.Bool("wide", false, "Do not shorten what is long so that tables fit the terminal.")
	flags.Duration("timeout", answerTime, "Longest time to wait until an answer begins, of each server.")
	a.completeSettings(cmd)

	cmd.GroupID = clientGroup
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := a.clientOf(cmd)
		if err != nil {
			return &usageError{err}
		}
		defer c.http.CloseIdleConnections()
		ctx, stop := untilSignal(cmd.Context(), a.process.Signals)
		defer stop()
		return c.explained(ctx, cmd.Name(), run(ctx, c, args))
	}
	return cmd
}

// clientOf returns the client that the settings of a command describe. Its idle
// connections are the caller's to close.
func (a *app) clientOf(cmd *cobra.Command) (*client, error) {
	flags := cmd.Flags()
	settings, err := a.clientSettingsOf(flags)
	if err != nil {
		return nil, err
	}
	servers, err := parseServers(cmp.Or(settings.get(flagServer), defaultServer))
	if err != nil {
		return nil, err
	}
	via, err := settings.via()
	if err != nil {
		return nil, err
	}
	asJSON, err := flags.GetBool("json")
	if err != nil {
		return nil, err
	}
	width, err := a.tableWidth(flags)
	if err != nil {
		return nil, err
	}
	timeout, err := flags.GetDuration("timeout")
	if err != nil {
		return nil, err
	}
	if timeout <= 0 {
		return nil, fmt.Errorf("timeout: %v is no time to wait; write 3s, or another one above 0", timeout)
	}
	attempt := sdkTime
	if flags.Changed("timeout") {
		attempt = timeout
	}
	trust, err := settings.trust()
	if err != nil {
		return nil, err
	}
	login, err := settings.login()
	if err != nil {
		return nil, err
	}
	return &client{
		servers:   servers,
		http:      &http.Client{Transport: newTransport(timeout, trust)},
		trust:     trust,
		login:     login,
		via:       via,
		timeout:   timeout,
		attempt:   attempt,
		namespace: settings.get(flagNamespace),
		json:      asJSON,
		width:     width,
		in:        cmd.InOrStdin(),
		out:       cmd.OutOrStdout(),
		notes:     cmd.ErrOrStderr(),
	}, nil
}

// server is the one that answered last, or is asked first.
func (c *client) server() *url.URL { return c.servers[0] }

// prefer has a server be asked first from now on, and the others in turn.
func (c *client) prefer(server *url.URL) {
	for n, s := range c.servers {
		if s == server {
			c.servers = append(append([]*url.URL{}, c.servers[n:]...), c.servers[:n]...)
			return
		}
	}
}

// untilSignal returns a context that ends with the first signal, and a function
// that frees its goroutine and waits for it.
func untilSignal(parent context.Context, signals <-chan os.Signal) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(parent)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case s := <-signals:
			cancel(fmt.Errorf("stopped by %v", s))
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil); <-ended }
}
