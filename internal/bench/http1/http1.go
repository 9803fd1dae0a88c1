// Package http1 is an HTTP/1.1 connection of a load generator: requests are bytes
// that the caller has laid out, and an answer is a status and a body in memory that
// is used again. A [Conn] is for one goroutine; [Conn.Close] may be called by any.
package http1

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"time"

	"github.com/valyala/fasthttp"
)

// maxBody bounds the body of an answer, in bytes: a list of 100,000 instances.
const maxBody = 64 << 20

// readBuffer takes the answer to most requests at once.
const readBuffer = 4 << 10

// Conn is a connection that is kept alive.
type Conn struct {
	nc      net.Conn
	stop    func() bool
	in      *bufio.Reader
	answer  fasthttp.Response
	timeout time.Duration
	closed  bool      // by the server, with its last answer
	used    time.Time // when the last request began, before the first when it was opened
}

// Dial connects to host:port, by TLS if secure is not nil. Connecting, and each request
// with its answer, may take timeout. The connection is closed when ctx ends.
func Dial(ctx context.Context, address string, timeout time.Duration, secure *tls.Config) (*Conn, error) {
	var nc net.Conn
	var err error
	if d := (&net.Dialer{Timeout: timeout}); secure == nil {
		nc, err = d.DialContext(ctx, "tcp", address)
	} else {
		nc, err = (&tls.Dialer{NetDialer: d, Config: secure}).DialContext(ctx, "tcp", address)
	}
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = nc.Close() })
	return &Conn{stop: stop, nc: nc, in: bufio.NewReaderSize(nc, readBuffer), timeout: timeout, used: time.Now()}, nil
}

// Do sends a request and reads its answer. The body is valid until the next call.
// After an error the connection is of no more use.
func (c *Conn) Do(request []byte) (status int, body []byte, err error) {
	if c.closed {
		return 0, nil, fmt.Errorf("the server keeps no connection open: %w", net.ErrClosed)
	}
	now := time.Now()
	idle := now.Sub(c.used) >= staleAfter
	c.used = now
	if err := c.nc.SetDeadline(now.Add(c.timeout)); err != nil {
		return 0, nil, err
	}
	if _, err := c.nc.Write(request); err != nil {
		return 0, nil, stale(idle, err)
	}
	if err := c.answer.ReadLimitBody(c.in, maxBody); err != nil {
		return 0, nil, stale(idle, fmt.Errorf("read answer: %w", err))
	}
	if idle && c.answer.StatusCode() == fasthttp.StatusRequestTimeout { // it came before the request
		return 0, nil, fmt.Errorf("%w with %d", ErrStale, fasthttp.StatusRequestTimeout)
	}
	c.closed = c.answer.ConnectionClose()
	return c.answer.StatusCode(), c.answer.Body(), nil
}

// ErrStale says that a connection that was idle was found closed: the server did not
// read the request, and clients send it again on another connection.
var ErrStale = errors.New("the server has closed the idle connection")

// staleAfter is from when on a connection counts as idle.
const staleAfter = time.Second

// stale marks the error of a request that found its idle connection closed.
func stale(idle bool, err error) error {
	if idle && (errors.Is(err, io.EOF) || errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET)) {
		return fmt.Errorf("%w: %w", ErrStale, err)
	}
	return err
}

// Closed reports whether the server has said that its last answer was the last.
func (c *Conn) Closed() bool { return c.closed }

// LocalAddr is our side of the connection.
func (c *Conn) LocalAddr() net.Addr { return c.nc.LocalAddr() }

// Close closes the connection; a call that runs ends with an error.
func (c *Conn) Close() {
	c.stop()
	_ = c.nc.Close()
}
