package cli

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	rollcall "github.com/rollcall-registry/rollcall/client"
)

// maxErrorText bounds how much of a refusal is read.
const maxErrorText = 4 << 10

// dialTime bounds the wait for a connection: after that a host is not there, however
// long its answers may take.
const dialTime = 5 * time.Second

// newTransport bounds the wait for a connection and for the head of an answer,
// not for its body: a backup may take long.
func newTransport(timeout time.Duration, trust *tls.Config) *http.Transport {
	return &http.Transport{
		TLSClientConfig:       trust,
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: min(timeout, dialTime)}).DialContext,
		TLSHandshakeTimeout:   min(timeout, dialTime),
		ResponseHeaderTimeout: timeout,
	}
}

// do sends a request without a body to the first server that answers, and returns the
// body of a successful answer, which the caller closes. Any other answer is a
// [*refusedError]; when no server answers, the error has the reason of each.
func (c *client) do(ctx context.Context, method, path string, query url.Values) (io.ReadCloser, error) {
	query, err := c.signed(ctx, query)
	if err != nil {
		return nil, err
	}
	body, err := c.first(ctx, func(server *url.URL) (io.ReadCloser, error) {
		return c.send(ctx, server, method, path, query, http.NoBody, 0)
	})
	if refused, ok := errors.AsType[*refusedError](err); ok && c.login != nil && refused.forbids() {
		c.login.token = "" // it may have ended; the next call logs in again
	}
	return body, err
}

// read is do for answers that are short. It returns the body.
func (c *client) read(ctx context.Context, method, path string, query url.Values) ([]byte, error) {
	body, err := c.do(ctx, method, path, query)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	text, err := io.ReadAll(body)
	if err != nil {
		return nil, c.broken(ctx, err)
	}
	return text, nil
}

// broken words an error of reading an answer.
func (c *client) broken(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return fmt.Errorf("read the answer of %s: %w", c.server(), err)
}

// first asks one server after the other until one answers, and prefers that one from
// then on.
func (c *client) first(ctx context.Context, ask func(server *url.URL) (io.ReadCloser, error)) (io.ReadCloser, error) {
	var failures []error
	for _, server := range c.servers {
		body, err := ask(server)
		switch {
		case err == nil:
			c.prefer(server)
			return body, nil
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case answered(err):
			c.prefer(server)
			return nil, err
		}
		failures = append(failures, err)
	}
	return nil, together(failures)
}

// together makes one error of those of all servers.
func together(failures []error) error {
	if len(failures) == 1 {
		return failures[0]
	}
	return &noneError{failures}
}

// noneError is why each of several servers cannot be asked.
type noneError struct{ failures []error }

func (e *noneError) Error() string {
	return fmt.Sprintf("none of %d servers can be asked:\n%v", len(e.failures), errors.Join(e.failures...))
}

func (e *noneError) Unwrap() []error { return e.failures }

// answered reports whether an error is the answer of a server that another one would
// give as well: not that of one that is starting, or of a proxy before a dead one.
func answered(err error) bool {
	refused, ok := errors.AsType[*refusedError](err)
	if !ok {
		return false
	}
	switch refused.status {
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return false
	default:
		return true
	}
}

// send sends a request to a server. Parameters go into the query. size is that of the
// request's body, -1 when it is not known.
func (c *client) send(ctx context.Context, server *url.URL, method, path string, query url.Values, content io.Reader, size int64) (io.ReadCloser, error) {
	u := server.JoinPath(path)
	u.RawQuery = query.Encode()
	req, err := http.NewRequestWithContext(ctx, method, u.String(), content)
	if err != nil {
		return nil, err
	}
	req.ContentLength = size
	return c.exchange(server, req, path)
}

// exchange sends a request as it is; see [client.do].
func (c *client) exchange(server *url.URL, req *http.Request, path string) (io.ReadCloser, error) {
	req.Header.Set("User-Agent", "rollcall-cli")
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, c.unreachable(req.Context(), server, err)
	}
	if resp.StatusCode/100 == 2 {
		return resp.Body, nil
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxErrorText))
	if err != nil {
		return nil, fmt.Errorf("%s answered %s and broke off: %w", server, resp.Status, err)
	}
	return nil, &refusedError{server: server.String(), path: path, status: resp.StatusCode, text: string(text), nameless: c.login == nil}
}

// unreachable words an error of the transport for an operator.
func (c *client) unreachable(ctx context.Context, server *url.URL, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if errors.Is(err, syscall.ECONNREFUSED) {
		if len(c.servers) > 1 {
			return fmt.Errorf("nothing listens at %s", server)
		}
		return fmt.Errorf("nothing listens at %s; start a server with `rollcall serve`, or name another with --server", server)
	}
	if failed, ok := errors.AsType[*url.Error](err); ok {
		err = failed.Err
	}
	if failed, ok := errors.AsType[*rollcall.OpError](err); ok {
		err = failed.Err
	}
	if reason := untrusted(err); reason != "" {
		return fmt.Errorf("%s: %s (%w)", server, reason, err)
	}
	if brokenOff(err) {
		return fmt.Errorf("%s broke off (%w); its log may say why", server, err)
	}
	if unknown, ok := errors.AsType[*net.DNSError](err); ok && unknown.IsNotFound {
		return fmt.Errorf("there is no host %s", unknown.Name)
	}
	var slow net.Error
	if errors.As(err, &slow) && slow.Timeout() {
		return fmt.Errorf("%s does not answer in time (%w); wait longer with --timeout, or look at the server", server, err)
	}
	return fmt.Errorf("ask %s: %w; see whether --server is right, or wait longer with --timeout", server, err)
}

// brokenOff reports whether a connection that was there ended too early.
func brokenOff(err error) bool {
	if err == nil || strings.Contains(err.Error(), "malformed HTTP response") {
		return false // something is there that does not speak HTTP
	}
	for _, end := range []error{syscall.ECONNRESET, syscall.EPIPE, io.EOF, io.ErrUnexpectedEOF} {
		if errors.Is(err, end) {
			return true
		}
	}
	return false
}
