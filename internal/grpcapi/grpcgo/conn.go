package grpcgo

import (
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/rollcall-registry/rollcall/internal/grpcapi/transport"
)

// conn is a connection. grpc-go is given it as a net.Conn and as its own remote
// address, by which the handlers of calls find it again.
type conn struct {
	net.Conn
	server  *Server
	peer    netip.AddrPort
	session transport.Session
	prefix  []byte // read already; touched by the reader only
	once    sync.Once

	mu      sync.Mutex
	streams map[*stream]struct{}
	ended   *transport.Status // set once the streams were ended
}

func newConn(s *Server, nc net.Conn, prefix []byte) *conn {
	return &conn{Conn: nc, server: s, peer: addrPort(nc.RemoteAddr()), prefix: prefix}
}

// Peer and the methods below implement transport.Conn.
func (c *conn) Peer() netip.AddrPort { return c.peer }

// Local returns the address that the client connected to.
func (c *conn) Local() netip.AddrPort { return addrPort(c.LocalAddr()) }

// addrPort returns an address of a socket; invalid for others.
func addrPort(a net.Addr) netip.AddrPort {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}
	}
	ap := tcp.AddrPort()
	return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
}

// remote is a conn as its own address.
type remote struct {
	net.Addr
	conn *conn
}

// RemoteAddr implements net.Conn.
func (c *conn) RemoteAddr() net.Addr { return remote{c.Conn.RemoteAddr(), c} }

// Read implements net.Conn.
func (c *conn) Read(p []byte) (int, error) {
	if len(c.prefix) > 0 {
		n := copy(p, c.prefix)
		c.prefix = c.prefix[n:]
		return n, nil
	}
	return c.Conn.Read(p)
}

// Close implements net.Conn: grpc-go calls it when the connection has ended,
// whoever ended it.
func (c *conn) Close() error {
	err := c.Conn.Close()
	c.closed()
	return err
}

// closed tells everybody that the connection has ended.
func (c *conn) closed() {
	c.once.Do(func() {
		s := c.server
		s.mu.Lock()
		delete(s.conns, c)
		s.mu.Unlock()
		s.admission.Release(c.peer.Addr())
		c.session.Closed(s.stopping.Load())
	})
}

// closer is a conn as transport.Conn, whose Close is another than net.Conn's.
type closer struct{ *conn }

// Close ends the streams and then the connection. grpc-go writes the status in
// its own time, so the connection gets some; a client that has read the status
// closes it earlier.
func (c closer) Close(status transport.Status) {
	c.endStreams(status)
	time.AfterFunc(lingerTime, func() { _ = c.conn.Close() })
}

// endStreams ends the open streams, and each that is opened later.
func (c *conn) endStreams(status transport.Status) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended == nil {
		c.ended = &status
	}
	for st := range c.streams {
		st.end(status)
	}
}

// add notes an open stream.
func (c *conn) add(st *stream) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.streams == nil {
		c.streams = map[*stream]struct{}{}
	}
	c.streams[st] = struct{}{}
	if c.ended != nil {
		st.end(*c.ended)
	}
}

// remove forgets a stream that has ended.
func (c *conn) remove(st *stream) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.streams, st)
}

// queue is the listener through which grpc-go gets its connections.
type queue struct {
	conns chan *conn
	done  chan struct{}
	once  sync.Once
}

func newQueue() *queue { return &queue{conns: make(chan *conn), done: make(chan struct{})} }

// put hands a connection to grpc-go, which takes it at once while it runs. It
// returns false when it does so no longer.
func (q *queue) put(c *conn) bool {
	select {
	case q.conns <- c:
		return true
	case <-q.done:
		return false
	}
}

// Accept implements net.Listener.
func (q *queue) Accept() (net.Conn, error) {
	select {
	case c := <-q.conns:
		return c, nil
	case <-q.done:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (q *queue) Close() error {
	q.close()
	return nil
}

func (q *queue) close() { q.once.Do(func() { close(q.done) }) }

// Addr implements net.Listener. There is no address: listeners are others' work.
func (q *queue) Addr() net.Addr { return &net.UnixAddr{Name: "grpc", Net: "queue"} }
