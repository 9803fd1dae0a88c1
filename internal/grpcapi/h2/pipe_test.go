package h2

import (
	"io"
	"net"
	"sync"
	"time"
)

// pipe returns both ends of a connection in memory that holds some bytes on their
// way, as sockets do.
func pipe() (ours, theirs net.Conn) {
	a, b := newHalf(), newHalf()
	return &end{in: a, out: b}, &end{in: b, out: a}
}

// half is one direction of a pipe.
type half struct {
	mu     sync.Mutex
	change sync.Cond
	bytes  []byte
	closed bool
}

// halfBytes is how much a half holds.
const halfBytes = 4 << 10

func newHalf() *half {
	h := &half{}
	h.change.L = &h.mu
	return h
}

func (h *half) read(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for len(h.bytes) == 0 {
		if h.closed {
			return 0, io.EOF
		}
		h.change.Wait()
	}
	n := copy(p, h.bytes)
	h.bytes = h.bytes[n:]
	h.change.Broadcast()
	return n, nil
}

func (h *half) write(p []byte) (n int, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for {
		if h.closed {
			return n, io.ErrClosedPipe
		}
		part := min(len(p)-n, halfBytes-len(h.bytes))
		h.bytes = append(h.bytes, p[n:n+part]...)
		h.change.Broadcast()
		if n += part; n == len(p) {
			return n, nil
		}
		h.change.Wait()
	}
}

func (h *half) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	h.change.Broadcast()
}

// end is one end of a pipe.
type end struct{ in, out *half }

// Read and the methods below implement net.Conn; there are no deadlines.
func (e *end) Read(p []byte) (int, error)  { return e.in.read(p) }
func (e *end) Write(p []byte) (int, error) { return e.out.write(p) }

func (e *end) Close() error {
	e.in.close()
	e.out.close()
	return nil
}

func (e *end) CloseWrite() error {
	e.out.close()
	return nil
}

func (*end) LocalAddr() net.Addr              { return &net.UnixAddr{Name: "pipe", Net: "pipe"} }
func (*end) RemoteAddr() net.Addr             { return &net.UnixAddr{Name: "pipe", Net: "pipe"} }
func (*end) SetDeadline(time.Time) error      { return nil }
func (*end) SetReadDeadline(time.Time) error  { return nil }
func (*end) SetWriteDeadline(time.Time) error { return nil }
