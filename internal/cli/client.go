package cli

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
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

	rollcall "github.com/rollcall-registry/rollcall/client"
)

// defaultServer is where `rollcall serve` listens unless told otherwise.
const defaultServer = "http://127.0.0.1:8848"

// maxErrorText bounds how much of a refusal is shown.
const maxErrorText = 1 << 10

// client asks one running server on behalf of one command.
type client struct {
	base      *url.URL
	http      *http.Client
	trust     *tls.Config
	login     *login
	via       rollcall.Protocol // of the SDK
	timeout   time.Duration     // until an answer begins
	namespace string            // as given; empty is the public namespace
	json      bool              // whether answers are shown as JSON
	in        io.Reader
	out       io.Writer
	notes     io.Writer // for people, beside what was asked for
}

// answerTime is how long an answer may take to begin, unless told otherwise.
const answerTime = 30 * time.Second

// clientCommand completes cmd, a command that asks a running server: it adds
// the flags that all such commands share, and runs with a context that a signal
// ends.
func (a *app) clientCommand(cmd *cobra.Command, run func(ctx context.Context, c *client, args []string) error) *cobra.Command {
	flags := cmd.Flags()
	addSettingFlags(flags)
	flags.Bool("json", false, "Print JSON for programs.")
	flags.Duration("timeout", answerTime, "Longest time to wait until an answer begins.")

	cmd.GroupID = clientGroup
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := a.clientOf(cmd)
		if err != nil {
			return &usageError{err}
		}
		defer c.http.CloseIdleConnections()
		ctx, stop := untilSignal(cmd.Context(), a.process.Signals)
		defer stop()
		return run(ctx, c, args)
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
	base, err := serverURL(cmp.Or(settings.get(flagServer), defaultServer))
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
	timeout, err := flags.GetDuration("timeout")
	if err != nil {
		return nil, err
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
		base:      base,
		http:      &http.Client{Transport: newTransport(timeout, trust)},
		trust:     trust,
		login:     login,
		via:       via,
		timeout:   timeout,
		namespace: settings.get(flagNamespace),
		json:      asJSON,
		in:        cmd.InOrStdin(),
		out:       cmd.OutOrStdout(),
		notes:     cmd.ErrOrStderr(),
	}, nil
}

// serverURL reads host:port or a URL.
func serverURL(text string) (*url.URL, error) {
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return nil, fmt.Errorf("server: %q is no address of a server; write host:port, or http:// or https:// before it", text)
	}
	return u, nil
}

// newTransport bounds the wait for a connection and for the head of an answer,
// not for its body: a backup may take long.
func newTransport(timeout time.Duration, trust *tls.Config) *http.Transport {
	return &http.Transport{
		TLSClientConfig:       trust,
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: timeout}).DialContext,
		TLSHandshakeTimeout:   timeout,
		ResponseHeaderTimeout: timeout,
	}
}

// do sends a request without a body; see [client.send].
func (c *client) do(ctx context.Context, method, path string, query url.Values) (io.ReadCloser, error) {
	return c.send(ctx, method, path, query, http.NoBody, 0)
}

// send sends a request and returns the body of a successful answer, which the
// caller closes. Parameters go into the query. size is that of the request's body,
// -1 when it is not known. Any other answer is a [*refusedError].
func (c *client) send(ctx context.Context, method, path string, query url.Values, content io.Reader, size int64) (io.ReadCloser, error) {
	query, err := c.signed(ctx, query)
	if err != nil {
		return nil, err
	}
	u := c.base.JoinPath(path)
	u.RawQuery = query.Encode()
	req, err := http.NewRequestWithContext(ctx, method, u.String(), content)
	if err != nil {
		return nil, err
	}
	req.ContentLength = size
	return c.exchange(req, path)
}

// exchange sends a request as it is; see [client.send].
func (c *client) exchange(req *http.Request, path string) (io.ReadCloser, error) {
	req.Header.Set("User-Agent", "rollcall-cli")
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, c.unreachable(req.Context(), err)
	}
	if resp.StatusCode/100 == 2 {
		return resp.Body, nil
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxErrorText))
	if err != nil {
		return nil, fmt.Errorf("%s answered %s and broke off: %w", c.base, resp.Status, err)
	}
	return nil, &refusedError{server: c.base.String(), path: path, status: resp.StatusCode, text: string(text)}
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
	if reason := untrusted(err); reason != "" {
		return fmt.Errorf("%s: %s (%w)", c.base, reason, err)
	}
	if brokenOff(err) {
		return fmt.Errorf("%s broke off (%w); its log may say why", c.base, err)
	}
	var slow net.Error
	if errors.As(err, &slow) && slow.Timeout() {
		return fmt.Errorf("%s does not answer in time (%w); wait longer with --timeout, or look at the server", c.base, err)
	}
	return fmt.Errorf("ask %s: %w; see whether --server is right", c.base, err)
}

// brokenOff reports whether a connection that was there ended too early.
func brokenOff(err error) bool {
	for _, end := range []error{syscall.ECONNRESET, syscall.EPIPE, io.EOF, io.ErrUnexpectedEOF} {
		if errors.Is(err, end) {
			return true
		}
	}
	return false
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
	return c.table(0, table)
}

// table prints the rows that write writes, with columns of some least width.
func (c *client) table(width int, write func(w io.Writer)) error {
	var aligned bytes.Buffer
	w := tabwriter.NewWriter(&aligned, width, 8, 2, ' ', 0)
	write(w)
	if err := w.Flush(); err != nil {
		return err
	}
	for line := range bytes.Lines(aligned.Bytes()) {
		if _, err := fmt.Fprintf(c.out, "%s\n", bytes.TrimRight(line, " \n")); err != nil {
			return err
		}
	}
	return nil
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
