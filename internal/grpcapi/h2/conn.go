package h2

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/rollcall-registry/rollcall/internal/socket"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/rollcall-registry/rollcall/api/grpcv2"
	"github.com/rollcall-registry/rollcall/internal/grpcapi/transport"
)

// conn is one connection. While it is idle it holds this struct, its open streams,
// the table of its client's headers, its socket and a goroutine.
type conn struct {
	server  *Server
	nc      net.Conn
	raw     syscall.RawConn // nil if nc is no plain socket
	peer    netip.AddrPort
	session transport.Session // nil if the connection is refused
	refusal string            // why it is

	// Of the goroutine that reads.
	reader  *reader // nil while idle
	prefix  []byte  // read already, to be served first
	one     [1]byte // of an idle wait without a raw socket
	decoder *hpack.Decoder
	lastID  uint32 // the highest stream of the client
	unacked int    // DATA for which the client has no new window yet
	guard   guard
	mine    bool // this goroutine has the turn to write

	// For the raw read that ends an idle wait.
	tryFill func(fd uintptr) (done bool)
	filling bool // Read reads fd and does not wait
	fd      int
	fillErr error

	// Of the coarse clock, for those who look after connections.
	heard   atomic.Int64 // when something last came
	partial atomic.Int64 // since when a frame or the handshake is not complete; 0: none is

	mu sync.Mutex
	sending
}

// reader reads frames. Connections share them; one that waits for the beginning of
// a frame has none.
type reader struct {
	*http2.Framer
	buf     *bufio.Reader
	head    head           // of the header list that is being received
	payload grpcv2.Payload // of the message that is being handled
}

// readBytes is the read buffer of a connection on which something comes, in bytes:
// enough for a few calls. The framer has another, for one frame.
const readBytes = 4 << 10

func newReader() *reader {
	r := &reader{buf: bufio.NewReaderSize(nil, readBytes)}
	r.Framer = http2.NewFramer(io.Discard, r.buf)
	r.SetReuseFrames()
	r.SetMaxReadFrameSize(maxFrame)
	return r
}

func newConn(s *Server, nc net.Conn, prefix []byte) *conn {
	c := &conn{server: s, nc: nc, raw: socket.Raw(nc), peer: addrPort(nc.RemoteAddr()), prefix: prefix}
	c.guard = guard{allowanceMax, time.Now()}
	c.space.L = &c.mu
	c.window, c.streamWindow = defaultWindow, defaultWindow
	c.decoder = hpack.NewDecoder(tableSize, c.field)
	c.decoder.SetMaxStringLength(maxHeaders)
	if c.raw != nil {
		c.tryFill = c.fillOrWait
	}
	now := s.now()
	c.heard.Store(now)
	c.partial.Store(now)
	c.buffer().b = appendSettings(c.buffer().b,
		http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: uint32(s.cfg.MaxStreams)},
		http2.Setting{ID: http2.SettingMaxHeaderListSize, Val: maxHeaders},
	)
	return c
}

// tableSize bounds the table of a client's headers: HTTP/2's default.
const tableSize = 4 << 10

// Peer implements transport.Conn, as do the methods below.
func (c *conn) Peer() netip.AddrPort { return c.peer }

// Local returns the address that the client connected to.
func (c *conn) Local() netip.AddrPort { return addrPort(c.nc.LocalAddr()) }

// addrPort returns an address of a socket; invalid for others.
func addrPort(a net.Addr) netip.AddrPort {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}
	}
	ap := tcp.AddrPort()
	return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
}

// serve serves the connection to its end. A panic costs this connection only.
func (c *conn) serve() {
	defer c.end()
	defer func() {
		if p := recover(); p != nil {
			c.server.log.Error("panic recovered", "where", "a connection", "client_id", c.peer,
				"panic", fmt.Sprint(p), "stack", string(debug.Stack()))
		}
	}()
	err := c.handshake()
	for err == nil {
		if err = c.await(); err == nil {
			err = c.readFrames()
		}
	}
	var fault *connError
	if errors.As(err, &fault) {
		c.giveUp(fault)
	}
	c.server.log.Debug("connection ended", "client_id", c.peer, "reason", err)
}

// handshake reads the client's preface and its first frame, which must be settings.
func (c *conn) handshake() error {
	c.takeReader()
	preface, err := c.reader.buf.Peek(len(http2.ClientPreface))
	if err != nil {
		return err
	}
	if !bytes.Equal(preface, []byte(http2.ClientPreface)) {
		return violation("the preface is not that of HTTP/2")
	}
	if _, err := c.reader.buf.Discard(len(preface)); err != nil {
		return err
	}
	c.takeTurn()
	f, err := c.readFrame()
	if err != nil {
		return err
	}
	if s, ok := f.(*http2.SettingsFrame); !ok || s.IsAck() {
		return violation("the first frame is no SETTINGS")
	}
	if err := c.handle(f); err != nil {
		return err
	}
	c.partial.Store(0)
	return c.readFrames()
}

// readFrames handles the frames that have begun to come.
func (c *conn) readFrames() error {
	for c.reader.buf.Buffered() > 0 || c.reader.head.open {
		f, err := c.readFrame()
		if err != nil {
			return err
		}
		if err := c.handle(f); err != nil {
			return err
		}
		if !c.reader.head.open && c.partial.Load() != 0 {
			c.partial.Store(0)
		}
		if err := c.flushLarge(); err != nil {
			return err
		}
	}
	return nil
}

// readFrame reads a frame, which is valid until the next one is read. A fault of a
// stream alone is handled here.
func (c *conn) readFrame() (http2.Frame, error) {
	for {
		head, err := c.reader.ReadFrameHeader()
		if err == nil {
			var f http2.Frame
			if f, err = c.reader.ReadFrameForHeader(head); err == nil {
				return f, nil
			}
		}
		if err = c.broken(head, err); err != nil {
			return nil, err
		}
	}
}

// broken judges an error of reading a frame; nil: the connection goes on.
func (c *conn) broken(head http2.FrameHeader, err error) error {
	var ofStream http2.StreamError
	var ofConn http2.ConnectionError
	switch {
	case errors.As(err, &ofStream):
		// All others lose a header block, and with it the table of headers.
		if head.Type != http2.FrameWindowUpdate || ofStream.StreamID > c.lastID {
			return &connError{ofStream.Code, "a broken frame"}
		}
		if err := c.charge(costOfFrame); err != nil {
			return err
		}
		c.reset(ofStream.StreamID, ofStream.Code)
		return nil
	case errors.As(err, &ofConn):
		text := "a broken frame"
		if detail := c.reader.ErrorDetail(); detail != nil {
			text = detail.Error()
		}
		return &connError{http2.ErrCode(ofConn), text}
	case errors.Is(err, http2.ErrFrameTooLarge):
		return &connError{http2.ErrCodeFrameSize, "a frame is too large"}
	default:
		return err
	}
}

// await waits for the beginning of the next frame. Until then the connection holds
// no buffer.
func (c *conn) await() error {
	if err := c.flush(); err != nil {
		return err
	}
	c.releaseReader()
	if err := c.fill(); err != nil {
		return err
	}
	c.heard.Store(c.server.now())
	c.takeTurn()
	return nil
}

func (c *conn) takeReader() {
	c.reader = c.server.readers.Get().(*reader)
	c.reader.buf.Reset(c)
}

func (c *conn) releaseReader() {
	c.reader.buf.Reset(nil)
	c.reader.head, c.reader.payload = head{}, grpcv2.Payload{}
	c.server.readers.Put(c.reader)
	c.reader = nil
}

// fill waits for the first byte of a frame, and reads what is there into a reader
// of the pool.
func (c *conn) fill() error {
	if c.raw != nil {
		if err := c.raw.Read(c.tryFill); err != nil {
			return err
		}
		return c.fillErr
	}
	n, err := c.nc.Read(c.one[:])
	if err != nil {
		return err
	}
	c.prefix = c.one[:n]
	c.takeReader()
	_, err = c.reader.buf.Peek(1)
	return err
}

// fillOrWait is called with the socket by the runtime's poller: it takes a reader
// and reads, or gives it back and has the poller wait.
func (c *conn) fillOrWait(fd uintptr) (done bool) {
	c.takeReader()
	c.fd, c.filling = int(fd), true
	_, c.fillErr = c.reader.buf.Peek(1)
	c.filling = false
	if errors.Is(c.fillErr, socket.ErrWouldBlock) {
		c.releaseReader()
		return false
	}
	return true
}

// Read is the source of the connection's reader. Outside of an idle wait it may
// wait for the rest of a frame, after writing what is due.
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
	if c.partial.Load() == 0 {
		c.partial.Store(c.server.now())
	}
	n, err := c.nc.Read(p)
	c.heard.Store(c.server.now())
	c.takeTurn()
	return n, err
}

// Close implements transport.Conn. Calls are answered for a while, streams opened
// later get the status, too.
func (c *conn) Close(status transport.Status) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ending != nil || c.closed {
		return
	}
	c.ending = &status
	for _, st := range c.streams {
		if !st.method.unary() {
			c.conclude(st, status)
		}
	}
	// The client may have opened streams that have not come yet. It learns with the
	// first GOAWAY that it should not, and answers the ping when it has.
	out := c.buffer()
	out.b = appendGoAway(out.b, 1<<31-1, http2.ErrCodeNo, status.Message)
	out.b = appendPing(out.b, false, drainPing)
	c.kick()
	c.closeAfter(c.server.times.linger)
}

// closeAfter closes the socket after a time. The caller holds c.mu.
func (c *conn) closeAfter(d time.Duration) {
	if c.closer == nil && !c.closed {
		c.closer = time.AfterFunc(d, func() { _ = c.nc.Close() })
	}
}

// giveUp tells the client what it did wrong. Closing at once would reset the
// connection and lose the word on its way, so what still comes is dropped for a
// while.
func (c *conn) giveUp(fault *connError) {
	c.mu.Lock()
	out := c.buffer()
	out.b = appendGoAway(out.b, c.lastID, fault.code, fault.text)
	c.closeAfter(c.server.times.linger)
	c.mu.Unlock()
	if c.flush() != nil {
		return
	}
	if half, ok := c.nc.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
		_, _ = io.CopyN(io.Discard, c.nc, lingerBytes)
	}
}

// lingerBytes bounds what is read from a client that is given up.
const lingerBytes = 1 << 20

// end ends the connection and tells everybody.
func (c *conn) end() {
	_ = c.nc.Close()
	c.mu.Lock()
	c.closed = true
	for len(c.streams) > 0 {
		c.close(c.streams[len(c.streams)-1])
	}
	if c.closer != nil {
		c.closer.Stop()
	}
	c.space.Broadcast()
	c.mu.Unlock()
	_ = c.flush() // nothing is written any more, but some may wait to hear that
	c.server.leave(c)
}
