package httpapi

import (
	"bufio"
	"bytes"
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
	c.raw = rawConn(nc)
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

// serve serves requests until the connection ends, and closes it.
func (c *conn) serve() {
	defer func() { _ = c.nc.Close() }()
	defer c.release()
	for c.await() {
		if !c.serveRequest() {
			c.end()
			return
		}
	}
}

// end writes what is due. A client that has sent further requests than were
// answered is given the time to read the answers.
func (c *conn) end() {
	if c.flush() == nil && c.reader != nil && c.reader.Buffered() > 0 {
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
		c.x.reset()
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

// errWouldBlock says that the socket has nothing to read now.
var errWouldBlock = errors.New("httpapi: nothing to read")

// fillOrWait is called with the socket by the runtime's poller: it takes a reader
// and reads, or gives it back and has the poller wait.
func (c *conn) fillOrWait(fd uintptr) (done bool) {
	c.takeReader()
	c.fd, c.filling = int(fd), true
	_, c.fillErr = c.reader.Peek(1)
	c.filling = false
	if c.fillErr == errWouldBlock {
		c.releaseReader()
		return false
	}
	return true
}

// Read is the source of the connection's reader. Outside of an idle wait it waits
// until limit, after writing the answers that are due.
func (c *conn) Read(p []byte) (int, error) {
	if c.filling {
		return readNow(c.fd, p)
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

// flush writes the rendered answers and then runs what waited for that.
func (c *conn) flush() error {
	if c.x == nil || len(c.x.out) == 0 && len(c.x.after) == 0 {
		return nil
	}
	err := c.write(c.x.out, nil)
	c.x.out = c.x.out[:0]
	c.runAfter()
	return err
}

func (c *conn) runAfter() {
	for i, f := range c.x.after {
		c.x.after[i] = nil
		f()
	}
	c.x.after = c.x.after[:0]
}

// write writes head, and then body if it is not empty, within the write timeout.
func (c *conn) write(head, body []byte) error {
	if timeout := c.server.cfg.WriteTimeout; c.armedWrite.Before(c.now.Add(timeout / 2)) {
		c.armedWrite = c.now.Add(timeout)
		if err := c.nc.SetWriteDeadline(c.armedWrite); err != nil {
			return err
		}
	}
	if len(body) == 0 {
		_, err := c.nc.Write(head)
		return err
	}
	buffers := net.Buffers{head, body}
	_, err := buffers.WriteTo(c.nc)
	return err
}

// serveRequest reads one request, has it answered and reports whether the
// connection goes on.
func (c *conn) serveRequest() (goOn bool) {
	x := c.x
	x.reset()
	c.releaseBody()
	c.waited = false
	if f := c.readRequest(); f != nil {
		return c.refuseRequest(f)
	}
	if c.reader.Buffered() == 0 {
		c.releaseReader()
	}
	if c.waited {
		c.now = time.Now()
	}
	c.received = c.now
	c.dispatch()
	return c.finish()
}

// dispatch runs the router and turns a panic into an answer with an id that
// stands in the log too.
func (c *conn) dispatch() {
	x := c.x
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		id := fmt.Sprintf("%x-%d", c.server.panics.Add(1), c.received.UnixMilli())
		c.server.log.Error("handler panicked", "id", id, "method", x.Method(), "path", x.path,
			"panic", fmt.Sprint(p), "stack", string(debug.Stack()))
		x.answer.reset()
		x.Caused(500, "internal error, the server's log has it under id "+id)
	}()
	c.server.router.serve(x)
}

// finish renders the answer and reports whether the connection goes on.
func (c *conn) finish() (goOn bool) {
	x := c.x
	if x.answer.status == 0 {
		x.answer.status = 200
	}
	c.now = time.Now()
	c.observe(x.route, c.now.Sub(c.received))
	goOn = !x.answer.close && !closesConnection(x.answer.status) && !x.wantsClose() && !c.stopping()
	x.compress()
	return c.render(goOn) == nil && goOn
}

func (c *conn) observe(route *Route, took time.Duration) {
	if observe := c.server.router.hooks.Observe; observe != nil {
		observe(route, c.x.answer.status, took)
	}
}

// Answers up to copyBytes are copied behind their head and written with it, and
// with other pipelined answers up to batchBytes; longer ones are written from
// where they are.
const (
	copyBytes  = 16 << 10
	batchBytes = 32 << 10
)

// render puts the answer into x.out, and writes that out if it has grown large.
func (c *conn) render(keepAlive bool) error {
	x := c.x
	x.out = x.appendHead(x.out, c.now, keepAlive)
	body := x.answer.body
	if !x.hasBody() {
		body = nil
	}
	if len(body) > copyBytes {
		err := c.write(x.out, body)
		x.out = x.out[:0]
		c.runAfter()
		return err
	}
	x.out = append(x.out, body...)
	if len(x.out) > batchBytes {
		return c.flush()
	}
	return nil
}

// wantsClose reports whether the client ends the connection after this request.
func (x *Exchange) wantsClose() bool {
	if x.head.ConnectionClose() {
		return true
	}
	value := x.head.Peek("Connection")
	return len(value) > 0 && hasToken(value, "close")
}

// hasToken reports whether a comma list names token, whatever its case.
func hasToken(list []byte, token string) bool {
	for part := range bytes.SplitSeq(list, []byte{','}) {
		part, _, _ = bytes.Cut(part, []byte{';'})
		if bytes.EqualFold(bytes.TrimSpace(part), bytesOf(token)) {
			return true
		}
	}
	return false
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
