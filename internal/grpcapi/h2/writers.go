package h2

import (
	"sync"
	"syscall"

	"github.com/rollcall-registry/rollcall/internal/socket"
)

// writers are a few goroutines that write to the connections on which something
// waits while nothing comes from their clients. Their queue holds a connection
// once, and so is bounded by the number of connections.
type writers struct {
	mu          sync.Mutex
	wake        sync.Cond // there is a connection in the queue, or it is closed
	first, last *conn
	closed      bool
	running     sync.WaitGroup
}

// start starts n writers.
func (ws *writers) start(n int) {
	ws.wake.L = &ws.mu
	for range n {
		ws.running.Go(ws.run)
	}
}

// stop ends the writers when the queue is empty, and waits for them.
func (ws *writers) stop() {
	ws.mu.Lock()
	ws.closed = true
	ws.wake.Broadcast()
	ws.mu.Unlock()
	ws.running.Wait()
}

// put puts a connection into the queue. Its mutex is held, and taken before that of
// the queue.
func (ws *writers) put(c *conn) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.last == nil {
		ws.first = c
	} else {
		ws.last.behind = c
	}
	ws.last = c
	ws.wake.Signal()
}

// take waits for a connection; nil when there will be none.
func (ws *writers) take() *conn {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for ws.first == nil {
		if ws.closed {
			return nil
		}
		ws.wake.Wait()
	}
	c := ws.first
	if ws.first = c.behind; ws.first == nil {
		ws.last = nil
	}
	c.behind = nil
	return c
}

func (ws *writers) run() {
	w := newWriter()
	for c := ws.take(); c != nil; c = ws.take() {
		c.mu.Lock()
		c.queued = false
		if c.turn {
			c.mu.Unlock()
			continue
		}
		c.turn = true
		c.drain(w)
	}
}

// writer writes to sockets without waiting for them.
type writer struct {
	b   []byte
	n   int
	err error
	try func(fd uintptr) bool
}

func newWriter() *writer {
	w := &writer{}
	w.try = func(fd uintptr) bool {
		w.n, w.err = socket.WriteNow(int(fd), w.b)
		return true
	}
	return w
}

// write writes what the socket takes of b and returns the rest.
func (w *writer) write(raw syscall.RawConn, b []byte) (rest []byte, err error) {
	w.b = b
	err = raw.Write(w.try)
	w.b = nil
	if err != nil {
		return nil, err
	}
	return b[w.n:], w.err
}
