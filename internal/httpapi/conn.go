package httpapi

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"runtime/debug"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/rollcall-registry/rollcall/internal/socket"
)

// conn is one connection. While it is idle it holds this struct, its socket and
// a goroutine; reader and exchange come from the pools of the server with the
// first byte of a request, and go back when no further request has come.
type conn struct {
	server *Server
	nc     net.Conn
	raw    syscall.RawConn // nil if nc is no plain socket
	peer   netip.AddrPort

	work     context.Context // see Exchange.Context
	draining <-chan struct{}
	state    atomic.Int32 // connIdle, connBusy, connClosing

	reader *bufio.Reader // over the conn itself; nil while idle
	x      *Exchange     // nil while idle

	prefix []byte // read already, to be served first

	// For the raw read that ends an idle wait.
	tryFill func(fd uintptr) (done bool)
	filling bool // Read reads fd and does not wait
	fd      int
	fillErr error

	now      time.Time // of the last step; reading the clock anew is worth avoiding
	started  time.Time // first byte of the request
	received time.Time // request complete
	waited   bool      // a read since started has waited
	unread   bool      // the last request's body was not read to its end
	reserved int64     // part of server.largeBody that is ours

	// Deadlines: limit is when a read that waits must end, armed and armedWrite
	// what the socket was last told.
	limit, armed, armedWrite time.Time
}

// States of a connection. A drain closes an idle one at once; a busy one ends
// after its request.
const (
	connIdle int32 = iota
	connBusy
	connClosing
)

func newConn(s *Server, nc net.Conn, peer netip.AddrPort, prefix []byte) *conn {
	c := &conn{server: s, nc: nc, peer: peer, prefix: prefix, now: time.Now()}
	c.raw = socket.Raw(nc)
	if c.raw != nil {
		c.tryFill = c.fillOrWait
	}
	return c
}

// drain is called when the server begins to stop.
func (c *conn) drain() {
	if c.state.Swap(connClosing) == connIdle {
		_ = c.nc.Close()
	}
}

func (c *conn) stopping() bool { return c.state.Load() == connClosing }

// serve serves requests until the connection ends, and closes it. A panic outside
// of a handler, in a hook or behind an answer, costs this connection only.
func (c *conn) serve() {
	defer func() {
		if p := recover(); p != nil {
			c.logPanic("connection", p)
		}
		c.release()
		_ = c.nc.Close()
	}()
	for c.await() {
		if !c.serveRequest() {
			c.end()
			return
		}
	}
}

// end writes what is due. A client that has sent more than was read is given the
// time to read the answers.
func (c *conn) end() {
	if c.flush() == nil && c.reader != nil && (c.unread || c.reader.Buffered() > 0) {
		_ = c.nc.SetReadDeadline(c.now.Add(lingerTime))
		linger(c.nc)
	}
}

// await waits for the first byte of the next request and reports whether there
// is one. Until then the connection holds no memory of the pools.
func (c *conn) await() bool {
	if c.reader != nil && c.reader.Buffered() > 0 { // pipelined
		c.started = c.now
		return !c.stopping()
	}
	if c.flush() != nil {
		return false
	}
	c.release()
	if !c.state.CompareAndSwap(connBusy, connIdle) && c.stopping() {
		return false
	}
	if c.fill() != nil || !c.state.CompareAndSwap(connIdle, connBusy) {
		return false
	}
	c.now = time.Now()
	c.started = c.now
	c.x = c.server.exchanges.Get().(*Exchange)
	c.x.conn = c
	return true
}

// release gives the memory back to the pools.
func (c *conn) release() {
	c.releaseReader()
	c.releaseBody()
	if c.x != nil {
		c.x.out = shrink(c.x.out)
		c.x.conn = nil
		c.server.exchanges.Put(c.x)
		c.x = nil
	}
}

func (c *conn) releaseReader() {
	if c.reader == nil {
		return
	}
	pool := &c.server.readers
	if c.reader.Size() > readerBytes {
		pool = &c.server.largeReaders
	}
	c.reader.Reset(nil)
	pool.Put(c.reader)
	c.reader = nil
}

// fill waits for the first byte of a request and reads what is there into a
// reader of the pool.
func (c *conn) fill() error {
	c.limit = c.now.Add(c.server.cfg.IdleTimeout)
	if c.raw == nil || len(c.prefix) > 0 {
		c.takeReader()
		_, err := c.reader.Peek(1)
		return err
	}
	if err := c.armIdle(); err != nil {
		return err
	}
	if err := c.raw.Read(c.tryFill); err != nil {
		return err
	}
	return c.fillErr
}

func (c *conn) takeReader() {
	c.reader = c.server.readers.Get().(*bufio.Reader)
	c.reader.Reset(c)
}

// armIdle sets the socket's deadline for an idle wait, unless the one it has will
// do: it is renewed once in half of the idle timeout, not with every request.
func (c *conn) armIdle() error {
	earliest := c.limit.Add(-c.server.cfg.IdleTimeout / 2)
	if c.armed.Before(earliest) || c.armed.After(c.limit) {
		return c.arm()
	}
	return nil
}

func (c *conn) arm() error {
	c.armed = c.limit
	return c.nc.SetReadDeadline(c.limit)
}

// fillOrWait is called with the socket by the runtime's poller: it takes a reader
// and reads, or gives it back and has the poller wait.
func (c *conn) fillOrWait(fd uintptr) (done bool) {
	c.takeReader()
	c.fd, c.filling = int(fd), true
	_, c.fillErr = c.reader.Peek(1)
	c.filling = false
	if errors.Is(c.fillErr, socket.ErrWouldBlock) {
		c.releaseReader()
		return false
	}
	return true
}

// Read is the source of the connection's reader. Outside of an idle wait it waits
// until limit, after writing the answers that are due.
func (c *conn) Read(p []byte) (int, error) {
	if c.filling {
		return socket.ReadNow(c.fd, p)
	}
	if len(c.prefix) > 0 {
		n := copy(p, c.prefix)
		c.prefix = c.prefix[n:]
		return n, nil
	}
	if err := c.flush(); err != nil {
		return 0, err
	}
	if !c.armed.Equal(c.limit) {
		if err := c.arm(); err != nil {
			return 0, err
		}
	}
	c.waited = true
	return c.nc.Read(p)
}

// serveRequest reads one request, has it answered and reports whether the
// connection goes on.
func (c *conn) serveRequest() (goOn bool) {
	defer c.x.reset()
	defer c.releaseBody()
	c.waited = false
	if f := c.readRequest(); f != nil {
		return c.refuseRequest(f)
	}
	if c.reader.Buffered() == 0 && c.x.stream == nil {
		c.releaseReader()
	}
	if c.waited {
		c.now = time.Now()
	}
	c.received = c.now
	c.dispatch()
	if c.x.stream != nil && c.x.stream.unread() {
		c.unread, c.x.answer.close = true, true
	}
	return c.finish()
}

// dispatch runs the router and turns a panic into an answer with an id that
// stands in the log too.
func (c *conn) dispatch() {
	defer func() {
		if p := recover(); p != nil {
			id := c.logPanic("handler", p)
			if c.x.answer.begun {
				c.x.answer.cut = true
				return
			}
			c.x.answer.reset()
			c.x.Caused(500, "internal error, the server's log has it under id "+id)
		}
	}()
	c.server.router.serve(c.x)
}

// logPanic logs what a deferred function has recovered, in a handler or elsewhere
// in the connection, and returns the id of the line.
func (c *conn) logPanic(where string, p any) (id string) {
	id = fmt.Sprintf("%x-%d", c.server.panics.Add(1), c.now.UnixMilli())
	attrs := []any{"id", id, "where", where, "client_id", c.peer, "panic", fmt.Sprint(p), "stack", string(debug.Stack())}
	if c.x != nil {
		attrs = append(attrs, "method", c.x.Method(), "path", c.x.path)
	}
	c.server.log.Error("panic recovered", attrs...)
	return id
}

// refuseRequest answers a request that cannot be read and ends the connection,
// but not before the client has had a chance to read why.
func (c *conn) refuseRequest(f *requestFault) (goOn bool) {
	if f.status == 0 {
		return false
	}
	c.now = time.Now()
	c.x.Page(f.status, f.message)
	c.observe(&unreadable, c.now.Sub(c.started))
	if c.render(false) == nil && c.flush() == nil {
		_ = c.nc.SetReadDeadline(c.now.Add(lingerTime))
		linger(c.nc)
	}
	return false
}

// A refused client may still be sending. Closing at once would reset the
// connection and lose the answer on its way, so the rest is read and dropped,
// within limits.
const (
	lingerTime  = 2 * time.Second
	lingerBytes = 16 << 20
)

// linger ends the writing side and drops what nc still sends. nc has a deadline.
func linger(nc net.Conn) {
	if half, ok := nc.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
		_, _ = io.CopyN(io.Discard, nc, lingerBytes)
	}
}
