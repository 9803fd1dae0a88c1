package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
)

// defaultServer is where `rollcall serve` listens unless told otherwise.
const defaultServer = "http://127.0.0.1:8848"

// maxErrorText bounds how much of a refusal is shown.
const maxErrorText = 1 << 10

// client asks one running server on behalf of one command.
type client struct {
	base      *url.URL
	http      *http.Client
	namespace string // as given; empty is the public namespace
	json      bool   // whether answers are shown as JSON
	out       io.Writer
}

// clientCommand completes cmd, a command that asks a running server: it adds
// the flags that all such commands share, and runs with a context that a signal
// ends.
func (a *app) clientCommand(cmd *cobra.Command, run func(ctx context.Context, c *client, args []string) error) *cobra.Command {
	server := cmd.Flags().StringP("server", "s", "", "The server to ask, as `host:port` or URL.\nenv ROLLCALL_SERVER, default "+defaultServer)
	namespace := cmd.Flags().String("namespace", "", "The namespace to ask about.\nenv ROLLCALL_NAMESPACE, default public")
	asJSON := cmd.Flags().Bool("json", false, "Print JSON for programs.")
	timeout := cmd.Flags().Duration("timeout", 30*time.Second, "Longest time to wait until an answer begins.")

	cmd.GroupID = clientGroup
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		base, err := serverURL(cmp.Or(*server, a.lookupEnv("ROLLCALL_SERVER"), defaultServer))
		if err != nil {
			return &usageError{err}
		}
		ctx, stop := untilSignal(cmd.Context(), a.process.Signals)
		defer stop()
		transport := newTransport(*timeout)
		defer transport.CloseIdleConnections()
		return run(ctx, &client{
			base:      base,
			http:      &http.Client{Transport: transport},
			namespace: cmp.Or(*namespace, a.lookupEnv("ROLLCALL_NAMESPACE")),
			json:      *asJSON,
			out:       cmd.OutOrStdout(),
		}, args)
	}
	return cmd
}

// serverURL reads host:port or a URL.
func serverURL(text string) (*url.URL, error) {
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return nil, fmt.Errorf("server: %q is no address of a server; write host:port or http://host:port", text)
	}
	return u, nil
}

// newTransport bounds the wait for a connection and for the head of an answer,
// not for its body: a backup may take long.
func newTransport(timeout time.Duration) *http.Transport {
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: timeout}).DialContext,
		TLSHandshakeTimeout:   timeout,
		ResponseHeaderTimeout: timeout,
	}
}

// do sends a request and returns the body of a successful answer, which the
// caller closes. Parameters go into the query. Any other answer is an error
// with its text.
func (c *client) do(ctx context.Context, method, path string, query url.Values) (io.ReadCloser, error) {
	u := c.base.JoinPath(path)
	u.RawQuery = query.Encode()
	req, err := http.NewRequestWithContext(ctx, method, u.String(), http.NoBody)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", "rollcall-cli")
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, c.unreachable(ctx, err)
	}
	if resp.StatusCode/100 == 2 {
		return resp.Body, nil
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxErrorText))
	if err != nil {
		return nil, fmt.Errorf("%s answered %s and broke off: %w", c.base, resp.Status, err)
	}
	return nil, fmt.Errorf("%s answered %s: %s", c.base, resp.Status, strings.TrimSpace(string(text)))
}

// unreachable words an error of the transport for an operator.
func (c *client) unreachable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if errors.Is(err, syscall.ECONNREFUSED) {
		return fmt.Errorf("nothing listens at %s; start a server with `rollcall serve`, or name another with --server", c.base)
	}
	var failed *url.Error
	if errors.As(err, &failed) {
		err = failed.Err
	}
	return fmt.Errorf("ask %s: %w", c.base, err)
}

// show prints v as JSON if that was asked for, and otherwise the rows that
// table writes: cells with a tab between, aligned in columns.
func (c *client) show(v any, table func(w io.Writer)) error {
	if c.json {
		enc := json.NewEncoder(c.out)
		enc.SetIndent("", "  ")
		enc.SetEscapeHTML(false)
		return enc.Encode(v)
	}
	w := tabwriter.NewWriter(c.out, 0, 8, 2, ' ', 0)
	table(w)
	return w.Flush()
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
